"""Programs on a GPU.

``host_copies`` brings arrays there and back, ``cupy_device`` is its memory and compiler,
``backend`` launches kernels.
"""
