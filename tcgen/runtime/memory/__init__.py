"""Memory of a program.

``usage``, and for a GPU ``gpu_usage``, count the bytes of a call as a ``footprint``; ``ledger``
allocates them and counts again; ``pool`` retains memory between calls.
"""
