"""Programs on a GPU.

``cupy_device`` is its memory and compiler, with the copies of ``host_copies``, ``cublas`` its
library of matrix products, and ``cutensor`` that of contractions; ``device_machine`` has its
constants for plans; ``backend`` launches kernels, and ``library`` the products that are left to
a library.
"""
