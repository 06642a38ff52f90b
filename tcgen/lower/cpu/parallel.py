"""Which loops run in parallel: outermost shared loops if that is legal, else bands and products.

Before: ``for i: (zero f; f += ...; X[i] = f)``.  After: the same with ``parallel for i``, and also
the loops directly inside it if i takes few values. A statement outside such loops gets its own
outermost band loops, a product all its threads. Inside a sequential loop only long bands do, since
starting threads for a short one costs more. Loops over a few large tiles stay sequential, so that
there is one tile in memory and threads divide its statements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from ...ir.loop_analysis import (
    band_of,
    blocks_parallel,
    parallel_chain,
    private_to,
    summed_numbers,
    vector_obstacle,
)
from ...ir.loops import Assign, Buffer, Gemm, Kernel, Loop, Stmt, Zero
from ...records.loops import buffer_bytes
from ..layout import CpuContext


def mark_parallel(kernel: Kernel, context: CpuContext, limit: int | None) -> Kernel:
    """The kernel with every parallel flag that is legal and, under planning extents, useful.

    ``limit`` is the number of bytes that the program may allocate, or None.
    """
    most = context.thresholds.thread_bytes
    if limit is not None:
        most = min(most, limit // context.thresholds.machine_threads)
    body: list[Stmt] = []
    for stmt in kernel.body:
        parallel = None
        if isinstance(stmt, Loop):
            own = private_to(stmt, kernel, context.buffers)
            separate = own | summed_numbers(stmt, context.buffers)
            parallel = _parallel_iterations(stmt, separate, context)
            small = sum(buffer_bytes(context.buffers[n], context.extents) for n in own) <= most
            if parallel and not _divides_iterations(parallel, context, small=small):
                parallel = None
        body.append(parallel or _marked(stmt, context, nested=False))
    marked = replace(kernel, body=tuple(body))
    return replace(marked, body=tuple(_with_vectors(s, marked, context.buffers) for s in body))


def _with_vectors(stmt: Stmt, kernel: Kernel, buffers: Mapping[str, Buffer]) -> Stmt:
    """A statement whose innermost loops over single elements are for the vector unit."""
    if not isinstance(stmt, Loop):
        return stmt
    if any(isinstance(s, Loop) for s in stmt.body):
        return replace(stmt, body=tuple(_with_vectors(s, kernel, buffers) for s in stmt.body))
    return replace(stmt, vector=vector_obstacle(stmt, kernel, buffers) is None)


def _parallel_iterations(
    loop: Loop, separate: frozenset[str], context: CpuContext, before: int = 1
) -> Loop | None:
    """The loop as parallel, with inner loops while iterations are few; None if that is illegal."""
    if blocks_parallel(loop, separate) is not None:
        return None
    count = before * context.iterations(loop.var)
    (inner, *others), body = loop.body, loop.body
    if (
        count < context.thresholds.even_iterations
        and isinstance(inner, Loop)
        and not others
        and context.points((inner,))
        >= context.thresholds.iteration_points * context.iterations(inner.var)
    ):
        deeper = _parallel_iterations(inner, separate, context, count)
        body = (deeper or inner,)
    return replace(loop, parallel=True, body=body)


def _divides_iterations(loop: Loop, context: CpuContext, *, small: bool) -> bool:
    """True if threads should divide the iterations rather than the statements inside."""
    count = 1
    for one in parallel_chain(loop):
        count *= context.iterations(one.var)
    busy = count >= context.thresholds.busy_iterations
    return not _is_long(loop, context) or (busy and small)


def _is_long(stmt: Stmt, context: CpuContext) -> bool:
    """True if a statement justifies to start threads for it again and again."""
    match stmt:
        case Loop():
            return any(_is_long(s, context) for s in stmt.body)
        case Zero():
            return False
        case Assign() | Gemm():
            return context.elements(band_of(stmt)) >= context.thresholds.nested_points
        case _:
            assert_never(stmt)


def _marked(stmt: Stmt, context: CpuContext, *, nested: bool) -> Stmt:
    """The statement with its own parallel flags; ``nested``: it is in a sequential loop."""
    match stmt:
        case Loop():
            body = tuple(_marked(s, context, nested=True) for s in stmt.body)
            return replace(stmt, body=body)
        case Zero():
            return stmt
        case Assign():
            pays = not nested or _is_long(stmt, context)
            return replace(stmt, parallel=_outer_loops(stmt) if pays else 0)
        case Gemm():
            pays = not nested or _is_long(stmt, context)
            return replace(stmt, parallel=pays)
        case _:
            assert_never(stmt)


def _outer_loops(stmt: Assign) -> int:
    """Number of outermost loops of a band to run in parallel: rectangular loops over the target.

    The innermost loop is left to vector instructions unless it is the only one. If the target has
    no variable of the band, the whole band is one parallel reduction.
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
