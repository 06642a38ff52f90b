"""Stores of an assignment in C, identity and update of each reduction, and counters of flops.

Code that counts the flops that it executes, by step, is the test of reports. Before:
``r[i] += a[i]*b[i]``. After: ``r[i] += (TC_COUNT(3, 2), a[i]*b[i])`` for step 3. A matrix product
is counted at its call, from its lengths. Counters are atomic, so that loops of threads and of
vectors count each point once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from ...ir.executed import flops_at_a_point
from ...ir.loop_analysis import band_of
from ...ir.loops import Assign, Gemm, Module
from ...ir.reduction import Reduction
from ...resources import fill
from ..printing import is_complex, product
from ..scope import Scope, statements
from .expressions import element, expression, group_lengths, store_guards

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
    return expression(reduction.neutral, replace(scope, dtype="float64"))


def counters(module: Module) -> str:
    """The counters and the macro that adds to them."""
    body = (stmt for kernel in module.kernels for stmt, _ in statements(kernel.body))
    steps = 1 + max((stmt.step or 0 for stmt in body), default=0)
    return fill("c/counted.c", steps=str(steps))


def counted_value(stmt: Assign, scope: Scope, value: str) -> str:
    """An expression that also counts the flops of one point."""
    each = flops_at_a_point(stmt, scope.buffers) if scope.counted else 0
    return f"({_count(stmt, str(each))}, {value})" if each else value


def counted_block(stmt: Assign, scope: Scope, points: str) -> list[str]:
    """A line that counts the points of a block of a copy; none if they cost nothing."""
    each = flops_at_a_point(stmt, scope.buffers) if scope.counted else 0
    return [f"{_count(stmt, f'{each}*{points}')};"] if each else []


def counted_product(stmt: Gemm, scope: Scope) -> list[str]:
    """A line that counts a matrix product; none unless flops are counted."""
    if not scope.counted:
        return []
    points = product([f"({n})" for n in group_lengths(band_of(stmt), scope)])
    return [f"{_count(stmt, f'{flops_at_a_point(stmt, scope.buffers)}*{points}')};"]


def _count(stmt: Assign | Gemm, flops: str) -> str:
    return f"TC_COUNT({stmt.step or 0}, {flops})"
