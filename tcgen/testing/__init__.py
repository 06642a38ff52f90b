"""For tests of programs that use tcgen: random inputs, comparison, random systems.

:func:`random_arrays` draws inputs that keep what the equations promise; :func:`assert_same_values`
compares results; :func:`systems` and :func:`extents_for` are hypothesis strategies, for which
hypothesis must be installed; :func:`rewritten` writes a system in another way.

They are in ``arrays`` (with ``signs``, under which no denominator vanishes), ``strategies`` (with
``operators``, the permutations that axes allow) and ``rewritings``.
"""

from .arrays import assert_same_values, random_arrays, split_starts
from .rewritings import Rewriting, rewritten
from .strategies import extents_for, systems

__all__ = [
    "Rewriting",
    "assert_same_values",
    "extents_for",
    "random_arrays",
    "rewritten",
    "split_starts",
    "systems",
]
