"""How many blocks run a kernel, as plain data for the runtime: share in, grid out."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from ..artifact.grid import GridEntry, StripEntry
from ..ir.loops import Assign, BandVar, Loop, LoopVar, Zero
from ..ir.thread_mapping import Nest, Points, Strip, Sums, Tiles, Turned
from .cuda.kernels import finish_symbol, threads, totals
from .cuda.tile_epilogue import PART
from .scope import Scope

_Lengths = tuple[tuple[str, int | None, str | None], ...]

_RESIDENT = 1 << 20  # blocks of element-wise kernels; further points are taken in turn


def make_grid(scope: Scope) -> GridEntry | None:
    """The grid of a kernel that is for a GPU."""
    kernel, share = scope.kernel, scope.kernel.share
    if share is None:
        return None
    strips: tuple[StripEntry, ...]
    splits, most, part = 1, None, 0
    match share:
        case Points():
            stmt = kernel.body[0]
            most = _RESIDENT
            if isinstance(stmt, Zero):
                buffer = scope.buffers[stmt.buffer]
                lengths: _Lengths = tuple((a.space.name, a.length, None) for a in buffer.axes)
            else:
                lengths = _lengths(_kept(stmt), scope)
            strips = (StripEntry(lengths, share.threads),)
        case Sums():
            strips = (StripEntry(_lengths(_kept(kernel.body[0]), scope), 1),)
            splits, part = share.splits, 16 if _complex(scope) else 8
        case Tiles():
            band = {v.name: v for s in kernel.body if isinstance(s, Assign) for v in s.band}

            def entry(strip: Strip) -> StripEntry:
                return StripEntry(
                    _lengths(tuple(band[n] for n in strip.variables), scope), strip.tile
                )

            strips = tuple(entry(s) for s in (*share.columns, *share.rows, Strip(share.batch, 1)))
            splits = share.splits
            item = np.dtype(scope.buffers[_target(scope)].dtype).itemsize
            part = totals(kernel) * PART or share.height * share.width * item
        case Turned():
            kept = _kept(kernel.body[0])
            ends = {v.name: v for v in kept}
            rest = tuple(v for v in kept if v.name not in (share.row, share.column))
            strips = (
                StripEntry(_lengths((ends[share.column],), scope), share.tile),
                StripEntry(_lengths((ends[share.row],), scope), share.tile),
                StripEntry(_lengths(rest, scope), 1),
            )
        case Nest():
            strips, most = _nest_strips(scope), share.blocks
        case _:
            assert_never(share)
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
    )


def _kept(stmt: object) -> tuple[BandVar, ...]:
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
