"""Contractions with packed operands, which are unpacked: a large one slice by slice.

Before: ``r[i,j,a,b] += v[(c,a),(d,b)] * t[i,j,c,d]`` with v packed. After, for each tile of a: the
slice of v is unpacked to scratch, and the generated kernel multiplies it. The kernel cannot read
packed triangles, and an unpacked copy of all of v would be several times as large as v.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from ...ir.expr import Access, Const, Prod
from ...ir.loops import Assign, BandVar, Gemm, Loop, LoopVar, Stmt
from ..buffers import Memory
from ..layout import CpuContext, held_by
from ..names import renamed_access
from ..statements import Statement
from .kernel_scheme import as_contraction
from .loops import bind_assign, copy_to, placed


def unpacked_contraction(statement: Statement, context: CpuContext) -> Gemm | None:
    """The contraction of a statement as if its packed factors were not packed, or None."""
    whole = {f.buffer: replace(context.buffer(f), packed=()) for f in statement.factors}
    return as_contraction(statement, context.with_buffers({**context.buffers, **whole}))


def bind_sliced(statement: Statement, memory: Memory) -> tuple[Stmt, ...] | None:
    """A contraction whose one large packed factor is unpacked in slices; None for any other."""
    packed = [f for f in statement.factors if memory.buffer(f).packed]
    if len(packed) != 1:
        return None
    (factor,) = packed
    if unpacked_contraction(statement, memory) is None:
        return None
    held = held_by(factor, statement.band)
    if len(held) < len(factor.variables):
        # A loop around the statement walks the rest.
        return None
    cuts = cuts_of(statement, factor, memory)
    if memory.elements(held) <= memory.largest_slice or not cuts:
        return None
    # The target's unit-stride variable stays whole if another variable can be cut.
    lanes = memory.unit_stride(statement.out)
    cut = next((v for v in cuts if v.name != lanes), cuts[0])
    tile = tile_of(statement, factor, cut, memory)
    return bind_slices(statement, factor, ((cut, tile),), (), memory) if tile else None


def unpack_factors(statement: Statement, memory: Memory) -> tuple[tuple[Stmt, ...], Statement]:
    """Copies that unpack the packed factors of a product, and the product of the copies.

    A factor is unpacked in the order of its memory, where neighbours stay neighbours; binding puts
    a copy in another order only if the kernel needs it. Nothing is copied for other statements.
    """
    copies: list[Stmt] = []
    if unpacked_contraction(statement, memory) is None:
        return (), statement
    named = {v.name: v for v in statement.band}
    for factor in statement.factors:
        buffer = memory.buffer(factor)
        order = memory.memory_order(factor)
        once = len(set(order)) == len(order)
        # A diagonal, or a factor that a loop around the statement walks in part, stays packed.
        if not buffer.packed or not once or not named.keys() >= set(order):
            continue
        own = tuple(named[name] for name in order)
        if memory.elements(own) > memory.largest_slice:
            continue
        scratch = memory.scratch(own, buffer.dtype, statement.home, statement.position)
        whole = placed(scratch, own)
        copies += _unpacked(statement, whole, factor, own, memory)
        factors = tuple(whole if f == factor else f for f in statement.factors)
        statement = replace(statement, expr=Prod(factors), factors=factors)
    return tuple(copies), statement


def cuts_of(statement: Statement, factor: Access, memory: Memory) -> tuple[BandVar, ...]:
    """Variables of the target and this factor that the other factor lacks, the slowest first."""
    band = {v.name: v for v in statement.band}
    others = {n for f in statement.factors if f is not factor for n in f.variables}
    free = (
        band[name]
        for name in memory.memory_order(factor)
        if name in statement.out.variables and name not in others and name in band
    )
    return tuple(v for v in free if v.base is None and v.below is None)


def bind_slices(
    statement: Statement,
    factor: Access,
    cuts: Sequence[tuple[BandVar, int]],
    order: Sequence[str],
    memory: Memory,
) -> tuple[Stmt, ...]:
    """Loops over the slices of a factor: each is copied to new scratch and multiplied.

    ``cuts`` has variables of the factor and the target, each with its points in a slice. ``order``
    has the variables of a slice, the slowest first; if empty, they follow the factor's memory.
    """
    other = next(f for f in statement.factors if f is not factor)
    buffer = memory.buffer(factor)
    loops = {v: LoopVar(f"{memory.next_scratch()}_{v.name}", v.space, tile) for v, tile in cuts}
    band = tuple(
        replace(v, base=loops[v].name, tile=loops[v].tile) if v in loops else v
        for v in statement.band
    )
    named = {v.name: v for v in band}
    own = tuple(named[name] for name in order or memory.memory_order(factor))
    scratch = memory.scratch(own, buffer.dtype, statement.home, statement.position)
    part = placed(scratch, own)
    small = replace(statement, expr=Prod((part, other)), factors=(part, other), band=band)
    product = as_contraction(small, memory)
    assert product is not None, "a slice suits the kernel as well as the whole operand"
    body: tuple[Stmt, ...] = (*_unpacked(small, part, factor, own, memory), product)
    for loop in reversed(loops.values()):
        body = (Loop(loop, body),)
    return body


def tile_of(statement: Statement, factor: Access, cut: BandVar, memory: Memory) -> int:
    """Points of a cut variable in an unpacked slice; 0 if the room is too small for one."""
    held = held_by(factor, statement.band)
    extent, count = cut.space.extent_in(memory.extents), memory.elements(held)
    least = 0 if memory.room is not None else 1
    return max(least, min(extent, memory.largest_slice * extent // max(1, count)))


def _unpacked(
    statement: Statement, part: Access, factor: Access, own: tuple[BandVar, ...], memory: Memory
) -> tuple[Stmt, ...]:
    """Copies of a factor or slice; a pair on the unit-stride axes is read once for both places.

    A block between two parts of a joined space has no pairs: each element has one place.
    """
    buffer = memory.buffer(factor)
    copy = copy_to(part, factor, own, statement)
    row, column = own[-2:]
    pair = next((p for p in buffer.packed if buffer.order[-1] in p.axes), None)
    if not memory.mirrors or pair is None or row.base or column.base or row.space != column.space:
        return (bind_assign(copy, memory),)
    below = replace(column, below=row.name, strict=pair.antisymmetric)
    lower = replace(copy, band=(*own[:-1], below))
    mirror = replace(
        copy,
        out=renamed_access(part, {row.name: column.name, column.name: row.name}),
        expr=part,
        band=(*own[:-1], replace(below, strict=True)),
        coeff=Fraction(-1 if pair.antisymmetric else 1),
    )
    diagonal = Assign(
        renamed_access(part, {column.name: row.name}), Const(Fraction(0)), band=own[:-1]
    )
    both = [replace(bind_assign(s, memory), band=s.band, block=()) for s in (lower, mirror)]
    both[1] = replace(both[1], block=(row.name, column.name))
    return (*both, diagonal) if pair.antisymmetric else tuple(both)
