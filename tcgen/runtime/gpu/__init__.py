"""Programs on a GPU: ``cupy_device`` is its memory and compiler, ``backend`` launches kernels."""
