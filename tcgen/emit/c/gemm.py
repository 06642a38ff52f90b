"""Matrix products in C: a call of the BLAS for each point of the batch.

The BLAS is column-major; an array in C order is the transposed matrix. The printer calls the
product or its transpose, depending on which of m and n is the target's fast group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...dtypes import BY_NAME
from ...ir.expr import Access
from ...ir.loops import BandVar, Gemm
from ...resources import part
from ..printing import extent, literal, nest, product
from ..scope import Scope
from .expressions import LOOPS, bounds, loop_head, pointer, stride
from .stores import counted_product


@dataclass(frozen=True, slots=True)
class _Matrix:
    """An operand: its address, its fast group, and the stride of the other group."""

    start: str
    fast: tuple[BandVar, ...]
    stride: str


def gemm(stmt: Gemm, scope: Scope, *, threads: bool) -> list[str]:
    """The lines of a matrix product; ``threads``: it may start threads."""
    dtype = scope.buffers[stmt.out.buffer].dtype
    out = _matrix(stmt.out, stmt.m, stmt.n, stmt, scope)
    a = _matrix(stmt.a, stmt.m, stmt.k, stmt, scope)
    b = _matrix(stmt.b, stmt.k, stmt.n, stmt, scope)
    # The BLAS's m is the fast group: C = A B if that is m, else C^T = B^T A^T.
    if out.fast is stmt.m:
        m, n, left, right = stmt.m, stmt.n, a, b
    else:
        m, n, left, right = stmt.n, stmt.m, b, a
    at_once = "1" if not threads or (stmt.parallel and stmt.batch) else "tc_threads"
    lines = part(
        LOOPS,
        "gemm",
        letter=BY_NAME[dtype].letter,
        threads=at_once,
        flip_left="'N'" if left.fast is m else "'T'",
        flip_right="'T'" if right.fast is n else "'N'",
        m=_count(m, scope),
        n=_count(n, scope),
        k=_count(stmt.k, scope),
        coefficient=literal(stmt.coeff, dtype),
        left=left.start,
        left_stride=left.stride,
        right=right.start,
        right_stride=right.stride,
        accumulate=int(stmt.accumulate),
        out=out.start,
        out_stride=out.stride,
        count=counted_product(replace(stmt, batch=()), scope),
    )
    for var in reversed(stmt.batch):
        lines = nest(loop_head(var, scope), lines)
    if threads and stmt.parallel and stmt.batch:
        collapse = f" collapse({len(stmt.batch)})" if len(stmt.batch) > 1 else ""
        points = product(
            [f"(double){extent(v.space)}" for v in (*stmt.batch, *stmt.m, *stmt.n, *stmt.k)]
        )
        lines.insert(
            0,
            f"#pragma omp parallel for{collapse} schedule(static) num_threads(tc_threads)"
            f" if ({points} > TC_PARALLEL_POINTS)",
        )
    return lines


def _matrix(
    access: Access,
    first: tuple[BandVar, ...],
    second: tuple[BandVar, ...],
    stmt: Gemm,
    scope: Scope,
) -> _Matrix:
    """The matrix of two groups of variables, in the order of the operand's memory."""
    ends = {group[-1].name: group for group in (first, second) if group}
    walked = [
        access.subscripts[axis].variable
        for axis in scope.buffers[access.buffer].order
        if access.subscripts[axis].variable is not None
    ]
    # Both groups are empty, or one of them ends on the unit-stride axis.
    fast = ends.get(walked[-1] or "", first) if walked else first
    slow = second if fast is first else first
    starts = {v.name: bounds(v, scope)[0] for v in (*stmt.m, *stmt.n, *stmt.k)}
    apart = stride(access, slow[-1], scope) if slow else _count(fast, scope)
    return _Matrix(pointer(access, scope, starts), fast, apart)


def _count(group: tuple[BandVar, ...], scope: Scope) -> str:
    """Number of points of a group."""
    counts = []
    for var in group:
        low, high = bounds(var, scope)
        counts.append(high if low == "0" else f"({high} - {low})")
    return product(counts)
