"""The command line.

``commands``, with ``options``, ``output``, the trial ``run`` and ``doctor``.
"""
