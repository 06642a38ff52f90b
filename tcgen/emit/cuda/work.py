"""Work of the statements of a kernel on a GPU, by its thread mapping, for predictions of time.

Before: a kernel outside of nests with its thread mapping. After: for each statement what
:mod:`~tcgen.emit.parts` writes for the prediction of time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...dtypes import BY_NAME
from ...ir.expr import Access
from ...ir.loop_analysis import operands_of
from ...ir.loops import Assign, BandVar, Buffer, Kernel
from ...ir.thread_mapping import Nest, Points, Sums, ThreadNest, Tiles, Transpose, resident_blocks
from .tile_epilogue import end_waits


@dataclass(frozen=True, slots=True)
class GpuStatement:
    """What a GPU does with a statement.

    Attributes:
        shares: it is computed in the launch of the statement before it.
        held: arrays whose elements are in registers.
        across: accesses in which neighbouring threads are in different lines.
        groups: batch, m, n and k of a product by tiles; else ().
        tile: see :class:`~tcgen.artifact.manifest.StatementEntry`.
    """

    shares: bool = False
    held: frozenset[str] = frozenset()
    across: frozenset[Access] = frozenset()
    groups: tuple[tuple[BandVar, ...], ...] = ()
    tile: tuple[int, int, int, int, int] | None = None


def gpu_statements(
    kernel: Kernel, buffers: Mapping[str, Buffer]
) -> Iterator[tuple[Assign, GpuStatement]]:
    """The assignments of a kernel outside of nests, in order."""
    stmts = tuple(s for s in kernel.body if isinstance(s, Assign))
    match kernel.mapping:
        case Tiles() as mapping:
            yield from _of_tiles(stmts, mapping, buffers)
        case Points() | Sums() | Transpose() | ThreadNest() | Nest() as mapping:
            for stmt in stmts:
                yield (
                    stmt,
                    GpuStatement(across=_across(stmt, _lane(stmt, mapping, buffers), buffers)),
                )
        case _:
            return


def _of_tiles(
    stmts: tuple[Assign, ...], mapping: Tiles, buffers: Mapping[str, Buffer]
) -> Iterator[tuple[Assign, GpuStatement]]:
    count = len(mapping.terms)
    out = frozenset((stmts[0].out.buffer,))
    m, n = (
        tuple(name for strip in strips for name in strip.variables)
        for strips in (mapping.m, mapping.n)
    )
    dtype = BY_NAME[buffers[stmts[0].out.buffer].dtype]
    resident = resident_blocks(*mapping.per_thread, dtype) if mapping.tensor_cores else 1
    waits = end_waits(stmts[:count], stmts[count:], mapping, buffers)
    for number, stmt in enumerate(stmts):
        shares = number > 0
        if number >= count:
            across = _across(stmt, n[-1], buffers)
            yield stmt, GpuStatement(shares, out, across)
            continue
        band = {v.name: v for v in stmt.band}
        groups = tuple(
            tuple(band[name] for name in names)
            for names in (mapping.batch, m, n, mapping.terms[number].k)
        )
        tile = (
            mapping.tile_m,
            mapping.tile_n,
            mapping.splits,
            max(1, resident),
            0 if shares else waits,
        )
        yield stmt, GpuStatement(shares, out if shares else frozenset(), groups=groups, tile=tile)


def _lane(
    stmt: Assign,
    mapping: Points | Sums | Transpose | ThreadNest | Nest,
    buffers: Mapping[str, Buffer],
) -> str | None:
    """The variable of which neighbouring threads take neighbouring values."""
    if isinstance(mapping, Sums) and mapping.along:
        return mapping.along[-2]
    if isinstance(mapping, Transpose):
        return mapping.column
    return _unit_stride(stmt.out, buffers) if stmt.out.subscripts else None


def _across(stmt: Assign, lane: str | None, buffers: Mapping[str, Buffer]) -> frozenset[Access]:
    return frozenset(
        a for a in operands_of(stmt) if lane in a.variables and _unit_stride(a, buffers) != lane
    )


def _unit_stride(access: Access, buffers: Mapping[str, Buffer]) -> str | None:
    order = buffers[access.buffer].order
    return access.subscripts[order[-1]].variable if order else None
