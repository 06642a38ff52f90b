"""Statements bound to the CPU: matrix products with the copies they need, or element loops.

A contraction whose summed, row and column variables make a matrix product becomes a
:class:`~tcgen.ir.loops.Gemm`; an operand that does not lie right in memory is copied to scratch
first, and a result that does not is copied from scratch afterwards. Everything else is left to
``bind_loops``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from ...ir.expr import Access
from ...ir.loops import Buffer, Gemm, Stmt
from ..buffers import Memory
from ..layout import Band, Product, as_product, fastest
from ..statements import Statement
from .kernel_scheme import is_thin
from .loops import bind_assign, bind_loops, placed, streams_batch
from .transposed_operands import bind_contraction


def bind_statement(
    statement: Statement,
    memory: Memory,
    extents: Mapping[str, int],
    room: int | None,
    *,
    generated: bool,
) -> tuple[Stmt, ...]:
    """The statements that execute one visit.

    Args:
        statement: what it computes.
        memory: all buffers; scratch is added to them.
        extents: planning extents.
        room: bytes that its scratch may take, or None for as many as it needs.
        generated: the target has the generated contraction kernel, and memory for it.
    """
    product = as_product(statement, memory.buffers, extents)
    if room is None and product and streams_batch(statement, product, memory.buffers, extents):
        return bind_loops(statement, memory, extents, room)
    if generated and product is not None and (product.elements or is_thin(product, extents)):
        contraction = bind_contraction(statement, memory, extents)
        if contraction is not None:
            return contraction
    if product is None or not product.pays:
        return bind_loops(statement, memory, extents, room)
    if room is not None and product.scratch_bytes > room:
        return bind_loops(statement, memory, extents, room)
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
        band = (*batch, *_columns_last(out, memory.buffers[out.buffer], (m, n)))
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
    """An operand copied to scratch as [batch, rows, columns]; what only it holds is summed."""
    own = tuple(v for v in batch if v.name in access.variables)
    band = (*own, *_columns_last(access, memory.buffers[access.buffer], groups))
    scratch = memory.scratch(band, dtype, statement.home, statement.position)
    place = placed(scratch, band)
    elsewhere = {v.name for v in (*batch, *groups[0], *groups[1])}
    alone = tuple(
        v for v in statement.band if v.name in access.variables and v.name not in elsewhere
    )
    copy = replace(
        statement,
        out=place,
        expr=access,
        factors=(),
        band=(*band, *alone),
        coeff=Fraction(1),
        accumulate=False,
        orbit=(),
    )
    before.append(bind_assign(copy, memory.buffers))
    return place


def _columns_last(access: Access, buffer: Buffer, groups: tuple[Band, Band]) -> Band:
    """Two groups, the one that holds the access's stride-1 variable last."""
    first, second = groups
    inner = fastest(access, buffer)
    if any(v.name == inner for v in first):
        return (*second, *first)
    return (*first, *second)
