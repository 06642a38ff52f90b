"""The grid of each kernel as plain data for the runtime, from its thread mapping."""

from __future__ import annotations

from typing import assert_never

from ...artifact.grid import GridEntry, StripEntry
from ...dtypes import BY_NAME, COMPLEX128, FLOAT64
from ...ir.loop_analysis import parallel_chain
from ...ir.loops import Assign, BandVar, Kernel, Loop, LoopVar, Zero
from ...ir.thread_mapping import Library, Nest, Points, Strip, Sums, ThreadNest, Tiles, Transpose
from ..scope import Scope, statements
from .expressions import free_and_summed
from .kernels import finish_symbol, threads, totals
from .tile_epilogue import PART
from .tiles import tiles_shared_bytes

_Lengths = tuple[tuple[str, int | None, str | None], ...]

_MOST_BLOCKS = 1 << 20  # of element-wise kernels; each takes further points in turn


def make_grid(scope: Scope) -> GridEntry:
    """The grid of a kernel that has a thread mapping."""
    kernel, mapping = scope.kernel, scope.kernel.mapping
    assert mapping is not None, f"kernel {kernel.name} has no thread mapping"
    strips: tuple[StripEntry, ...]
    splits, most, part, shared = 1, None, 0, 0
    match mapping:
        case Points():
            stmt = kernel.body[0]
            most = _MOST_BLOCKS
            if isinstance(stmt, Zero):
                buffer = scope.buffers[stmt.buffer]
                lengths: _Lengths = tuple((a.space.name, a.length, None) for a in buffer.axes)
            else:
                lengths = _lengths(_free(stmt), scope)
            strips = (StripEntry(lengths, mapping.threads * mapping.lanes),)
        case Sums():
            strips = (StripEntry(_lengths(_free(kernel.body[0]), scope), 1),)
            splits, part = mapping.splits, (COMPLEX128 if _complex(scope) else FLOAT64).itemsize
        case Tiles():
            band = {v.name: v for s in kernel.body if isinstance(s, Assign) for v in s.band}

            def entry(strip: Strip) -> StripEntry:
                return StripEntry(
                    _lengths(tuple(band[n] for n in strip.variables), scope), strip.tile
                )

            strips = tuple(entry(s) for s in (*mapping.n, *mapping.m, Strip(mapping.batch, 1)))
            splits, shared = mapping.splits, tiles_shared_bytes(_assigns(kernel), mapping, scope)
            item = BY_NAME[scope.buffers[_target(scope)].dtype].itemsize
            part = totals(kernel) * PART or mapping.tile_m * mapping.tile_n * item
        case Transpose():
            free = _free(kernel.body[0])
            ends = {v.name: v for v in free}
            rest = tuple(v for v in free if v.name not in (mapping.row, mapping.column))
            strips = (
                StripEntry(_lengths((ends[mapping.column],), scope), mapping.tile),
                StripEntry(_lengths((ends[mapping.row],), scope), mapping.tile),
                StripEntry(_lengths(rest, scope), 1),
            )
        case ThreadNest():
            most = _MOST_BLOCKS
            (nest,) = kernel.body
            assert isinstance(nest, Loop), "the verifier admits loops alone"
            spaces = (loop.var.space.name for loop in parallel_chain(nest))
            strips = (StripEntry(tuple((name, None, None) for name in spaces), mapping.threads),)
        case Nest():
            strips, most = _nest_strips(scope), mapping.blocks
        case Library():
            raise AssertionError(f"kernel {kernel.name} is a call of the library")
        case _:
            assert_never(mapping)
    second = finish_symbol(kernel)
    return GridEntry(
        scope.outside(),
        strips,
        splits,
        most,
        threads(kernel),
        second,
        bool(totals(kernel)),
        part if second else 0,
        shared_bytes=shared,
        ranges=_ranges(scope),
    )


def _ranges(scope: Scope) -> tuple[tuple[tuple[str, int | None], ...], ...]:
    """Elements of the arrays; points of each target, of each sum and of the loops around them.

    Packed axes count as whole ones: places in them are halves of such products.
    """
    found = {tuple((a.space.name, a.length) for a in b.axes): None for b in scope.buffers.values()}
    for stmt, around in statements(scope.kernel.body):
        counted: list[tuple[Loop | BandVar, ...]] = [around]
        if isinstance(stmt, Assign):
            counted += free_and_summed(stmt)
        for variables in counted:
            found[tuple(_length(v) for v in variables)] = None
    return tuple(found)


def _length(counted: Loop | BandVar) -> tuple[str, int | None]:
    if isinstance(counted, Loop):
        return counted.var.space.name, None
    return counted.space.name, counted.tile if counted.base is not None else None


def _assigns(kernel: Kernel) -> tuple[Assign, ...]:
    return tuple(s for s in kernel.body if isinstance(s, Assign))


def _free(stmt: object) -> tuple[BandVar, ...]:
    assert isinstance(stmt, Assign)
    return tuple(v for v in stmt.band if v.name in stmt.out.variables)


def _lengths(variables: tuple[BandVar, ...], scope: Scope) -> _Lengths:
    return tuple(
        (v.space.name, v.tile, None if v.base is None else scope.variables[v.base])
        for v in variables
    )


def _complex(scope: Scope) -> bool:
    return any(b.dtype == "complex128" for b in scope.buffers.values())


def _target(scope: Scope) -> str:
    stmt = scope.kernel.body[0]
    assert isinstance(stmt, Assign)
    return stmt.out.buffer


def _nest_strips(scope: Scope) -> tuple[StripEntry, ...]:
    """One strip for each parallel loop; its points are tiles of a tile loop."""
    strips: list[StripEntry] = []
    body = scope.kernel.body
    while len(body) == 1 and isinstance(loop := body[0], Loop) and loop.parallel:
        var: LoopVar = loop.var
        strips.append(StripEntry(((var.space.name, None, None),), var.tile or 1))
        body = loop.body
    return tuple(strips)
