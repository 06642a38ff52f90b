"""Contractions for the generated kernel: groups, their order, and how operands are read.

The kernel takes operands in any layout, so nothing is copied first. What it needs is which factor's
variables become the vector lanes (the one that holds the target's stride-1 variable, so that tiles
are stored as they are), the order of each group (that of the target's memory, so that it is
written in order; for the summed group that of an operand whose stride-1 variable it holds), and
which operand is packed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from ...ir.expr import Access
from ...ir.loop_analysis import contraction_obstacle
from ...ir.loops import BandVar, Buffer, Gemm, Scheme
from ..layout import Product, elements, fastest, walked
from ..statements import Statement

Band = tuple[BandVar, ...]

_NARROW = 48  # columns (rows) that see an element of the other operand: few enough to skip packing
_FEW = 120  # and still few enough, where the sum runs along the other operand or is short
_SHORT = 64  # summed points
_TURNED = 96  # columns for which a large operand is not turned, but the target
_LARGE = 2**17  # elements of an operand that is worth reading in place
_THIN = 256  # the short side of a product that the BLAS is slow at
_WORTH = 2**20  # multiply-adds of a product worth more than a call of the BLAS
_STEPS = 8  # summed points beside which columns may be stored in any order
_REACH = 32  # rows to a summed point that still do
_TILE = 8  # rows and columns that fill registers,
_PAIR = 2  # and so few that the BLAS is slower still where it adds up doubles
_VECTORS = 7  # rows or columns that are no tile,
_LINE, _FAR = 512, 2**20  # beside a matrix with lines of a page that is in no near cache
_BEYOND = 32  # summed points beyond storing what they add up to
DEEP = 384  # summed points of a staged tile, which the kernel takes at once


def is_thin(product: Product, extents: Mapping[str, int]) -> bool:
    """True for a product that the BLAS could compute as it lies, but not at speed.

    The BLAS packs all of both operands; where one side of the product is short, that is much of
    the work, and the generated kernel is faster. Where rows or columns are fewer than those of a
    tile, the kernel leaves registers empty: it is faster then for doubles and sums of some length,
    but for a large matrix with lines of a page, which meets a few vectors (``gemv.c``).
    """
    sides = [elements(g, extents) for g in (product.m, product.n, product.k)]
    few, many = sorted(sides[:2])
    if few <= _VECTORS and min(many, sides[2]) >= _LINE and many * sides[2] >= _FAR:
        return False
    least = _PAIR if product.dtype == "float64" and sides[2] >= _BEYOND else _TILE
    enough = prod(sides) >= _WORTH and min(sides[:2]) >= least
    return product.dtype != "complex128" and enough and min(sides) <= _THIN


def as_contraction(
    statement: Statement, buffers: Mapping[str, Buffer], extents: Mapping[str, int]
) -> Gemm | None:
    """The contraction of a statement for the generated kernel, or None where it does not fit."""
    plain = packed_contraction(statement, buffers)
    if plain is None:
        return None
    return arranged(plain, _scheme(plain, buffers, extents), buffers, extents)


def packed_contraction(statement: Statement, buffers: Mapping[str, Buffer]) -> Gemm | None:
    """The contraction of a statement with both operands packed, or None where it does not fit.

    It needs rows, columns and summed variables, each on one axis of its operands, one element type,
    no variable that only one factor or only the target holds, and no batch variable on the target's
    fastest axis. Rows hold the target's stride-1 variable.
    """
    if len(statement.factors) != 2 or statement.orbit:
        return None
    out, (a, b) = statement.out, statement.factors
    if len({buffers[x.buffer].dtype for x in (out, a, b)}) != 1:
        return None
    inner = fastest(out, buffers[out.buffer])
    if inner in a.variables and inner in b.variables:
        return None  # a batch of small products, each strided: copies make them dense
    if inner in b.variables:
        a, b = b, a
    groups = _groups(statement, a, b)
    if groups is None:
        return None
    batch, m, n, k = groups
    for access, parts in ((out, (m, n)), (a, (m, k)), (b, (k, n))):
        if contraction_obstacle(access, buffers[access.buffer], ((*batch, *parts[0]), parts[1])):
            return None
    batch, m, n = (_ordered(g, out, buffers) for g in (batch, m, n))
    k = _ordered(k, _walker(k, a, b, buffers), buffers)
    coeff, accumulate = statement.coeff, statement.accumulate
    return Gemm(out, a, b, batch, m, n, k, coeff, accumulate, scheme=Scheme())


def arranged(
    plain: Gemm, scheme: Scheme, buffers: Mapping[str, Buffer], extents: Mapping[str, int]
) -> Gemm:
    """A packed contraction by another scheme, in the roles and the order that this one needs.

    Staged rows that are read in place end on their stride-1 variable; where columns are, the
    operands are exchanged. Columns whose stride-1 variable is not the last one are packed line by
    line in the order of their operand, if they are long beside what is stored in less good order.
    Packed rows of long sums follow their operand, too, as far as runs of the target stay together.
    """
    if scheme.stage and scheme.pack_a:
        plain = exchanged(plain)
    elif scheme.stage:
        lanes = fastest(plain.a, buffers[plain.a.buffer])
        plain = replace(plain, m=tuple(sorted(plain.m, key=lambda v: v.name == lanes)))
    elif fastest(plain.b, buffers[plain.b.buffer]) in [v.name for v in plain.n[:-1]]:
        rows, summed = elements(plain.m, extents), elements(plain.k, extents)
        if summed >= max(_STEPS, rows // _REACH):
            plain = replace(plain, n=_ordered(plain.n, plain.b, buffers))
    if scheme.pack_a and not scheme.stage and elements(plain.k, extents) > _SHORT:
        run = _run(plain.m, plain.out, buffers)
        others = _ordered(plain.m[: len(plain.m) - len(run)], plain.a, buffers)
        plain = replace(plain, m=(*others, *run))
    return replace(plain, scheme=scheme)


def _run(rows: Band, out: Access, buffers: Mapping[str, Buffer]) -> Band:
    """The last ones of a group in the target's order that follow each other in its memory."""
    order = walked(out, buffers[out.buffer])
    places = [order.index(v.name) for v in rows]
    first = len(rows) - 1
    while first > 0 and places[first - 1] + 1 == places[first]:
        first -= 1
    return rows[first:]


