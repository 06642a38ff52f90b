"""Contractions with an operand that lies across the order in which the kernel packs.

The kernel packs an operand at speed where its stride-1 variable is summed, or is the last one of
its rows or columns. Where it is another one, each line of memory holds elements of several blocks,
and is fetched for each of them: then slices of the operand are turned first.

Before: ``y[c,a,b] += x[k,b,a] * z[k,c]``, rows a, b of which b must be the last. After, for each
tile of b: ``t[k,a,b] = x[k,b,a]``, and ``y[c,a,b] += t[k,a,b] * z[k,c]`` by the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from ...ir.expr import Access, Prod
from ...ir.loops import BandVar, Buffer, Gemm, Stmt
from ..buffers import Memory
from ..layout import Band, elements, fastest, walked
from ..statements import Statement
from .kernel_scheme import as_contraction
from .loops import bind_assign, placed
from .sliced_operands import bind_slices, cuts_of

_NEAR = 2**14  # elements of an operand that stays in the caches while it is packed
_WHOLE = 2**19  # elements of an operand that is copied at once
_SLICE = 2**17  # elements of a slice of a larger one
_ROWS = 1024  # rows of a slice: what they meet is packed again for each slice
_MOST = 2**22  # elements of a slice of long sums
_LARGER = 2  # elements of rows to one of a target that is turned in their place
_AGAIN = 2  # elements packed again for the sake of one that is turned
_LEAST, _MET = 16, 2048  # columns for which rows are turned: few do not earn it, many hide it
_STEP = 48  # points by which a slice of stride 1 in the target ends on whole tiles and lines


def bind_contraction(
    statement: Statement, memory: Memory, extents: Mapping[str, int]
) -> tuple[Stmt, ...] | None:
    """A contraction for the generated kernel; None where it does not fit.

    Args:
        statement: to bind.
        memory: all buffers; slices are added to them.
        extents: planning extents.
    """
    plain = as_contraction(statement, memory.buffers, extents)
    if plain is None:
        return None
    if _turns_target(plain, memory.buffers, extents):
        return _through_scratch(statement, plain, memory, extents)
    copies: list[Stmt] = []
    for access in statement.factors:
        names = _order(access, plain, memory.buffers)
        own = {v.name: v for v in statement.band}
        count = elements(tuple(own[n] for n in names if n in own), extents)
        if not names or count <= _NEAR:
            continue
        if count <= _WHOLE:
            statement = _copied(statement, access, names, memory, copies)
            continue
        cut = _cut(statement, access, plain, memory)
        tile = 0 if cut is None else _tile(cut, access, plain, count, extents)
        if cut is not None and _pays(
            access, plain, count, elements((cut,), extents), tile, extents
        ):
            return (*copies, *bind_slices(statement, access, cut, tile, names, memory, extents))
    bound = as_contraction(statement, memory.buffers, extents)
    assert bound is not None, "a copy lies as well as what was copied"
    return (*copies, bound)


def _turns_target(plain: Gemm, buffers: Mapping[str, Buffer], extents: Mapping[str, int]) -> bool:
    """True where rows lie across a target that is smaller than their operand."""
    assert plain.scheme is not None, "a contraction of the generated kernel has a scheme"
    lanes = fastest(plain.a, buffers[plain.a.buffer])
    across = lanes in [v.name for v in plain.m[:-1]] and not plain.scheme.stage
    rows, columns = (elements((*plain.batch, *plain.m, *g), extents) for g in (plain.k, plain.n))
    return across and rows >= _NEAR and rows >= _LARGER * columns


def _through_scratch(
    statement: Statement, plain: Gemm, memory: Memory, extents: Mapping[str, int]
) -> tuple[Stmt, ...]:
    """The contraction with a target that lies as its rows do, which is turned at the end."""
    order = walked(plain.a, memory.buffers[plain.a.buffer])
    rows = tuple(sorted(plain.m, key=lambda v: order.index(v.name)))
    own: Band = (*plain.batch, *plain.n, *rows)
    dtype = memory.buffers[statement.out.buffer].dtype
    scratch = memory.scratch(own, dtype, statement.home, statement.position)
    place = placed(scratch, own)
    product = as_contraction(
        replace(statement, out=place, accumulate=False), memory.buffers, extents
    )
    assert product is not None, "a target of whole axes takes any order"
    copy = replace(statement, expr=place, factors=(), band=own, coeff=Fraction(1))
    return (product, bind_assign(copy, memory.buffers))


def _order(access: Access, plain: Gemm, buffers: Mapping[str, Buffer]) -> list[str]:
    """Variables of an operand from the slowest to the fastest as it should lie; [] as it does."""
    scheme, rows = plain.scheme, access == plain.a
    assert scheme is not None, "a contraction of the generated kernel has a scheme"
    if scheme.stage or not (scheme.pack_a if rows else scheme.pack_b):
        return []
    lies = walked(access, buffers[access.buffer])
    names = list(lies)
    group = [v.name for v in (plain.m if rows else plain.n)]
    batch = [v.name for v in plain.batch]
    while names[-1] in batch:
        names.insert(0, names.pop())
    if names[-1] in group[:-1]:
        names.remove(group[-1])
        names.append(group[-1])
    return [] if names == lies else names


def _cut(statement: Statement, access: Access, plain: Gemm, memory: Memory) -> BandVar | None:
    """The variable whose tiles make slices: one that leaves lines of memory whole, if there is."""
    fast = walked(access, memory.buffers[access.buffer])[-1]
    cuts = [v for v in cuts_of(statement, access, memory) if v.name != fast]
    return next((v for v in cuts if v.name != plain.m[-1].name), cuts[0] if cuts else None)


def _tile(cut: BandVar, access: Access, plain: Gemm, count: int, extents: Mapping[str, int]) -> int:
    """Points of the cut variable in a slice of an operand of so many elements."""
    extent = elements((cut,), extents)
    rows = elements(plain.m if access == plain.a else plain.n, extents)
    wanted = max(_SLICE, _ROWS * count // max(1, rows))
    tile = -(-min(wanted, _MOST) * extent // count)
    return -(-tile // _STEP) * _STEP if cut.name == plain.m[-1].name else tile


def _pays(
    access: Access, plain: Gemm, count: int, extent: int, tile: int, extents: Mapping[str, int]
) -> bool:
    """True where slices of an operand cost less than packing it as it lies.

    Args:
        access: the operand.
        plain: the contraction.
        count: its elements.
        extent: of what is cut.
        tile: points of it in a slice.
        extents: planning extents.
    """
    columns = plain.n if access == plain.a else plain.m
    met = elements(columns, extents)
    again = (-(-extent // tile) - 1) * elements((*plain.batch, *columns, *plain.k), extents)
    return _LEAST <= met <= _MET and again <= _AGAIN * count


def _copied(
    statement: Statement, access: Access, names: list[str], memory: Memory, copies: list[Stmt]
) -> Statement:
    """The statement with a copy of an operand, whose variables lie in another order."""
    own: Band = tuple(next(v for v in statement.band if v.name == name) for name in names)
    dtype = memory.buffers[access.buffer].dtype
    scratch = memory.scratch(own, dtype, statement.home, statement.position)
    place = placed(scratch, own)
    copy = replace(statement, out=place, expr=access, factors=(), band=own, coeff=Fraction(1))
    copies.append(bind_assign(replace(copy, accumulate=False), memory.buffers))
    factors = tuple(place if f == access else f for f in statement.factors)
    return replace(statement, expr=Prod(factors), factors=factors)
