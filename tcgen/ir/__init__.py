"""The levels of a program, from equations to loops: frozen dataclasses, and their readers.

Parts of all levels: ``tensor`` (spaces, indices, tensors), ``quantity`` (the role of an input in a
calculation), ``expr`` (element-wise expressions), ``reduction`` (over indices: sum, maximum,
minimum, product, and running ones), ``cost`` (polynomials in extents, points equal by symmetry),
``layouts`` (dense and packed arrays), ``level`` (their base class). The levels in the order of
compilation: 1 ``system``, 2 ``program``, 3 ``plan``, and 4 ``loops`` with ``thread_mapping`` for
GPUs. What they share: ``conserved_factors``, ``orbital_phases`` and ``conservation`` (of momenta,
levels 1 and 2), ``term_rewriting`` (level 1), ``exchange_symmetry`` and ``halved_products`` (level
2), ``loop_analysis``, ``chains`` (of triangular variables), ``parts`` and ``executed`` (flops and
bytes, by ``iteration_domain``; level 4), ``pretty`` (text of all levels) and ``verify`` (rules of
all levels).

``verify`` and ``pretty`` are imported here because the methods of the levels call them.
"""

from . import pretty as pretty
from . import verify as verify
