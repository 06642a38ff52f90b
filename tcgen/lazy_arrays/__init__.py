"""Lazy arrays: NumPy code whose operations are fused before they run.

``backend`` is the library that computes in the memory of the CPU or of a GPU. ``graph`` has the
nodes of recorded operations, and puts them in an order; ``views`` takes parts of them. ``compile``
writes a graph as a System and compiles it; ``dispatch`` chooses between a kernel and NumPy by
measured times, and ``run`` runs them. ``record`` turns calls of NumPy's functions into nodes, and
evaluates operands if the graph exceeds a limit; ``ufuncs`` and ``functions`` are the tables of
functions. ``memory`` lets views share arrays; ``calls`` (with elements and updates) and ``array``
make the class that users hold. ``namespace`` is the module of the array API.
"""
