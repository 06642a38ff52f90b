"""NumPy sources: ``kernels``, with ``expressions``."""
