"""Transformations of loops in C: adjacent axes joined to one loop, two loops cut into blocks.

Joined. Before: ``for i, a, b: y[a*N_b + b] += x[i]*z[(i*N_a + a)*N_b + b]``. After:
``for i, for b < N_a*N_b: y[b] += x[i]*z[i*N_a*N_b + b]``. A loop of few iterations does not fill
vectors, and its start takes as long as several iterations.

Blocked. Before: ``for a, b``. After: ``for (tc_from_a) for (tc_from_b) for a in its block for b in
its block``. Of a triangle ``b < a``, blocks without points are left out.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.expr import Access, Equal, accesses_of, leaves
from ...ir.loops import Assign, BandVar, Buffer
from ..printing import product
from ..scope import Scope
from .expressions import bounds, length

_START = "tc_from_"  # prefix of the variable that holds the start of a block


def blocked_pair(band: tuple[BandVar, ...], stmt: Assign) -> tuple[BandVar, ...]:
    """The two blocked variables in loop order, or ().

    The second may be bounded by the first, or by a variable outside of both: between the loops over
    blocks and those within a block no further bound is known.
    """
    pair = tuple(v for v in band if v.name in stmt.block)
    if len(pair) != 2:
        return ()
    between = band[band.index(pair[0]) + 1 : band.index(pair[1])]
    return () if pair[1].below in {v.name for v in between} else pair


def is_triangle(pair: tuple[BandVar, ...]) -> bool:
    """True if the second of two blocked variables is bounded by the first."""
    return bool(pair) and pair[1].below == pair[0].name


def collapsible(pair: tuple[BandVar, ...], stmt: Assign) -> int:
    """Loops over blocks that threads can divide: those of the target, with independent bounds."""
    return 2 if pair[1].name in stmt.out.variables and pair[1].below is None else 1


def start(var: BandVar, scope: Scope) -> str:
    """The variable in the source that holds the start of a block."""
    return f"{_START}{scope.variables[var.name]}"


def ends(pair: tuple[BandVar, ...], scope: Scope, side: str) -> tuple[str, str]:
    """The ends of the ranges of two blocked variables, for a block of the first one."""
    first, second = pair
    end = bounds(first, scope)[1]
    if not is_triangle(pair):
        return end, bounds(second, scope)[1]
    last = f"tc_min({start(first, scope)} + {side}, {end})" + (" - 1" if second.strict else "")
    if second.base is None:
        return end, last
    return end, f"tc_min({bounds(replace(second, below=None), scope)[1]}, {last})"


def over_blocks(var: BandVar, end: str, scope: Scope, side: str) -> str:
    """The head of the loop over the blocks of a variable."""
    name = start(var, scope)
    return f"for (int64_t {name} = {bounds(var, scope)[0]}; {name} < {end}; {name} += {side})"


def within_block(var: BandVar, scope: Scope, side: str) -> str:
    """The head of the loop over the points of a variable in a block."""
    name, (_, end) = scope.variables[var.name], bounds(var, scope)
    stop = f"tc_min({start(var, scope)} + {side}, {end})"
    return f"for (int64_t {name} = {start(var, scope)}; {name} < {stop}; ++{name})"


def points_in_block(var: BandVar, end: str, scope: Scope, side: str) -> str:
    """How many points of a variable, which ends at ``end``, a block has."""
    return f"tc_min({side}, {end} - {start(var, scope)})"


def joined(stmt: Assign, scope: Scope) -> tuple[Assign, Scope]:
    """A statement with fewer loops, and the scope with its new variables and lengths."""
    if stmt.orbit or any(isinstance(leaf, Equal) for leaf in leaves(stmt.expr)):
        return stmt, scope
    accesses = (stmt.out, *accesses_of(stmt.expr))
    groups: list[list[BandVar]] = []
    for var in stmt.band:
        if groups and _neighbours(groups[-1][-1], var, stmt, accesses, scope):
            groups[-1].append(var)
        else:
            groups.append([var])
    left = [group[-1] for group in groups]
    starts = [stmt.band.index(group[0]) for group in groups]
    whole = {g[-1].name: product([length(v, scope) for v in g]) for g in groups if len(g) > 1}
    first = {v.name: "0" for group in groups for v in group[:-1]}
    parallel = sum(start < stmt.parallel for start in starts)
    return (
        replace(stmt, band=tuple(left), parallel=parallel),
        replace(scope, variables={**scope.variables, **first}, lengths={**scope.lengths, **whole}),
    )


def _neighbours(
    outer: BandVar, inner: BandVar, stmt: Assign, accesses: tuple[Access, ...], scope: Scope
) -> bool:
    """True if every access has both variables, on adjacent axes, or neither."""
    bounding = {v.below for v in stmt.band}
    for var in (outer, inner):
        if var.base is not None or var.below is not None or var.name in bounding:
            return False
    if outer.name in stmt.block:
        return False  # a block covers only the unit-stride axis
    held = stmt.out.variables
    if (outer.name in held) != (inner.name in held):
        return False
    return all(_follow(outer, inner, x, scope.buffers[x.buffer]) for x in accesses)


def _follow(outer: BandVar, inner: BandVar, access: Access, buffer: Buffer) -> bool:
    names = [s.variable for s in access.subscripts]
    count = (names.count(outer.name), names.count(inner.name))
    if count == (0, 0):
        return True
    if count != (1, 1) or buffer.packed:
        return False
    axis = names.index(inner.name)
    subscript, place = access.subscripts[axis], buffer.order.index(axis)
    whole = buffer.axes[axis].length is None and buffer.axes[axis].space == inner.space
    before = buffer.order[place - 1] if place else None
    return whole and not subscript.offset and before == names.index(outer.name)
