"""Code that counts the flops that it executes, by step: the test of what reports say.

Before: ``r[i] += a[i]*b[i]``. After: ``r[i] += (TC_COUNT(3, 2), a[i]*b[i])`` for step 3. A matrix
product is counted where it is called, from the lengths that it is given. Counters are atomic, so
that loops of threads and of vectors count each point once.
"""

from __future__ import annotations

from ...ir.executed import flops_at_a_point
from ...ir.loop_analysis import band_of
from ...ir.loops import Assign, Gemm, Module
from ...resources import fill
from ..printing import product
from ..scope import Scope, statements
from .expressions import group_lengths


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
