"""Contractions with a large packed operand, which is unpacked slice by slice.

Before: ``r[i,j,a,b] += v[(c,a),(d,b)] * t[i,j,c,d]``, v packed. After, for each tile of a: the
slice of v is unpacked to scratch, and multiplied by the generated kernel. An unpacked copy of all
of v, which the kernel cannot read as it is stored, would be several times as large as v.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from ...ir.cost import extent_of
from ...ir.expr import Access, Prod, Subscript
from ...ir.loops import BandVar, Buffer, Gemm, Loop, LoopVar, Stmt
from ..buffers import Memory
from ..layout import elements, fastest, walked
from ..statements import Statement
from .kernel_scheme import as_contraction
from .loops import bind_assign

_SLICE = 2**22  # elements of a slice, and the fewest of an operand that is cut into slices


def contraction(
    statement: Statement, buffers: Mapping[str, Buffer], extents: Mapping[str, int]
) -> Gemm | None:
    """The contraction of a statement were its packed factors whole, or None."""
    whole = {f.buffer: replace(buffers[f.buffer], packed=()) for f in statement.factors}
    return as_contraction(statement, {**buffers, **whole}, extents)


def bind_sliced(
    statement: Statement, memory: Memory, extents: Mapping[str, int]
) -> tuple[Stmt, ...] | None:
    """A contraction whose one large packed factor is sliced; None where there is no such factor."""
    packed = [f for f in statement.factors if memory.buffers[f.buffer].packed]
    if len(packed) != 1 or contraction(statement, memory.buffers, extents) is None:
        return None
    held = tuple(v for v in statement.band if v.name in packed[0].variables)
    cuts = cuts_of(statement, packed[0], memory)
    if elements(held, extents) <= _SLICE or not cuts:
        return None
    # The variable of stride 1 in the target stays whole, if another can be cut.
    lanes = fastest(statement.out, memory.buffers[statement.out.buffer])
    cut = next((v for v in cuts if v.name != lanes), cuts[0])
    tile = tile_of(statement, packed[0], cut, extents)
    return bind_slices(statement, packed[0], cut, tile, (), memory, extents)


def cuts_of(statement: Statement, factor: Access, memory: Memory) -> tuple[BandVar, ...]:
    """What the target and this factor hold and the other one does not, the slowest first."""
    band = {v.name: v for v in statement.band}
    others = {n for f in statement.factors if f is not factor for n in f.variables}
    free = (
        band[name]
        for name in walked(factor, memory.buffers[factor.buffer])
        if name in statement.out.variables and name not in others and name in band
    )
    return tuple(v for v in free if v.base is None and v.below is None)


def bind_slices(
    statement: Statement,
    factor: Access,
    cut: BandVar,
    tile: int,
    order: Sequence[str],
    memory: Memory,
    extents: Mapping[str, int],
) -> tuple[Stmt, ...]:
    """A contraction of copies of a factor's slices.

    Args:
        statement: the contraction.
        factor: one of its two.
        cut: one of the factor's ``cuts_of``.
        tile: points of it in a slice.
        order: variables of a slice, the slowest first; as the factor lies where there are none.
        memory: all buffers; that of a slice is added to them.
        extents: planning extents.
    """
    other = next(f for f in statement.factors if f is not factor)
    buffer = memory.buffers[factor.buffer]
    loop = f"{memory.next_scratch()}_{cut.name}"
    band = tuple(replace(v, base=loop, tile=tile) if v == cut else v for v in statement.band)
    named = {v.name: v for v in band}
    own = tuple(named[name] for name in order or walked(factor, buffer))
    scratch = memory.scratch(own, buffer.dtype, statement.home, statement.position)
    part = Access(scratch.name, tuple(Subscript(v.name, v.base) for v in own))
    small = replace(statement, expr=Prod((part, other)), factors=(part, other), band=band)
    product = as_contraction(small, memory.buffers, extents)
    assert product is not None, "a slice lies as the whole would"
    copies = _unpacked(small, part, factor, own, memory)
    return (Loop(LoopVar(loop, cut.space, tile), (*copies, product)),)


def tile_of(statement: Statement, factor: Access, cut: BandVar, extents: Mapping[str, int]) -> int:
    """Points of a cut variable in an unpacked slice."""
    held = tuple(v for v in statement.band if v.name in factor.variables)
    extent, count = extent_of(cut.space, extents), elements(held, extents)
    return max(1, min(extent, _SLICE * extent // max(1, count)))


def _unpacked(
    statement: Statement, part: Access, factor: Access, own: tuple[BandVar, ...], memory: Memory
) -> tuple[Stmt, ...]:
    """Copies of a slice; a pair of stride 1 is read as it is stored and written to both places."""
    buffer = memory.buffers[factor.buffer]
    copy = replace(
        statement,
        out=part,
        expr=factor,
        factors=(),
        band=own,
        coeff=Fraction(1),
        accumulate=False,
        orbit=(),
    )
    row, column = own[-2:]
    pair = next((p for p in buffer.packed if buffer.order[-1] in (p.first, p.first + 1)), None)
    if pair is None or row.base or column.base:
        return (bind_assign(copy, memory.buffers),)
    lower = replace(copy, band=(*own[:-1], replace(column, below=row.name)))
    turned = {row.name: column.name, column.name: row.name}
    mirror = replace(
        lower,
        out=Access(
            part.buffer,
            tuple(
                Subscript(turned.get(s.variable or "", s.variable), s.base) for s in part.subscripts
            ),
        ),
        coeff=Fraction(-1 if pair.antisymmetric else 1),
    )
    return tuple(
        replace(bind_assign(s, memory.buffers), band=s.band, block=()) for s in (mirror, lower)
    )
