"""Stores of an assignment in C, identity and update of each reduction, and counters of flops.

Code that counts the flops that it executes, by step, is the test of reports. Before:
``r[i] += a[i]*b[i]``. After: ``r[i] += (TC_COUNT(3, 2), a[i]*b[i])`` for step 3. A matrix product
is counted at its call, from its lengths. Counters are atomic, so that loops of threads and of
vectors count each point once.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from ...ir.executed import flops_at_a_point
from ...ir.loop_analysis import band_of, statements
from ...ir.loops import Assign, Gemm, Module
from ...ir.reduction import Reduction
from ...resources import fill
from ..printing import PROD, is_complex, literal, product
from ..scope import Scope
from .expressions import element, expression, group_lengths, store_guards

TOTAL = "tc_total_"  # prefix of variables for sums in double, or of one thread


def store(stmt: Assign, scope: Scope, value: str) -> list[str]:
    """``out = value;`` or ``out += value;``, in the stored triangle of a packed target only."""
    buffer = scope.buffers[stmt.out.buffer]
    if buffer.dtype != "complex128" and is_complex(stmt.expr, scope):
        value = f"creal({value})"
    place = element(stmt.out, scope)
    if stmt.out.buffer in scope.totals:
        place = scope.totals[stmt.out.buffer]
    line = combined(stmt.reduction, place, value) if stmt.accumulate else f"{place} = {value};"
    guards = store_guards(stmt.out, scope)
    return [f"if ({' && '.join(guards)}) {line}"] if guards else [line]


def value_at_point(
    stmt: Assign,
    scope: Scope,
    *,
    coefficient: bool = True,
    orbit: str = "tc_orbit({count}, (const int64_t[]){{{names}}})",
) -> str:
    """``coeff * orbit * expr`` of one point; ``orbit``: form of a call with more than two names."""
    factors = []
    if coefficient and stmt.coeff not in (1, -1):
        factors.append(literal(stmt.coeff, scope.dtype))
    for chain in stmt.orbit:
        names = [scope.variables[name] for name in chain]
        call = orbit.format(count=len(names), names=", ".join(names))
        factors.append(f"({names[0]} == {names[1]} ? 1 : 2)" if len(names) == 2 else call)
    sign = "-" if coefficient and stmt.coeff == -1 else ""
    outer = PROD if factors or sign else 0
    text = "*".join([*factors, expression(stmt.expr, scope, outer + bool(factors))])
    return counted_value(stmt, scope, f"{sign}{text}")


def total(coeff: Fraction, dtype: str, name: str = "tc_sum") -> str:
    """A sum times its coefficient."""
    if coeff == 1:
        return name
    return f"-{name}" if coeff == -1 else f"{literal(coeff, dtype)}*{name}"


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
