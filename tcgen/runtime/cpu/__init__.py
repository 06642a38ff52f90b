"""Compiled programs on the CPU.

``toolchain`` runs the C compiler; ``object_cache`` stores libraries on disk, or in a
``private_folder`` of this process; ``build`` makes libraries, unless the artifact has
``bundled_objects``. ``blas`` finds the BLAS of SciPy and sets the number of threads;
``interrupt`` lets Ctrl-C end long calls. ``backend`` links all of it and runs kernels.
"""
