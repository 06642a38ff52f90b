"""Lazy arrays: NumPy code whose operations are fused before they run.

``backend`` is the library that computes in the memory of the CPU or of a GPU; ``graph`` has the
nodes of recorded operations; ``linearized`` puts them in an order and names their form;
``in_numpy`` runs them one by one; ``equations`` writes them as a System, which ``kernels``
compiles; ``dispatch`` chooses between the two by measured times, and ``evaluate`` runs them.
``recording`` makes a node, and evaluates its operands if the graph exceeds a limit; ``ufuncs``
turns calls of NumPy's functions into nodes, ``reductions`` those that reduce axes, and
``functions`` lists them; ``slices`` takes parts of nodes, and ``rolls`` blocks that read rolled
arrays as slices. ``memory`` lets views share arrays; ``arguments`` reads those of calls; ``calls``
(with elements and updates), ``operators`` and ``array`` make the class that users hold.
``namespace`` is the module of the array API.
"""
