"""Nests of a thread block: its threads divide each statement and synchronise after it.

Before: ``parallel for i: (zero f; f += ...; X[i] = f)`` mapped to Nest. After: the blocks take the
values of i in turn. Private buffers are in shared memory, or in scratch if they do not fit. A
register of a CPU thread becomes one variable in shared memory.
"""

from __future__ import annotations

from typing import assert_never

from ...dtypes import BY_NAME
from ...errors import VerifyError
from ...ir.loops import Assign, Gemm, Loop, Stmt, Zero
from ...ir.reduction import Reduction
from ...ir.thread_mapping import Nest
from ..c.stores import combined, start_of
from ..parts import numbered, skip_lines
from ..printing import elements, indented
from ..scope import Scope, private_buffers
from .expressions import (
    block_total,
    free_and_summed,
    loop_head,
    points,
    start,
    store,
    sum_type,
    total,
    triangles,
    value,
    values,
    when,
)
from .points import element_guards, element_lines, summed_guards

SYNC = "__syncthreads();"


def nest_body(mapping: Nest, scope: Scope, dtype: str) -> list[str]:
    """The whole body of a kernel."""
    lines = _own_memory(scope)
    for stmt in scope.kernel.body:
        lines += _statement(stmt, mapping, scope, dtype)
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
    lines += [
        f"const tc_int tc_own_bytes = {' + '.join(own)};",
        "extern __shared__ __align__(16) char tc_dynamic[];",
        "char *tc_own = tc_in_shared ? tc_dynamic : tc_scratch + blockIdx.x*tc_own_bytes;",
    ]
    for name, size in zip(private, own, strict=True):
        kind = BY_NAME[scope.buffers[name].dtype].cuda_type
        lines.append(f"{kind} *const {scope.names[name]} = ({kind} *)tc_own;")
        lines.append(f"tc_own += {size};")
    return lines[:-1]


def _bytes(scope: Scope, name: str) -> str:
    buffer = scope.buffers[name]
    return f"tc_aligned({elements(buffer)}*(tc_int)sizeof({BY_NAME[buffer.dtype].cuda_type}))"


def _statement(stmt: Stmt, mapping: Nest, scope: Scope, dtype: str) -> list[str]:
    match stmt:
        case Loop():
            return _loop(stmt, mapping, scope, dtype)
        case Zero():
            return [*_zero(stmt, mapping, scope), SYNC]
        case Assign():
            return [*_assign(stmt, mapping, scope, dtype), SYNC]
        case Gemm():
            raise VerifyError("a matrix product for a CPU in a kernel for a GPU")
        case _:
            assert_never(stmt)


def _loop(stmt: Loop, mapping: Nest, scope: Scope, dtype: str) -> list[str]:
    if not stmt.parallel:
        body = skip_lines(scope, "tc_int") if numbered(stmt.var, scope) else []
        body += [line for s in stmt.body for line in _statement(s, mapping, scope, dtype)]
        return [f"{loop_head(stmt.var, scope)} {{", *indented(body), "}"]
    # Parallel loops are directly inside each other; their points are counted as one.
    around = [stmt]
    while len(around[-1].body) == 1 and isinstance(inner := around[-1].body[0], Loop):
        if not inner.parallel:
            break
        around.append(inner)
    variables = [loop.var for loop in around]
    body = []
    if any(numbered(var, scope) for var in variables):
        body = skip_lines(scope, "tc_int")  # of a part: all threads of a block go on alike
    body += [line for s in around[-1].body for line in _statement(s, mapping, scope, dtype)]
    head = (
        f"for (tc_int tc_point = blockIdx.x; tc_point < {points(variables, scope)}; "
        f"tc_point += gridDim.x) {{"
    )
    declare = values(variables, "tc_loops", scope, "tc_point")
    return [head, *indented([*declare, *when(triangles(variables, scope), body)]), "}"]


def _zero(stmt: Zero, mapping: Nest, scope: Scope) -> list[str]:
    buffer, word = scope.buffers[stmt.buffer], scope.names[stmt.buffer]
    neutral = "0" if stmt.reduction is Reduction.SUM else start_of(stmt.reduction, scope)
    kind = BY_NAME[buffer.dtype].cuda_type
    if buffer.place == "register":
        return [f"if (threadIdx.x == 0) {word} = {kind}({neutral});"]
    return [
        f"{_thread_loop(elements(buffer), mapping)} {{",
        f"    {word}[tc_n] = {kind}({neutral});",
        "}",
    ]


def _assign(stmt: Assign, mapping: Nest, scope: Scope, dtype: str) -> list[str]:
    free, summed = free_and_summed(stmt)
    if free:
        inner = when(element_guards(stmt, free, scope), element_lines(stmt, scope, dtype))
        body = [*values(free, "tc_rest", scope, "tc_n"), *inner]
        return [f"{_thread_loop(points(free, scope), mapping)} {{", *indented(body), "}"]
    if not summed:
        guards = ["threadIdx.x == 0", *element_guards(stmt, free, scope)]
        return when(guards, [store(stmt, scope, value(stmt, scope, dtype, coefficient=True))])
    kind = sum_type(stmt, scope)
    own = [combined(stmt.reduction, "tc_sum", value(stmt, scope, dtype, coefficient=False))]
    guards = [*summed_guards(free, summed, scope), *triangles(summed, scope)]
    final = when(
        ["threadIdx.x == 0", *element_guards(stmt, free, scope)],
        [store(stmt, scope, total(stmt.coeff, dtype))],
    )
    lines = [
        f"{kind} tc_sum = {start(stmt, scope, dtype)};",
        f"{_thread_loop(points(summed, scope), mapping)} {{",
        *indented([*values(summed, "tc_rest", scope, "tc_n"), *when(guards, own)]),
        "}",
        block_total(stmt.reduction),
        *final,
    ]
    return ["{", *indented(lines), "}"]


def _thread_loop(count: str, mapping: Nest) -> str:
    return f"for (tc_int tc_n = threadIdx.x; tc_n < {count}; tc_n += {mapping.threads})"
