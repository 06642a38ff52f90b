"""Loops over neighbouring axes, printed as one.

Before: ``for i, a, b: y[a*N_b + b] += x[i]*z[(i*N_a + a)*N_b + b]``.
After: ``for i, for b < N_a*N_b: y[b] += x[i]*z[i*N_a*N_b + b]``.

A loop of few iterations fills no vectors, and beginning it takes as long as several of them.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.expr import Access, Equal, leaves
from ...ir.loops import Assign, BandVar, Buffer
from ..printing import product
from ..scope import Scope
from .expressions import length


def joined(stmt: Assign, scope: Scope) -> tuple[Assign, Scope]:
    """A statement with fewer loops, and what its variables are in the source then."""
    found = tuple(leaves(stmt.expr))
    if stmt.orbit or any(isinstance(leaf, Equal) for leaf in found):
        return stmt, scope
    accesses = (stmt.out, *(leaf for leaf in found if isinstance(leaf, Access)))
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
    """True where every access holds both, on neighbouring axes, or neither."""
    bounding = {v.below for v in stmt.band}
    for var in (outer, inner):
        if var.base is not None or var.below is not None or var.name in bounding:
            return False
    if outer.name in stmt.block:
        return False  # blocks are of the fastest axes
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
