"""C sources.

``kernels``, by ``loops``, ``joined_loops``, ``expressions``, ``gemm`` and ``contraction``.
"""
