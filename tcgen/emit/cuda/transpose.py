"""Transpositions through shared memory: tiles are read along rows and written along columns.

Before: ``Assign(y[b,a], f(x[a,b]), band)`` mapped to Transpose. After: a thread block reads a tile
of x along x's unit-stride axis, and writes a tile of y along y's unit-stride axis.
"""

from __future__ import annotations

from dataclasses import replace

from ...dtypes import BY_NAME
from ...ir.expr import Access, map_leaves
from ...ir.loops import Assign, Axis, BandVar, Buffer
from ...ir.thread_mapping import Transpose
from ..c.expressions import bounds
from ..c.expressions import value as element_value
from ..printing import indented
from ..scope import Scope
from .expressions import count, store, value, values

_TILE = "tc_tile"


def transpose_body(stmt: Assign, mapping: Transpose, scope: Scope, dtype: str) -> list[str]:
    """The whole body: the tile of the block, its loads, and its stores."""
    band = {v.name: v for v in stmt.band}
    source = mapping.source
    row, column = band[mapping.row], band[mapping.column]
    batch = tuple(v for v in stmt.band if v.name not in (mapping.row, mapping.column))
    side = mapping.tile
    buffer = scope.buffers[source.buffer]
    lines = [
        f"__shared__ {BY_NAME[buffer.dtype].cuda_type} {_TILE}[{side}][{side + 1}];",
        f"const int tc_x = threadIdx.x%{side}, tc_y = threadIdx.x/{side};",
        "tc_int tc_block = blockIdx.x;",
    ]
    for name, var in (("column", column), ("row", row)):
        lines += [
            f"const tc_int tc_{name}s = {count(var, scope)};",
            f"const tc_int tc_{name} = tc_block%tc_tiles(tc_{name}s, {side})*{side};",
            f"tc_block /= tc_tiles(tc_{name}s, {side});",
        ]
    lines += values(batch, "tc_rest", scope, "tc_block")
    loaded, _ = element_value(source, scope)
    lines += [
        *_walk(row, column, "tc_row + tc_x", "tc_column + tc_n", mapping, scope),
        f"        {_TILE}[tc_n][tc_x] = {loaded};",
        "    }",
        "}",
        "__syncthreads();",
        *_walk(row, column, "tc_row + tc_n", "tc_column + tc_x", mapping, scope),
        *indented(indented([store(*_from_tile(stmt, source, scope, buffer, dtype))])),
        "    }",
        "}",
    ]
    return lines


def _walk(
    row: BandVar, column: BandVar, here: str, there: str, mapping: Transpose, scope: Scope
) -> list[str]:
    """Loop of the threads over a tile; the caller closes the body."""
    rows_at_once = mapping.threads // mapping.tile

    def at(var: BandVar, number: str) -> str:
        low, _ = bounds(var, scope)
        start = number if low == "0" else f"{low} + {number}"
        return f"const tc_int {scope.variables[var.name]} = {start};"

    return [
        f"for (int tc_n = tc_y; tc_n < {mapping.tile}; tc_n += {rows_at_once}) {{",
        f"    {at(row, here)}",
        f"    {at(column, there)}",
        f"    if ({here} < tc_rows && {there} < tc_columns) {{",
    ]


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
