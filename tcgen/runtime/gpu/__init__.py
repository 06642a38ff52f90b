"""Programs on a GPU.

``cupy_device`` is its memory and compiler, with the copies of ``host_copies``, and ``cublas`` its
library of matrix products; ``device_machine`` has its constants for plans; ``backend`` launches
kernels, and ``library`` the products that are left to the library.
"""
