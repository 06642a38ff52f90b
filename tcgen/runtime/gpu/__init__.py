"""Programs on a GPU.

``cupy_device`` has its memory, compiler, and constants for plans; ``host_copies`` copies arrays
between it and the CPU; ``cuda_libraries`` calls cuBLAS and cuTENSOR. ``backend`` launches kernels,
and ``library`` the products that a library computes. ``numbered`` has the streams of several GPUs.
"""
