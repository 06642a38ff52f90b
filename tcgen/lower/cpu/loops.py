"""Element loops of statements on the CPU: the order of the loops, transposed operands, and blocks.

Loops follow memory. If nothing is summed, or if the sums are innermost in the operand with the most
elements, the loops follow the target. Otherwise they follow that operand and add to a target (or a
scratch array) in the same order, so that the operand is read once, in whole cache lines, wherever
its summed axes are.

Loops over two large operands with different unit-stride axes are blocked. In
``y = sum(i,j,a,b) x[i,j,a,b] * z[a,b,i,j]``, loops in the order of ``x`` use one element of each
cache line of ``z``, and need the line again for the next j, after all a and b; by then no cache
holds it. Loops over blocks of (i, j) by (a, b) load each line of both operands once.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ...dtypes import BY_NAME, FLOAT64
from ...hardware import PAGE_BYTES
from ...ir.expr import Access, Delta, Equal, Expr, Subscript, leaves, map_leaves
from ...ir.loops import Assign, BandVar, Buffer, Stmt
from ...ir.reduction import Reduction
from ...ir.tensor import Ref
from ..buffers import Memory
from ..layout import Band, Context, CpuContext, held_by
from ..products import Product
from ..statements import Statement

# Contiguous elements that are read about as fast as a whole array.
_PAGE_ELEMENTS = PAGE_BYTES // FLOAT64.itemsize


def bind_loops(statement: Statement, memory: Memory) -> tuple[Stmt, ...]:
    """The loops of a statement, with the copies that make them faster.

    Before: ``y[b,a] = sum(i,j) x[j,i] * z[i,a,j,b]   for b, a, i, j``.
    After: ``t[a,b] = 0``, ``t[a,b] += x[j,i] * z[i,a,j,b]   for a, i, j, b``, ``y[b,a] = t[a,b]``.
    """
    plain, room = bind_assign(statement, memory), memory.room
    crossing = None
    # Only sums are formed in blocks.
    if statement.reduction is Reduction.SUM:
        crossing = crossing_of(statement, memory)
    if crossing is not None:
        blocks = blocked_band(crossing, statement, memory)
        if blocks is not None:
            return (replace(plain, band=blocks, block=crossing.pair),)
    band = _streamed(statement, memory)
    if band is None:
        return (plain,)
    out, target = statement.out, memory.buffer(statement.out)
    free = tuple(v for v in band if v.name in out.variables)
    before: tuple[Stmt, ...] = ()
    after: tuple[Stmt, ...] = ()
    # Sums of single precision are added up in double, in memory as in a local sum.
    rounds = target.dtype == "float32" and not _sums_last(band, out)
    if rounds or [v.name for v in free] != memory.memory_order(out):
        count, dtype = memory.elements(free), "float64" if rounds else target.dtype
        pays = _pays(band, count, memory)
        if not pays or (room is not None and count * BY_NAME[dtype].itemsize > room):
            return (plain,)
        scratch = memory.scratch(free, dtype, statement.home, statement.position)
        place = placed(scratch, free)
        copy = replace(statement, expr=place, factors=(), band=free, coeff=Fraction(1))
        # The value has nothing to be combined with.
        if not statement.accumulate:
            copy = replace(copy, reduction=Reduction.SUM)
        after = (bind_assign(copy, memory),)
        statement = replace(statement, out=place, accumulate=False)
    if room is None:
        expr, before = _transposed(statement, band, memory)
        statement = replace(statement, expr=expr)
    if not statement.accumulate and not _sums_last(band, out):
        before = (*before, Assign(statement.out, statement.reduction.neutral, band=free))
        statement = replace(statement, accumulate=True)
    block = crossing.pair if crossing is not None else ()
    bound = replace(bind_assign(statement, memory), band=band, block=block)
    return (*before, bound, *after)


def _pays(band: Band, count: int, context: CpuContext) -> bool:
    """True if loops over a band justify the transposition of ``count`` elements."""
    least = max(context.thresholds.copied_points, context.thresholds.copied_reuse * count)
    return context.elements(band) >= least


def _streamed(statement: Statement, context: CpuContext) -> Band | None:
    """Loops in the order of the operand with the most elements; None if these are not better.

    Variables of the target are outermost as long as the remaining ones fill a page, so that
    threads divide them and the present part of the target stays in a cache. Variables that the
    operand does not have go around its last run of axes, as long as a cache holds that run.
    """
    out = statement.out
    held = out.variables
    summed = [v for v in statement.band if v.name not in held]
    triangular = any(v.below is not None for v in statement.band) or bool(statement.orbit)
    main = largest(statement, context)
    names = context.memory_order(main)
    if (
        not summed
        or triangular
        or context.buffer(out).packed
        or any(v.name not in names for v in summed)
        or len(set(names)) != len(names)
    ):
        return None
    band = {v.name: v for v in statement.band}
    if names[-1] not in band or context.unit_stride(main) != names[-1]:
        return None
    walked = tuple(band[name] for name in names if name in band)
    ends_in_target = names[-1] in held
    run = tuple(
        itertools.takewhile(lambda v: (v.name in held) == ends_in_target, reversed(walked))
    )[::-1]
    if ends_in_target and context.elements(run) == 1:
        return None
    others = tuple(v for v in statement.band if v not in walked)
    others = context.ordered(others, out)
    outside = tuple(
        v
        for n, v in enumerate(walked)
        if v.name in held and context.elements(walked[n + 1 :]) >= _PAGE_ELEMENTS
    )
    inside = tuple(v for v in walked if v not in outside)
    run = tuple(v for v in run if v in inside)
    while len(run) > 1 and context.elements((*others, *run)) > context.thresholds.l1_elements:
        run = run[1:]
    if context.elements((*others, *run)) > context.thresholds.l2_elements:
        return (*others, *outside, *inside)
    return (*outside, *inside[: len(inside) - len(run)], *others, *run)


def streams_batch(statement: Statement, product: Product, context: CpuContext) -> bool:
    """True for a batch of small products that loops compute while they read the larger operand.

    If the batch is on the unit-stride axis of that operand, its points fill vectors; matrix
    products would need a transposition. A small matrix-vector product does not repay a call.
    """
    # A batch made of variables of m or n, for want of a matrix layout, does not count.
    first, second = (set(f.variables) for f in statement.factors)
    batch = tuple(v for v in product.batch if v.name in first & second)
    if not batch:
        return False
    main = largest(statement, context)
    inner = context.unit_stride(main)
    if not (product.m and product.n):
        adds_up = inner in [v.name for v in product.k]
        most = context.thresholds.batch_dot if adds_up else context.thresholds.batch_gemv
        small = product.points < most * context.elements(batch)
        return small and _streamed(statement, context) is not None
    lanes = tuple(v for v in batch if v.name == inner)
    others = tuple(v for v in statement.band if v.name not in main.variables)
    few = context.elements(others) <= context.thresholds.batch_products
    long = context.elements(lanes) >= context.thresholds.batch_lanes
    less, more = sorted(touched(f, statement, context) for f in statement.factors)
    small = context.thresholds.batch_reread * less <= more
    small = small and touched(statement.out, statement, context) <= more
    streamed = _streamed(statement, context) is not None
    return bool(lanes) and few and long and small and streamed


def _transposed(statement: Statement, band: Band, memory: Memory) -> tuple[Expr, tuple[Stmt, ...]]:
    """The expression with transposed copies of small operands, and the copies.

    Operands are copied that have the innermost variable on an axis other than that of unit stride.
    """
    main, inner = largest(statement, memory), band[-1].name
    copies: list[Stmt] = []

    def transposed(leaf: Ref | Access | Delta | Equal) -> Expr:
        if not isinstance(leaf, Access) or leaf == main:
            return leaf
        buffer = memory.buffer(leaf)
        own = tuple(v for v in band if v.name in leaf.variables)
        once = len(own) == len([s for s in leaf.subscripts if s.variable is not None])
        if inner not in leaf.variables or memory.unit_stride(leaf) == inner or not once:
            return leaf
        count = memory.elements(own)
        large = count > memory.largest_slice
        if large or not _pays(band, count, memory):
            return leaf
        place, copy = copied(leaf, own, buffer.dtype, statement, memory)
        copies.append(copy)
        return place

    return map_leaves(statement.expr, transposed), tuple(copies)


def _sums_last(band: Band, out: Access) -> bool:
    """True if no summed variable is outside of a variable of the target."""
    free = [v.name in out.variables for v in band]
    return free == sorted(free, reverse=True)


def bind_assign(statement: Statement, context: Context[Any]) -> Assign:
    """Element loops in the order of the target's memory.

    Summed variables are innermost, in the order of the operand with the most variables. If the
    statement accumulates, and an operand has the same unit-stride variable as the target, that
    variable is innermost instead, so that the inner loop is a vector update.
    """
    out = statement.out
    target = context.buffer(out)
    operands = [x for x in leaves(statement.expr) if isinstance(x, Access)]
    main = max(operands, key=lambda x: len(x.variables), default=out)
    free = context.ordered(held_by(out, statement.band), out)
    summed = tuple(v for v in statement.band if v.name not in out.variables)
    summed = context.ordered(summed, main)
    if target.packed:
        free = packed_band(free, out.subscripts, target)
    band = (*free, *summed)
    inner = context.unit_stride(out)
    block: tuple[str, str] | tuple[()] = ()
    if statement.reduction is Reduction.SUM:
        read = context.unit_stride(main)
        block = _blocked(free, summed, context.fastest(out), read)
        if target.packed and {*block} != {v.name for v in free[-2:]}:
            # Loops between the two would leave a block's lines before they are used.
            block = ()
    if block and statement.expr == main and _is_rectangle(free, (out, main)):
        band = transposed_band(main, block, statement, context)
    if statement.accumulate and summed and free and free[-1].name == inner:
        ends = [context.unit_stride(x) for x in operands]
        if inner in ends:
            band = (*free[:-1], *summed, free[-1])
    return Assign(
        out,
        statement.expr,
        statement.coeff,
        statement.accumulate,
        band,
        statement.orbit,
        block=block,
        reduction=statement.reduction,
    )


def bind_packing(name: str, memory: Memory) -> Assign:
    """Write a packed output from its dense buffer: ``r[p,q] = dense[p,q]   for p, q<=p``."""
    buffer = memory.buffers[name]
    assert buffer.tensor is not None, f"{name} holds no tensor"
    letters = [f"p{axis}" for axis in range(len(buffer.axes))]
    band = packed_band(
        tuple(BandVar(letters[axis], buffer.axes[axis].space) for axis in buffer.order),
        tuple(Subscript(letter) for letter in letters),
        buffer,
    )
    place = tuple(Subscript(letter) for letter in letters)
    return Assign(
        Access(name, place),
        Access(memory.dense[name], place),
        accumulate=buffer.tensor.accumulate,
        band=band,
    )


def packed_band(band: Band, place: tuple[Subscript, ...], buffer: Buffer) -> Band:
    """The band over stored elements: each variable of packed axes is below the one before it."""
    held = {v.name: v for v in band}
    walked = list(band)
    for packing in buffer.packed:
        names = [place[axis].variable or "" for axis in buffer.order if axis in packing.axes]
        chain = [held[names[0]]]
        for name in names[1:]:
            walked.remove(held[name])
            strict = packing.antisymmetric
            chain.append(replace(held[name], below=chain[-1].name, strict=strict))
        first = walked.index(held[names[0]])
        walked[first : first + 1] = chain
    return tuple(walked)


def _blocked(
    free: Band, summed: Band, one: str | None, other: str | None
) -> tuple[str, str] | tuple[()]:
    """The two unit-stride variables of a transposition, or ()."""
    names = [v.name for v in free]
    if summed or one is None or other is None or one == other:
        return ()
    return (one, other) if one in names and other in names else ()


def _is_rectangle(band: Band, arrays: tuple[Access, ...]) -> bool:
    """True without triangles, and if no array has a variable on two axes."""
    names = [[s.variable for s in x.subscripts if s.variable is not None] for x in arrays]
    once = all(len(set(n)) == len(n) for n in names)
    return once and not any(v.below is not None for v in band)


def copied(
    access: Access,
    axes: Band,
    dtype: str,
    statement: Statement,
    memory: Memory,
    summed: Band = (),
) -> tuple[Access, Assign]:
    """Scratch for a statement with these axes, and the copy of an operand to it.

    The copy sums over the variables ``summed``.
    """
    scratch = memory.scratch(axes, dtype, statement.home, statement.position)
    place = placed(scratch, axes)
    return place, bind_assign(copy_to(place, access, (*axes, *summed), statement), memory)


def copy_to(place: Access, access: Access, band: Band, statement: Statement) -> Statement:
    """The statement that writes an operand of another statement to a new place."""
    return replace(
        statement,
        out=place,
        expr=access,
        factors=(),
        band=band,
        coeff=Fraction(1),
        accumulate=False,
        orbit=(),
        reduction=Reduction.SUM,
    )


def placed(scratch: Buffer, band: Band) -> Access:
    """The element of a buffer that has one axis for each variable of the band."""
    return Access(scratch.name, tuple(Subscript(v.name, v.base) for v in band))


@dataclass(frozen=True, slots=True)
class Crossing:
    """Two operands with different unit-stride variables: ``inner`` of main, ``outer`` of other."""

    main: Access
    other: Access
    inner: str
    outer: str

    @property
    def pair(self) -> tuple[str, str]:
        """The two variables that are blocked, in the order of the loops."""
        return self.outer, self.inner


def crossing_of(statement: Statement, context: CpuContext) -> Crossing | None:
    """The largest operand and another operand with a different unit-stride variable, or None.

    Any order of loops reads one of them across its cache lines, unless both unit-stride variables
    are blocked. Reading across lines is nevertheless faster as long as the TLB still holds the
    pages of these lines when they are needed again, for the next point of ``outer``.
    """
    packed = context.buffer(statement.out).packed
    if packed or any(v.below is not None for v in statement.band) or statement.orbit:
        return None
    names = [v.name for v in statement.band]
    main = largest(statement, context)
    inner = context.unit_stride(main)
    for other in dict.fromkeys(leaves(statement.expr)):
        if not isinstance(other, Access):
            continue
        outer = context.unit_stride(other)
        if inner is None or outer is None or inner == outer:
            continue
        if not all(
            name in names and [s.variable for s in x.subscripts].count(name) == 1
            for x in (main, other)
            for name in (inner, outer)
        ):
            continue
        if context.buffer(main).packed or context.buffer(other).packed:
            continue
        order = context.memory_order(main)
        # Beyond the block the main operand has one element along the outer loop.
        if order.index(outer) > order.index(inner):
            continue
        crossing = Crossing(main, other, inner, outer)
        if _pages_between(crossing, statement, context) > context.thresholds.tlb_pages:
            return crossing
    return None


def _pages_between(crossing: Crossing, statement: Statement, context: CpuContext) -> int:
    """Pages of ``other`` that the loops meet from one point of ``outer`` to the next."""
    band = {v.name: v for v in statement.band}
    loops, order = (context.memory_order(x) for x in (crossing.main, crossing.other))
    inside = [n for n in loops[loops.index(crossing.outer) + 1 :] if n in order and n in band]
    first = min(order.index(n) for n in inside)
    region = tuple(band[n] for n in order[first:] if n in band)
    lines = context.elements(tuple(band[n] for n in inside))
    return min(lines, context.elements(region) // (PAGE_BYTES // FLOAT64.itemsize))


def blocked_band(crossing: Crossing, statement: Statement, context: CpuContext) -> Band | None:
    """Loops that visit all points of a sum for each block of the target; None if that is slower.

    It is slower if the target holds both variables and a sum is outside of them in main's memory:
    then main is read in its own order, and the target is read and written several times.
    """
    held = {*statement.out.variables}
    order = context.memory_order(crossing.main)
    runs = [
        _adjacent_run(name, (crossing.main, crossing.other), statement, context)
        for name in crossing.pair
    ]
    others = [v for v in statement.band if all(v not in run for run in runs)]
    others.sort(key=lambda v: order.index(v.name) if v.name in order else -1)
    free = [v for v in others if v.name in held]
    summed = [v for v in others if v.name not in held]
    places = [order.index(name) for name in crossing.pair]
    if held >= {*crossing.pair} and any(
        v.name in order and order.index(v.name) < min(places) for v in summed
    ):
        return None
    for run in runs:
        (free if run[-1].name in held else summed).extend(run)
    return (*free, *summed)


def transposed_band(
    source: Access, pair: tuple[str, str], statement: Statement, context: Context[Any]
) -> Band:
    """Loops of a transposition: the blocked pair innermost, so that blocks stay in a cache.

    ``pair`` is the unit-stride variable of the target and that of ``source``. Variables that
    precede one of them on adjacent axes of both arrays stay beside it, to be joined with it,
    unless one of them walks a tile.
    """
    runs = [_adjacent_run(name, (source,), statement, context) for name in pair]
    inner, outer = (run[-1:] if any(v.base for v in run) else run for run in runs)
    others = (v for v in statement.band if v not in (*inner, *outer))
    return (*context.ordered(tuple(others), statement.out), *outer, *inner)


def _adjacent_run(
    name: str, operands: Sequence[Access], statement: Statement, context: Context[Any]
) -> Band:
    """A variable, after those that precede it on adjacent axes of all arrays."""
    band = {v.name: v for v in statement.band}
    held = statement.out.variables
    arrays = (*operands, *((statement.out,) if name in held else ()))
    orders = [context.memory_order(x) for x in arrays]
    run: Band = (band[name],)
    while all(run[0].name in order[1:] for order in orders):
        first, *different = {order[order.index(run[0].name) - 1] for order in orders}
        if different or first not in band or (first in held) != (name in held):
            break
        run = (band[first], *run)
    return run


def largest(statement: Statement, context: CpuContext) -> Access:
    """The operand with the most elements that the loops touch."""
    operands = [x for x in leaves(statement.expr) if isinstance(x, Access)]
    return max(operands, key=lambda x: touched(x, statement, context), default=statement.out)


def touched(access: Access, statement: Statement, context: CpuContext) -> int:
    """Elements of an operand that the loops of a statement touch."""
    return context.elements(held_by(access, statement.band))
