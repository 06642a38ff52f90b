"""Which share of work suits a statement on a GPU: elements, sums, or tiles of a product.

Chosen under the planning extents; every share is right for all extents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...ir.expr import Access, leaves
from ...ir.loops import Assign, BandVar, Buffer, Kernel, Zero
from ...ir.tensor import BYTES_OF
from ...ir.thread_mapping import Points, Share, Sums, Turned
from ..layout import elements, unit_stride
from .fuse_launches import tile_of

THREADS = 256
SIDE = 32  # elements on each side of a tile that is turned
BLOCKS = 264  # two for each multiprocessor of a large GPU
LONG_SUM = 64  # points of a sum from which its threads share it, where elements are few
FEW = 2**14  # elements that leave a GPU idle with one thread for each


def share_of(kernel: Kernel, buffers: Mapping[str, Buffer], extents: Mapping[str, int]) -> Kernel:
    """A kernel of statements outside loops with its share, its bands in the order it wants."""
    (first, *more) = kernel.body
    if isinstance(first, Zero):
        return replace(kernel, share=Points(THREADS))
    tiles = tile_of(kernel, buffers, extents)
    if tiles is not None:
        return replace(kernel, share=tiles)
    (stmt,) = (s for s in (first, *more) if isinstance(s, Assign))
    turned = _turned(stmt, buffers, extents)
    return replace(kernel, share=turned or _simple(stmt, extents))


def _turned(
    stmt: Assign, buffers: Mapping[str, Buffer], extents: Mapping[str, int]
) -> Turned | None:
    """Tiles through shared memory, where a source runs along another variable than the target.

    Of several such sources it is the one of most bytes: the others are read across.
    """
    held = stmt.out.variables
    band = {v.name: v for v in stmt.band}
    column = unit_stride(stmt.out, buffers[stmt.out.buffer])
    if (
        column not in band
        or stmt.orbit
        or any(v.below or v.name not in held for v in stmt.band)
        or _reads_itself(stmt)
        or elements(stmt.band, extents) < FEW
    ):
        return None
    best, most = None, 0
    for source in leaves(stmt.expr):
        # Threads that walk the column read one element of what does not hold it.
        if not isinstance(source, Access) or column not in source.variables:
            continue
        buffer = buffers[source.buffer]
        row = unit_stride(source, buffer)
        if row is None or row == column or row not in band:
            continue
        if min(elements((band[name],), extents) for name in (row, column)) < SIDE // 4:
            continue
        walked = tuple(v for v in stmt.band if v.name in source.variables)
        moved = BYTES_OF[buffer.dtype] * elements(walked, extents)
        if moved > most:
            best, most = Turned(source, row, column, SIDE, THREADS), moved
    return best


def _simple(stmt: Assign, extents: Mapping[str, int]) -> Share:
    held = stmt.out.variables
    kept: tuple[BandVar, ...] = tuple(v for v in stmt.band if v.name in held)
    summed = tuple(v for v in stmt.band if v.name not in held)
    many, long = elements(kept, extents), elements(summed, extents)
    if not summed or long < LONG_SUM or many >= FEW or _reads_itself(stmt):
        return Points(THREADS)
    each = -(-long // (4 * THREADS))  # blocks that have at least four points for each thread
    return Sums(THREADS, max(1, min(-(-BLOCKS // max(many, 1)), each)))


def _reads_itself(stmt: Assign) -> bool:
    return any(isinstance(x, Access) and x.buffer == stmt.out.buffer for x in leaves(stmt.expr))
