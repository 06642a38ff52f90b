"""Programs on a GPU.

``cupy_device`` is its memory and compiler, ``cublas`` its library of matrix products; ``backend``
launches kernels, and ``library`` the products that are left to the library.
"""
