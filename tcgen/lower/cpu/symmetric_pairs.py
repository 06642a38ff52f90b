"""Contractions that are symmetric under an exchange of two indices: one of each pair is computed.

Before: ``r[i,j,a,b] += v[c,a,d,b] * t[i,j,c,d]``, where t does not change when (i, c) and (j, d)
are exchanged, nor v when (a, c) and (b, d) are. After: the part i >= j of t is copied to scratch
and multiplied, and each result is added twice, the second time as ``r[j,i,b,a]``: half of the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

from ...ir.exchange_symmetry import exchange_sign
from ...ir.expr import Access, Const, Equal, Prod, Subscript, Sum
from ...ir.loops import Assign, BandVar, Stmt
from ...ir.plan import FusionPlan
from ...ir.program import Contract, FormulaSequence, Step
from ...ir.tensor import Index, Packing
from ...thresholds import CpuThresholds
from ..buffers import Memory
from ..layout import elements, memory_order
from ..names import renamed_access
from ..statements import Statement
from .kernel_scheme import as_contraction
from .loops import bind_assign
from .sliced_operands import bind_slices, cuts_of, tile_of, unpacked_contraction


@dataclass(frozen=True, slots=True)
class Exchange:
    """A contraction is multiplied by ``sign`` when its variables are renamed by ``images``.

    Attributes:
        first, second: exchanged variables of the target, both in the same factor alone.
        images: the new name of every exchanged variable of the target, these two included.
        sign: 1 or -1.
        saved: flops that it saves, less the time of the copies.
    """

    first: str
    second: str
    images: tuple[tuple[str, str], ...]
    sign: int
    saved: int


def exchange_of(plan: FusionPlan, position: int, thresholds: CpuThresholds) -> Exchange | None:
    """The exchange that halves the contraction of an unfused visit, or None.

    The result is None, too, if the copies would cost more than the multiply-adds that they save.
    """
    visit = plan.visits[position]
    step = plan.program.steps[visit.step]
    if visit.loops or not isinstance(step.op, Contract):
        return None
    extents = plan.extent_of
    best: Exchange | None = None
    for factor in (step.op.a, step.op.b):
        other = step.op.b if factor is step.op.a else step.op.a
        alone = [i for i in step.out.indices if i in factor.indices and i not in other.indices]
        for pair in combinations(alone, 2):
            saved = _saved(step, pair, factor.indices, extents, thresholds)
            if saved <= 0 or (best is not None and saved <= best.saved):
                continue
            exchange = _proven(plan.program, step, pair, saved)
            if exchange is not None:
                best = exchange
    return best


def _saved(
    step: Step,
    pair: tuple[Index, Index],
    copied: tuple[Index, ...],
    extents: Mapping[str, int],
    thresholds: CpuThresholds,
) -> int:
    """Flops that half of the pairs save, minus the cost of the copies; 0 if not worth a proof."""

    def points(indices: tuple[Index, ...]) -> int:
        return elements(tuple(BandVar(i.name, i.space) for i in indices), extents)

    flops, one = 2 * points(step.indices), points(pair[:1])
    if pair[0].space != pair[1].space or flops < thresholds.pair_flops or one < 2:
        return 0
    half = flops * (one - 1) // (2 * one)
    moved = points(copied) // 2 + 2 * points(step.out.indices)
    return half - thresholds.pair_copy_flops * moved


def _proven(
    program: FormulaSequence, step: Step, pair: tuple[Index, Index], saved: int
) -> Exchange | None:
    """The first proven exchange of this pair and other pairs of the target, or None."""
    rest = tuple(i for i in step.out.indices if i not in pair)
    for others in _pairings(rest):
        images = {i: j for p, q in (pair, *others) for i, j in ((p, q), (q, p))}
        sign = exchange_sign(program, step, images)
        if sign is not None:
            named = tuple((i.name, j.name) for i, j in images.items())
            return Exchange(pair[0].name, pair[1].name, named, sign, saved)
    return None


def _pairings(indices: tuple[Index, ...]) -> Iterator[tuple[tuple[Index, Index], ...]]:
    """Sets of disjoint pairs of indices of one space, the empty one first."""
    if not indices:
        yield ()
        return
    first, rest = indices[0], indices[1:]
    yield from _pairings(rest)
    for n, other in enumerate(rest):
        if other.space == first.space:
            for more in _pairings(rest[:n] + rest[n + 1 :]):
                yield ((first, other), *more)


def bind_half(
    statement: Statement,
    exchange: Exchange,
    memory: Memory,
    extents: Mapping[str, int],
    thresholds: CpuThresholds,
) -> tuple[Stmt, ...] | None:
    """The statements that compute one of each pair; None if the kernel cannot."""
    whole = unpacked_contraction(statement, memory.buffers, extents, thresholds)
    if whole is None or whole.batch:
        return None
    pair = (exchange.first, exchange.second)
    factor, other = statement.factors
    if pair[0] not in factor.variables:
        factor, other = other, factor
    sliced = bool(memory.buffers[other.buffer].packed)
    cuts = cuts_of(statement, other, memory)[:1] if sliced else ()
    if sliced and not cuts:
        return None
    # A cut variable behind the pair is not on the unit-stride axis: runs in memory stay long.
    front = (*pair, *(v.name for v in cuts))
    band = tuple(replace(v, below=pair[0]) if v.name == pair[1] else v for v in statement.band)
    held = {v.name: v for v in band}

    def half(access: Access) -> tuple[Access, tuple[BandVar, ...]]:
        """Scratch for half of an operand, the pair on its slowest axis, and the loops over it."""
        order = memory_order(access, memory.buffers[access.buffer])
        own = tuple(held[n] for n in dict.fromkeys((*front, *order)) if n in order and n in held)
        dtype = memory.buffers[access.buffer].dtype
        buffer = memory.scratch(own, dtype, statement.home, statement.position, (Packing(0),))
        return Access(buffer.name, tuple(Subscript(v.name) for v in own)), own

    left, left_band = half(factor)
    result, result_band = half(statement.out)
    factors = (left, other)
    small = replace(statement, out=result, expr=Prod(factors), factors=factors, band=band)
    small = replace(small, accumulate=False)  # the results are added to the target below
    product: tuple[Stmt, ...]
    if sliced:
        tile = tile_of(small, other, cuts[0], extents, thresholds)
        product = bind_slices(small, other, cuts[0], tile, (), memory, extents, thresholds)
    else:
        gemm = as_contraction(small, memory.buffers, extents, thresholds)
        assert gemm is not None, "a triangle on the slowest axes suits the kernel as well"
        product = (gemm,)
    plain = replace(statement, factors=(), coeff=Fraction(1), orbit=())
    copy = replace(plain, out=left, expr=factor, band=left_band, accumulate=False)
    direct = replace(plain, expr=result, band=result_band)
    off = Sum((Const(Fraction(1)), Prod((Const(Fraction(-1)), Equal(*map(Subscript, pair))))))
    mirror = replace(
        direct,
        out=renamed_access(statement.out, dict(exchange.images)),
        # Without accumulation the statement after it overwrites the diagonal.
        expr=Prod((off, result)) if statement.accumulate else result,
        coeff=Fraction(exchange.sign),
    )
    loops = [_triangle(bind_assign(s, memory.buffers), pair) for s in (copy, mirror, direct)]
    return (loops[0], *product, *loops[1:])


def _triangle(stmt: Assign, pair: tuple[str, str]) -> Assign:
    """The statement with the loop over rows of its triangle outside of that over columns."""
    row, column = (next(v for v in stmt.band if v.name == n) for n in pair)
    if stmt.band.index(row) < stmt.band.index(column):
        return stmt
    # The row takes the column's place in the band, and the column comes right after it.
    ordered = [v for v in stmt.band if v is not row]
    ordered.insert(ordered.index(column), row)
    return replace(stmt, band=tuple(ordered))
