"""Lazy arrays: NumPy code whose operations are fused before they run.

``array`` is the class that users hold; ``record`` turns calls of NumPy's functions into nodes of a
``graph``; ``equations`` writes a graph as a System; ``evaluate`` compiles and runs it.
"""
