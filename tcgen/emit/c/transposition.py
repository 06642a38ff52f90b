"""Transpositions in C: blocks of two axes, each of them by squares in vector registers.

Before: ``y[a,b] = x[b,a]   for a, b   block b,a``. After: loops over blocks of a and b, and inside
them a call of ``tc_transpose_d``, which reads and writes whole vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtypes import BY_NAME, COMPLEX128
from ...ir.expr import Access
from ...ir.loops import Assign, BandVar
from ...resources import fill
from ..printing import literal
from ..scope import Scope
from .counting import counted_block
from .expressions import address, bounds, stride

START = "tc_from_"  # prefix of the variable that holds the start of a block


def transposes(stmt: Assign, scope: Scope) -> bool:
    """True for a copy, times a constant, whose two innermost loops are a blocked transposition."""
    expr, pair = stmt.expr, stmt.band[-2:]
    if not isinstance(expr, Access) or stmt.orbit or {v.name for v in pair} != {*stmt.block}:
        return False
    bounding = {v.below for v in stmt.band}
    if len(pair) != 2 or any(v.below is not None or v.name in bounding for v in pair):
        return False
    out, source = scope.buffers[stmt.out.buffer], scope.buffers[expr.buffer]
    if out.dtype != source.dtype or out.dtype == COMPLEX128.name or out.packed or source.packed:
        return False
    if "register" in (out.place, source.place):
        return False
    for access in (stmt.out, expr):
        names = [s.variable for s in access.subscripts]
        if any(names.count(v.name) != 1 for v in pair):
            return False
    outer, inner = pair
    return stride(stmt.out, inner, scope) == "1" and stride(expr, outer, scope) == "1"


def transposed_block(stmt: Assign, scope: Scope, side: str) -> list[str]:
    """The call that transposes a block of the two innermost variables."""
    assert isinstance(stmt.expr, Access), "a transposition reads one array"
    outer, inner = stmt.band[-2:]
    letter = BY_NAME[scope.buffers[stmt.out.buffer].dtype].letter
    starts = {v.name: f"{START}{scope.variables[v.name]}" for v in (outer, inner)}
    rows, columns = (_count(v, scope, side) for v in (inner, outer))
    source, target = (
        f"{scope.names[access.buffer]} + {address(access, scope, starts)}"
        for access in (stmt.expr, stmt.out)
    )
    return [
        *counted_block(stmt, scope, f"{rows}*{columns}"),
        f"tc_transpose_{letter}({rows}, {columns},",
        f"    {literal(stmt.coeff, scope.buffers[stmt.out.buffer].dtype)},"
        f" {source}, {stride(stmt.expr, inner, scope)},",
        f"    {target}, {stride(stmt.out, outer, scope)}, {int(stmt.accumulate)});",
    ]


def _count(var: BandVar, scope: Scope, side: str) -> str:
    """Points of a variable in a block."""
    return f"tc_min({side}, {bounds(var, scope)[1]} - {START}{scope.variables[var.name]})"


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
