"""Objective ``kernels``.

``objective``, by weighted subgraph partitioning (``wsp``, ``partition``).
"""
