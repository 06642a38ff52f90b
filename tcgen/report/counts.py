"""Counts that a page can evaluate at other extents: polynomials and products as plain lists.

`templates/report/page.js` evaluates the lists in exact integers; :func:`product_value` is its rule
for products in Python.

A product is a list of factors ``[spaces, fixed, sign]``: the sum of the extents of the base
``spaces``, or ``min(fixed, that sum)`` for a tile where ``fixed`` is not None, or the length n(n +
sign)/2 of a packed triangle where ``sign`` is not 0; without spaces it is ``fixed`` itself. A
polynomial is ``[denominator, [[coefficient, [[space, power], ...]], ...]]`` of integers as text,
divided at the end, rounded towards zero. Work is ``[[each, place], ...]``: a number for each
point of the domain at that place of a table. A domain (``tcgen/ir/iteration_domain.py``) is a list
of parts that do not depend on each other, a part a list of ranges ``[spaces, fixed, step, base,
tile, bound, past]``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heapify, heappop
from itertools import pairwise
from math import inf, lcm
from typing import Any

from ..artifact.manifest import Manifest
from ..dtypes import BY_NAME
from ..ir.cost import ZERO, Poly
from ..ir.executed import Amount, StatementWork
from ..ir.iteration_domain import Domain, connected
from ..ir.plan import ArrayPlan
from ..ir.tensor import Space, Tensor, element_type
from ..records.loops import Buffer
from ..simplices import stored_values

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


@dataclass(slots=True)
class DomainTable:
    """Domains of loops as plain data; work refers to them by position."""

    parts: list[Any] = field(default_factory=list)
    places: dict[Domain, int] = field(default_factory=dict)

    def flops(self, statements: Iterable[StatementWork]) -> list[list[int]]:
        """Flops of statements: ``[flops at a point, domain]``."""
        return self._work(work.flops for work in statements if work.flops is not None)

    def bytes(self, statements: Iterable[StatementWork]) -> list[list[int]]:
        """Bytes that statements read and write: ``[bytes of an element, domain]``."""
        return self._work(a for work in statements for a in (*work.read, *work.written))

    def _work(self, amounts: Iterable[Amount]) -> list[list[int]]:
        each: Counter[int] = Counter()
        for amount in amounts:
            each[self._place(amount.domain)] += amount.each
        return [[count, place] for place, count in each.items()]

    def _place(self, domain: Domain) -> int:
        if domain not in self.places:
            self.places[domain] = len(self.parts)
            self.parts.append(domain_rows(domain))
        return self.places[domain]


def domain_rows(domain: Domain) -> list[list[list[Any]]]:
    """The parts of a domain as plain data."""
    return [
        [[list(r.spaces), r.fixed, r.step, r.base, r.tile, r.bound, r.past] for r in part]
        for part in connected(domain)
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
        total *= stored_values(n, abs(sign) + 1, strict=sign < 0)
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


def stored_polynomial(entry: Tensor | Buffer) -> Poly:
    """Elements of an array in memory, as a polynomial in the extents."""
    elements = Poly.of(1)
    for bases, length, sign in stored_product(entry):
        n = sum((Poly.of(1, (Space(base),)) for base in bases), ZERO)
        if length is not None:
            n = Poly.of(length)
        elements = elements * n
        for k in range(1, abs(sign) + 1):
            step = k if sign > 0 else -k
            elements = elements * (n + Poly.of(step)) * Poly.of(Fraction(1, k + 1))
    return elements


def stored_product(entry: Tensor | Buffer) -> list[Factor]:
    """Elements of an array in memory: packed axes are one axis of their distinct values."""
    factors: list[Factor] = []
    spaces = entry.spaces
    lengths = [a.length for a in entry.axes] if isinstance(entry, Buffer) else [None] * len(spaces)
    for axis, pair in entry.stored():
        sign = 0 if pair is None else (1 - pair.count if pair.antisymmetric else pair.count - 1)
        # The memory of a tile is that of a whole one, even where the space is shorter.
        whole = lengths[axis] is None
        bases = [base.name for base in spaces[axis].bases] if whole else []
        factors.append([bases, lengths[axis], sign])
    return factors


def _axis(space: Space, fixed: int | None = None) -> Factor:
    return [[base.name for base in space.bases], fixed, 0]


def live_bytes(manifest: Manifest) -> tuple[Poly, ...]:
    """Bytes of the arrays beyond the inputs at each moment of a call: a lower bound of its peak.

    Counts results, arrays that the constant phase stores, and the live buffers. A moment is left
    out if all its arrays are also live at the next one. The peak itself comes from
    :func:`tcgen.runtime.memory.memory_use`, which places and aligns the blocks of the arenas
    and adds packed blocks of contractions and scratch of kernels on a GPU.
    """
    # On a GPU private buffers are in shared memory, or part of the scratch of their kernel.
    places = ("arena",) if manifest.target == "cuda" else ("arena", "private")
    arena = [b for b in manifest.buffers if b.place in places]
    always = _bytes(manifest.outputs, manifest)
    always = always + _bytes([b for b in arena if b.keep], manifest)
    split = manifest.constant_positions
    phases = (
        [b for b in arena if not b.keep and b.live[0] < split],
        [b for b in arena if not b.keep and b.live[0] >= split],
    )
    moments = [always + held for p in phases for held in _largest_sums(p, manifest)]
    return tuple(dict.fromkeys(moments)) or (always,)


def _largest_sums(buffers: list[Buffer], manifest: Manifest) -> list[Poly]:
    """Bytes of the sets of buffers live at one moment that are within no other such set."""
    sizes = [_bytes([b], manifest) for b in buffers]
    starting: dict[int, list[int]] = {}
    for number, buffer in enumerate(buffers):
        starting.setdefault(buffer.live[0], []).append(number)
    ending = [(buffer.live[1], number) for number, buffer in enumerate(buffers)]
    heapify(ending)
    held, sums = ZERO, list[Poly]()
    for now, after in pairwise([*sorted(starting), inf]):
        held = sum((sizes[n] for n in starting[int(now)]), held)
        if ending and ending[0][0] < after:
            sums.append(held)
        while ending and ending[0][0] < after:
            held = held + sizes[heappop(ending)[1]] * Poly.of(-1)
    return sums


def _bytes(entries: Iterable[Tensor | Buffer], manifest: Manifest) -> Poly:
    total = ZERO
    for entry in entries:
        dtype = entry.dtype if isinstance(entry, Buffer) else element_type(entry, manifest.dtype)
        total = total + stored_polynomial(entry) * Poly.of(BY_NAME[dtype].itemsize)
    return total
