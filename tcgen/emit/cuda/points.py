"""Kernels whose threads compute whole elements.

Before: ``Assign(out, expr, band)`` mapped to Points. After: each thread decodes the number of its
element.
"""

from __future__ import annotations

from ...dtypes import BY_NAME
from ...ir.loops import Assign, BandVar, Zero
from ...ir.reduction import Reduction
from ...ir.thread_mapping import Points
from ..c.expressions import store_guards
from ..c.joined_loops import joined
from ..c.loops import combined, start_of
from ..printing import elements, indented
from ..scope import Scope
from .expressions import (
    free_and_summed,
    loop_head,
    points,
    start,
    store,
    sum_type,
    total,
    triangles,
    value,
    values,
    when,
)


def zero_body(stmt: Zero, mapping: Points, scope: Scope) -> list[str]:
    """Set a whole buffer to zero."""
    kind = BY_NAME[scope.buffers[stmt.buffer].dtype].cuda_type
    head = stride_loop(elements(scope.buffers[stmt.buffer]), mapping.threads)
    neutral = "0" if stmt.reduction is Reduction.SUM else start_of(stmt.reduction, scope)
    return [head, f"    {scope.names[stmt.buffer]}[tc_n] = {kind}({neutral});", "}"]


def points_body(stmt: Assign, mapping: Points, scope: Scope, dtype: str) -> list[str]:
    """Each thread computes whole elements; no division finds places on axes that are joined."""
    stmt, scope = joined(stmt, scope)
    free, _ = free_and_summed(stmt)
    inner = element_lines(stmt, scope, dtype)
    if not free:
        return ["if (blockIdx.x == 0 && threadIdx.x == 0) {", *indented(inner), "}"]
    guards = element_guards(stmt, free, scope)
    body = [*values(free, "tc_rest", scope, "tc_n"), *when(guards, inner)]
    return [stride_loop(points(free, scope), mapping.threads), *indented(body), "}"]


def element_guards(stmt: Assign, free: tuple[BandVar, ...], scope: Scope) -> list[str]:
    """Conditions on elements of the rectangle: triangles of the band and of a packed target.

    A bound by a summed variable is a condition of the sum and not of the element.
    """
    names = {v.name for v in stmt.band} - {v.name for v in free}
    return [
        *triangles((v for v in free if v.below not in names), scope),
        *store_guards(stmt.out, scope),
    ]


def element_lines(stmt: Assign, scope: Scope, dtype: str) -> list[str]:
    """One element by one thread: its sum, and the store."""
    free, summed = free_and_summed(stmt)
    if not summed:
        return [store(stmt, scope, value(stmt, scope, dtype, coefficient=True))]
    kind = sum_type(stmt, scope)
    own = [combined(stmt.reduction, "tc_sum", value(stmt, scope, dtype, coefficient=False))]
    lines = when(summed_guards(free, summed, scope), own)
    for var in reversed(summed):
        lines = [f"{loop_head(var, scope)} {{", *indented(lines), "}"]
    begin = f"{kind} tc_sum = {start(stmt, scope, dtype)};"
    return [begin, *lines, store(stmt, scope, total(stmt.coeff, dtype))]


def summed_guards(
    free: tuple[BandVar, ...], summed: tuple[BandVar, ...], scope: Scope
) -> list[str]:
    """Conditions of a sum: variables of the element that a summed variable bounds."""
    names = {v.name for v in summed}
    return triangles((v for v in free if v.below in names), scope)


def stride_loop(total_points: str, threads: int) -> str:
    """The head of a loop in which the threads of all blocks take points in turn."""
    return (
        f"for (tc_int tc_n = (tc_int)blockIdx.x*{threads} + threadIdx.x; tc_n < {total_points}; "
        f"tc_n += (tc_int)gridDim.x*{threads}) {{"
    )
