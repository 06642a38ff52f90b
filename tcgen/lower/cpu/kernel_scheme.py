"""Contractions for the generated kernel: groups, their orders, and which operands are packed.

The kernel reads operands in any layout, so it needs no copies. Binding chooses which factor is A
(the factor with the target's unit-stride variable, so that tiles are stored as they are), the order
of each group (m, n and batch in the order of the target's memory; k in that of an operand whose
unit-stride variable is summed), and whether A and B are packed or read in place.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ...ir.expr import Access
from ...ir.loop_analysis import contraction_obstacle
from ...ir.loops import Gemm, PackingScheme
from ..layout import Band, CpuContext
from ..products import Product
from ..statements import Statement


def is_thin(product: Product, context: CpuContext) -> bool:
    """True for a product that the kernel computes faster than the BLAS, although none is copied.

    The BLAS packs both operands as a whole. If m, n or k is small, packing is much of the work, and
    the kernel is faster. If m or n is smaller than a tile of the kernel, registers stay empty; then
    the kernel is faster only for doubles and a long k. A few vectors and a large matrix with long
    lines are left to the loops of ``gemv.c``.
    """
    thresholds = context.thresholds
    m, n, k = (context.elements(group) for group in (product.m, product.n, product.k))
    few, many = sorted((m, n))
    if (
        few <= thresholds.gemv_vectors
        and min(many, k) >= thresholds.gemv_length
        and many * k >= thresholds.gemv_matrix
    ):
        return False
    dense = product.dtype == "float64" and k >= thresholds.thin_k
    least = thresholds.thin_mn_float64 if dense else thresholds.thin_mn
    large = prod((m, n, k)) >= thresholds.thin_multiply_adds and few >= least
    return product.dtype != "complex128" and large and min(few, k) <= thresholds.thin_side


def as_contraction(statement: Statement, context: CpuContext) -> Gemm | None:
    """The contraction of a statement by the generated kernel, or None if the kernel cannot."""
    plain = packed_contraction(statement, context)
    if plain is None:
        return None
    scheme = _scheme(plain, context)
    return arranged(plain, scheme, context)


def packed_contraction(statement: Statement, context: CpuContext) -> Gemm | None:
    """The contraction of a statement with both operands packed, or None if the kernel cannot.

    The kernel needs non-empty groups m, n and k, each variable on one axis of its operands, one
    element type, no variable of only one factor or only the target, and no batch variable on
    the target's unit-stride axis. A is the factor with the target's unit-stride variable.
    """
    if len(statement.factors) != 2 or statement.orbit:
        return None
    out, (a, b) = statement.out, statement.factors
    if len({context.buffer(x).dtype for x in (out, a, b)}) != 1:
        return None
    lanes = context.fastest(out)
    if lanes in a.variables and lanes in b.variables:
        # Copies are faster for a batch of small strided products.
        return None
    if lanes in b.variables:
        a, b = b, a
    groups = _groups(statement, a, b)
    if groups is None:
        return None
    batch, m, n = (context.ordered(g, out) for g in groups[:3])
    k = context.ordered(groups[3], _leader_of_k(groups[3], a, b, context))
    for access, parts in ((out, (m, n)), (a, (m, k)), (b, (k, n))):
        if contraction_obstacle(access, context.buffer(access), ((*batch, *parts[0]), parts[1])):
            return None
    coeff, accumulate = statement.coeff, statement.accumulate
    return Gemm(out, a, b, batch, m, n, k, coeff, accumulate, scheme=PackingScheme())


def arranged(plain: Gemm, scheme: PackingScheme, context: CpuContext) -> Gemm:
    """A packed contraction by another scheme, with the roles and orders that this scheme needs.

    If tiles are staged and A is read in place, m ends on A's unit-stride variable; if B is read in
    place, the operands are exchanged first. If B's unit-stride variable is not the last one of n,
    n follows B's memory order, so that B is packed line by line; that pays if k is long enough
    compared with m. If k is long, a packed A is also read in its own order, except for the last
    variables of m that are adjacent in the target.
    """
    if scheme.stage and scheme.pack_a:
        plain = exchanged(plain)
    elif scheme.stage:
        lanes = context.fastest(plain.a)
        plain = replace(plain, m=tuple(sorted(plain.m, key=lambda v: v.name == lanes)))
    elif context.fastest(plain.b) in [v.name for v in plain.n[:-1]]:
        m, k = context.elements(plain.m), context.elements(plain.k)
        if k >= max(context.thresholds.any_order_k, m // context.thresholds.any_order_m_per_k):
            plain = replace(plain, n=context.ordered(plain.n, plain.b))
    long = context.elements(plain.k) > context.thresholds.short_k
    if scheme.pack_a and not scheme.stage and long:
        last = _adjacent_tail(plain.m, plain.out, context)
        others = context.ordered(plain.m[: len(plain.m) - len(last)], plain.a)
        plain = replace(plain, m=(*others, *last))
    return replace(plain, scheme=scheme)


def _adjacent_tail(group: Band, out: Access, context: CpuContext) -> Band:
    """The last variables of a group that are on adjacent axes of the target."""
    order = context.memory_order(out)
    places = [order.index(v.name) for v in group]
    first = len(group) - 1
    while first > 0 and places[first - 1] + 1 == places[first]:
        first -= 1
    return group[first:]


def exchanged(product: Gemm) -> Gemm:
    """The same contraction with A as B: ``C^T = B^T A^T``."""
    return replace(product, a=product.b, b=product.a, m=product.n, n=product.m)


def _groups(statement: Statement, a: Access, b: Access) -> tuple[Band, Band, Band, Band] | None:
    """Batch, m, n and k; None if a variable is in none of these groups, or if one is empty."""
    held = [
        (v, (v.name in statement.out.variables, v.name in a.variables, v.name in b.variables))
        for v in statement.band
    ]
    kinds = ((True, True, True), (True, True, False), (True, False, True), (False, True, True))
    batch, m, n, k = (tuple(v for v, h in held if h == kind) for kind in kinds)
    if not (m and n and k) or len(batch) + len(m) + len(n) + len(k) != len(held):
        return None
    return batch, m, n, k


def _scheme(plain: Gemm, context: CpuContext) -> PackingScheme:
    """Which operands are packed: a small n (or m) does not repay the copies of packing.

    If A is large and its unit-stride variable is not that of the target, tiles are staged: C is
    smaller than A, so the kernel transposes tiles of C.
    """
    thresholds = context.thresholds
    a, b = plain.a, plain.b
    m, n, k, batch = (context.elements(g) for g in (plain.m, plain.n, plain.k, plain.batch))
    if n <= thresholds.staged_n and m * k * batch >= thresholds.unpacked_operand:
        inner = context.fastest(a)
        if inner == plain.m[-1].name:
            return PackingScheme(pack_a=n > thresholds.unpacked_mn)
        staged = k <= thresholds.staged_k and context.buffer(a).dtype != "complex128"
        if staged and inner in [v.name for v in plain.m]:
            return PackingScheme(pack_a=False, stage=True)
        if staged and inner in [v.name for v in plain.k]:
            return PackingScheme(
                pack_b=False, stage=True
            )  # the operands are exchanged: A becomes B
    along_k = context.fastest(b) in [v.name for v in plain.k]
    most = thresholds.unpacked_m if along_k or k <= thresholds.short_k else thresholds.unpacked_mn
    if m <= most and n * k >= thresholds.unpacked_operand:
        return PackingScheme(pack_b=False)
    return PackingScheme()


def _leader_of_k(k: Band, a: Access, b: Access, context: CpuContext) -> Access:
    """The operand whose memory order k follows."""
    names = [v.name for v in k]
    along = [x for x in (a, b) if context.fastest(x) in names]

    def count(access: Access) -> int:
        return len(access.variables)

    return max(along or (a, b), key=count)
