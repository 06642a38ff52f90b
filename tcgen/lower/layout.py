"""How accesses lie in memory, and what it costs to bring them into the form of a matrix product."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import assert_never

from ..ir.cost import extent_of
from ..ir.expr import Access
from ..ir.loop_analysis import band_of, gemm_obstacle
from ..ir.loops import Assign, BandVar, Buffer, Gemm, Loop, Stmt, Zero
from ..ir.tensor import BYTES_OF
from .statements import Statement

Band = tuple[BandVar, ...]

_FEW = 4  # multiply-adds to an element that is copied for a product of a matrix and a vector
_LARGE = 2**12  # and multiply-adds of one that anything is copied for
_CALL = 1000  # elements that could be copied in the time that one more product costs


@dataclass(frozen=True, slots=True)
class Product:
    """A contraction as a matrix product: its groups and what must be copied first.

    Attributes:
        batch, m, n, k: variables of each group in order.
        copy_a, copy_b: the operand is copied to scratch in the form [batch, rows, columns].
        copy_out: the product goes to scratch and from there to the target.
        dtype: of the three operands of the product.
        elements: copied under the planning extents, and what the calls of a batch made of rows or
            columns cost, in elements.
        points: multiply-adds under the planning extents.
        scratch_bytes: of the copies under the planning extents.
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

    @property
    def pays(self) -> bool:
        """True where the product is worth its copies.

        Those of a matrix and a vector are of long vectors alone.
        """
        copied = self.copy_a or self.copy_b or self.copy_out
        worth = self.points >= max(_LARGE, _FEW * self.elements)
        return bool(self.m and self.n) or not copied or worth


@dataclass(frozen=True, slots=True)
class _Operand:
    access: Access
    buffer: Buffer
    must_copy: bool

    def walked(self, group: Band) -> Band:
        """The group in the order in which this operand's memory walks it."""
        order = walked(self.access, self.buffer)
        return tuple(sorted(group, key=lambda v: order.index(v.name) if v.name in order else -1))


def walked(access: Access, buffer: Buffer) -> list[str]:
    """Variables of an access from the slowest axis to the fastest, repeats included."""
    names = (access.subscripts[axis].variable for axis in buffer.order)
    return [name for name in names if name is not None]


def fastest(access: Access, buffer: Buffer) -> str | None:
    """Variable on the axis of stride 1; None where a number or a packed pair stands there."""
    long = [axis for axis in buffer.order if buffer.axes[axis].length != 1]
    pairs = {axis for p in buffer.packed for axis in (p.first, p.first + 1)}
    return access.subscripts[long[-1]].variable if long and long[-1] not in pairs else None


def elements(band: Band, extents: Mapping[str, int]) -> int:
    """Points of a band under the planning extents."""
    count = 1
    for var in band:
        extent = extent_of(var.space, extents)
        count *= extent if var.tile is None else min(var.tile, extent)
    return count


