"""Memory layout of accesses, and the elements that a call of the BLAS has to copy first."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import assert_never

from ..dtypes import BY_NAME
from ..ir.cost import extent_of
from ..ir.expr import Access
from ..ir.loop_analysis import band_of, gemm_obstacle
from ..ir.loops import Assign, BandVar, Buffer, Gemm, Loop, LoopVar, Stmt, Zero
from ..thresholds import CpuThresholds
from .statements import Statement

Band = tuple[BandVar, ...]


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


@dataclass(frozen=True, slots=True)
class _Operand:
    access: Access
    buffer: Buffer
    must_copy: bool


def memory_order(access: Access, buffer: Buffer) -> list[str]:
    """Variables of an access from the slowest axis to the fastest, repeats included."""
    names = (access.subscripts[axis].variable for axis in buffer.order)
    return [name for name in names if name is not None]


def in_order(band: Band, order: list[str]) -> Band:
    """Variables in a given order of names; variables without a name there come first."""
    return tuple(sorted(band, key=lambda v: order.index(v.name) if v.name in order else -1))


def ordered(group: Band, access: Access, buffers: Mapping[str, Buffer]) -> Band:
    """A group in the memory order of an operand; variables without an axis there come first."""
    return in_order(group, memory_order(access, buffers[access.buffer]))


def held_by(access: Access, band: Band) -> Band:
    """The variables of a band that an access has."""
    return tuple(v for v in band if v.name in access.variables)


def unit_stride(access: Access, buffer: Buffer) -> str | None:
    """Variable whose successive values are neighbours in memory; None if there is none.

    There is none if the fastest axis has no variable or is a packed pair, and on a diagonal, where
    the variable is on other axes too.
    """
    long = [axis for axis in buffer.order if buffer.axes[axis].length != 1]
    pairs = {axis for p in buffer.packed for axis in p.axes}
    if not long or long[-1] in pairs:
        return None
    name = access.subscripts[long[-1]].variable
    places = [axis for axis, s in enumerate(access.subscripts) if s.variable == name]
    return name if len(places) == 1 else None


def fastest(access: Access, buffer: Buffer) -> str | None:
    """Variable on the fastest axis, also where that axis is packed with others."""
    long = [axis for axis in buffer.order if buffer.axes[axis].length != 1]
    return access.subscripts[long[-1]].variable if long else None


def elements(band: Band, extents: Mapping[str, int]) -> int:
    """Points of a band under the planning extents."""
    count = 1
    for var in band:
        extent = extent_of(var.space, extents)
        count *= extent if var.tile is None else min(var.tile, extent)
    return count


def iterations(var: LoopVar, extents: Mapping[str, int]) -> int:
    """Iterations of a loop under the planning extents."""
    return -(-extent_of(var.space, extents) // (var.tile or 1))


def points(
    body: tuple[Stmt, ...], buffers: Mapping[str, Buffer], extents: Mapping[str, int]
) -> int:
    """Points of all statements of some nests; an element that is set to zero is also a point."""
    count = 0
    for stmt in body:
        match stmt:
            case Loop():
                count += iterations(stmt.var, extents) * points(stmt.body, buffers, extents)
            case Zero(name):
                axes = buffers[name].axes
                count += prod(a.length or extent_of(a.space, extents) for a in axes)
            case Assign() | Gemm():
                count += elements(band_of(stmt), extents)
            case _:
                assert_never(stmt)
    return count


def as_product(
    statement: Statement,
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
    thresholds: CpuThresholds,
) -> Product | None:
    """The matrix product with the fewest copied elements, or None without a product."""
    first, *batched = products_of(statement, buffers, extents) or (None,)
    best = first
    for product in batched if first else ():
        assert first is not None
        assert best is not None
        moved = tuple(v for v in product.batch if v not in first.batch)
        cost = product.elements + thresholds.gemm_call * elements(moved, extents)
        if cost < best.elements:
            best = replace(product, elements=cost)
    return best


def products_of(
    statement: Statement, buffers: Mapping[str, Buffer], extents: Mapping[str, int]
) -> tuple[Product, ...]:
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
    dtypes = [buffers[f.buffer].dtype for f in statement.factors]
    dtype = "complex128" if "complex128" in dtypes else dtypes[0]
    out, a, b = (
        _Operand(x, buffers[x.buffer], _must_copy(x, buffers[x.buffer], names, dtype))
        for x in (statement.out, *statement.factors)
    )
    # A copy of a factor sums variables of only this factor; a copy of the product broadcasts those
    # of only the target.
    copy_a = a.must_copy or bool(group(False, True, False))
    copy_b = b.must_copy or bool(group(False, False, True))
    copy_out = out.must_copy or bool(group(True, False, False)) or bool(statement.orbit)
    must = (copy_a, copy_b, copy_out)
    products = [_cheapest(out, a, b, (batch, m, n, k), must, dtype, extents)]
    # The slowest variables of the target may become a batch: more calls, but fewer copies.
    moved: Band = ()
    for name in memory_order(out.access, out.buffer) if products[0].elements else ():
        moved = (*moved, *(v for v in (*m, *n) if v.name == name))
        rest_m, rest_n = (tuple(v for v in g if v not in moved) for g in (m, n))
        if not moved or not rest_m or not rest_n:
            continue
        groups = ((*batch, *moved), rest_m, rest_n, k)
        products.append(_cheapest(out, a, b, groups, must, dtype, extents))
    return tuple(products)


def _cheapest(
    out: _Operand,
    a: _Operand,
    b: _Operand,
    groups: tuple[Band, Band, Band, Band],
    must: tuple[bool, bool, bool],
    dtype: str,
    extents: Mapping[str, int],
) -> Product:
    """The orders of groups (batch, m, n, k) with the fewest copied elements."""
    batch, m, n, k = groups
    parts = (
        tuple(v for v in (*batch, *m, *k) if v.name in a.access.variables),
        tuple(v for v in (*batch, *n, *k) if v.name in b.access.variables),
        (*batch, *m, *n),
    )
    points = elements((*batch, *m, *n, *k), extents)
    products = []
    for m_now, n_now, k_now in itertools.product(
        _orders(m, out, a), _orders(n, out, b), _orders(k, a, b)
    ):
        copies = (
            must[0] or gemm_obstacle(a.access, a.buffer, (m_now, k_now)) is not None,
            must[1] or gemm_obstacle(b.access, b.buffer, (k_now, n_now)) is not None,
            must[2] or gemm_obstacle(out.access, out.buffer, (m_now, n_now)) is not None,
        )
        cost = sum(elements(p, extents) for p, c in zip(parts, copies, strict=True) if c)
        scratch = cost * BY_NAME[dtype].itemsize
        products.append(Product(batch, m_now, n_now, k_now, *copies, dtype, cost, points, scratch))
    return min(products, key=lambda product: product.elements)


def _one_tile(group: Band) -> tuple[Band, Band]:
    """A group with its first tiled variable in front, and its other tiled variables."""
    tiled = [v for v in group if v.tile is not None]
    plain = [v for v in group if v.tile is None]
    return (*tiled[:1], *plain), tuple(tiled[1:])


def _orders(group: Band, *operands: _Operand) -> tuple[Band, ...]:
    """The memory orders of a group in some operands, each once, a tiled variable in front."""
    return tuple(
        dict.fromkeys(
            _one_tile(in_order(group, memory_order(x.access, x.buffer)))[0] for x in operands
        )
    )


def _must_copy(access: Access, buffer: Buffer, band: list[str], dtype: str) -> bool:
    """True if the BLAS cannot read the access in place, whatever the order of the groups."""
    own = [s.variable for s in access.subscripts if s.variable in band]
    return bool(buffer.packed) or len(set(own)) != len(own) or buffer.dtype != dtype
