"""Nests of loops on a GPU: by the threads of a block together, or by single threads.

Before: ``parallel for i: (zero f; f += ...; X[i] = f)``. Mapped to Nest, the blocks take the values
of i in turn; the threads of a block divide each statement and synchronise after it. Private buffers
are in shared memory, or in scratch if they do not fit, and a register of a CPU thread becomes one
variable in shared memory. Mapped to ThreadNest, the threads take the values of i in turn,
neighbouring threads neighbouring values of the innermost loop. Private buffers are then single
elements in registers, so that threads are independent.
"""

from __future__ import annotations

from typing import assert_never

from ...dtypes import BY_NAME
from ...errors import VerifyError
from ...ir.loop_analysis import parallel_chain
from ...ir.loops import Assign, Gemm, Loop, Stmt, Zero
from ...ir.thread_mapping import Nest, ThreadNest
from ...resources import part
from ..c.stores import combined, total
from ..parts import numbered, skip_lines
from ..printing import elements, indented
from ..scope import Scope, private_buffers
from .expressions import (
    THREADS,
    block_total,
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
from .points import element_guards, element_lines, loop_of_threads, neutral, summed_guards

SYNC = "__syncthreads();"


def nest_body(mapping: Nest, scope: Scope) -> list[str]:
    """The whole body of a kernel."""
    lines = _own_memory(scope)
    for stmt in scope.kernel.body:
        lines += _statement(stmt, mapping, scope)
    return lines


def _own_memory(scope: Scope) -> list[str]:
    lines = []
    for name, buffer in scope.buffers.items():
        if buffer.place == "register":
            lines.append(f"__shared__ {BY_NAME[buffer.dtype].cuda_type} {scope.names[name]};")
    private = private_buffers(scope)
    if not private:
        return lines
    own = [_bytes(scope, name) for name in private]
    buffers = []
    for name, size in zip(private, own, strict=True):
        kind = BY_NAME[scope.buffers[name].dtype].cuda_type
        buffers += [f"{kind} *const {scope.names[name]} = ({kind} *)tc_own;", f"tc_own += {size};"]
    return [*lines, *part(THREADS, "own_memory", bytes=" + ".join(own), buffers=buffers[:-1])]


def _bytes(scope: Scope, name: str) -> str:
    buffer = scope.buffers[name]
    return f"tc_aligned({elements(buffer)}*(tc_int)sizeof({BY_NAME[buffer.dtype].cuda_type}))"


def _statement(stmt: Stmt, mapping: Nest, scope: Scope) -> list[str]:
    match stmt:
        case Loop():
            return _loop(stmt, mapping, scope)
        case Zero():
            return [*_zero(stmt, mapping, scope), SYNC]
        case Assign():
            return [*_assign(stmt, mapping, scope), SYNC]
        case Gemm():
            raise VerifyError("a matrix product for a CPU in a kernel for a GPU")
        case _:
            assert_never(stmt)


def _loop(stmt: Loop, mapping: Nest, scope: Scope) -> list[str]:
    if not stmt.parallel:
        body = skip_lines(scope, "tc_int") if numbered(stmt.var, scope) else []
        body += [line for s in stmt.body for line in _statement(s, mapping, scope)]
        return loop(stmt.var, scope, body)
    # Parallel loops are directly inside each other; their points are counted as one.
    around = tuple(parallel_chain(stmt))
    variables = [loop.var for loop in around]
    body = []
    if any(numbered(var, scope) for var in variables):
        body = skip_lines(scope, "tc_int")  # all threads of a block skip alike
    body += [line for s in around[-1].body for line in _statement(s, mapping, scope)]
    declare = values(variables, "tc_loops", scope, "tc_point")
    body = [*declare, *when(triangles(variables, scope), body)]
    return part(THREADS, "loop_of_blocks", points=points(variables, scope), body=body)


def _zero(stmt: Zero, mapping: Nest, scope: Scope) -> list[str]:
    buffer, word = scope.buffers[stmt.buffer], scope.names[stmt.buffer]
    if buffer.place == "register":
        return [f"if (threadIdx.x == 0) {word} = {neutral(stmt, scope)};"]
    return _loop_of_block(elements(buffer), mapping, [f"{word}[tc_n] = {neutral(stmt, scope)};"])


def _assign(stmt: Assign, mapping: Nest, scope: Scope) -> list[str]:
    free, summed = free_and_summed(stmt)
    if free:
        inner = when(element_guards(stmt, free, scope), element_lines(stmt, scope))
        body = [*values(free, "tc_rest", scope, "tc_n"), *inner]
        return _loop_of_block(points(free, scope), mapping, body)
    first_thread = ["threadIdx.x == 0", *element_guards(stmt, free, scope)]
    if not summed:
        line = store(stmt, scope, value(stmt, scope, coefficient=True))
        return when(first_thread, [line])
    own = [combined(stmt.reduction, "tc_sum", value(stmt, scope, coefficient=False))]
    guards = [*summed_guards(free, summed, scope), *triangles(summed, scope)]
    body = [*values(summed, "tc_rest", scope, "tc_n"), *when(guards, own)]
    return part(
        THREADS,
        "sum_of_block",
        kind=sum_type(stmt, scope),
        start=start(stmt, scope),
        loop=_loop_of_block(points(summed, scope), mapping, body),
        reduce=block_total(stmt.reduction),
        store=when(first_thread, [store(stmt, scope, total(stmt.coeff, scope.dtype))]),
    )


def _loop_of_block(points: str, mapping: Nest, body: list[str]) -> list[str]:
    return part(THREADS, "loop_of_block", points=points, threads=mapping.threads, body=body)


def thread_nest_body(mapping: ThreadNest, scope: Scope) -> list[str]:
    """The whole body of a kernel."""
    (nest,) = scope.kernel.body
    assert isinstance(nest, Loop), "the verifier admits only loops"
    around = tuple(parallel_chain(nest))
    variables = [loop.var for loop in around]
    body = []
    for name, buffer in scope.buffers.items():
        if buffer.place == "register":
            body.append(f"{BY_NAME[buffer.dtype].cuda_type} {scope.names[name]};")
    if any(numbered(var, scope) for var in variables):
        body += skip_lines(scope, "tc_int")
    for stmt in around[-1].body:
        body += _thread_statement(stmt, scope)
    declare = values(variables, "tc_rest", scope, "tc_n")
    inside = [*declare, *when(triangles(variables, scope), body)]
    return loop_of_threads(points(variables, scope), mapping.threads, inside)


def _thread_statement(stmt: Stmt, scope: Scope) -> list[str]:
    match stmt:
        case Loop():
            body = skip_lines(scope, "tc_int") if numbered(stmt.var, scope) else []
            body += [line for s in stmt.body for line in _thread_statement(s, scope)]
            return loop(stmt.var, scope, body)
        case Zero(name):
            return [f"{scope.names[name]} = {neutral(stmt, scope)};"]
        case Assign():
            free, summed = free_and_summed(stmt)
            lines = when(element_guards(stmt, free, scope), element_lines(stmt, scope))
            return ["{", *indented(lines), "}"] if summed else lines
        case Gemm():
            raise VerifyError("a matrix product for a CPU in a kernel for a GPU")
        case _:
            assert_never(stmt)
