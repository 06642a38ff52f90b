"""NumPy sources: ``kernels`` (functions and statements) by ``expressions``."""
