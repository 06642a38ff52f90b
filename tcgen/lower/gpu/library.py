"""Contractions that the BLAS of the GPU computes, with the transpositions that this takes.

A contraction becomes a product without a scheme (:class:`~tcgen.ir.loops.Gemm`) where a model of
the time says that a call of the library is faster than a generated kernel of tiles. Generated tiles
take operands in any layout, share a launch with other terms, and are as fast where memory is the
limit; the library is faster where arithmetic is. Operands whose layout is not that of a matrix are
transposed by generated kernels before the call, and such a target after it (TTGT: transpose,
transpose, GEMM, transpose).

Times are those of :class:`tcgen.thresholds.time_model.GpuRates`: bytes that the GPU copies in the
same time.
"""

from __future__ import annotations

from typing import Any

from ...dtypes import BY_NAME
from ...ir.loops import Assign, Gemm, Stmt
from ...thresholds.gpu import GpuThresholds
from ...thresholds.time_model import GENERATED_TILE_SIDE, LIBRARY_TILE_SIDE, ProductSize
from ..buffers import Memory
from ..cpu.bind import bind_operands, bind_target
from ..cpu.loops import bind_assign
from ..layout import Band, Context, GpuContext, held_by
from ..products import Product, products_of
from ..statements import Statement
from .tiles import groups_of, on_tensor_cores, real_products, term_of


def bind_library(
    statement: Statement, memory: Memory, room: int | None, thresholds: GpuThresholds
) -> tuple[Stmt, ...] | None:
    """The product of a library with its transpositions, or None if a generated kernel is faster."""
    context = GpuContext(memory.buffers, memory.extents, thresholds)
    own, choices = _times(statement, room, context)
    if not choices:
        return None
    least, product = min(choices, key=lambda choice: choice[0])
    # The time of a launch also excludes small products, which the model predicts less well.
    gain = max(own * thresholds.library_gain / 100, thresholds.launch_bytes)
    if own - least < gain:
        return None
    a, b, before = bind_operands(statement, product, memory)
    out, after = bind_target(statement, product, memory)
    accumulate = statement.accumulate and not product.copy_out
    batch, m, n, k = product.batch, product.m, product.n, product.k
    gemm = Gemm(out, a, b, batch, m, n, k, statement.coeff, accumulate)
    return (*before, gemm, *after)


def time_of_order(
    statement: Statement, context: Context[Any], thresholds: GpuThresholds, *, library: bool
) -> float:
    """What the order of its arrays' axes costs a statement.

    Of a contraction that the ``library`` may compute it is the least time; of an element-wise
    statement the time of all elements that neighbouring threads do not find in one line.
    """
    on_gpu = GpuContext(context.buffers, context.extents, thresholds)
    if not statement.factors:
        return thresholds.line_bytes * _elements_across(statement, on_gpu)
    if not library:
        return 0.0
    own, choices = _times(statement, None, on_gpu)
    return min([own, *(time for time, _ in choices)])


def _elements_across(statement: Statement, context: GpuContext) -> int:
    """Elements of the accesses in which neighbouring threads are not neighbours in memory.

    The threads walk the unit-stride variable of the target, of a sum that of its largest operand.
    """
    out, *operands = dict.fromkeys(statement.accesses)
    largest = max(operands, key=lambda x: len(x.variables), default=out)
    lane = context.unit_stride(out if len(out.variables) >= len(largest.variables) else largest)
    across = (x for x in (out, *operands) if lane in x.variables and context.unit_stride(x) != lane)
    return sum(context.elements(held_by(x, statement.band)) for x in across)


def _times(
    statement: Statement, room: int | None, context: GpuContext
) -> tuple[float, list[tuple[float, Product]]]:
    """Times of a generated kernel, and of the products of the library whose scratch has room."""
    scratch = context.thresholds.library_scratch
    products = products_of(statement, context)
    if not products or not products[0].m or not products[0].n:
        return 0.0, []
    most = scratch if room is None else min(room, scratch)
    fitting = (p for p in products if p.scratch_bytes <= most)
    choices = [(_library_time(p, statement, context), p) for p in fitting]
    return _own_time(products[0], statement, context), choices


def _library_time(product: Product, statement: Statement, context: GpuContext) -> float:
    """Time of the calls and of the transpositions."""
    thresholds = context.thresholds
    item = BY_NAME[product.dtype].itemsize
    bands = _operand_bands(product, statement)
    adds = statement.accumulate and not product.copy_out
    calls = context.elements(product.batch)
    calls //= max((context.elements((v,)) for v in product.batch), default=1)
    copied = 0
    again = 1 if statement.accumulate else 0
    passes = (2 * product.copy_a, 2 * product.copy_b, (2 + again) * product.copy_out)
    for band, count in zip(bands, passes, strict=True):
        copied += count * item * context.elements(band)
    launches = calls + sum(map(bool, passes))
    real = BY_NAME[product.dtype].parts ** 2
    size, moved = _size(product, context, real), _moved(product, bands, context, adds=adds)
    percent, side = thresholds.library_percent, LIBRARY_TILE_SIDE
    multiplied = thresholds.product_bytes(size, moved, percent, side)
    return multiplied + thresholds.copy_bytes(copied, launches)


def _own_time(product: Product, statement: Statement, context: GpuContext) -> float:
    """Time of a generated kernel; inside a loop it may be a part of one launch."""
    thresholds = context.thresholds
    stmt = bind_assign(statement, context)
    percent = _own_percent(stmt, context)
    real = real_products(stmt, context)
    bands = _operand_bands(product, statement)
    launch = thresholds.launch_bytes if statement.home is None else 0
    size = _size(product, context, real)
    moved = _moved(product, bands, context, adds=statement.accumulate)
    return launch + thresholds.product_bytes(size, moved, percent, GENERATED_TILE_SIDE)


def _own_percent(stmt: Assign, context: GpuContext) -> int:
    """The share of the largest rate that a generated kernel reaches."""
    thresholds = context.thresholds
    groups = groups_of(stmt, context)
    if groups is None or any(
        context.elements(g) < thresholds.least_mnk for g in (groups.m, groups.n, groups.k)
    ):
        return thresholds.point_percent
    if not on_tensor_cores((stmt,), context):
        return thresholds.tile_percent
    if term_of(stmt, groups, context).blocked:
        return thresholds.blocked_percent
    return thresholds.tensor_percent


def _size(product: Product, context: GpuContext, real: int) -> ProductSize:
    """Points of a product, with ``real`` products of real numbers for each product."""
    groups = (product.batch, product.m, product.n, product.k)
    batch, m, n, k = (context.elements(group) for group in groups)
    return ProductSize(batch, m, n, k, real)


def _moved(
    product: Product, bands: tuple[Band, Band, Band], context: GpuContext, *, adds: bool
) -> int:
    """Bytes that a product reads and writes."""
    touched = (*bands, bands[2]) if adds else bands
    return BY_NAME[product.dtype].itemsize * sum(context.elements(band) for band in touched)


def _operand_bands(product: Product, statement: Statement) -> tuple[Band, Band, Band]:
    """Variables of a, b and the target."""
    a, b = statement.factors
    every = (*product.batch, *product.m, *product.n, *product.k)
    held = (set(x.variables) for x in (a, b, statement.out))
    one, two, three = (tuple(v for v in every if v.name in names) for names in held)
    return one, two, three
