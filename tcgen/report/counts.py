"""Counts that a page can evaluate at other extents: polynomials and products as plain lists.

`templates/report/page.js` evaluates the lists in exact integers; :func:`product_value` is its rule
for products in Python.

A product is a list of factors ``[spaces, fixed, sign]``: the sum of the extents of the base
``spaces``, or ``min(fixed, that sum)`` for a tile where ``fixed`` is not None, or the length n(n +
sign)/2 of a packed triangle where ``sign`` is not 0; without spaces it is ``fixed`` itself. A
polynomial is ``[denominator, [[coefficient, [[space, power], ...]], ...]]`` in whole numbers as
text, divided at the end, rounded towards zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import lcm
from typing import Any

from ..artifact.manifest import BufferEntry, Manifest, TensorEntry
from ..ir.cost import ZERO, Poly
from ..ir.plan import ArrayPlan
from ..ir.tensor import Space, Tensor

Factor = list[Any]


def polynomial(poly: Poly) -> list[Any]:
    """A cost polynomial as plain data.

    Example:
        >>> polynomial(Poly.of(2, (Space("o"), Space("v"))))
        ['1', [['2', [['o', 1], ['v', 1]]]]]
    """
    denominator = lcm(*(c.denominator for _, c in poly.terms))
    return [
        str(denominator),
        [[str(int(c * denominator)), [list(p) for p in powers]] for powers, c in poly.terms],
    ]


def product_value(factors: list[Factor], extents: Mapping[str, int]) -> int:
    """The product of the factors at given extents.

    Example:
        >>> product_value([[["o", "v"], None, 0], [["v"], 4, 0]], {"o": 3, "v": 9})
        48
    """
    total = 1
    for spaces, fixed, sign in factors:
        n = sum(extents[s] for s in spaces)
        if fixed is not None:
            n = min(n, fixed) if spaces else fixed
        total *= n * (n + sign) // 2 if sign else n
    return total


def whole_product(tensor: Tensor) -> list[Factor]:
    """Elements of a tensor in full."""
    return [_axis(space) for space in tensor.spaces]


def array_product(array: ArrayPlan) -> list[Factor]:
    """Elements of an instance under fusion: a contracted axis counts 1, or its tile."""
    factors = []
    for axis, space in enumerate(array.tensor.spaces):
        loop = array.loop_of(axis)
        factors.append(_axis(space, None if loop is None else loop.tile or 1))
    return factors


def stored_polynomial(entry: TensorEntry | BufferEntry, manifest: Manifest) -> Poly:
    """Elements of an array in memory, as a polynomial in the extents."""
    elements = Poly.of(1)
    for bases, length, sign in stored_product(entry, manifest):
        n = sum((Poly.of(1, (Space(base),)) for base in bases), ZERO)
        if length is not None:
            n = Poly.of(length)
        elements = elements * n
        if sign:
            elements = elements * (n + Poly.of(sign)) * Poly.of(Fraction(1, 2))
    return elements


def stored_product(entry: TensorEntry | BufferEntry, manifest: Manifest) -> list[Factor]:
    """Elements of an array in memory: a packed pair is one axis of its triangle."""
    factors: list[Factor] = []
    lengths = entry.lengths if isinstance(entry, BufferEntry) else (None,) * len(entry.spaces)
    for axis, pair in entry.stored():
        sign = 0 if pair is None else -1 if pair.antisymmetric else 1
        # The memory of a tile is that of a whole one, even where the space is shorter.
        whole = lengths[axis] is None
        bases = list(manifest.bases_of(entry.spaces[axis])) if whole else []
        factors.append([bases, lengths[axis], sign])
    return factors


def _axis(space: Space, fixed: int | None = None) -> Factor:
    return [[base.name for base in space.bases], fixed, 0]
