"""Which loops run at once: outermost shared loops where that is legal, else bands and products.

Before: ``for i: (zero f; f += ...; X[i] = f)``.  After: the same with ``parallel for i``, and the
loops directly inside it where i alone takes few values; a statement outside such loops gets its
own outermost band loops, a product all its threads. Inside a sequential loop that is done for long
bands only: starting threads for a short one costs more. Loops over a few large tiles stay
sequential, so that there is one tile and threads share its statements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from ...ir.loop_analysis import band_of, blocks_parallel, parallel_chain, private_to, summed_numbers
from ...ir.loops import Assign, Buffer, Gemm, Kernel, Loop, Stmt, Zero
from ..layout import elements, iterations, points
from ..scratch_budget import buffer_bytes

_LONG = 2**15  # points of a band for which threads are started again and again
_ENOUGH = 64  # iterations that keep the threads of a machine busy
_MANY = 256  # iterations that do so where some take longer than others
_HEAVY = 2**12  # points of an iteration that is worth sharing out
_OWN = 2**23  # bytes that each thread may have for itself to share out iterations
_THREADS = 64  # of a large machine: a memory limit should have room for what they all have


def mark_parallel(
    kernel: Kernel, buffers: Mapping[str, Buffer], extents: Mapping[str, int], limit: int | None
) -> Kernel:
    """The kernel with every parallel flag that is legal and, under planning extents, useful.

    Args:
        kernel: without flags.
        buffers: all of the module, with their places.
        extents: planning extents.
        limit: bytes that the program may allocate, or None.
    """
    most = _OWN if limit is None else min(_OWN, limit // _THREADS)
    body: list[Stmt] = []
    for stmt in kernel.body:
        shared = None
        if isinstance(stmt, Loop):
            own = private_to(stmt, kernel, buffers)
            apart = own | summed_numbers(stmt, buffers)
            shared = _iterations_shared(stmt, apart, buffers, extents)
            small = sum(buffer_bytes(buffers[n], extents) for n in own) <= most
            if shared is not None and not _worth(shared, extents, small=small):
                shared = None
        body.append(shared or _marked(stmt, extents, looped=False))
    return replace(kernel, body=tuple(body))


def _iterations_shared(
    loop: Loop,
    apart: frozenset[str],
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
    before: int = 1,
) -> Loop | None:
    """The loop with its iterations at once, and loops directly inside it while those are few.

    Args:
        loop: in question.
        apart: buffers of which each thread has its own, and numbers of which it adds up a part.
        buffers: all of the module.
        extents: planning extents.
        before: iterations of the loops around it.
    """
    if blocks_parallel(loop, apart) is not None:
        return None
    count = before * iterations(loop, extents)
    (inner, *others), body = loop.body, loop.body
    if (
        count < _MANY
        and isinstance(inner, Loop)
        and not others
        and points((inner,), buffers, extents) >= _HEAVY * iterations(inner, extents)
    ):
        body = (_iterations_shared(inner, apart, buffers, extents, count) or inner,)
    return replace(loop, parallel=True, body=body)


def _worth(loop: Loop, extents: Mapping[str, int], *, small: bool) -> bool:
    """True where iterations are rather shared than the statements inside.

    Args:
        loop: marked.
        extents: planning extents.
        small: what a thread would have for itself is.
    """
    count = 1
    for one in parallel_chain(loop):
        count *= iterations(one, extents)
    return not _is_long(loop, extents) or (count >= _ENOUGH and small)


def _is_long(stmt: Stmt, extents: Mapping[str, int]) -> bool:
    """True where a statement is worth threads of its own, again and again."""
    match stmt:
        case Loop():
            return any(_is_long(s, extents) for s in stmt.body)
        case Zero():
            return False
        case Assign() | Gemm():
            return elements(band_of(stmt), extents) >= _LONG
        case _:
            assert_never(stmt)


def _marked(stmt: Stmt, extents: Mapping[str, int], *, looped: bool) -> Stmt:
    match stmt:
        case Loop():
            return replace(stmt, body=tuple(_marked(s, extents, looped=True) for s in stmt.body))
        case Zero():
            return stmt
        case Assign():
            worth = not looped or _is_long(stmt, extents)
            return replace(stmt, parallel=_outer_loops(stmt) if worth else 0)
        case Gemm():
            return replace(stmt, parallel=not looped or _is_long(stmt, extents))
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
