"""C sources.

In the order in which they work: ``kernels`` (functions of kernels and phases) prints statements by
``loops`` (with ``joined_loops``, ``blocks`` of two variables and ``stores``, and for copies
``transposition`` and ``packed_rows``), ``gemm`` (calls of the BLAS) and ``contraction`` (the
generated kernel); all of them by ``expressions``. ``counting`` makes code that counts its flops,
for tests of reports. ``targets`` has the sizes of the generated kernel for each processor.
"""
