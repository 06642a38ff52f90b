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
from ...thresholds import CpuThresholds
from ..buffers import buffer_bytes
from ..layout import elements, iterations, points


def mark_parallel(
    kernel: Kernel,
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
    limit: int | None,
    thresholds: CpuThresholds,
) -> Kernel:
    """The kernel with every parallel flag that is legal and, under planning extents, useful.

    ``limit`` is the number of bytes that the program may allocate, or None.
    """
    most = thresholds.thread_bytes
    if limit is not None:
        most = min(most, limit // thresholds.machine_threads)
    body: list[Stmt] = []
    for stmt in kernel.body:
        parallel = None
        if isinstance(stmt, Loop):
            own = private_to(stmt, kernel, buffers)
            separate = own | summed_numbers(stmt, buffers)
            parallel = _parallel_iterations(stmt, separate, buffers, extents, thresholds)
            small = sum(buffer_bytes(buffers[n], extents) for n in own) <= most
            if parallel and not _divides_iterations(parallel, extents, thresholds, small=small):
                parallel = None
        body.append(parallel or _marked(stmt, extents, thresholds, nested=False))
    marked = replace(kernel, body=tuple(body))
    return replace(marked, body=tuple(_with_vectors(s, marked, buffers) for s in body))


def _with_vectors(stmt: Stmt, kernel: Kernel, buffers: Mapping[str, Buffer]) -> Stmt:
    """A statement whose innermost loops over single elements are for the vector unit."""
    if not isinstance(stmt, Loop):
        return stmt
    if any(isinstance(s, Loop) for s in stmt.body):
        return replace(stmt, body=tuple(_with_vectors(s, kernel, buffers) for s in stmt.body))
    return replace(stmt, vector=vector_obstacle(stmt, kernel, buffers) is None)


def _parallel_iterations(
    loop: Loop,
    separate: frozenset[str],
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
    thresholds: CpuThresholds,
    before: int = 1,
) -> Loop | None:
    """The loop as parallel, with inner loops while iterations are few; None if that is illegal."""
    if blocks_parallel(loop, separate) is not None:
        return None
    count = before * iterations(loop.var, extents)
    (inner, *others), body = loop.body, loop.body
    if (
        count < thresholds.even_iterations
        and isinstance(inner, Loop)
        and not others
        and points((inner,), buffers, extents)
        >= thresholds.iteration_points * iterations(inner.var, extents)
    ):
        deeper = _parallel_iterations(inner, separate, buffers, extents, thresholds, count)
        body = (deeper or inner,)
    return replace(loop, parallel=True, body=body)


def _divides_iterations(
    loop: Loop, extents: Mapping[str, int], thresholds: CpuThresholds, *, small: bool
) -> bool:
    """True if threads should divide the iterations rather than the statements inside."""
    count = 1
    for one in parallel_chain(loop):
        count *= iterations(one.var, extents)
    busy = count >= thresholds.busy_iterations
    return not _is_long(loop, extents, thresholds) or (busy and small)


def _is_long(stmt: Stmt, extents: Mapping[str, int], thresholds: CpuThresholds) -> bool:
    """True if a statement justifies to start threads for it again and again."""
    match stmt:
        case Loop():
            return any(_is_long(s, extents, thresholds) for s in stmt.body)
        case Zero():
            return False
        case Assign() | Gemm():
            return elements(band_of(stmt), extents) >= thresholds.nested_points
        case _:
            assert_never(stmt)


def _marked(
    stmt: Stmt, extents: Mapping[str, int], thresholds: CpuThresholds, *, nested: bool
) -> Stmt:
    """The statement with its own parallel flags; ``nested``: it is in a sequential loop."""
    match stmt:
        case Loop():
            body = tuple(_marked(s, extents, thresholds, nested=True) for s in stmt.body)
            return replace(stmt, body=body)
        case Zero():
            return stmt
        case Assign():
            pays = not nested or _is_long(stmt, extents, thresholds)
            return replace(stmt, parallel=_outer_loops(stmt) if pays else 0)
        case Gemm():
            pays = not nested or _is_long(stmt, extents, thresholds)
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
