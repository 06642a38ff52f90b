"""One call of a program, on any device.

``layout`` resolves the memory of calls at some extents; ``strided`` tells which arrays kernels take
in place; ``results`` prepares the arrays of the results; ``buffers`` gives each buffer its memory;
``host_loops`` walks the loops of the host program, and ``phase`` runs the kernels.
"""
