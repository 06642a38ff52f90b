"""From a user's request to a compiled program.

``api`` reads the arguments of :func:`tcgen.compile`, and ``target`` chooses the target where none
is named, and the machine that plans for a GPU are made for. ``driver`` calls the stages one after
the other: ``numbers_in_range`` refuses numbers that the element type cannot hold,
``real_arguments`` maxima of complex numbers; ``plan_cache`` looks up sequences and plans on disk,
which ``serialize`` writes and reads as text; ``memory_limit`` plans and lowers again until a
program fits its limit; ``launch_limit`` refuses what would launch too many kernels; ``autotune``
and, for a GPU, ``gpu_tuning`` replace variants of products by those that ``timings`` finds faster.
``program_cache`` holds the programs of einsum calls and lazy arrays in a process.
``progress`` tells in words what is being done. ``documents`` reads the equations and the plan
beside a saved program. ``deprecations`` has the public names of the version before.
"""
