"""Programs on a GPU: ``cupy_device`` is its memory and compiler, ``backend`` launches kernels.

``device_machine`` has its constants for plans.
"""
