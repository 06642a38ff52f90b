"""Statements bound to the CPU: matrix products with the copies they need, or element loops.

A contraction that is a matrix product becomes a :class:`~tcgen.ir.loops.Gemm`: of the generated
kernel, which reads any layout, or of the BLAS. For the BLAS, operands whose layout is not that of a
matrix are copied to scratch first, and such a target is copied from scratch afterwards. Every other
statement becomes element loops (``loops``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from ...ir.expr import Access
from ...ir.loops import Buffer, Gemm, Stmt
from ...thresholds import CpuThresholds
from ..buffers import Memory
from ..layout import Band, Product, as_product, unit_stride
from ..statements import Statement
from .kernel_scheme import is_thin
from .loops import bind_assign, bind_loops, placed, streams_batch
from .transposed_operands import bind_contraction


def bind_statement(
    statement: Statement,
    memory: Memory,
    extents: Mapping[str, int],
    room: int | None,
    thresholds: CpuThresholds,
    *,
    generated: bool,
) -> tuple[Stmt, ...]:
    """The statements that execute one visit.

    Args:
        statement: what it computes.
        memory: all buffers; scratch is added to them.
        extents: planning extents.
        room: bytes that its scratch may take, or None for as many as it needs.
        thresholds: sizes from which a call, a copy or the generated kernel pays.
        generated: the generated contraction kernel, and memory to pack in, are available.
    """
    product = as_product(statement, memory.buffers, extents, thresholds)
    if (
        room is None
        and product
        and streams_batch(statement, product, memory.buffers, extents, thresholds)
    ):
        return bind_loops(statement, memory, extents, room, thresholds)
    if generated and product and (product.elements or is_thin(product, extents, thresholds)):
        contraction = bind_contraction(statement, memory, extents, thresholds)
        if contraction is not None:
            return contraction
    if product is None or not product.pays(thresholds):
        return bind_loops(statement, memory, extents, room, thresholds)
    if room is not None and product.scratch_bytes > room:
        return bind_loops(statement, memory, extents, room, thresholds)
    return _bind_product(statement, product, memory)


def _bind_product(statement: Statement, product: Product, memory: Memory) -> tuple[Stmt, ...]:
    before: list[Stmt] = []
    after: list[Stmt] = []
    a, b = statement.factors
    batch, m, n, k = product.batch, product.m, product.n, product.k
    if product.copy_a:
        a = _copied(a, (m, k), batch, product.dtype, statement, memory, before)
    if product.copy_b:
        b = _copied(b, (n, k), batch, product.dtype, statement, memory, before)
    out, accumulate = statement.out, statement.accumulate
    if product.copy_out:
        band = (*batch, *_unit_stride_last(out, memory.buffers[out.buffer], (m, n)))
        scratch = memory.scratch(band, product.dtype, statement.home, statement.position)
        out, accumulate = placed(scratch, band), False
        result = replace(
            statement,
            expr=out,
            factors=(),
            band=tuple(v for v in statement.band if v.name in statement.out.variables),
            coeff=Fraction(1),
        )
        after.append(bind_assign(result, memory.buffers))
    gemm = Gemm(out, a, b, batch, m, n, k, statement.coeff, accumulate)
    return (*before, gemm, *after)


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
