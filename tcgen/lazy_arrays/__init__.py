"""Lazy arrays: NumPy code whose operations are fused before they run.

``backend`` says whether arrays are in the memory of the CPU or of a GPU, and which library computes
there; ``graph`` has the nodes of recorded operations; ``line`` puts them in an order and names
their form; ``in_numpy`` runs a line operation by operation; ``equations`` writes it as a System,
which ``kernels`` compiles; ``worth`` says which of the two pays, by measured ``times``;
``evaluate`` does it. ``noting`` makes a node, and computes what waits where that is too much;
``record`` turns calls of NumPy's functions into nodes, ``reductions`` those that reduce axes, with
the ``positions`` of maxima, and ``functions`` lists them; ``slices`` takes parts of nodes, and
``rolls`` those in which rolled arrays are slices. ``memory`` lets views share arrays;
``arguments`` reads those of calls; ``elements`` (slices and updates), ``calls``, ``methods``,
``operators``, ``protocols`` and ``array`` make the class that users hold. ``array_api`` and
``namespace`` are its module of the array API.
"""
