"""A module as readable NumPy, for machines without a C compiler.

Reads level 4 and makes the text of ``kernels.py``: a loop is a ``for``, an assignment works on
whole axes, a matrix product is ``np.matmul`` of reshaped slices. Outer variables of a large band
become loops, so that temporary arrays stay small.
"""

from __future__ import annotations

from typing import assert_never

from ...errors import VerifyError
from ...ir.executed import StatementWork, executed_by
from ...ir.loop_analysis import statements
from ...ir.loops import Assign, BandVar, Gemm, Kernel, Loop, LoopVar, Module, Stmt, Zero
from ...ir.reduction import Reduction
from ...options import MOST
from ...resources import fill
from ..parts import FIRST, LAST, number_text, numbered, starts_chain
from ..printing import (
    INDENT,
    indented,
    is_complex,
    kernel_comment,
    literal,
    product,
    stored_lengths,
    symbol,
)
from ..scope import PYTHON_RESERVED, Scope, make_scope
from .expressions import (
    Vectors,
    is_simple,
    numpy_expression,
    packed_guard,
    place,
    py_bounds,
    sliced,
    transposed,
)

_VECTOR_AXES = 3  # axes of the largest temporary array, unless that needs more loops
_UFUNCS = {
    Reduction.SUM: "np.add",
    Reduction.MAX: "np.maximum",
    Reduction.MIN: "np.minimum",
    Reduction.PROD: "np.multiply",
}
# Most loops of one statement: Python nests at most 20 loops, fused ones included.
_MOST_LOOPS = 12


def numpy_source(module: Module, version: str) -> str:
    """The text of ``kernels.py``."""
    head = fill("numpy/head.py.txt", name=module.name, version=version, dtype=module.dtype)
    work = executed_by(module).by_kernel()
    body = [stmt for kernel in module.kernels for stmt, _ in statements(kernel.body)]
    if any(isinstance(s, Assign) and s.reduction is not Reduction.SUM for s in body):
        head += fill("numpy/reduced.py.txt")
    return "\n\n".join([head, *(_kernel(k, module, work.get(k.name, [])) for k in module.kernels)])


def _kernel(kernel: Kernel, module: Module, work: list[StatementWork]) -> str:
    scope = make_scope(kernel, module, PYTHON_RESERVED)
    lines = kernel_comment(scope, work, "# ", "# ", "")
    lines += [f"N_{b.name} = tc_extents[{b.name!r}]" for b in scope.extents]
    lines += [f"{scope.variables[v.name]} = tc_host[{n}]" for n, v in enumerate(kernel.host_vars)]
    if scope.parts is not None:
        lines.append(f"{FIRST}, {LAST} = tc_host[{len(kernel.host_vars)}:]")
    for name, buffer in scope.buffers.items():
        word = scope.names[name]
        if buffer.place != "register":
            lines.append(f"{word} = tc_arrays[{name!r}]")
        else:
            shape = "".join(f"{n}, " for n in stored_lengths(buffer)).strip()
            lines.append(f"{word} = np.empty(({shape}), np.{buffer.dtype})")
    for stmt in kernel.body:
        if starts_chain(stmt, scope):
            lines += _cleared(scope)
        lines += _statement(stmt, scope)
    head = f"def {symbol(kernel)}(tc_arrays, tc_extents, tc_host):"
    return "\n".join([head, *indented(lines), ""])


def _cleared(scope: Scope) -> list[str]:
    """Buffers that a part sets to zero; a run of all parts at once writes all of them."""
    assert scope.parts is not None, "the kernel has the chain"
    lines = [line for name in scope.parts.cleared for line in _statement(Zero(name), scope)]
    return [f"if {LAST} < {MOST}:", *indented(lines)] if lines else []


def _skip(scope: Scope) -> list[str]:
    """Lines at the beginning of an iteration that skip it if it belongs to another part."""
    assert scope.parts is not None, "the kernel has the chain"
    number = number_text(scope.parts, scope.variables, "//")
    return [f"if not {FIRST} <= {number} < {LAST}:", f"{INDENT}continue"]