def iterations(loop: Loop, extents: Mapping[str, int]) -> int:
    """Iterations of a loop under the planning extents."""
    return -(-extent_of(loop.var.space, extents) // (loop.var.tile or 1))


def points(
    body: tuple[Stmt, ...], buffers: Mapping[str, Buffer], extents: Mapping[str, int]
) -> int:
    """Points of all statements of some nests, and elements that are zeroed."""
    count = 0
    for stmt in body:
        match stmt:
            case Loop():
                count += iterations(stmt, extents) * points(stmt.body, buffers, extents)
            case Zero(name):
                axes = buffers[name].axes
                count += prod(a.length or extent_of(a.space, extents) for a in axes)
            case Assign() | Gemm():
                count += elements(band_of(stmt), extents)
            case _:
                assert_never(stmt)
    return count


def as_product(
    statement: Statement, buffers: Mapping[str, Buffer], extents: Mapping[str, int]
) -> Product | None:
    """The matrix product with the fewest elements to copy, or None where there is none.

    Tried are the orders of each group in which its two operands walk it, with rows and columns as
    they are and with the slowest ones of the target as a batch. There is no product
    without a summed variable that both factors hold, or without a variable that only one factor
    and the target hold, or where two summed variables walk tiles (no fixed stride joins them).
    """
    if not statement.factors:
        return None
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
        return None
    (m, more), (n, most) = _one_tile(m), _one_tile(n)
    batch = (*batch, *more, *most)
    names = [v.name for v in statement.band]
    dtype = _common_dtype([buffers[f.buffer].dtype for f in statement.factors])
    out, a, b = (
        _Operand(x, buffers[x.buffer], _must_copy(x, buffers[x.buffer], names, dtype))
        for x in (statement.out, *statement.factors)
    )
    # What a factor sums by itself is summed by its copy; what the target broadcasts, by its own.
    copy_a = a.must_copy or bool(group(False, True, False))
    copy_b = b.must_copy or bool(group(False, False, True))
    copy_out = out.must_copy or bool(group(True, False, False)) or bool(statement.orbit)
    must = (copy_a, copy_b, copy_out)
    best = _cheapest(out, a, b, (batch, m, n, k), must, dtype, extents)
    # The slowest variables of the target may become a batch: more calls, but fewer copies.
    moved: Band = ()
    for name in walked(out.access, out.buffer) if best.elements else ():
        moved = (*moved, *(v for v in (*m, *n) if v.name == name))
        rest_m, rest_n = (tuple(v for v in g if v not in moved) for g in (m, n))
        if not moved or not rest_m or not rest_n:
            continue
        groups = ((*batch, *moved), rest_m, rest_n, k)
        batched = _cheapest(out, a, b, groups, must, dtype, extents)
        cost = batched.elements + _CALL * elements(moved, extents)
        if cost < best.elements:
            best = replace(batched, elements=cost)
    return best


def _cheapest(
    out: _Operand,
    a: _Operand,
    b: _Operand,
    groups: tuple[Band, Band, Band, Band],
    must: tuple[bool, bool, bool],
    dtype: str,
    extents: Mapping[str, int],
) -> Product:
    """The orders of groups (batch, m, n, k) with the fewest elements to copy."""
    batch, m, n, k = groups
    parts = (
        tuple(v for v in (*batch, *m, *k) if v.name in a.access.variables),
        tuple(v for v in (*batch, *n, *k) if v.name in b.access.variables),
        (*batch, *m, *n),
    )
    points = elements((*batch, *m, *n, *k), extents)
    found = []
    for m_now, n_now, k_now in itertools.product(
        _orders(m, out, a), _orders(n, out, b), _orders(k, a, b)
    ):
        copies = (
            must[0] or gemm_obstacle(a.access, a.buffer, (m_now, k_now)) is not None,
            must[1] or gemm_obstacle(b.access, b.buffer, (k_now, n_now)) is not None,
            must[2] or gemm_obstacle(out.access, out.buffer, (m_now, n_now)) is not None,
        )
        cost = sum(elements(p, extents) for p, c in zip(parts, copies, strict=True) if c)
        held = cost * BYTES_OF[dtype]
        found.append(Product(batch, m_now, n_now, k_now, *copies, dtype, cost, points, held))
    return min(found, key=lambda product: product.elements)


def _one_tile(group: Band) -> tuple[Band, Band]:
    """A group with its first tiled variable in front, and the other tiled ones."""
    tiled = [v for v in group if v.tile is not None]
    plain = [v for v in group if v.tile is None]
    return (*tiled[:1], *plain), tuple(tiled[1:])


def _orders(group: Band, *operands: _Operand) -> tuple[Band, ...]:
    """The orders in which the operands walk a group, each once, a tiled variable in front."""
    return tuple(dict.fromkeys(_one_tile(operand.walked(group))[0] for operand in operands))


def _common_dtype(dtypes: list[str]) -> str:
    return "complex128" if "complex128" in dtypes else dtypes[0]


def _must_copy(access: Access, buffer: Buffer, band: list[str], dtype: str) -> bool:
    """True where no order of groups makes an operand of it."""
    own = [s.variable for s in access.subscripts if s.variable in band]
    return bool(buffer.packed) or len(set(own)) != len(own) or buffer.dtype != dtype
