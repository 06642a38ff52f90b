"""Statements bound to the CPU: matrix products with the copies they need, or element loops.

A contraction that is a matrix product becomes a :class:`~tcgen.ir.loops.Gemm`: of the generated
kernel, which reads any layout, or of the BLAS. For the BLAS, operands whose layout is not that of a
matrix are copied to scratch first, and such a target is copied from scratch afterwards. Every other
statement becomes element loops (``loops``).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ...ir.expr import Access, Const
from ...ir.halved_products import exchange_of, looped_indices
from ...ir.loops import Assign, BandVar, Gemm, Loop, LoopVar, Stmt
from ...ir.plan import FusionPlan
from ..buffers import Memory
from ..layout import Band, CpuContext, held_by
from ..products import Product, as_product
from ..statements import Statement
from .grouped_products import bind_groups
from .kernel_scheme import is_thin
from .loops import bind_assign, bind_loops, copied, placed, streams_batch
from .symmetric_groups import Groupings, is_constant
from .symmetric_pairs import bind_half
from .transposed_operands import CACHE_LINE, bind_contraction


def bind_statement(statement: Statement, memory: Memory, *, generated: bool) -> tuple[Stmt, ...]:
    """The statements that execute one visit; their scratch is added to ``memory``, in its room.

    ``generated``: the generated contraction kernel, and memory to pack in, are available.
    """
    product, room = as_product(statement, memory), memory.room
    if room is None and product and streams_batch(statement, product, memory):
        return bind_loops(statement, memory)
    if generated and product and (product.elements or is_thin(product, memory)):
        contraction = bind_contraction(statement, memory)
        if contraction is not None:
            return contraction
    if product is None or not product.pays(memory.thresholds):
        return bind_loops(statement, memory)
    if room is not None and product.scratch_bytes > room:
        return bind_loops(statement, memory)
    return _bind_product(statement, product, memory)


def _bind_product(statement: Statement, product: Product, memory: Memory) -> tuple[Stmt, ...]:
    """The product with its copies: of the whole operands, or of parts that a cache holds."""
    tile, name = _part_of_k(product, memory), memory.next_scratch()
    sums: Band = ()
    if tile is not None:
        name = f"{name}_k"
        sums = (replace(product.k[0], base=name, tile=tile),)
    others = _parts_of_copies(statement, product, sums, name, memory)
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
    band = memory.ordered(held_by(out, statement.band), out)
    clears = bool(sums) and not accumulate
    zero = (Assign(out, Const(Fraction(0)), band=band),) if clears else ()
    return (*zero, *before, *body, *(after if sums else ()))


def _parts_of_copies(
    statement: Statement, product: Product, sums: Band, name: str, memory: Memory
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
        inner = memory.unit_stride(access)
        own = sorted(held_by(access, product.batch), key=lambda v: v.name == inner)
        for var in (*own, *group) if is_copied else ():
            size = memory.elements(held_by(access, tuple(band.values())))
            if size <= memory.largest_slice:
                break
            extent = memory.elements((var,))
            tile = max(1, memory.thresholds.slice_elements * extent // size)
            if var.name == inner:
                tile = max(tile, min(CACHE_LINE, memory.largest_slice * extent // size))
            # A variable that loops around the statement walk in part is not cut again.
            if tile < extent and band[var.name].base is None and var.below is None:
                band[var.name] = replace(var, base=f"{name}_{var.name}", tile=tile)
                parts.append(band[var.name])
    return tuple(parts)


def _part_of_k(product: Product, context: CpuContext) -> int | None:
    """Points of the slowest variable of k whose copies stay in a cache; None for all of k.

    The target is read and written once for each part, so that it must be small beside the copies.
    """
    if not (product.copy_a and product.copy_b):
        return None
    cut, *others = product.k
    groups = (product.m, product.n)
    copied = max(context.elements((*product.batch, *g, *product.k)) for g in groups)
    extent, target = cut.space.extent_in(context.extents), (*product.batch, *product.m, *product.n)
    tile = max(1, context.thresholds.slice_elements * extent // max(1, copied))
    parts = -(-extent // tile)
    least = -(-context.thresholds.thin_side // max(1, context.elements(tuple(others))))
    tile = max(tile, least)
    whole = cut.base is None and cut.below is None
    small = parts * context.elements(target) <= copied // 2
    return tile if whole and small and tile < extent else None


def bind_symmetric(
    plan: FusionPlan, groupings: Groupings, statement: Statement, memory: Memory
) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...] | None]:
    """Copies of constants, and the statements of a contraction that uses its symmetry, or None."""
    grouping = groupings.of(statement, memory) if memory.room is None else None
    visit = plan.visits[statement.position]
    step = plan.program.steps[visit.step]
    looped, exchange = looped_indices(plan, statement.position), None
    if looped is not None:
        sizes, thresholds = memory.extents, memory.thresholds
        most = memory.spare
        if most is not None and any(memory.buffer(f).packed for f in statement.factors):
            most //= 2  # the rest is for slices of the packed factor
        exchange = exchange_of(plan.program, step, sizes, thresholds, most, looped)
    if grouping is not None and (exchange is None or grouping.saved >= exchange.saved):
        product = bind_groups(statement, grouping, memory)
        if product is not None:
            return product.constant, product.body
    if exchange is None:
        return (), None
    constant = {
        x.buffer
        for x, ref in zip(statement.factors, step.operands, strict=True)
        if is_constant(plan.program, step, ref.tensor) and not visit.loops
    }
    names = {
        i.name: s.variable
        for i, s in zip(step.out.indices, statement.out.subscripts, strict=True)
        if s.variable is not None
    }
    half = bind_half(statement, exchange.renamed(names), memory, constant)
    return ((), None) if half is None else (half.constant, half.body)


def bind_target(
    statement: Statement, product: Product, memory: Memory
) -> tuple[Access, tuple[Stmt, ...]]:
    """Where the product goes, and the copy from there to the target of the statement."""
    out = statement.out
    if not product.copy_out:
        return out, ()
    groups = (product.m, product.n)
    band = (*product.batch, *_unit_stride_last(out, groups, memory))
    scratch = memory.scratch(band, product.dtype, statement.home, statement.position)
    place = placed(scratch, band)
    result = replace(
        statement,
        expr=place,
        factors=(),
        band=held_by(out, statement.band),
        coeff=Fraction(1),
    )
    return place, (bind_assign(result, memory),)


def bind_operands(
    statement: Statement, product: Product, memory: Memory
) -> tuple[Access, Access, tuple[Assign, ...]]:
    """Both operands in matrix layout, and the copies that make them."""
    before: list[Assign] = []
    a, b = statement.factors
    if product.copy_a:
        a = _copied(a, (product.m, product.k), product, statement, memory, before)
    if product.copy_b:
        b = _copied(b, (product.n, product.k), product, statement, memory, before)
    return a, b, tuple(before)


def _copied(
    access: Access,
    groups: tuple[Band, Band],
    product: Product,
    statement: Statement,
    memory: Memory,
    before: list[Assign],
) -> Access:
    """An operand copied to scratch as [batch, m, k]; its own variables are summed."""
    own = held_by(access, product.batch)
    band = (*own, *_unit_stride_last(access, groups, memory))
    elsewhere = {v.name for v in (*product.batch, *groups[0], *groups[1])}
    summed = tuple(v for v in held_by(access, statement.band) if v.name not in elsewhere)
    place, copy = copied(access, band, product.dtype, statement, memory, summed)
    before.append(copy)
    return place


def _unit_stride_last(access: Access, groups: tuple[Band, Band], memory: Memory) -> Band:
    """Two groups, the one with the access's unit-stride variable last."""
    first, second = groups
    inner = memory.unit_stride(access)
    if any(v.name == inner for v in first):
        return (*second, *first)
    return (*first, *second)
