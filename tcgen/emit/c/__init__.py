"""C sources.

``kernels`` (functions of kernels and phases) prints statements by ``loops`` (with
``loop_transforms`` and ``stores``, and for copies ``transposition`` and ``packed_rows``), ``gemm``
(calls of the BLAS) and ``contraction`` (the generated kernel); all of them by ``expressions``.
``targets`` has the sizes of the generated kernel for each processor, ``pieces`` the division of a
large source.
"""
