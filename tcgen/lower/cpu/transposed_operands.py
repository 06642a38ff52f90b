"""Contractions with an operand whose unit-stride axis the packing routine cannot read contiguously.

The kernel packs an operand fast if its unit-stride variable is the last one of m (or n) or of k.
Otherwise each cache line holds elements of several micro-panels, and is loaded again for each
of them. Such an operand, or slice by slice a large one, is transposed first.

Before: ``y[c,a,b] += x[k,b,a] * z[k,c]``, where m is (a, b) and b must be its last variable. After,
for each tile of b: ``t[k,a,b] = x[k,b,a]``, and ``y[c,a,b] += t[k,a,b] * z[k,c]`` by the kernel.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ...ir.expr import Access, Prod
from ...ir.loops import BandVar, Gemm, Stmt
from ..buffers import Memory
from ..layout import Band, CpuContext
from ..statements import Statement
from .kernel_scheme import as_contraction
from .loops import bind_assign, copied, placed
from .sliced_operands import bind_slices, cuts_of

_TILE_MULTIPLE = 48  # points: a slice of the last variable of m or n ends on whole micro-panels
CACHE_LINE = 8  # points of the unit-stride variable that make good use of a cache line


def bind_contraction(statement: Statement, memory: Memory) -> tuple[Stmt, ...] | None:
    """A contraction by the generated kernel with its transpositions; None if the kernel cannot."""
    plain = as_contraction(statement, memory)
    if plain is None:
        return None
    if memory.room == 0:
        return (plain,)
    if _transposes_target(plain, memory):
        return _through_scratch(statement, plain, memory)
    copies: list[Stmt] = []
    for access in statement.factors:
        names = _order(access, plain, memory)
        own = {v.name: v for v in statement.band}
        count = memory.elements(tuple(own[n] for n in names))
        if not names or count <= memory.thresholds.cached_operand:
            continue
        if count <= memory.thresholds.copied_operand:
            statement = _copied(statement, access, names, memory, copies)
            continue
        cuts = _cuts(statement, access, plain, count, memory)
        if cuts:
            slices = bind_slices(statement, access, cuts, names, memory)
            return (*copies, *slices)
    bound = as_contraction(statement, memory)
    assert bound is not None, "a copy suits the kernel as well as its original"
    return (*copies, bound)


def _transposes_target(plain: Gemm, context: CpuContext) -> bool:
    """True if A is in the wrong order, and transposing the smaller C is cheaper."""
    thresholds = context.thresholds
    assert plain.scheme is not None, "a contraction of the generated kernel has a scheme"
    inner = context.unit_stride(plain.a)
    wrong = inner in [v.name for v in plain.m[:-1]] and not plain.scheme.stage
    of_a, of_c = (context.elements((*plain.batch, *plain.m, *g)) for g in (plain.k, plain.n))
    least = max(thresholds.cached_operand, thresholds.transposed_target * of_c)
    return wrong and of_a >= least


def _through_scratch(statement: Statement, plain: Gemm, memory: Memory) -> tuple[Stmt, ...]:
    """The contraction to scratch with m in the order of A, and a transposition to the target."""
    m = memory.ordered(plain.m, plain.a)
    own: Band = (*plain.batch, *plain.n, *m)
    dtype = memory.buffer(statement.out).dtype
    scratch = memory.scratch(own, dtype, statement.home, statement.position)
    place = placed(scratch, own)
    to_scratch = replace(statement, out=place, accumulate=False)
    product = as_contraction(to_scratch, memory)
    assert product is not None, "a target of whole axes takes any order"
    copy = replace(statement, expr=place, factors=(), band=own, coeff=Fraction(1))
    return (product, bind_assign(copy, memory))


def _order(access: Access, plain: Gemm, context: CpuContext) -> list[str]:
    """Memory order that an operand should have, slowest first; [] if its own order is good.

    It has the variables of the contraction only, not those of loops around the statement.
    """
    scheme, is_a = plain.scheme, access == plain.a
    assert scheme is not None, "a contraction of the generated kernel has a scheme"
    if scheme.stage or not (scheme.pack_a if is_a else scheme.pack_b):
        return []
    own = {v.name for v in (*plain.batch, *plain.m, *plain.n, *plain.k)}
    present = [n for n in context.memory_order(access) if n in own]
    names = list(present)
    batch = [v.name for v in plain.batch]
    while names[-1] in batch:
        names.insert(0, names.pop())
    for group in (plain.m if is_a else plain.n, plain.k):
        if names[-1] in [v.name for v in group[:-1]]:
            names.remove(group[-1].name)
            names.append(group[-1].name)
            break
    return [] if names == present else names


def _cuts(
    statement: Statement, access: Access, plain: Gemm, count: int, memory: Memory
) -> tuple[tuple[BandVar, int], ...]:
    """Variables that are cut into slices of an operand with ``count`` elements, with their points.

    If possible one that leaves cache lines whole; more if the slices are too large, or () if they
    do not pay. The other operand is not packed again if both are cut along the batch.
    """
    inner = memory.memory_order(access)[-1]
    batch = [v for v in plain.batch if v.base is None and v.below is None]
    free = [v for v in cuts_of(statement, access, memory) if v.name != inner]
    order = [v for v in batch if v.name != inner]
    order += sorted(free, key=lambda v: v.name == plain.m[-1].name)[:1]
    order += [v for v in batch if v.name == inner]
    found: list[tuple[BandVar, int]] = []
    size = count
    for cut in order:
        extent = memory.elements((cut,))
        tile = _tile(cut, access, plain, size, memory)
        if cut.name == inner:
            tile = max(tile, min(CACHE_LINE, memory.largest_slice * extent // size))
        if tile >= extent and (cut != order[-1] or size > memory.largest_slice):
            continue
        if not _pays(access, plain, count, cut, tile, memory):
            continue
        tile = min(tile, extent)
        found.append((cut, tile))
        size = size * tile // extent
        if size <= 2 * memory.largest_slice:
            return tuple(found)
    return ()


def _tile(cut: BandVar, access: Access, plain: Gemm, count: int, context: CpuContext) -> int:
    """Points of the cut variable in a slice of an operand with ``count`` elements."""
    thresholds = context.thresholds
    extent = context.elements((cut,))
    if cut in plain.batch:
        return max(1, thresholds.slice_elements * extent // count)
    own = context.elements(plain.m if access == plain.a else plain.n)
    wanted = max(thresholds.slice_elements, thresholds.slice_mn * count // max(1, own))
    tile = -(-min(wanted, thresholds.largest_slice) * extent // count)
    if cut.name == plain.m[-1].name:
        return -(-tile // _TILE_MULTIPLE) * _TILE_MULTIPLE
    return tile


def _pays(
    access: Access, plain: Gemm, count: int, cut: BandVar, tile: int, context: CpuContext
) -> bool:
    """True if transposed slices of an operand cost less than packing it in its own order."""
    thresholds = context.thresholds
    if cut in plain.batch:
        return True
    other = plain.n if access == plain.a else plain.m
    extent = context.elements((cut,))
    again = (-(-extent // tile) - 1) * context.elements((*plain.batch, *other, *plain.k))
    met = thresholds.sliced_least <= context.elements(other) <= thresholds.sliced_most
    return met and again <= thresholds.repacked * count


def _copied(
    statement: Statement, access: Access, names: list[str], memory: Memory, copies: list[Stmt]
) -> Statement:
    """The statement with a transposed copy of an operand; ``names`` is the order of the copy."""
    own: Band = tuple(next(v for v in statement.band if v.name == name) for name in names)
    place, copy = copied(access, own, memory.buffer(access).dtype, statement, memory)
    copies.append(copy)
    factors = tuple(place if f == access else f for f in statement.factors)
    return replace(statement, expr=Prod(factors), factors=factors)
