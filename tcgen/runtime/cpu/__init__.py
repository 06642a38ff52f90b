"""Compiled programs on the CPU.

``toolchain`` is the C compiler, which ``compiler_process`` runs; ``object_cache`` is the disk, or
the ``private_folder`` of this process; ``build`` makes libraries with them, unless an
artifact has ``carried`` objects; ``blas`` finds the BLAS
of SciPy; ``lazy_link`` compiles rare functions when a call needs them; ``threads`` is the number of
threads; ``ending`` lets Ctrl-C end long calls; ``backend`` links all of it and runs kernels.
"""
