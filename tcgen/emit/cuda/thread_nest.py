"""Nests of single threads: each computes whole points of the parallel loops.

Before: ``parallel for i: (t = exp(x[i]); X[i] = t*t)`` mapped to ThreadNest. After: the threads
take the values of i in turn, neighbouring threads neighbouring values of the innermost loop.
Private buffers are single elements in registers, so that no thread waits for another one.
"""

from __future__ import annotations

from typing import assert_never

from ...dtypes import BY_NAME
from ...errors import VerifyError
from ...ir.loop_analysis import parallel_chain
from ...ir.loops import Assign, Gemm, Loop, Stmt, Zero
from ...ir.reduction import Reduction
from ...ir.thread_mapping import ThreadNest
from ..c.stores import start_of
from ..parts import numbered, skip_lines
from ..printing import indented
from ..scope import Scope
from .expressions import free_and_summed, loop_head, points, triangles, values, when
from .points import element_guards, element_lines, stride_loop


def thread_nest_body(mapping: ThreadNest, scope: Scope, dtype: str) -> list[str]:
    """The whole body of a kernel."""
    (nest,) = scope.kernel.body
    assert isinstance(nest, Loop), "the verifier admits loops alone"
    around = tuple(parallel_chain(nest))
    variables = [loop.var for loop in around]
    body = []
    for name, buffer in scope.buffers.items():
        if buffer.place == "register":
            body.append(f"{BY_NAME[buffer.dtype].cuda_type} {scope.names[name]};")
    if any(numbered(var, scope) for var in variables):
        body += skip_lines(scope, "tc_int")
    for stmt in around[-1].body:
        body += _statement(stmt, scope, dtype)
    declare = values(variables, "tc_rest", scope, "tc_n")
    inside = [*declare, *when(triangles(variables, scope), body)]
    return [stride_loop(points(variables, scope), mapping.threads), *indented(inside), "}"]


def _statement(stmt: Stmt, scope: Scope, dtype: str) -> list[str]:
    match stmt:
        case Loop():
            body = skip_lines(scope, "tc_int") if numbered(stmt.var, scope) else []
            body += [line for s in stmt.body for line in _statement(s, scope, dtype)]
            return [f"{loop_head(stmt.var, scope)} {{", *indented(body), "}"]
        case Zero(name, _, reduction):
            kind = BY_NAME[scope.buffers[name].dtype].cuda_type
            neutral = "0" if reduction is Reduction.SUM else start_of(reduction, scope)
            return [f"{scope.names[name]} = {kind}({neutral});"]
        case Assign():
            free, summed = free_and_summed(stmt)
            lines = when(element_guards(stmt, free, scope), element_lines(stmt, scope, dtype))
            return ["{", *indented(lines), "}"] if summed else lines
        case Gemm():
            raise VerifyError("a matrix product for a CPU in a kernel for a GPU")
        case _:
            assert_never(stmt)
