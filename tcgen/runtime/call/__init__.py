"""One call of a program, on any device.

``layout`` resolves the memory of calls at some extents; ``results`` prepares the arrays of the
results; ``host_loops`` has the buffers of a phase and walks the loops of the host program;
``phase`` runs the kernels.
"""
