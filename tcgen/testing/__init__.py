"""Support for tests of programs that use tcgen: random inputs, comparison, random systems.

``strategies`` has :func:`systems` and :func:`extents_for`, hypothesis strategies that need
hypothesis to be installed; it takes symmetries from ``operators``. ``rewritings`` has
:func:`rewritten`, which gives an equivalent system with other names and another order. Random
arrays and their comparison come from ``tcgen.probes``. No other package of tcgen imports this one.
"""

from ..probes import assert_same_values, random_arrays, split_starts
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
