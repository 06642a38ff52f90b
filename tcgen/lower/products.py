"""Contractions as matrix products of the BLAS, and the elements that a call has to copy first."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

from ..dtypes import BY_NAME
from ..ir.expr import Access
from ..ir.loop_analysis import gemm_obstacle
from ..ir.loops import Buffer
from ..thresholds import CpuThresholds
from .layout import Band, Context, CpuContext
from .statements import Statement


@dataclass(frozen=True, slots=True)
class Product:
    """A contraction as a matrix product of the BLAS: its groups, and the copies that it needs.

    Attributes:
        batch, m, n, k: variables of each group in order.
        copy_a, copy_b: the operand is copied to scratch in the form [batch, m, k] or [batch, n, k].
        copy_out: the product goes to scratch and is copied from there to the target.
        elements: number of copied elements under the planning extents; a call for each point of a
            batch that is made of m or n also counts as copied elements.
        points: multiply-adds under the planning extents.
        scratch_bytes: bytes of the copies under the planning extents.
    """

    batch: Band
    m: Band
    n: Band
    k: Band
    copy_a: bool
    copy_b: bool
    copy_out: bool
    dtype: str
    elements: int
    points: int
    scratch_bytes: int

    def pays(self, thresholds: CpuThresholds) -> bool:
        """True if a call of the BLAS, with its copies, is faster than loops.

        That is always so for a product of two matrices. A matrix-vector product has to reuse each
        copied element several times.
        """
        copied = self.copy_a or self.copy_b or self.copy_out
        reused = self.points >= thresholds.gemv_reuse * self.elements
        large = self.points >= thresholds.gemv_multiply_adds
        return bool(self.m and self.n) or not copied or (reused and large)


def as_product(statement: Statement, context: CpuContext) -> Product | None:
    """The matrix product with the fewest copied elements, or None without a product."""
    first, *batched = products_of(statement, context) or (None,)
    best = first
    for product in batched if first else ():
        assert first is not None
        assert best is not None
        moved = tuple(v for v in product.batch if v not in first.batch)
        cost = product.elements + context.thresholds.gemm_call * context.elements(moved)
        if cost < best.elements:
            best = replace(product, elements=cost)
    return best


def products_of(statement: Statement, context: Context[Any]) -> tuple[Product, ...]:
    """The matrix products that a statement can be, each with the fewest copied elements.

    Each group of variables is tried in the memory orders of its two operands. The first product has
    all of m and n as a matrix; if it copies, others have the slowest variables of the target as a
    batch. The result is empty if no summed variable is in both factors, if no variable is in the
    target and exactly one factor, or if two summed variables walk tiles (no fixed stride joins
    them).
    """
    if not statement.factors:
        return ()
    held = [set(x.variables) for x in (statement.out, *statement.factors)]
    in_out, in_a, in_b = held

    def group(out: bool, a: bool, b: bool) -> Band:
        return tuple(
            v
            for v in statement.band
            if (v.name in in_out, v.name in in_a, v.name in in_b) == (out, a, b)
        )

    batch, m, n, k = (
        group(True, True, True),
        group(True, True, False),
        group(True, False, True),
        group(False, True, True),
    )
    if not k or not (m or n) or sum(v.tile is not None for v in k) > 1:
        return ()
    (m, more), (n, most) = _one_tile(m), _one_tile(n)
    batch = (*batch, *more, *most)
    names = [v.name for v in statement.band]
    dtypes = [context.buffer(f).dtype for f in statement.factors]
    dtype = "complex128" if "complex128" in dtypes else dtypes[0]
    operands = (statement.out, *statement.factors)
    out, a, b = (_must_copy(x, context.buffer(x), names, dtype) for x in operands)
    # A copy of a factor sums variables of only this factor; a copy of the product broadcasts those
    # of only the target.
    copy_a = a or bool(group(False, True, False))
    copy_b = b or bool(group(False, False, True))
    copy_out = out or bool(group(True, False, False)) or bool(statement.orbit)
    must = (copy_a, copy_b, copy_out)
    products = [_cheapest(statement, (batch, m, n, k), must, dtype, context)]
    # The slowest variables of the target may become a batch: more calls, but fewer copies.
    moved: Band = ()
    for name in context.memory_order(statement.out) if products[0].elements else ():
        moved = (*moved, *(v for v in (*m, *n) if v.name == name))
        rest_m, rest_n = (tuple(v for v in g if v not in moved) for g in (m, n))
        if not moved or not rest_m or not rest_n:
            continue
        groups = ((*batch, *moved), rest_m, rest_n, k)
        products.append(_cheapest(statement, groups, must, dtype, context))
    return tuple(products)


def _cheapest(
    statement: Statement,
    groups: tuple[Band, Band, Band, Band],
    must: tuple[bool, bool, bool],
    dtype: str,
    context: Context[Any],
) -> Product:
    """The orders of groups (batch, m, n, k) with the fewest copied elements."""
    batch, m, n, k = groups
    out, (a, b) = statement.out, statement.factors
    parts = (
        tuple(v for v in (*batch, *m, *k) if v.name in a.variables),
        tuple(v for v in (*batch, *n, *k) if v.name in b.variables),
        (*batch, *m, *n),
    )
    points = context.elements((*batch, *m, *n, *k))
    products = []
    leaders = ((m, (out, a)), (n, (out, b)), (k, (a, b)))
    orders = (_orders(group, operands, context) for group, operands in leaders)
    for m_now, n_now, k_now in itertools.product(*orders):
        copies = (
            must[0] or gemm_obstacle(a, context.buffer(a), (m_now, k_now)) is not None,
            must[1] or gemm_obstacle(b, context.buffer(b), (k_now, n_now)) is not None,
            must[2] or gemm_obstacle(out, context.buffer(out), (m_now, n_now)) is not None,
        )
        cost = sum(context.elements(p) for p, c in zip(parts, copies, strict=True) if c)
        scratch = cost * BY_NAME[dtype].itemsize
        products.append(Product(batch, m_now, n_now, k_now, *copies, dtype, cost, points, scratch))
    return min(products, key=lambda product: product.elements)


def _one_tile(group: Band) -> tuple[Band, Band]:
    """A group with its first tiled variable in front, and its other tiled variables."""
    tiled = [v for v in group if v.tile is not None]
    plain = [v for v in group if v.tile is None]
    return (*tiled[:1], *plain), tuple(tiled[1:])


def _orders(
    group: Band, operands: tuple[Access, Access], context: Context[Any]
) -> tuple[Band, ...]:
    """The memory orders of a group in some operands, each once, a tiled variable in front."""
    return tuple(dict.fromkeys(_one_tile(context.ordered(group, x))[0] for x in operands))


def _must_copy(access: Access, buffer: Buffer, band: list[str], dtype: str) -> bool:
    """True if the BLAS cannot read the access in place, whatever the order of the groups."""
    own = [s.variable for s in access.subscripts if s.variable in band]
    return bool(buffer.packed) or len(set(own)) != len(own) or buffer.dtype != dtype