def _statement(stmt: Stmt, scope: Scope) -> list[str]:
    match stmt:
        case Loop(var, body):
            lines = _skip(scope) if numbered(var, scope) else []
            lines += [line for inner in body for line in _statement(inner, scope)]
            return [_head(var, scope), *indented(lines or ["pass"])]
        case Zero(name):
            return [f"{scope.names[name]}[...] = {_start(stmt.reduction, scope)}"]
        case Assign():
            return _assign(stmt, scope)
        case Gemm():
            return _gemm(stmt, scope)
        case _:
            assert_never(stmt)


def _start(reduction: Reduction, scope: Scope) -> str:
    """The neutral element of a reduction, with which it begins."""
    if reduction is Reduction.SUM:
        return "0"
    return numpy_expression(reduction.neutral, scope, Vectors(), 0)


def _head(var: LoopVar | BandVar, scope: Scope) -> str:
    low, high = py_bounds(var, scope)
    start = "" if low == "0" else f"{low}, "
    if isinstance(var, LoopVar) and var.tile:
        start, step = "0, ", f", {var.tile}"
    else:
        step = ""
    return f"for {scope.variables[var.name]} in range({start}{high}{step}):"


def _loops(band: tuple[BandVar, ...]) -> int:
    """Number of outer variables that become loops: all that bound others, and all but three."""
    bounding = {v.below for v in band}
    last = max((n for n, v in enumerate(band) if v.name in bounding), default=-1)
    return max(last + 1, min(len(band) - _VECTOR_AXES, _MOST_LOOPS))


def _assign(stmt: Assign, scope: Scope) -> list[str]:
    count = _loops(stmt.band)
    vectors = Vectors(stmt.band[count:])
    held = stmt.out.variables
    first_summed = next((n for n, v in enumerate(stmt.band) if v.name not in held), count)
    # The loop of a summed variable adds to a target that is set to zero before the loop.
    zeroed = not stmt.accumulate and first_summed < count
    lines = _points(stmt, scope, vectors, add=stmt.accumulate or zeroed)
    for number in range(count - 1, -1, -1):
        lines = [_head(stmt.band[number], scope), *indented(lines)]
        if zeroed and number == first_summed:
            start = _start(stmt.reduction, scope)
            lines = [*_store(stmt, scope, Vectors(), start, add=False), *lines]
    return lines


def _points(stmt: Assign, scope: Scope, vectors: Vectors, *, add: bool) -> list[str]:
    """All points of the vector variables at once."""
    factors = [literal(stmt.coeff, "float64")] if stmt.coeff != 1 else []
    for chain in stmt.orbit:
        values = [_value_of(name, scope, vectors) for name in chain]
        factors.append(f"_orbit({', '.join(values)})")
    level = 3 if factors else 0
    value = "*".join([*factors, numpy_expression(stmt.expr, scope, vectors, level)])
    held = stmt.out.variables
    summed = [n for n, v in enumerate(vectors.variables) if v.name not in held]
    if summed:
        bounds = [py_bounds(v, scope) for v in vectors.variables]
        lengths = [high if low == "0" else f"{high} - {low}" for low, high in bounds]
        shape = "".join(f"{n}, " for n in lengths).strip()
        axes = f"({', '.join(map(str, summed))},)"
        if stmt.reduction is Reduction.SUM:
            value = f"_sum({value}, ({shape}), {axes})"
        else:
            start = _start(stmt.reduction, scope)
            value = f"_reduced({_UFUNCS[stmt.reduction]}, {start}, {value}, ({shape}), {axes})"
    if scope.buffers[stmt.out.buffer].dtype != "complex128" and is_complex(stmt.expr, scope):
        value = f"np.real({value})"
    free = Vectors(tuple(v for v in vectors.variables if v.name in held))
    return _store(stmt, scope, free, value, add=add)


def _value_of(name: str, scope: Scope, vectors: Vectors) -> str:
    if name not in vectors.names:
        return scope.variables[name]
    number = vectors.names.index(name)
    low, high = py_bounds(vectors.variables[number], scope)
    return f"_axis({low}, {high}, {number}, {len(vectors.names)})"


