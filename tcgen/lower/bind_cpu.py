"""Statements bound to the CPU: matrix products with the copies they need, and element loops.

A contraction whose summed, row and column variables make a matrix product becomes a
:class:`~tcgen.ir.loops.Gemm`; an operand that does not lie right in memory is copied to scratch
first, and a result that does not is copied from scratch afterwards. Everything else becomes one
:class:`~tcgen.ir.loops.Assign` whose band follows the memory of its target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from ..ir.expr import Access, Const, Subscript, leaves
from ..ir.loops import Assign, BandVar, Buffer, Gemm, Stmt
from .layout import Band, Product, as_product, elements, fastest, walked
from .memory import Memory
from .scheme import as_contraction, is_thin
from .statements import Statement

_LINE = 8  # elements of the target's stride-1 axis below which a loop over it does not pay


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
    if generated and product is not None and (product.elements or is_thin(product, extents)):
        contraction = as_contraction(statement, memory.buffers, extents)
        if contraction is not None:
            return (contraction,)
    if product is None or not product.pays:
        return _bind_loops(statement, memory.buffers, extents)
    if room is not None and product.scratch_bytes > room:
        return _bind_loops(statement, memory.buffers, extents)
    return _bind_product(statement, product, memory)


def _bind_loops(
    statement: Statement, buffers: Mapping[str, Buffer], extents: Mapping[str, int]
) -> tuple[Stmt, ...]:
    """Element loops; a sum whose operand runs along with the target is added up line by line.

    A local sum would step through such an operand a line of the target at a time.

    Before: ``y[a,b] = sum(i) x[i,a,b]   for a, b, i``.
    After: ``y[a,b] = 0   for a, b`` and ``y[a,b] += x[i,a,b]   for a, i, b``.
    """
    plain = bind_assign(statement, buffers)
    target = buffers[statement.out.buffer]
    kept = tuple(v for v in plain.band if v.name in statement.out.variables)
    main = _main(statement)
    if (
        statement.accumulate
        or statement.orbit
        or target.packed
        or len(kept) == len(plain.band)
        or not kept
        or kept[-1].name != fastest(main, buffers[main.buffer])
        or kept[-1].name != fastest(statement.out, target)
        or elements(kept[-1:], extents) < _LINE
    ):
        return (plain,)
    start = Assign(statement.out, Const(Fraction(0)), band=kept)
    return (start, bind_assign(replace(statement, accumulate=True), buffers))


def bind_assign(statement: Statement, buffers: Mapping[str, Buffer]) -> Assign:
    """Element loops in the order of the target's memory.

    Summed variables stand innermost, in the order of the operand that holds the most variables.
    Where the target accumulates and an operand runs along with the target's stride-1 variable,
    that variable goes inside them instead, so that the inner loop is a vector update.
    """
    out = statement.out
    target = buffers[out.buffer]
    operands = [x for x in leaves(statement.expr) if isinstance(x, Access)]
    main = _main(statement)
    kept = tuple(v for v in statement.band if v.name in out.variables)
    kept = _sorted(kept, walked(out, target))
    summed = tuple(v for v in statement.band if v.name not in out.variables)
    summed = _sorted(summed, walked(main, buffers[main.buffer]))
    band = (*kept, *summed)
    inner = fastest(out, target)
    if statement.accumulate and summed and kept and kept[-1].name == inner:
        ends = [fastest(x, buffers[x.buffer]) for x in operands]
        if inner in ends:
            band = (*kept[:-1], *summed, kept[-1])
    return Assign(
        out,
        statement.expr,
        statement.coeff,
        statement.accumulate,
        band,
        statement.orbit,
        block=_blocked(kept, summed, inner, fastest(main, buffers[main.buffer])),
    )


def _main(statement: Statement) -> Access:
    """The operand that holds the most variables."""
    operands = [x for x in leaves(statement.expr) if isinstance(x, Access)]
    return max(operands, key=lambda x: len(x.variables), default=statement.out)


def bind_packing(name: str, memory: Memory) -> Assign:
    """Write the stored triangles of a packed output from its dense buffer.

    A band over rows and, below each row, columns: ``r[p,q] = dense[p,q]   for p, q<=p``.
    """
    buffer = memory.buffers[name]
    assert buffer.tensor is not None, f"{name} holds no tensor"
    rows = {
        axis: next(k for k in buffer.order if k in (pair.first, pair.first + 1))
        for pair in buffer.packed
        for axis in (pair.first, pair.first + 1)
    }
    letters = [f"p{axis}" for axis in range(len(buffer.axes))]
    band = tuple(
        BandVar(
            letters[axis],
            buffer.axes[axis].space,
            below=letters[rows[axis]] if axis in rows and rows[axis] != axis else None,
        )
        for axis in buffer.order
    )
    place = tuple(Subscript(letter) for letter in letters)
    return Assign(
        Access(name, place),
        Access(memory.dense[name], place),
        accumulate=buffer.tensor.accumulate,
        band=band,
    )


def _sorted(band: Band, order: list[str]) -> Band:
    """Variables in the order of an operand's memory; those that it lacks stay in front."""
    return tuple(sorted(band, key=lambda v: order.index(v.name) if v.name in order else -1))


def _blocked(kept: Band, summed: Band, one: str | None, other: str | None) -> tuple[str, ...]:
    """The two stride-1 variables of a transposition, or ()."""
    names = [v.name for v in kept]
    if summed or one is None or other is None or one == other:
        return ()
    return (one, other) if one in names and other in names else ()


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
        out, accumulate = _place(scratch, band), False
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
    place = _place(scratch, band)
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


def _place(scratch: Buffer, band: Band) -> Access:
    return Access(scratch.name, tuple(Subscript(v.name, v.base) for v in band))
