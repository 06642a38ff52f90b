"""Element loops of statements on the CPU: their order, and what is turned for it.

Loops follow memory. Where nothing is summed, or sums stand innermost in the operand that has the
most elements, that is the order of the target. Else that operand is walked as it lies, and its
points are added to a target that lies the same way: it is read once, in whole lines, however its
summed variables lie between the others. Large operands that lie across each other are walked in
blocks.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from ...ir.expr import Access, Const, Delta, Equal, Expr, Subscript, leaves, map_leaves
from ...ir.loops import Assign, BandVar, Buffer, Stmt
from ...ir.tensor import BYTES_OF, Ref
from ..buffers import Memory
from ..layout import Band, Product, elements, fastest, walked
from ..statements import Statement
from .blocking import crossed, crossing_of, largest, touched

_PAGE = 512  # elements that lie next to each other and are read about as fast as a whole array
_MANY = 2**14  # points of a statement for which something is turned
_CLOSE = 2**12  # elements that stay in the first-level cache
_NEAR = 2**15  # elements that stay in the second-level cache beside others
_OTHERS = 16  # products at each point that cost no more than turning the point's operands
_REREAD = 4  # elements to one of the smaller operand, which is read again and again
_SMALL = 2**11  # multiply-adds that loops over whole columns do as fast as a call,
_SINGLE = 2**5  # and those over rows, whose sums are added up one by one
_LANES = 16  # points of a batch that fill vectors
_GAIN = 2  # points to an element that is turned for them


def bind_loops(
    statement: Statement, memory: Memory, extents: Mapping[str, int], room: int | None
) -> tuple[Stmt, ...]:
    """The loops of a statement, with the copies that they are worth.

    Before: ``y[b,a] = sum(i,j) x[j,i] * z[i,a,j,b]   for b, a, i, j``.
    After: ``t[a,b] = 0``, ``t[a,b] += x[j,i] * z[i,a,j,b]   for a, i, j, b``, ``y[b,a] = t[a,b]``.

    Args:
        statement: to bind.
        memory: all buffers; scratch is added to them.
        extents: planning extents.
        room: bytes that its scratch may take, or None for as many as it needs.
    """
    plain = bind_assign(statement, memory.buffers)
    crossing = crossing_of(statement, memory.buffers, extents)
    if crossing is not None:
        blocks = crossed(crossing, statement, memory.buffers)
        if blocks is not None:
            return (replace(plain, band=blocks, block=crossing.pair),)
    band = _streamed(statement, memory.buffers, extents)
    if band is None:
        return (plain,)
    out, target = statement.out, memory.buffers[statement.out.buffer]
    kept = tuple(v for v in band if v.name in out.variables)
    before: tuple[Stmt, ...] = ()
    after: tuple[Stmt, ...] = ()
    # Sums of single precision are added up in double, in memory as in a local sum.
    rounds = target.dtype == "float32" and not _sums_last(band, out)
    if rounds or [v.name for v in kept] != walked(out, target):
        count, dtype = elements(kept, extents), "float64" if rounds else target.dtype
        pays = elements(band, extents) >= max(_MANY, _GAIN * count)
        if not pays or (room is not None and count * BYTES_OF[dtype] > room):
            return (plain,)
        scratch = memory.scratch(kept, dtype, statement.home, statement.position)
        place = placed(scratch, kept)
        copy = replace(statement, expr=place, factors=(), band=kept, coeff=Fraction(1))
        after = (bind_assign(copy, memory.buffers),)
        statement = replace(statement, out=place, accumulate=False)
    if room is None:
        expr, before = _turned(statement, band, memory, extents)
        statement = replace(statement, expr=expr)
    if not statement.accumulate and not _sums_last(band, out):
        before = (*before, Assign(statement.out, Const(Fraction(0)), band=kept))
        statement = replace(statement, accumulate=True)
    block = crossing.pair if crossing is not None else ()
    bound = replace(bind_assign(statement, memory.buffers), band=band, block=block)
    return (*before, bound, *after)


def _streamed(
    statement: Statement, buffers: Mapping[str, Buffer], extents: Mapping[str, int]
) -> Band | None:
    """Loops in the order of the operand with the most elements; None where nothing speaks for it.

    Variables of the target stand outside as long as what they leave inside fills a page, so that
    threads share them and that part of the target stays in a cache. Those that this operand lacks
    stand around its last run, where few of them find it in a cache.
    """
    out = statement.out
    held = out.variables
    summed = [v for v in statement.band if v.name not in held]
    triangular = any(v.below is not None for v in statement.band) or bool(statement.orbit)
    main = largest(statement, extents)
    names = walked(main, buffers[main.buffer])
    if (
        not summed
        or triangular
        or buffers[out.buffer].packed
        or any(v.name not in names for v in summed)
        or len(set(names)) != len(names)
    ):
        return None
    band = {v.name: v for v in statement.band}
    if names[-1] not in band or fastest(main, buffers[main.buffer]) != names[-1]:
        return None
    lying = tuple(band[name] for name in names if name in band)
    along = names[-1] in held
    run = tuple(itertools.takewhile(lambda v: (v.name in held) == along, reversed(lying)))[::-1]
    if along and elements(run, extents) == 1:
        return None
    others = tuple(v for v in statement.band if v not in lying)
    others = _sorted(others, walked(out, buffers[out.buffer]))
    outside = tuple(
        v
        for n, v in enumerate(lying)
        if v.name in held and elements(lying[n + 1 :], extents) >= _PAGE
    )
    inside = tuple(v for v in lying if v not in outside)
    run = tuple(v for v in run if v in inside)
    while len(run) > 1 and elements((*others, *run), extents) > _CLOSE:
        run = run[1:]
    if elements((*others, *run), extents) > _NEAR:
        return (*others, *outside, *inside)
    return (*outside, *inside[: len(inside) - len(run)], *others, *run)


def streams_batch(
    statement: Statement,
    product: Product,
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
) -> bool:
    """True for a batch of small products that loops compute while they read the larger operand.

    Where the batch runs along its memory, points fill vectors as they lie; for products they would
    have to be turned. A small matrix times a vector is not worth a call.
    """
    # What a product walks besides, since its operands do not lie as matrices, is no batch.
    first, second = (set(f.variables) for f in statement.factors)
    batch = tuple(v for v in product.batch if v.name in first & second)
    if not batch:
        return False
    if not (product.m and product.n):
        main = largest(statement, extents)
        summed = fastest(main, buffers[main.buffer]) in [v.name for v in product.k]
        small = product.points < (_SINGLE if summed else _SMALL) * elements(batch, extents)
        return small and _streamed(statement, buffers, extents) is not None
    main = largest(statement, extents)
    inner = fastest(main, buffers[main.buffer])
    along = tuple(v for v in batch if v.name == inner)
    others = tuple(v for v in statement.band if v.name not in main.variables)
    few = elements(others, extents) <= _OTHERS and elements(along, extents) >= _LANES
    less, more = sorted(touched(f, statement, extents) for f in statement.factors)
    small = _REREAD * less <= more and touched(statement.out, statement, extents) <= more
    return bool(along) and few and small and _streamed(statement, buffers, extents) is not None


def _turned(
    statement: Statement, band: Band, memory: Memory, extents: Mapping[str, int]
) -> tuple[Expr, tuple[Stmt, ...]]:
    """The expression with small operands that loops would step through, copied in their order."""
    main, inner = largest(statement, extents), band[-1].name
    copies: list[Stmt] = []

    def turned(leaf: Ref | Access | Delta | Equal) -> Expr:
        if not isinstance(leaf, Access) or leaf == main:
            return leaf
        buffer = memory.buffers[leaf.buffer]
        own = tuple(v for v in band if v.name in leaf.variables)
        once = len(own) == len([s for s in leaf.subscripts if s.variable is not None])
        if inner not in leaf.variables or fastest(leaf, buffer) == inner or not once:
            return leaf
        if elements(band, extents) < max(_MANY, _GAIN * elements(own, extents)):
            return leaf
        scratch = memory.scratch(own, buffer.dtype, statement.home, statement.position)
        place = placed(scratch, own)
        plain = replace(statement, out=place, expr=leaf, factors=(), band=own, coeff=Fraction(1))
        copies.append(bind_assign(replace(plain, accumulate=False), memory.buffers))
        return place

    return map_leaves(statement.expr, turned), tuple(copies)


def _sums_last(band: Band, out: Access) -> bool:
    """True where no summed variable stands outside one of the target."""
    kept = [v.name in out.variables for v in band]
    return kept == sorted(kept, reverse=True)


def bind_assign(statement: Statement, buffers: Mapping[str, Buffer]) -> Assign:
    """Element loops in the order of the target's memory.

    Summed variables stand innermost, in the order of the operand that holds the most variables.
    Where the target accumulates and an operand runs along with the target's stride-1 variable,
    that variable goes inside them instead, so that the inner loop is a vector update.
    """
    out = statement.out
    target = buffers[out.buffer]
    operands = [x for x in leaves(statement.expr) if isinstance(x, Access)]
    main = _main(statement)
    kept = tuple(v for v in statement.band if v.name in out.variables)
    kept = _sorted(kept, walked(out, target))
    summed = tuple(v for v in statement.band if v.name not in out.variables)
    summed = _sorted(summed, walked(main, buffers[main.buffer]))
    band = (*kept, *summed)
    inner = fastest(out, target)
    if statement.accumulate and summed and kept and kept[-1].name == inner:
        ends = [fastest(x, buffers[x.buffer]) for x in operands]
        if inner in ends:
            band = (*kept[:-1], *summed, kept[-1])
    return Assign(
        out,
        statement.expr,
        statement.coeff,
        statement.accumulate,
        band,
        statement.orbit,
        block=_blocked(kept, summed, inner, fastest(main, buffers[main.buffer])),
    )


def bind_packing(name: str, memory: Memory) -> Assign:
    """Write the stored triangles of a packed output from its dense buffer.

    A band over rows and, below each row, columns: ``r[p,q] = dense[p,q]   for p, q<=p``.
    """
    buffer = memory.buffers[name]
    assert buffer.tensor is not None, f"{name} holds no tensor"
    rows = {
        axis: next(k for k in buffer.order if k in (pair.first, pair.first + 1))
        for pair in buffer.packed
        for axis in (pair.first, pair.first + 1)
    }
    letters = [f"p{axis}" for axis in range(len(buffer.axes))]
    band = tuple(
        BandVar(
            letters[axis],
            buffer.axes[axis].space,
            below=letters[rows[axis]] if axis in rows and rows[axis] != axis else None,
        )
        for axis in buffer.order
    )
    place = tuple(Subscript(letter) for letter in letters)
    return Assign(
        Access(name, place),
        Access(memory.dense[name], place),
        accumulate=buffer.tensor.accumulate,
        band=band,
    )


def _main(statement: Statement) -> Access:
    """The operand that holds the most variables."""
    operands = [x for x in leaves(statement.expr) if isinstance(x, Access)]
    return max(operands, key=lambda x: len(x.variables), default=statement.out)


def _sorted(band: Band, order: list[str]) -> Band:
    """Variables in the order of an operand's memory; those that it lacks stay in front."""
    return tuple(sorted(band, key=lambda v: order.index(v.name) if v.name in order else -1))


def _blocked(kept: Band, summed: Band, one: str | None, other: str | None) -> tuple[str, ...]:
    """The two stride-1 variables of a transposition, or ()."""
    names = [v.name for v in kept]
    if summed or one is None or other is None or one == other:
        return ()
    return (one, other) if one in names and other in names else ()


def placed(scratch: Buffer, band: Band) -> Access:
    """A point of a buffer that has one axis for each variable."""
    return Access(scratch.name, tuple(Subscript(v.name, v.base) for v in band))
