"""The thread mapping of a statement on a GPU: elements, sums, a transposition, or tiles.

It is chosen under the planning extents, and is right for all extents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...dtypes import BY_NAME
from ...ir.expr import Access, leaves
from ...ir.loops import Assign, BandVar, Buffer, Kernel, Zero
from ...ir.thread_mapping import Points, Sums, ThreadMapping, Transpose
from ...thresholds.gpu import GpuThresholds
from ..layout import elements, unit_stride
from .fuse_launches import tile_of

_THREADS = 256  # of a block
_SIDE = 32  # elements on each side of a transposed tile
_POINTS_EACH = 4  # of a sum, which each thread of a block adds up at least


def mapping_of(
    kernel: Kernel,
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
    thresholds: GpuThresholds,
) -> Kernel:
    """A kernel of statements outside of loops with its thread mapping."""
    (first, *more) = kernel.body
    if isinstance(first, Zero):
        return replace(kernel, mapping=Points(_THREADS))
    tiles = tile_of(kernel, buffers, extents, thresholds)
    if tiles is not None:
        return replace(kernel, mapping=tiles)
    (stmt,) = (s for s in (first, *more) if isinstance(s, Assign))
    transposed = _transposed(stmt, buffers, extents, thresholds)
    return replace(kernel, mapping=transposed or _simple(stmt, extents, thresholds))


def _transposed(
    stmt: Assign,
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
    thresholds: GpuThresholds,
) -> Transpose | None:
    """Tiles through shared memory if a source has another unit-stride variable than the target.

    Of several such sources the one with the most bytes is transposed; the others are read with
    strides.
    """
    held = stmt.out.variables
    band = {v.name: v for v in stmt.band}
    column = unit_stride(stmt.out, buffers[stmt.out.buffer])
    if (
        column not in band
        or stmt.orbit
        or any(v.below or v.name not in held for v in stmt.band)
        or _reads_itself(stmt)
        or elements(stmt.band, extents) < thresholds.few_elements
    ):
        return None
    best, most = None, 0
    for source in leaves(stmt.expr):
        # A source without the column is the same element for neighbouring threads.
        if not isinstance(source, Access) or column not in source.variables:
            continue
        buffer = buffers[source.buffer]
        row = unit_stride(source, buffer)
        if row is None or row == column or row not in band:
            continue
        if min(elements((band[name],), extents) for name in (row, column)) < _SIDE // 4:
            continue
        own = tuple(v for v in stmt.band if v.name in source.variables)
        moved = BY_NAME[buffer.dtype].itemsize * elements(own, extents)
        if moved > most:
            best, most = Transpose(source, row, column, _SIDE, _THREADS), moved
    return best


def _simple(stmt: Assign, extents: Mapping[str, int], thresholds: GpuThresholds) -> ThreadMapping:
    """A thread for each element, or thread blocks if elements are few and sums are long."""
    held = stmt.out.variables
    free: tuple[BandVar, ...] = tuple(v for v in stmt.band if v.name in held)
    summed = tuple(v for v in stmt.band if v.name not in held)
    many, long = elements(free, extents), elements(summed, extents)
    few = many < thresholds.few_elements
    if not summed or long < thresholds.long_sum or not few or _reads_itself(stmt):
        return Points(_THREADS)
    most = -(-long // (_POINTS_EACH * _THREADS))
    blocks = 2 * thresholds.multiprocessors
    return Sums(_THREADS, max(1, min(-(-blocks // max(many, 1)), most)))


def _reads_itself(stmt: Assign) -> bool:
    return any(isinstance(x, Access) and x.buffer == stmt.out.buffer for x in leaves(stmt.expr))
