"""Which loops run at once: outermost shared loops where that is legal, else bands and products.

Before: ``for i: (zero f; f += ...; X[i] = f)``.  After: the same with ``parallel for i``; a
statement outside such loops gets its own outermost band loops, a product all its threads. Inside a
sequential loop that is done for long bands only: starting threads for a short one costs more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from ..ir.loops import Assign, Buffer, Gemm, Kernel, Loop, Stmt, Zero
from ..ir.loops_query import blocks_parallel, private_to
from .layout import elements

_LONG = 2**15  # points of a band for which threads are started again and again


def mark_parallel(
    kernel: Kernel, buffers: Mapping[str, Buffer], extents: Mapping[str, int]
) -> Kernel:
    """The kernel with every parallel flag that is legal and, under planning extents, useful."""
    body: list[Stmt] = []
    for stmt in kernel.body:
        if (
            isinstance(stmt, Loop)
            and blocks_parallel(stmt, private_to(stmt, kernel, buffers)) is None
        ):
            body.append(replace(stmt, parallel=True))
        else:
            body.append(_marked(stmt, extents, looped=False))
    return replace(kernel, body=tuple(body))


def _marked(stmt: Stmt, extents: Mapping[str, int], *, looped: bool) -> Stmt:
    match stmt:
        case Loop():
            return replace(stmt, body=tuple(_marked(s, extents, looped=True) for s in stmt.body))
        case Zero():
            return stmt
        case Assign():
            worth = not looped or elements(stmt.band, extents) >= _LONG
            return replace(stmt, parallel=_outer_loops(stmt) if worth else 0)
        case Gemm():
            band = (*stmt.batch, *stmt.m, *stmt.n, *stmt.k)
            return replace(stmt, parallel=not looped or elements(band, extents) >= _LONG)
        case _:
            assert_never(stmt)


def _outer_loops(stmt: Assign) -> int:
    """Outermost loops of a band to run at once: rectangular, over the target, the last one left.

    The innermost loop is left to vector instructions unless it is the only one. A band of which
    the target holds nothing is one parallel reduction.
    """
    if not any(v.name in stmt.out.variables for v in stmt.band):
        return len(stmt.band)
    count = 0
    while (
        count < len(stmt.band)
        and stmt.band[count].name in stmt.out.variables
        and stmt.band[count].below is None
    ):
        count += 1
    return min(count, max(1, len(stmt.band) - 1))
