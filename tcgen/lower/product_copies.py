"""Copies of the operands and of the target of a matrix product that the BLAS computes.

Operands whose layout is not that of a matrix are copied to scratch before the product, and such a
target is copied from scratch after it.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ..ir.expr import Access
from ..ir.loops import Buffer, Stmt
from .buffers import Memory
from .cpu.loops import bind_assign, placed
from .layout import Band, Product, unit_stride
from .statements import Statement


def bind_target(
    statement: Statement, product: Product, memory: Memory
) -> tuple[Access, tuple[Stmt, ...]]:
    """Where the product goes, and the copy from there to the target of the statement."""
    out = statement.out
    if not product.copy_out:
        return out, ()
    groups = (product.m, product.n)
    band = (*product.batch, *_unit_stride_last(out, memory.buffers[out.buffer], groups))
    scratch = memory.scratch(band, product.dtype, statement.home, statement.position)
    place = placed(scratch, band)
    result = replace(
        statement,
        expr=place,
        factors=(),
        band=tuple(v for v in statement.band if v.name in out.variables),
        coeff=Fraction(1),
    )
    return place, (bind_assign(result, memory.buffers),)


def bind_operands(
    statement: Statement, product: Product, memory: Memory
) -> tuple[Access, Access, tuple[Stmt, ...]]:
    """Both operands in matrix layout, and the copies that make them."""
    before: list[Stmt] = []
    a, b = statement.factors
    batch, m, n, k = product.batch, product.m, product.n, product.k
    if product.copy_a:
        a = _copied(a, (m, k), batch, product.dtype, statement, memory, before)
    if product.copy_b:
        b = _copied(b, (n, k), batch, product.dtype, statement, memory, before)
    return a, b, tuple(before)


def _copied(
    access: Access,
    groups: tuple[Band, Band],
    batch: Band,
    dtype: str,
    statement: Statement,
    memory: Memory,
    before: list[Stmt],
) -> Access:
    """An operand copied to scratch as [batch, m, k]; variables of this operand alone are summed."""
    own = tuple(v for v in batch if v.name in access.variables)
    band = (*own, *_unit_stride_last(access, memory.buffers[access.buffer], groups))
    scratch = memory.scratch(band, dtype, statement.home, statement.position)
    place = placed(scratch, band)
    elsewhere = {v.name for v in (*batch, *groups[0], *groups[1])}
    summed = tuple(
        v for v in statement.band if v.name in access.variables and v.name not in elsewhere
    )
    copy = replace(
        statement,
        out=place,
        expr=access,
        factors=(),
        band=(*band, *summed),
        coeff=Fraction(1),
        accumulate=False,
        orbit=(),
    )
    before.append(bind_assign(copy, memory.buffers))
    return place


def _unit_stride_last(access: Access, buffer: Buffer, groups: tuple[Band, Band]) -> Band:
    """Two groups, the one with the access's unit-stride variable last."""
    first, second = groups
    inner = unit_stride(access, buffer)
    if any(v.name == inner for v in first):
        return (*second, *first)
    return (*first, *second)
