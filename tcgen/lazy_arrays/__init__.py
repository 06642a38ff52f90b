"""Lazy arrays.

``array`` is what users hold, ``record`` notes NumPy's calls in a ``graph``, ``equations`` makes a
System of it and
``evaluate`` runs it.
"""
