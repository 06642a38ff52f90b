"""Operands of a statement's loops that lie across each other in memory.

``y = sum(i,j,a,b) x[i,j,a,b] * z[a,b,i,j]``: loops in the order of ``x`` read a line of ``z`` for
one element, and again for the next j, all a and b later, when no cache has it any more. Loops over
blocks of (i, j) by (a, b) read each line of both once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...ir.expr import Access, leaves
from ...ir.loops import Buffer
from ..layout import Band, elements, fastest, walked
from ..statements import Statement

_PAGE = 2**9  # doubles of a page
_KNOWN = 2**11  # pages whose places a processor remembers


@dataclass(frozen=True, slots=True)
class Crossing:
    """Two operands that lie across each other, and their stride-1 variables."""

    main: Access
    other: Access
    inner: str
    across: str

    @property
    def pair(self) -> tuple[str, str]:
        """What is blocked, in the order of loops."""
        return self.across, self.inner


def crossing_of(
    statement: Statement, buffers: Mapping[str, Buffer], extents: Mapping[str, int]
) -> Crossing | None:
    """The largest operand and another one of a statement that lie across each other.

    In any order of loops one of them is read across its lines, but for blocks of both stride-1
    variables. As long as it is still known where these lines are when they are read again, for the
    next point of ``across``, that is the faster way.
    """
    if any(v.below is not None for v in statement.band) or statement.orbit:
        return None
    names = [v.name for v in statement.band]
    main = largest(statement, extents)
    inner = fastest(main, buffers[main.buffer])
    for other in dict.fromkeys(leaves(statement.expr)):
        if not isinstance(other, Access):
            continue
        across = fastest(other, buffers[other.buffer])
        if inner is None or across is None or inner == across:
            continue
        if not all(
            name in names and [s.variable for s in x.subscripts].count(name) == 1
            for x in (main, other)
            for name in (inner, across)
        ):
            continue
        if buffers[main.buffer].packed or buffers[other.buffer].packed:
            continue
        crossing = Crossing(main, other, inner, across)
        if _pages_between(crossing, statement, buffers, extents) > _KNOWN:
            return crossing
    return None


def _pages_between(
    crossing: Crossing,
    statement: Statement,
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
) -> int:
    """Pages of the operand that is read across, from one point of ``across`` to the next."""
    band = {v.name: v for v in statement.band}
    walk, order = (walked(x, buffers[x.buffer]) for x in (crossing.main, crossing.other))
    inside = [n for n in walk[walk.index(crossing.across) + 1 :] if n in order and n in band]
    first = min(order.index(n) for n in inside)
    region = tuple(band[n] for n in order[first:] if n in band)
    lines = elements(tuple(band[n] for n in inside), extents)
    return min(lines, elements(region, extents) // _PAGE)


def crossed(crossing: Crossing, statement: Statement, buffers: Mapping[str, Buffer]) -> Band | None:
    """Loops of blocks over operands that lie across each other: for each block all sums.

    None where sums stand outside of the blocks in memory, and the target holds both variables:
    then operands are better walked as they lie, and the target again and again.
    """
    held = {*statement.out.variables}
    order = walked(crossing.main, buffers[crossing.main.buffer])
    runs = [_joined_run(name, crossing, statement, buffers) for name in crossing.pair]
    others = [v for v in statement.band if all(v not in run for run in runs)]
    others.sort(key=lambda v: order.index(v.name) if v.name in order else -1)
    kept = [v for v in others if v.name in held]
    summed = [v for v in others if v.name not in held]
    places = [order.index(name) for name in crossing.pair]
    if held >= {*crossing.pair} and any(
        v.name in order and order.index(v.name) < min(places) for v in summed
    ):
        return None
    for run in runs:
        (kept if run[-1].name in held else summed).extend(run)
    return (*kept, *summed)


def _joined_run(
    name: str, crossing: Crossing, statement: Statement, buffers: Mapping[str, Buffer]
) -> Band:
    """A variable behind those that stand in front of it in all arrays, one after the other."""
    band = {v.name: v for v in statement.band}
    held = statement.out.variables
    arrays = (crossing.main, crossing.other, *((statement.out,) if name in held else ()))
    orders = [walked(x, buffers[x.buffer]) for x in arrays]
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
