"""Loops over blocks for operands with different unit-stride axes.

``y = sum(i,j,a,b) x[i,j,a,b] * z[a,b,i,j]``: loops in the order of ``x`` use one element of each
cache line of ``z``, and need the line again for the next j, after all a and b; by then no cache
holds it. Loops over blocks of (i, j) by (a, b) load each line of both operands once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...dtypes import FLOAT64
from ...hardware import PAGE_BYTES
from ...ir.expr import Access, leaves
from ...ir.loops import Buffer
from ...thresholds import CpuThresholds
from ..layout import Band, elements, in_order, memory_order, unit_stride
from ..statements import Statement


@dataclass(frozen=True, slots=True)
class Crossing:
    """Two operands with different unit-stride variables: ``inner`` of main, ``outer`` of other."""

    main: Access
    other: Access
    inner: str
    outer: str

    @property
    def pair(self) -> tuple[str, str]:
        """The two variables that are blocked, in the order of the loops."""
        return self.outer, self.inner


def crossing_of(
    statement: Statement,
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
    thresholds: CpuThresholds,
) -> Crossing | None:
    """The largest operand and another operand with a different unit-stride variable, or None.

    Any order of loops reads one of them across its cache lines, unless both unit-stride variables
    are blocked. Reading across lines is nevertheless faster as long as the TLB still holds the
    pages of these lines when they are needed again, for the next point of ``outer``.
    """
    packed = buffers[statement.out.buffer].packed
    if packed or any(v.below is not None for v in statement.band) or statement.orbit:
        return None
    names = [v.name for v in statement.band]
    main = largest(statement, extents)
    inner = unit_stride(main, buffers[main.buffer])
    for other in dict.fromkeys(leaves(statement.expr)):
        if not isinstance(other, Access):
            continue
        outer = unit_stride(other, buffers[other.buffer])
        if inner is None or outer is None or inner == outer:
            continue
        if not all(
            name in names and [s.variable for s in x.subscripts].count(name) == 1
            for x in (main, other)
            for name in (inner, outer)
        ):
            continue
        if buffers[main.buffer].packed or buffers[other.buffer].packed:
            continue
        order = memory_order(main, buffers[main.buffer])
        if order.index(outer) > order.index(inner):  # there main has one element along outer
            continue
        crossing = Crossing(main, other, inner, outer)
        if _pages_between(crossing, statement, buffers, extents) > thresholds.tlb_pages:
            return crossing
    return None


def _pages_between(
    crossing: Crossing,
    statement: Statement,
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
) -> int:
    """Pages of ``other`` that the loops meet from one point of ``outer`` to the next."""
    band = {v.name: v for v in statement.band}
    loops, order = (memory_order(x, buffers[x.buffer]) for x in (crossing.main, crossing.other))
    inside = [n for n in loops[loops.index(crossing.outer) + 1 :] if n in order and n in band]
    first = min(order.index(n) for n in inside)
    region = tuple(band[n] for n in order[first:] if n in band)
    lines = elements(tuple(band[n] for n in inside), extents)
    return min(lines, elements(region, extents) // (PAGE_BYTES // FLOAT64.itemsize))


def blocked_band(
    crossing: Crossing, statement: Statement, buffers: Mapping[str, Buffer]
) -> Band | None:
    """Loops that visit all points of a sum for each block of the target; None if that is slower.

    It is slower if the target holds both variables and a sum is outside of them in main's memory:
    then main is read in its own order, and the target is read and written several times.
    """
    held = {*statement.out.variables}
    order = memory_order(crossing.main, buffers[crossing.main.buffer])
    runs = [
        _adjacent_run(name, (crossing.main, crossing.other), statement, buffers)
        for name in crossing.pair
    ]
    others = [v for v in statement.band if all(v not in run for run in runs)]
    others.sort(key=lambda v: order.index(v.name) if v.name in order else -1)
    free = [v for v in others if v.name in held]
    summed = [v for v in others if v.name not in held]
    places = [order.index(name) for name in crossing.pair]
    if held >= {*crossing.pair} and any(
        v.name in order and order.index(v.name) < min(places) for v in summed
    ):
        return None
    for run in runs:
        (free if run[-1].name in held else summed).extend(run)
    return (*free, *summed)


def transposed_band(
    source: Access, pair: tuple[str, str], statement: Statement, buffers: Mapping[str, Buffer]
) -> Band:
    """Loops of a transposition: the blocked pair innermost, so that blocks stay in a cache.

    ``pair`` is the unit-stride variable of the target and that of ``source``. Variables that
    precede one of them on adjacent axes of both arrays stay beside it, to be joined with it,
    unless one of them walks a tile.
    """
    runs = [_adjacent_run(name, (source,), statement, buffers) for name in pair]
    inner, outer = (run[-1:] if any(v.base for v in run) else run for run in runs)
    others = (v for v in statement.band if v not in (*inner, *outer))
    order = memory_order(statement.out, buffers[statement.out.buffer])
    return (*in_order(tuple(others), order), *outer, *inner)


def _adjacent_run(
    name: str, operands: Sequence[Access], statement: Statement, buffers: Mapping[str, Buffer]
) -> Band:
    """A variable, after those that precede it on adjacent axes of all arrays."""
    band = {v.name: v for v in statement.band}
    held = statement.out.variables
    arrays = (*operands, *((statement.out,) if name in held else ()))
    orders = [memory_order(x, buffers[x.buffer]) for x in arrays]
    run: Band = (band[name],)
    while all(run[0].name in order[1:] for order in orders):
        first, *different = {order[order.index(run[0].name) - 1] for order in orders}
        if different or first not in band or (first in held) != (name in held):
            break
        run = (band[first], *run)
    return run


def largest(statement: Statement, extents: Mapping[str, int]) -> Access:
    """The operand of which the loops touch the most elements."""
    operands = [x for x in leaves(statement.expr) if isinstance(x, Access)]
    return max(operands, key=lambda x: touched(x, statement, extents), default=statement.out)


def touched(access: Access, statement: Statement, extents: Mapping[str, int]) -> int:
    """Elements of an operand that the loops of a statement touch."""
    return elements(tuple(v for v in statement.band if v.name in access.variables), extents)