def exchanged(product: Gemm) -> Gemm:
    """The same contraction with rows as columns."""
    return replace(product, a=product.b, b=product.a, m=product.n, n=product.m)


def _groups(statement: Statement, a: Access, b: Access) -> tuple[Band, Band, Band, Band] | None:
    """Batch, rows, columns and summed variables; None where a variable is of no group."""
    held = [
        (v, (v.name in statement.out.variables, v.name in a.variables, v.name in b.variables))
        for v in statement.band
    ]
    kinds = ((True, True, True), (True, True, False), (True, False, True), (False, True, True))
    batch, m, n, k = (tuple(v for v, h in held if h == kind) for kind in kinds)
    if not (m and n and k) or len(batch) + len(m) + len(n) + len(k) != len(held):
        return None
    return batch, m, n, k


def _scheme(plain: Gemm, buffers: Mapping[str, Buffer], extents: Mapping[str, int]) -> Scheme:
    """Packing costs a copy of each element; few columns (rows) do not earn it back.

    Where ``a`` is large and does not lie in the order of the target, tiles are staged: the target
    is the smaller of the two, so it is turned.
    """
    a, b, m, n, k = plain.a, plain.b, plain.m, plain.n, plain.k
    rows, columns, summed = (elements(g, extents) for g in (m, n, k))
    calls = elements(plain.batch, extents)
    if columns <= _TURNED and rows * summed * calls >= _LARGE:
        lanes = fastest(a, buffers[a.buffer])
        if lanes == m[-1].name:
            return Scheme(pack_a=columns > _NARROW)
        staged = summed <= DEEP and buffers[a.buffer].dtype != "complex128"
        if staged and lanes in [v.name for v in m]:
            return Scheme(pack_a=False, stage=True)
        if staged and lanes in [v.name for v in k]:
            return Scheme(pack_b=False, stage=True)  # of what is then b
    near = summed <= _SHORT or fastest(b, buffers[b.buffer]) in [v.name for v in k]
    if rows <= (_FEW if near else _NARROW) and columns * summed >= _LARGE:
        return Scheme(pack_b=False)
    return Scheme()


def _walker(k: Band, a: Access, b: Access, buffers: Mapping[str, Buffer]) -> Access:
    """The operand in whose order the summed variables are walked."""
    names = [v.name for v in k]
    turned = [x for x in (a, b) if fastest(x, buffers[x.buffer]) in names]

    def count(access: Access) -> int:
        return len(access.variables)

    return max(turned or (a, b), key=count)


def _ordered(group: Band, access: Access, buffers: Mapping[str, Buffer]) -> Band:
    """A group in the order of an access's memory."""
    order = walked(access, buffers[access.buffer])
    return tuple(sorted(group, key=lambda v: order.index(v.name)))
