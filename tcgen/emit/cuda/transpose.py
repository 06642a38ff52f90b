"""Transpositions through shared memory: tiles are read along rows and written along columns.

Before: ``Assign(y[b,a], f(x[a,b]), band)`` mapped to Transpose. After: a thread block reads a tile
of x along x's unit-stride axis, and writes a tile of y along y's unit-stride axis.
"""

from __future__ import annotations

from dataclasses import replace

from ...dtypes import BY_NAME
from ...ir.expr import Access, map_leaves
from ...ir.loops import Assign, Axis, Buffer
from ...ir.thread_mapping import Transpose
from ...resources import part
from ..c.expressions import bounds
from ..c.expressions import value as element_value
from ..scope import Scope
from .expressions import THREADS, count, store, value, values

_TILE = "tc_tile"


def transpose_body(stmt: Assign, mapping: Transpose, scope: Scope, dtype: str) -> list[str]:
    """The whole body: the tile of the block, its loads, and its stores."""
    band = {v.name: v for v in stmt.band}
    source = mapping.source
    row, column = band[mapping.row], band[mapping.column]
    batch = tuple(v for v in stmt.band if v.name not in (mapping.row, mapping.column))
    side = mapping.tile
    buffer = scope.buffers[source.buffer]
    loaded, _ = element_value(source, scope)
    firsts = {
        v.name: "" if (low := bounds(v, scope)[0]) == "0" else f"{low} + " for v in (row, column)
    }
    return part(
        THREADS,
        "transpose",
        kind=BY_NAME[buffer.dtype].cuda_type,
        side=side,
        pitch=side + 1,
        columns=count(column, scope),
        rows=count(row, scope),
        batch=values(batch, "tc_rest", scope, "tc_block"),
        rows_at_once=mapping.threads // side,
        row=scope.variables[row.name],
        first_row=firsts[row.name],
        column=scope.variables[column.name],
        first_column=firsts[column.name],
        loaded=loaded,
        store=store(*_from_tile(stmt, source, scope, buffer, dtype)),
    )


def _from_tile(
    stmt: Assign, source: Access, scope: Scope, buffer: Buffer, dtype: str
) -> tuple[Assign, Scope, str]:
    """The statement that reads the tile instead of its source, and the value that it stores."""
    held = replace(buffer, name=_TILE, axes=(Axis(buffer.axes[0].space, 1),), order=(0,))
    held = replace(held, place="register", packed=())
    tile = Access(_TILE, ())
    expr = map_leaves(stmt.expr, lambda leaf: tile if leaf == source else leaf)
    inner = replace(
        scope,
        buffers={**scope.buffers, _TILE: held},
        names={**scope.names, _TILE: f"{_TILE}[tc_x][tc_n]"},
    )
    through_tile = replace(stmt, expr=expr)
    return through_tile, inner, value(through_tile, inner, dtype, coefficient=True)
