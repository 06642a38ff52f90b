"""Programs on a GPU: copies, the device with its memory and compiler, launches of kernels.

``device_machine`` has its constants for plans.
"""