def _store(stmt: Assign, scope: Scope, free: Vectors, value: str, *, add: bool) -> list[str]:
    operator = "+=" if add else "="
    combine = _UFUNCS[stmt.reduction] if add and stmt.reduction is not Reduction.SUM else None
    if is_simple(stmt.out, scope, free):
        text, letters = sliced(stmt.out, scope, free)
        view = transposed(text, letters, list(free.names))
        target = text if view == text else f"{view}[...]"
        if combine is not None:
            return [f"{target} = {combine}({view}, {value})"]
        return [f"{target} {operator} {value}"]
    name = scope.names[stmt.out.buffer]
    where, _ = place(stmt.out, scope, free)
    if combine is not None:
        raise VerifyError(f"{stmt.reduction.value} into {stmt.out}, which slices cannot express")
    if not scope.buffers[stmt.out.buffer].packed:
        return [f"{name}[{where}] {operator} {value}"]
    guard = packed_guard(stmt.out, scope, free)
    return [f"_write({name}, ({where},), {guard}, {value}, {add})"]


def _gemm(stmt: Gemm, scope: Scope) -> list[str]:
    vectors = Vectors((*stmt.m, *stmt.n, *stmt.k))
    lines = _contraction(stmt, scope, vectors) if stmt.scheme else _product(stmt, scope, vectors)
    for var in reversed(stmt.batch):
        lines = [_head(var, scope), *indented(lines)]
    return lines


def _contraction(stmt: Gemm, scope: Scope, vectors: Vectors) -> list[str]:
    """A product of operands in any layout."""
    if any(v.below is not None for v in vectors.variables):
        raise VerifyError("products over triangles are printed only for the CPU")
    operands = []
    for access in (stmt.a, stmt.b):
        text, letters = sliced(access, scope, vectors)
        operands.append(f"np.asarray({text}), {[vectors.names.index(v) for v in letters]}")
    out, letters = sliced(stmt.out, scope, vectors)
    axes = [vectors.names.index(v) for v in letters]
    factor = "" if stmt.coeff == 1 else f"{literal(stmt.coeff, 'float64')}*"
    operator = "+=" if stmt.accumulate else "="
    product = f"np.einsum({', '.join(operands)}, {axes}, optimize=True)"
    return [f"{out} {operator} {factor}{product}"]


def _product(stmt: Gemm, scope: Scope, vectors: Vectors) -> list[str]:
    """Operands that are matrices in place."""
    m, n, k = (_count(group, scope) for group in (stmt.m, stmt.n, stmt.k))
    a, a_letters = sliced(stmt.a, scope, vectors)
    b, b_letters = sliced(stmt.b, scope, vectors)
    out, out_letters = sliced(stmt.out, scope, vectors)
    left = _matrix(a, a_letters, stmt.m, m, k)
    right = _matrix(b, b_letters, stmt.k, k, n)
    m_first = _is_first(out_letters, stmt.m)
    value = f"np.matmul({left}, {right}){'' if m_first else '.T'}"
    order = (*stmt.m, *stmt.n) if m_first else (*stmt.n, *stmt.m)
    shape = "".join(f"{_count((v,), scope)}, " for v in order).strip()
    factor = "" if stmt.coeff == 1 else f"{literal(stmt.coeff, 'float64')}*"
    operator = "+=" if stmt.accumulate else "="
    return [f"{out} {operator} {factor}{value}.reshape(({shape}))"]


def _is_first(letters: list[str], group: tuple[BandVar, ...]) -> bool:
    return not group or not letters or letters[0] == group[0].name


def _matrix(
    text: str, letters: list[str], first: tuple[BandVar, ...], first_count: str, second_count: str
) -> str:
    """A view as a matrix of two groups of variables, transposed if the second is the slower one."""
    view = f"np.asarray({text})" if not letters else text
    if _is_first(letters, first):
        return f"{view}.reshape({first_count}, {second_count})"
    return f"{view}.reshape({second_count}, {first_count}).T"


def _count(group: tuple[BandVar, ...], scope: Scope) -> str:
    counts = []
    for var in group:
        low, high = py_bounds(var, scope)
        counts.append(high if low == "0" else f"({high} - {low})")
    return product(counts)
