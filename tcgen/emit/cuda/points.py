"""Whole elements computed by single threads, and transpositions through shared memory.

Before: ``Assign(out, expr, band)`` mapped to Points. After: each thread decodes the number of its
element. Before: ``Assign(y[b,a], f(x[a,b]), band)`` mapped to Transpose. After: a thread block
reads a tile of x along x's unit-stride axis, and writes a tile of y along y's unit-stride axis.
"""

from __future__ import annotations

from dataclasses import replace

from ...dtypes import BY_NAME
from ...ir.expr import Access, leaves, map_leaves
from ...ir.loops import Assign, Axis, BandVar, Buffer, Zero
from ...ir.reduction import Reduction
from ...ir.thread_mapping import Points, Transpose
from ...resources import part
from ..c.expressions import bounds, store_guards
from ..c.expressions import value as element_value
from ..c.loop_transforms import joined
from ..c.stores import combined, start_of, total
from ..printing import elements, indented
from ..scope import Scope
from .expressions import (
    THREADS,
    count,
    free_and_summed,
    loop,
    points,
    start,
    store,
    sum_type,
    triangles,
    value,
    values,
    when,
)

_TILE = "tc_tile"  # the array in shared memory


def zero_body(stmt: Zero, mapping: Points, scope: Scope) -> list[str]:
    """Set a whole buffer to zero."""
    buffer = scope.buffers[stmt.buffer]
    line = f"{scope.names[stmt.buffer]}[tc_n] = {neutral(stmt, scope)};"
    return loop_of_threads(elements(buffer), mapping.threads, [line])


def neutral(stmt: Zero, scope: Scope) -> str:
    """The neutral element of a reduction in the type of its buffer."""
    start = "0" if stmt.reduction is Reduction.SUM else start_of(stmt.reduction, scope)
    return f"{BY_NAME[scope.buffers[stmt.buffer].dtype].cuda_type}({start})"


def points_body(stmt: Assign, mapping: Points, scope: Scope) -> list[str]:
    """Each thread computes whole elements; no division finds places on axes that are joined."""
    if mapping.lanes > 1:
        return _lanes_body(stmt, mapping, scope)
    stmt, scope = joined(stmt, scope)
    free, _ = free_and_summed(stmt)
    inner = element_lines(stmt, scope)
    if not free:
        return ["if (blockIdx.x == 0 && threadIdx.x == 0) {", *indented(inner), "}"]
    body = [
        *values(free, "tc_rest", scope, "tc_n"),
        *when(element_guards(stmt, free, scope), inner),
    ]
    return loop_of_threads(points(free, scope), mapping.threads, body)


def _lanes_body(stmt: Assign, mapping: Points, scope: Scope) -> list[str]:
    """Each thread computes groups of elements, if the arrays are aligned; then single elements.

    All arrays are walked in step, so that one variable numbers their elements.
    """
    lanes, target = mapping.lanes, stmt.out.buffer
    order = [stmt.out.subscripts[axis].variable for axis in scope.buffers[target].order]
    band = sorted(stmt.band, key=lambda v: order.index(v.name))
    stmt, scope = joined(replace(stmt, band=tuple(band), parallel=0, block=()), scope)
    free, _ = free_and_summed(stmt)
    assert len(free) == 1, "adjacent axes are joined"
    read: dict[str, None] = {}
    for access in leaves(stmt.expr):
        if isinstance(access, Access) and access.variables:
            read[access.buffer] = None
    if stmt.accumulate:
        read[target] = None
    walked = tuple(dict.fromkeys((target, *read)))
    own = {name: f"tc_of_{scope.names[name]}" for name in walked}
    group = {n: f"tc_lanes<{BY_NAME[scope.buffers[n].dtype].cuda_type}, {lanes}>" for n in walked}
    inside = replace(
        scope,
        names={**scope.names, **{name: f"{text}.of" for name, text in own.items()}},
        variables={**scope.variables, free[-1].name: "tc_lane"},
    )
    loads = []
    for name in walked:
        place = f"reinterpret_cast<const {group[name]} *>({scope.names[name]})[tc_n]"
        held = "" if name == target else "const "
        loads.append(f"{held}{group[name]} {own[name]}{f' = {place}' if name in read else ''};")
    body = part(
        THREADS,
        "group_of_lanes",
        loads=loads,
        lanes=lanes,
        element=element_lines(stmt, inside),
        group=group[target],
        target=scope.names[target],
        own=own[target],
    )
    total = points(free, scope)
    groups = f"{total if total.isidentifier() else f'({total})'}/{lanes}"
    rest = [*values(free, "tc_rest", scope, "tc_n"), *element_lines(stmt, scope)]
    return part(
        THREADS,
        "lanes",
        aligned=" && ".join(f"tc_aligned({scope.names[name]})" for name in walked),
        groups=loop_of_threads(groups, mapping.threads, body),
        count=groups,
        lanes=lanes,
        rest=loop_of_threads(total, mapping.threads, rest, "tc_done + "),
    )


def element_guards(stmt: Assign, free: tuple[BandVar, ...], scope: Scope) -> list[str]:
    """Conditions on elements of the rectangle: triangles of the band and of a packed target.

    A bound by a summed variable is a condition of the sum and not of the element.
    """
    names = {v.name for v in stmt.band} - {v.name for v in free}
    return [
        *triangles((v for v in free if v.below not in names), scope),
        *store_guards(stmt.out, scope),
    ]


def element_lines(stmt: Assign, scope: Scope) -> list[str]:
    """One element by one thread: its sum, and the store."""
    free, summed = free_and_summed(stmt)
    if not summed:
        return [store(stmt, scope, value(stmt, scope, coefficient=True))]
    kind = sum_type(stmt, scope)
    own = [combined(stmt.reduction, "tc_sum", value(stmt, scope, coefficient=False))]
    lines = when(summed_guards(free, summed, scope), own)
    for var in reversed(summed):
        lines = loop(var, scope, lines)
    begin = f"{kind} tc_sum = {start(stmt, scope)};"
    return [begin, *lines, store(stmt, scope, total(stmt.coeff, scope.dtype))]


def summed_guards(
    free: tuple[BandVar, ...], summed: tuple[BandVar, ...], scope: Scope
) -> list[str]:
    """Conditions of a sum: variables of the element that a summed variable bounds."""
    names = {v.name for v in summed}
    return triangles((v for v in free if v.below in names), scope)


def loop_of_threads(points: str, threads: int, body: list[str], first: str = "") -> list[str]:
    """A loop in which the threads of all blocks take points in turn."""
    return part(THREADS, "loop_of_threads", first=first, threads=threads, points=points, body=body)


def transpose_body(stmt: Assign, mapping: Transpose, scope: Scope) -> list[str]:
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
        store=store(*_from_tile(stmt, source, scope, buffer)),
    )


def _from_tile(
    stmt: Assign, source: Access, scope: Scope, buffer: Buffer
) -> tuple[Assign, Scope, str]:
    """The statement that reads the tile instead of its source, and the value that it stores."""
    held = replace(buffer, name=_TILE, axes=(Axis(buffer.axes[0].space, 1),), order=(0,))
    held = replace(held, place="register", packed=())
    tile = Access(_TILE, ())
    expr = map_leaves(stmt.expr, lambda leaf: tile if leaf == source else leaf)
    inner = scope.holding({_TILE: held}, {_TILE: f"{_TILE}[tc_x][tc_n]"})
    through_tile = replace(stmt, expr=expr)
    return through_tile, inner, value(through_tile, inner, coefficient=True)
