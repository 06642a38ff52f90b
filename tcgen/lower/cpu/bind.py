"""Statements bound to the CPU: matrix products with the copies they need, or element loops.

A contraction that is a matrix product becomes a :class:`~tcgen.ir.loops.Gemm`: of the generated
kernel, which reads any layout, or of the BLAS. For the BLAS, operands whose layout is not that of a
matrix are copied to scratch first, and such a target is copied from scratch afterwards. Every other
statement becomes element loops (``loops``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from ...ir.cost import extent_of
from ...ir.expr import Access, Const
from ...ir.halved_products import exchange_of
from ...ir.loops import Assign, BandVar, Buffer, Gemm, Loop, LoopVar, Stmt
from ...ir.plan import FusionPlan
from ...thresholds import CpuThresholds
from ..buffers import Memory
from ..layout import (
    Band,
    Product,
    as_product,
    elements,
    held_by,
    ordered,
    unit_stride,
)
from ..statements import Statement
from .grouped_products import bind_groups
from .kernel_scheme import is_thin
from .loops import bind_assign, bind_loops, copied, placed, streams_batch
from .symmetric_groups import Groupings, is_constant
from .symmetric_pairs import bind_half
from .transposed_operands import CACHE_LINE, bind_contraction


def bind_statement(
    statement: Statement,
    memory: Memory,
    extents: Mapping[str, int],
    room: int | None,
    thresholds: CpuThresholds,
    *,
    generated: bool,
) -> tuple[Stmt, ...]:
    """The statements that execute one visit; their scratch is added to ``memory``.

    Scratch may take ``room`` bytes, or as many as it needs if ``room`` is None. ``generated``: the
    generated contraction kernel, and memory to pack in, are available.
    """
    product = as_product(statement, memory.buffers, extents, thresholds)
    if (
        room is None
        and product
        and streams_batch(statement, product, memory.buffers, extents, thresholds)
    ):
        return bind_loops(statement, memory, extents, room, thresholds)
    if generated and product and (product.elements or is_thin(product, extents, thresholds)):
        contraction = bind_contraction(statement, memory, extents, thresholds)
        if contraction is not None:
            return contraction
    if product is None or not product.pays(thresholds):
        return bind_loops(statement, memory, extents, room, thresholds)
    if room is not None and product.scratch_bytes > room:
        return bind_loops(statement, memory, extents, room, thresholds)
    return _bind_product(statement, product, memory, extents, thresholds)


def _bind_product(
    statement: Statement,
    product: Product,
    memory: Memory,
    extents: Mapping[str, int],
    thresholds: CpuThresholds,
) -> tuple[Stmt, ...]:
    """The product with its copies: of the whole operands, or of parts that a cache holds."""
    tile, name = _part_of_k(product, extents, thresholds), memory.next_scratch()
    sums: Band = ()
    if tile is not None:
        name = f"{name}_k"
        sums = (replace(product.k[0], base=name, tile=tile),)
    others = _parts_of_copies(statement, product, sums, name, memory, extents, thresholds)
    parts = (*sums, *others)
    named = {v.name: v for v in parts}

    def cut(group: Band) -> Band:
        return tuple(named.get(v.name, v) for v in group)

    batch, m, n, k = map(cut, (product.batch, product.m, product.n, product.k))
    small = replace(statement, band=cut(statement.band))
    of_part = replace(product, batch=batch, m=m, n=n, k=k)
    a, b, before = bind_operands(small, of_part, memory)
    # A part of the sum is not the whole target, which is small then.
    whole = (statement, product) if sums else (small, of_part)
    out, after = bind_target(*whole, memory)
    accumulate = statement.accumulate and not product.copy_out
    gemm = Gemm(out, a, b, batch, m, n, k, statement.coeff, accumulate or bool(sums))
    body: tuple[Stmt, ...] = (gemm,) if sums else (gemm, *after)
    for part in reversed(parts):
        assert part.base is not None, "a part walks the tiles of a loop"
        inside = tuple(s for s in before if part in s.band)
        before = tuple(s for s in before if s not in inside)
        body = (Loop(LoopVar(part.base, part.space, part.tile), (*inside, *body)),)
    band = ordered(held_by(out, statement.band), out, memory.buffers)
    clears = bool(sums) and not accumulate
    zero = (Assign(out, Const(Fraction(0)), band=band),) if clears else ()
    return (*zero, *before, *body, *(after if sums else ()))


def _parts_of_copies(
    statement: Statement,
    product: Product,
    sums: Band,
    name: str,
    memory: Memory,
    extents: Mapping[str, int],
    thresholds: CpuThresholds,
) -> Band:
    """Variables of the target whose tiles make parts of large copies, so that none is whole.

    Those of the batch come first, since all copies have parts along them; the tiles of one on a
    unit-stride axis use whole cache lines. ``sums`` is the part of k that a loop walks.
    """
    band = {v.name: v for v in (*product.batch, *product.m, *product.n, *product.k, *sums)}
    copies = (product.copy_a, product.copy_b, product.copy_out and not sums)
    groups = (product.m[:1], product.n[:1], (*product.m[:1], *product.n[:1]))
    accesses = (*statement.factors, statement.out)
    parts: list[BandVar] = []
    for access, is_copied, group in zip(accesses, copies, groups, strict=True):
        inner = unit_stride(access, memory.buffers[access.buffer])
        own = sorted(held_by(access, product.batch), key=lambda v: v.name == inner)
        for var in (*own, *group) if is_copied else ():
            size = elements(held_by(access, tuple(band.values())), extents)
            if size <= thresholds.largest_slice:
                break
            extent = elements((var,), extents)
            tile = max(1, thresholds.slice_elements * extent // size)
            if var.name == inner:
                tile = max(tile, min(CACHE_LINE, thresholds.largest_slice * extent // size))
            # A variable that loops around the statement walk in part is not cut again.
            if tile < extent and band[var.name].base is None and var.below is None:
                band[var.name] = replace(var, base=f"{name}_{var.name}", tile=tile)
                parts.append(band[var.name])
    return tuple(parts)


def _part_of_k(
    product: Product, extents: Mapping[str, int], thresholds: CpuThresholds
) -> int | None:
    """Points of the slowest variable of k whose copies stay in a cache; None for all of k.

    The target is read and written once for each part, so that it must be small beside the copies.
    """
    if not (product.copy_a and product.copy_b):
        return None
    cut, *others = product.k
    groups = (product.m, product.n)
    copied = max(elements((*product.batch, *g, *product.k), extents) for g in groups)
    extent, target = extent_of(cut.space, extents), (*product.batch, *product.m, *product.n)
    tile = max(1, thresholds.slice_elements * extent // max(1, copied))
    parts = -(-extent // tile)
    least = -(-thresholds.thin_side // max(1, elements(tuple(others), extents)))
    tile = max(tile, least)
    whole = cut.base is None and cut.below is None
    small = parts * elements(target, extents) <= copied // 2
    return tile if whole and small and tile < extent else None


def bind_symmetric(
    plan: FusionPlan,
    groupings: Groupings,
    statement: Statement,
    memory: Memory,
    thresholds: CpuThresholds,
) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...] | None]:
    """Copies of constants, and the statements of a contraction that uses its symmetry, or None."""
    extents = plan.extent_of
    grouping = groupings.of(statement, memory.buffers)
    visit = plan.visits[statement.position]
    step = plan.program.steps[visit.step]
    # Only a visit that shares no loop is halved.
    exchange = None if visit.loops else exchange_of(plan.program, step, extents, thresholds)
    if grouping is not None and (exchange is None or grouping.saved >= exchange.saved):
        product = bind_groups(statement, grouping, memory, extents, thresholds)
        if product is not None:
            return product.constant, product.body
    if exchange is None:
        return (), None
    constant = {
        x.buffer
        for x, ref in zip(statement.factors, step.operands, strict=True)
        if is_constant(plan.program, step, ref.tensor)
    }
    half = bind_half(statement, exchange, memory, extents, thresholds, constant)
    return ((), None) if half is None else (half.constant, half.body)


def bind_target(
    statement: Statement, product: Product, memory: Memory
) -> tuple[Access, tuple[Stmt, ...]]:
    """Where the product goes, and the copy from there to the target of the statement."""
    out = statement.out
    if not product.copy_out:
        return out, ()
    groups = (product.m, product.n)
    band = (*product.batch, *_unit_stride_last(out, memory.buffers[out.buffer], groups))
    scratch = memory.scratch(band, product.dtype, statement.home, statement.position)
    place = placed(scratch, band)
    result = replace(
        statement,
        expr=place,
        factors=(),
        band=held_by(out, statement.band),
        coeff=Fraction(1),
    )
    return place, (bind_assign(result, memory.buffers),)


def bind_operands(
    statement: Statement, product: Product, memory: Memory
) -> tuple[Access, Access, tuple[Assign, ...]]:
    """Both operands in matrix layout, and the copies that make them."""
    before: list[Assign] = []
    a, b = statement.factors
    batch, m, n, k = product.batch, product.m, product.n, product.k
    if product.copy_a:
        a = _copied(a, (m, k), batch, product.dtype, statement, memory, before)
    if product.copy_b:
        b = _copied(b, (n, k), batch, product.dtype, statement, memory, before)
    return a, b, tuple(before)


def _copied(
    access: Access,
    groups: tuple[Band, Band],
    batch: Band,
    dtype: str,
    statement: Statement,
    memory: Memory,
    before: list[Assign],
) -> Access:
    """An operand copied to scratch as [batch, m, k]; its own variables are summed."""
    own = held_by(access, batch)
    band = (*own, *_unit_stride_last(access, memory.buffers[access.buffer], groups))
    elsewhere = {v.name for v in (*batch, *groups[0], *groups[1])}
    summed = tuple(v for v in held_by(access, statement.band) if v.name not in elsewhere)
    place, copy = copied(access, band, dtype, statement, memory, summed)
    before.append(copy)
    return place


def _unit_stride_last(access: Access, buffer: Buffer, groups: tuple[Band, Band]) -> Band:
    """Two groups, the one with the access's unit-stride variable last."""
    first, second = groups
    inner = unit_stride(access, buffer)
    if any(v.name == inner for v in first):
        return (*second, *first)
    return (*first, *second)
