"""Transpositions in C: blocks of two axes, each of them by squares in vector registers.

Before: ``y[a,b] = x[b,a]   for a, b   block b,a``. After: loops over blocks of a and b, and inside
them a call of ``tc_transpose_d``, which reads and writes whole vectors. A block on the diagonal of
a triangle ``b < a``, and each block of a packed target, is transposed to a tile on the stack, from
which loops over the points of the triangle store it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...dtypes import BY_NAME, COMPLEX128, DType
from ...ir.expr import Access
from ...ir.loops import Assign, BandVar
from ...resources import fill, part
from ..printing import literal
from ..scope import Scope
from .expressions import LOOPS, pointer, stride
from .loop_transforms import blocked_pair, ends, is_triangle, points_in_block, start, within_block
from .stores import counted_block, counted_value, store

_TILE = "tc_tile"  # the array on the stack


def transposes(stmt: Assign, scope: Scope) -> bool:
    """True for a copy, times a constant, whose two innermost loops are a blocked transposition."""
    expr, pair = stmt.expr, stmt.band[-2:]
    if not isinstance(expr, Access) or stmt.orbit or len(pair) != 2:
        return False
    if blocked_pair(stmt.band, stmt) != pair:
        return False
    out, source = scope.buffers[stmt.out.buffer], scope.buffers[expr.buffer]
    if out.dtype != source.dtype or out.dtype == COMPLEX128.name or source.packed:
        return False
    if "register" in (out.place, source.place):
        return False
    for access in (stmt.out, expr):
        names = [s.variable for s in access.subscripts]
        if any(names.count(v.name) != 1 for v in pair):
            return False
    read = _unit_stride(expr, pair, scope)
    if read is None or out.packed:
        return read is not None
    return _unit_stride(stmt.out, pair, scope) not in (None, read)


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of the two innermost variables: the source has unit stride in ``column``.

    ``points`` has the number of points of each variable, as text.
    """

    row: BandVar
    column: BandVar
    points: Mapping[str, str]

    def size(self) -> tuple[str, str]:
        """Rows and columns in the source."""
        return self.points[self.row.name], self.points[self.column.name]


def transposed_block(stmt: Assign, scope: Scope) -> list[str]:
    """The lines that transpose a block of the two innermost variables."""
    assert isinstance(stmt.expr, Access), "a transposition reads one array"
    side, pair = _side(scope), stmt.band[-2:]
    stops = ends(pair, scope, side)
    points = {
        v.name: points_in_block(v, stop, scope, side) for v, stop in zip(pair, stops, strict=True)
    }
    column = _unit_stride(stmt.expr, pair, scope)
    row = pair[0] if column == pair[1] else pair[1]
    assert column is not None, "the source has unit stride in one of the two"
    block = _Block(row, column, points)
    if scope.buffers[stmt.out.buffer].packed:
        return _through_a_tile(stmt, block, scope)
    if not is_triangle(pair):
        return _direct(stmt, block, scope)
    outer, inner = pair
    first_row = start(outer, scope) + ("" if inner.strict else " + 1")
    return part(
        LOOPS,
        "either",
        condition=f"{start(inner, scope)} + {points[inner.name]} <= {first_row}",
        then=_direct(stmt, block, scope),
        otherwise=_through_a_tile(stmt, block, scope),
    )


def _direct(stmt: Assign, block: _Block, scope: Scope) -> list[str]:
    """A block of the target, written or added to by whole vectors."""
    return part(
        LOOPS,
        "transposition",
        count=counted_block(stmt, scope, "*".join(block.size())),
        **_source(stmt, block, scope),
        target=_first(stmt.out, block, scope),
        target_stride=stride(stmt.out, block.column, scope),
        accumulate=int(stmt.accumulate),
    )


def _through_a_tile(stmt: Assign, block: _Block, scope: Scope) -> list[str]:
    """A block of the source, transposed to the stack, and stores of its points in the target.

    The block is read whole, also on the diagonal: a point that the triangle lacks is not stored.
    """
    side, variables = _side(scope), scope.variables
    row, column = (f"{variables[v.name]} - {start(v, scope)}" for v in (block.row, block.column))
    taken = counted_value(stmt, scope, f"{_TILE}[({column})*{side} + {row}]")
    outer, inner = (within_block(v, scope, side) for v in stmt.band[-2:])
    return part(
        LOOPS,
        "transposition_by_tile",
        kind=_dtype(stmt, scope).c_type,
        side=side,
        **_source(stmt, block, scope),
        outer=outer,
        inner=inner,
        store=store(stmt, scope, taken),
    )


def _source(stmt: Assign, block: _Block, scope: Scope) -> dict[str, str]:
    """Places of a call: the function, the number of points, and their addresses."""
    assert isinstance(stmt.expr, Access), "a transposition reads one array"
    dtype = _dtype(stmt, scope)
    rows, columns = block.size()
    return {
        "letter": dtype.letter,
        "rows": rows,
        "columns": columns,
        "coefficient": literal(stmt.coeff, dtype.name),
        "source": _first(stmt.expr, block, scope),
        "source_stride": stride(stmt.expr, block.row, scope),
    }


def _first(access: Access, block: _Block, scope: Scope) -> str:
    """The address of the first point of a block."""
    starts = {v.name: start(v, scope) for v in (block.row, block.column)}
    return pointer(access, scope, starts)


def _unit_stride(access: Access, pair: tuple[BandVar, ...], scope: Scope) -> BandVar | None:
    """The one of two variables that has unit stride in an array without packed axes, or None."""
    return next((v for v in pair if stride(access, v, scope) == "1"), None)


def _dtype(stmt: Assign, scope: Scope) -> DType:
    return BY_NAME[scope.buffers[stmt.out.buffer].dtype]


def _side(scope: Scope) -> str:
    """Points of a side of a block."""
    return str(scope.thresholds.block_side)


def transposing_functions(text: Sequence[str]) -> list[str]:
    """The functions that the text of some kernels calls."""
    return [
        fill(
            "c/transpose.c",
            kind=dtype.letter,
            real=dtype.c_type,
            bytes=str(dtype.itemsize),
            integer=f"int{8 * dtype.itemsize}_t",
        )
        for dtype in sorted(BY_NAME.values(), key=lambda dtype: dtype.letter)
        if any(f"tc_transpose_{dtype.letter}(" in part for part in text)
    ]
