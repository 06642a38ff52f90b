"""Nests of loops on a GPU: by the threads of a block together, or by single threads.

Before: ``parallel for i: (zero f; f += ...; X[i] = f)``. Mapped to Nest, the blocks take the values
of i in turn; the threads of a block divide each statement and synchronise after it. Private buffers
are in shared memory, or in scratch if they do not fit, and a register of a CPU thread becomes one
variable in shared memory. Mapped to ThreadNest, the threads take the values of i in turn,
neighbouring threads neighbouring values of the innermost loop. Private buffers are then single
elements in registers, so that threads are independent.
"""

from __future__ import annotations

from fractions import Fraction
from typing import assert_never

from ...dtypes import BY_NAME, COMPLEX128, FLOAT64
from ...errors import VerifyError
from ...ir.loop_analysis import parallel_chain, statements
from ...ir.loops import Assign, Gemm, Loop, Stmt, Zero
from ...ir.thread_mapping import Nest, ThreadNest, Tiles
from ...resources import part
from ..c.stores import combined, total
from ..parts import numbered, skip_lines
from ..printing import elements, indented, literal
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
from .tiles import product_lines, tables_of_products, tiles_shared_bytes

SYNC = "__syncthreads();"


def nest_body(mapping: Nest, scope: Scope) -> list[str]:
    """The whole body of a kernel."""
    lines = _own_memory(mapping, scope)
    copies, scope = _own_copies(mapping, scope)
    lines += copies
    for stmt in scope.kernel.body:
        lines += _statement(stmt, mapping, scope)
    return lines


def nest_finish(mapping: Nest, scope: Scope) -> list[str]:
    """The second pass: adds the copies of all blocks in order, a block for each element."""
    lines, first = [_copied_bytes(mapping, scope)], "0"
    for name in mapping.summed:
        element = BY_NAME[scope.buffers[name].dtype]
        total = COMPLEX128 if element.parts > 1 else FLOAT64
        lines += part(
            THREADS,
            "sum_of_copies",
            elements=elements(scope.buffers[name]),
            kind=total.cuda_type,
            zero=literal(Fraction(0), total.name),
            threads=mapping.threads,
            type=element.cuda_type,
            first=first,
            name=scope.names[name],
        )
        first += f" + {_bytes(scope, name)}"
    return lines


def _copied_bytes(mapping: Nest, scope: Scope) -> str:
    held = " + ".join(_bytes(scope, name) for name in mapping.summed)
    return f"const tc_int tc_copied_bytes = {held};"


def _own_copies(mapping: Nest, scope: Scope) -> tuple[list[str], Scope]:
    """Copies of summed arrays in the scratch of a block, zero at first, in place of the arrays."""
    if not mapping.summed:
        return [], scope
    lines, first, names = [], "0", {}
    for name in mapping.summed:
        names[name] = f"tc_copy_{scope.names[name]}"
        buffer = scope.buffers[name]
        zeros = [f"{names[name]}[tc_n] = {literal(Fraction(0), buffer.dtype)};"]
        lines += part(
            THREADS,
            "copy",
            kind=BY_NAME[buffer.dtype].cuda_type,
            name=names[name],
            first=first,
            zeros=_loop_of_block(elements(buffer), mapping, zeros),
        )
        first += f" + {_bytes(scope, name)}"
    return [*lines, SYNC], scope.holding({}, names)


def products_of(mapping: Nest, scope: Scope) -> dict[Assign, Tiles]:
    """The statements of a nest that a block computes by tiles."""
    inside = (stmt for stmt, _ in statements(scope.kernel.body))
    pairs = zip(inside, mapping.products, strict=False)
    return {s: tiles for s, tiles in pairs if isinstance(s, Assign) and tiles is not None}


def nest_shared_bytes(mapping: Nest, scope: Scope) -> int:
    """Bytes of dynamic shared memory of a block, beside its private buffers."""
    products = products_of(mapping, scope).items()
    return max((tiles_shared_bytes((s,), tiles, scope) for s, tiles in products), default=0)


def _own_memory(mapping: Nest, scope: Scope) -> list[str]:
    lines = []
    for name, buffer in scope.buffers.items():
        if buffer.place == "register":
            lines.append(f"__shared__ {BY_NAME[buffer.dtype].cuda_type} {scope.names[name]};")
    private, products = private_buffers(scope), products_of(mapping, scope)
    if mapping.summed:
        lines.append(_copied_bytes(mapping, scope))
    if private or products:
        lines += part(THREADS, "dynamic")
    if products:
        lines += tables_of_products(products.values())
    if not private:
        return [*lines, *(part(THREADS, "staged", own="") if products else [])]
    own = [_bytes(scope, name) for name in private]
    buffers = []
    for name, size in zip(private, own, strict=True):
        kind = BY_NAME[scope.buffers[name].dtype].cuda_type
        buffers += [f"{kind} *const {scope.names[name]} = ({kind} *)tc_own;", f"tc_own += {size};"]
    behind = "(tc_int)gridDim.x*tc_copied_bytes + " if mapping.summed else ""
    lines += part(THREADS, "own_memory", bytes=" + ".join(own), behind=behind, buffers=buffers[:-1])
    behind = " + (tc_in_shared ? tc_own_bytes : 0)"
    return [*lines, *(part(THREADS, "staged", own=behind) if products else [])]


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
            # The lines of a product end with a barrier.
            tiles = products_of(mapping, scope).get(stmt)
            if tiles is not None:
                return product_lines(stmt, tiles, scope)
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
