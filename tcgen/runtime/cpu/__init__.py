"""Compiled programs on the CPU.

``toolchain`` is the C compiler and ``object_cache`` the disk; ``build`` makes libraries with both;
``blas`` finds the BLAS of SciPy; ``lazy_link`` compiles rare functions when a call needs them;
``threads`` is the number of threads; ``backend`` links all of it and runs kernels.
"""
