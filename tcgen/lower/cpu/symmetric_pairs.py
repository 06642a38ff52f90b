"""Contractions that are symmetric under an exchange of two indices: one of each pair is computed.

Before: ``r[i,j,a,b] += v[c,a,d,b] * t[i,j,c,d]``, where t does not change when (i, c) and (j, d)
are exchanged, nor v when (a, c) and (b, d) are. After: the part i >= j of t is copied to scratch
and multiplied, and each result is added twice, the second time as ``r[j,i,b,a]``: half of the work.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from fractions import Fraction

from ...ir.expr import Access, Const, Equal, Prod, Subscript, Sum
from ...ir.halved_products import Exchange
from ...ir.loops import Assign, BandVar, Stmt
from ...ir.tensor import Packing
from ..buffers import Memory
from ..names import renamed_access
from ..statements import Statement
from .grouped_products import GroupedProduct
from .kernel_scheme import as_contraction
from .loops import bind_assign, placed
from .sliced_operands import bind_slices, cuts_of, tile_of, unpacked_contraction


def bind_half(
    statement: Statement, exchange: Exchange, memory: Memory, constant: Container[str]
) -> GroupedProduct | None:
    """The statements that compute one of each pair of ``exchange``; None if the kernel cannot.

    ``constant`` has the buffers of constant inputs and intermediates. Half of a packed one is
    copied once for a bound program, since it is not read in place by any call.
    """
    whole = unpacked_contraction(statement, memory)
    if whole is None or whole.batch:
        return None
    pair = (exchange.first, exchange.second)
    factor, other = statement.factors
    if pair[0] not in factor.variables:
        factor, other = other, factor
    sliced = bool(memory.buffer(other).packed)
    cuts = cuts_of(statement, other, memory)[:1] if sliced else ()
    tiles = tuple((cut, tile_of(statement, other, cut, memory)) for cut in cuts)
    if sliced and not any(tile for _, tile in tiles):
        return None
    # A cut variable behind the pair is not on the unit-stride axis: runs in memory stay long.
    front = (*pair, *(v.name for v in cuts))
    band = tuple(replace(v, below=pair[0]) if v.name == pair[1] else v for v in statement.band)
    held = {v.name: v for v in band}

    def walked(access: Access) -> list[str]:
        """Variables in the order of memory, without those of loops around the statement."""
        return [n for n in memory.memory_order(access) if n in held]

    def half(access: Access, first: int) -> tuple[Access, tuple[BandVar, ...]]:
        """Scratch for half of an operand, and its loops; the pair follows ``first`` axes."""
        order = walked(access)
        others = [n for n in order if n not in pair]
        names = (*others[:first], *front, *others[first:])
        own = tuple(held[n] for n in dict.fromkeys(names) if n in order)
        dtype = memory.buffer(access).dtype
        buffer = memory.scratch(own, dtype, statement.home, statement.position, (Packing(first),))
        return placed(buffer, own), own

    # In the result the pair stands where the target has it: both are walked in long runs.
    order = walked(statement.out)
    slower = 0 if sliced else max(order.index(n) for n in pair) - 1
    left, left_band = half(factor, 0)
    result, result_band = half(statement.out, slower)
    factors = (left, other)
    small = replace(statement, out=result, expr=Prod(factors), factors=factors, band=band)
    # The results are added to the target below.
    small = replace(small, accumulate=False)
    product: tuple[Stmt, ...]
    if sliced:
        product = bind_slices(small, other, tiles, (), memory)
    else:
        gemm = as_contraction(small, memory)
        assert gemm is not None, "a triangle suits the kernel as well as its variables"
        product = (gemm,)
    plain = replace(statement, factors=(), coeff=Fraction(1), orbit=())
    copy = replace(plain, out=left, expr=factor, band=left_band, accumulate=False)
    direct = replace(plain, expr=result, band=result_band)
    each = (copy, _mirror(direct, exchange, result), direct)
    loops = [_triangle(bind_assign(s, memory), pair) for s in each]
    if memory.buffer(factor).packed and factor.buffer in constant:
        return GroupedProduct((loops[0],), (*product, *loops[1:]))
    return GroupedProduct((), (loops[0], *product, *loops[1:]))


def _mirror(direct: Statement, exchange: Exchange, result: Access) -> Statement:
    """The addition of the result to the exchanged elements of the target, before ``direct``."""
    pair = (exchange.first, exchange.second)
    off = Sum((Const(Fraction(1)), Prod((Const(Fraction(-1)), Equal(*map(Subscript, pair))))))
    return replace(
        direct,
        out=renamed_access(direct.out, dict(exchange.images)),
        # Without accumulation ``direct`` overwrites the diagonal.
        expr=Prod((off, result)) if direct.accumulate else result,
        coeff=Fraction(exchange.sign),
    )


def _triangle(stmt: Assign, pair: tuple[str, str]) -> Assign:
    """The statement with the loop over rows of its triangle outside of that over columns."""
    row, column = (next(v for v in stmt.band if v.name == n) for n in pair)
    if stmt.band.index(row) < stmt.band.index(column):
        return stmt
    # The row takes the column's place in the band, and the column comes right after it.
    ordered = [v for v in stmt.band if v is not row]
    ordered.insert(ordered.index(column), row)
    return replace(stmt, band=tuple(ordered))
