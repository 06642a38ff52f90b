"""The thread mapping of a statement on a GPU, and of a nest that single threads compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from ...dtypes import BY_NAME
from ...hardware import COPY_BYTES, WARP_THREADS
from ...ir.expr import Access, accesses_of, leaves
from ...ir.loop_analysis import accesses, blocks_parallel, walked_in_step, written_buffers
from ...ir.loops import Assign, BandVar, Buffer, Gemm, Kernel, Loop, Stmt, Zero
from ...ir.thread_mapping import Points, Sums, ThreadMapping, Transpose
from ..layout import GpuContext, held_by
from .fuse_launches import reads, tile_of

_THREADS = 256  # threads of a block
_SIDE = 32  # elements on each side of a transposed tile
_POINTS_EACH = 4  # least points of a sum for each thread of a block


def mapping_of(kernel: Kernel, context: GpuContext) -> Kernel:
    """A kernel of statements outside of loops with its thread mapping."""
    (first, *more) = kernel.body
    if isinstance(first, Zero):
        return replace(kernel, mapping=Points(_THREADS))
    tiles = tile_of(kernel, context)
    if tiles is not None:
        return replace(kernel, mapping=tiles)
    (stmt,) = (s for s in (first, *more) if isinstance(s, Assign))
    return replace(kernel, mapping=_transposed(stmt, context) or _simple(stmt, context))


def _transposed(stmt: Assign, context: GpuContext) -> Transpose | None:
    """Tiles through shared memory if a source has another unit-stride variable than the target.

    Of several such sources the one with the most bytes is transposed; the others are read with
    strides, as packed arrays are.
    """
    buffers = context.buffers
    held = stmt.out.variables
    band = {v.name: v for v in stmt.band}
    column = context.unit_stride(stmt.out)
    if (
        column not in band
        or buffers[stmt.out.buffer].packed
        or stmt.orbit
        or any(v.below or v.name not in held for v in stmt.band)
        or reads(stmt, stmt.out.buffer)
        or context.elements(stmt.band) < context.thresholds.few_elements
    ):
        return None
    best, most = None, 0
    for source in leaves(stmt.expr):
        # A source without the column is the same element for neighbouring threads.
        if not isinstance(source, Access) or column not in source.variables:
            continue
        buffer = buffers[source.buffer]
        if buffer.packed:
            continue
        row = context.unit_stride(source)
        if row is None or row == column or row not in band:
            continue
        if min(context.elements((band[name],)) for name in (row, column)) < _SIDE // 4:
            continue
        own = held_by(source, stmt.band)
        moved = BY_NAME[buffer.dtype].itemsize * context.elements(own)
        if moved > most:
            best, most = Transpose(source, row, column, _SIDE, _THREADS), moved
    return best


def _simple(stmt: Assign, context: GpuContext) -> ThreadMapping:
    """A thread for each element, or thread blocks if elements are few and sums are long."""
    thresholds = context.thresholds
    held = stmt.out.variables
    free: tuple[BandVar, ...] = tuple(v for v in stmt.band if v.name in held)
    summed = tuple(v for v in stmt.band if v.name not in held)
    many, long = context.elements(free), context.elements(summed)
    few = many < thresholds.few_elements
    if not summed or long < thresholds.long_sum or not few or reads(stmt, stmt.out.buffer):
        return Points(_THREADS, _lanes(stmt, context.buffers))
    along, most = tuple[str, ...](), -(-long // (_POINTS_EACH * _THREADS))
    if found := _along(stmt, summed, context):
        band = {v.name: v for v in summed}
        lane, several = (
            context.elements(tuple(band[name] for name in names))
            for names in (found[:-1], found[-1:])
        )
        rows = long // max(lane * several, 1) * -(-several // _POINTS_EACH)
        warps = _THREADS // WARP_THREADS
        if lane >= thresholds.lane_points and rows >= warps:
            along, most = found, rows // warps
    blocks = thresholds.sum_blocks * thresholds.multiprocessors
    return Sums(_THREADS, max(1, min(-(-blocks // max(many, 1)), most)), along)


def _lanes(stmt: Assign, buffers: Mapping[str, Buffer]) -> int:
    """Elements that fit into one load, if the statement walks arrays of one width in step."""
    walked = walked_in_step(stmt, buffers)
    sizes = {BY_NAME[buffers[name].dtype].itemsize for name in walked}
    return max(1, COPY_BYTES // sizes.pop()) if len(sizes) == 1 else 1


def _along(stmt: Assign, summed: tuple[BandVar, ...], context: GpuContext) -> tuple[str, ...]:
    """The unit-stride variable of the largest operand, and that of another one; () without any.

    A thread that takes successive values of the second variable reads whole sectors of the other
    operand. If there is none, the second variable is the slowest one. If the first one has few
    values, the operand's next variables in memory precede it.
    """
    band = {v.name: v for v in summed}
    operands = sorted(
        accesses_of(stmt.expr), key=lambda x: -context.elements(held_by(x, stmt.band))
    )
    units = [context.unit_stride(x) for x in operands]
    ordered = list(dict.fromkeys(n for n in units if n in band))
    ordered += [n for n in band if n not in ordered]
    if not any(n in band for n in units) or len(ordered) < 2:
        return ()
    lane, several = ordered[:2]
    lanes: tuple[str, ...] = (lane,)
    largest = next(x for x, n in zip(operands, units, strict=True) if n == lane)
    for name in reversed(context.memory_order(largest)[:-1]):
        wide = context.elements(tuple(band[n] for n in lanes)) >= context.thresholds.lane_points
        chained = name in band and (band[name].below or any(v.below == name for v in summed))
        if wide or name in (several, *lanes) or name not in band or chained:
            break
        lanes = (name, *lanes)
    return (*lanes, several)


def pointwise(loop: Loop, own: frozenset[str], context: GpuContext) -> bool:
    """True for a nest that single threads should compute: a point each, with nothing to share.

    Buffers of its own are single elements. Outside of serial sums every statement has one element,
    so that neighbouring threads access neighbouring elements. Where points are few, sums are short.
    """
    thresholds = context.thresholds
    inside, many = loop, context.iterations(loop.var)
    while len(inside.body) == 1 and isinstance(inner := inside.body[0], Loop):
        if blocks_parallel(inner, own) is not None:
            break
        inside, many = inner, many * context.iterations(inner.var)
    single = all(a.length == 1 for name in own for a in context.buffers[name].axes)
    short = many >= thresholds.few_elements or _longest(inside.body, context) <= thresholds.long_sum
    return single and short and loop.var.tile is None and _one_element(inside.body, own)


def _longest(body: tuple[Stmt, ...], context: GpuContext) -> int:
    """Points of the longest serial sum of a thread."""
    longest = 1
    for stmt in body:
        if isinstance(stmt, Loop):
            longest = max(longest, context.iterations(stmt.var) * _longest(stmt.body, context))
        elif isinstance(stmt, Assign):
            longest = max(longest, context.elements(stmt.band))
    return longest


def _one_element(body: tuple[Stmt, ...], own: frozenset[str]) -> bool:
    """True if each statement has one element; loops may only add to elements of others."""
    for stmt in body:
        match stmt:
            case Loop(var=var):
                written = {w for w in written_buffers(stmt) if w not in own}
                held = {v for a in accesses(stmt) if a.buffer in written for v in a.variables}
                if var.tile is not None or var.name in held or not _one_element(stmt.body, own):
                    return False
            case Zero(name):
                if name not in own:
                    return False
            case Assign(out, band=band):
                if any(v.name in out.variables for v in band):
                    return False
            case Gemm():
                return False
            case _:
                assert_never(stmt)
    return True
