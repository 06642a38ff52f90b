"""Stores of an assignment in C, and what a reduction begins with and does with a value."""

from __future__ import annotations

from typing import assert_never

from ...ir.loops import Assign
from ...ir.reduction import Reduction
from ..printing import is_complex
from ..scope import Scope
from .expressions import element, expression, store_guards

TOTAL = "tc_total_"  # prefix of variables for sums in double, or of one thread


def store(stmt: Assign, scope: Scope, value: str) -> list[str]:
    """``out = value;`` or ``out += value;``, in the stored triangle of a packed target only."""
    buffer = scope.buffers[stmt.out.buffer]
    if buffer.dtype != "complex128" and is_complex(stmt.expr, scope):
        value = f"creal({value})"
    place = element(stmt.out, scope)
    if stmt.out.buffer in scope.totals:
        place = f"{TOTAL}{scope.names[stmt.out.buffer]}"
    line = combined(stmt.reduction, place, value) if stmt.accumulate else f"{place} = {value};"
    guards = store_guards(stmt.out, scope)
    return [f"if ({' && '.join(guards)}) {line}"] if guards else [line]


def combined(reduction: Reduction, place: str, value: str) -> str:
    """The statement by which a value is added to a place, or combined with it otherwise."""
    match reduction:
        case Reduction.SUM:
            return f"{place} += {value};"
        case Reduction.PROD:
            return f"{place} = {place}*({value});"
        case Reduction.MAX:
            return f"{place} = tc_maximum_d({place}, {value});"
        case Reduction.MIN:
            return f"{place} = tc_minimum_d({place}, {value});"
        case _:
            assert_never(reduction)


def start_of(reduction: Reduction, scope: Scope) -> str:
    """The neutral element, with which sums and other reductions begin."""
    return expression(reduction.neutral, scope, "float64")
