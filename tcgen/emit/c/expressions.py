"""Expressions, subscripts and addresses in C.

Reads level 4. Brackets are printed where precedence needs them. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import assert_never

from ...errors import VerifyError
from ...ir.expr import (
    Access,
    Call,
    Calls,
    Const,
    Delta,
    Equal,
    Expr,
    Infinity,
    Pow,
    Prod,
    Quot,
    Subscript,
    Sum,
)
from ...ir.loops import BandVar, LoopVar
from ...ir.tensor import Ref
from ..printing import (
    ATOM,
    PROD,
    SUM,
    axis_length,
    extent,
    is_complex,
    literal,
    product,
    stored_lengths,
)
from ..scope import Scope, stored_axes

_COMPLEX_CALLS = {"abs": "cabs", "conj": "conj", "real": "creal", "imag": "cimag"}
_REAL_CALLS = {
    "abs": "fabs",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
}
_OWN_CALLS = {"sign": "tc_signum", "mod": "tc_mod"}  # of the templates functions.c and functions.cu
_OWN_CALLS |= {"maximum": "tc_maximum", "minimum": "tc_minimum"}
_COMPARISONS = {"less": "<", "less_equal": "<=", "equal": "==", "not_equal": "!="}


def length(var: LoopVar | BandVar, scope: Scope) -> str:
    """Number of values of a variable that walks whole axes."""
    return scope.lengths.get(var.name, extent(var.space))


def bounds(var: LoopVar | BandVar, scope: Scope) -> tuple[str, str]:
    """First value of a variable, and the end of its range."""
    low, high = "0", length(var, scope)
    if isinstance(var, BandVar) and var.base is not None:
        low = scope.variables[var.base]
        high = f"tc_min({low} + {var.tile}, {high})"
    if var.below is not None:
        bound = f"{scope.variables[var.below]} + 1"
        high = bound if low == "0" else f"tc_min({high}, {bound})"
    return low, high


def position(subscript: Subscript, scope: Scope, values: Mapping[str, str]) -> str:
    """A subscript as a term of a sum; ``values`` replaces variables."""
    parts = [f"N_{space.name}" for space in subscript.offset]
    if subscript.variable is not None:
        value = values.get(subscript.variable, scope.variables[subscript.variable])
        base = None if subscript.base is None else scope.variables[subscript.base]
        if value == base or value == "0":
            value = "" if value == base or base is None else f"-{base}"
        elif base is not None:
            value = f"{value} - {base}"
        if value:
            parts.insert(0, value)
    return " + ".join(parts) or "0"


def address(access: Access, scope: Scope, values: Mapping[str, str]) -> str:
    """Offset of the element in its buffer, in elements, by Horner's rule."""
    buffer = scope.buffers[access.buffer]
    text = "0"
    for (axis, pair), length in zip(stored_axes(buffer), stored_lengths(buffer), strict=True):
        if length == "1":
            continue
        if pair is None:
            here = position(access.subscripts[axis], scope, values)
        else:
            row, column = packed_pair(access, scope, axis, values)
            if (row, column) in scope.ordered:
                # Without the branch of a call the compiler recognises contiguous elements.
                here = f"{row}*({row} {'-' if pair.antisymmetric else '+'} 1)/2 + {column}"
            else:
                here = f"tc_{'strict' if pair.antisymmetric else 'triangle'}({row}, {column})"
        if text == "0":
            text = here
        else:
            outer = text if text.isidentifier() else f"({text})"
            text = f"{outer}*{length}" + ("" if here == "0" else f" + {here}")
    return text


def stride(access: Access, var: BandVar, scope: Scope) -> str:
    """Stride of a variable in elements: the product of all faster axes."""
    buffer = scope.buffers[access.buffer]
    axis = next(n for n, s in enumerate(access.subscripts) if s.variable == var.name)
    faster = buffer.order[buffer.order.index(axis) + 1 :]
    return product([axis_length(buffer, n) for n in faster])


def packed_pair(
    access: Access, scope: Scope, axis: int, values: Mapping[str, str]
) -> tuple[str, str]:
    """Row and column of a packed pair; the row's axis is first in the buffer's order."""
    pair = next(p for p in scope.buffers[access.buffer].packed if axis in (p.first, p.first + 1))
    other = 2 * pair.first + 1 - axis
    return (
        position(access.subscripts[axis], scope, values),
        position(access.subscripts[other], scope, values),
    )


def element(access: Access, scope: Scope) -> str:
    """An element in memory: ``t2[(i*N_v + a)*N_v + b]``, or a scalar variable."""
    name = scope.names[access.buffer]
    if scope.buffers[access.buffer].place == "register":
        return name
    return f"{name}[{address(access, scope, {})}]"


def value(access: Access, scope: Scope) -> tuple[str, int]:
    """The value at logical positions, with sign and zero of antisymmetric pairs."""
    text, level = element(access, scope), ATOM
    for axis, pair in stored_axes(scope.buffers[access.buffer]):
        if pair is not None and pair.antisymmetric:
            row, column = packed_pair(access, scope, axis, {})
            inner = text if level >= PROD else f"({text})"
            text = f"({row} == {column} ? 0 : tc_sign({row}, {column})*{inner})"
            level = ATOM
    return text, level


def expression(expr: Expr, scope: Scope, dtype: str, outer: int = 0) -> str:
    """An expression, in brackets where its precedence is below ``outer``."""
    text, level = _expression(expr, scope, dtype)
    return f"({text})" if level < outer else text


def _expression(expr: Expr, scope: Scope, dtype: str) -> tuple[str, int]:
    match expr:
        case Const(number):
            return literal(number, dtype), SUM if number < 0 else ATOM
        case Access():
            return value(expr, scope)
        case Equal(left, right):
            first, second = position(left, scope, {}), position(right, scope, {})
            one, zero = literal(Fraction(1), dtype), literal(Fraction(0), dtype)
            return f"({first} == {second} ? {one} : {zero})", ATOM
        case Sum(args):
            return _sum([expression(a, scope, dtype, SUM) for a in args]), SUM
        case Prod(args):
            if args and args[0] == Const(Fraction(-1)) and len(args) > 1:
                return "-" + "*".join(expression(a, scope, dtype, ATOM) for a in args[1:]), SUM
            parts = [expression(a, scope, dtype, ATOM if n else PROD) for n, a in enumerate(args)]
            return "*".join(parts), PROD
        case Quot(num, den):
            top = expression(num, scope, dtype, PROD)
            return f"{top}/{expression(den, scope, dtype, ATOM)}", PROD
        case Pow(base, exponent):
            kind = _suffix(is_complex(base, scope), dtype)
            return f"tc_pow_{kind}({expression(base, scope, dtype)}, {exponent})", ATOM
        case Call():
            return _call(expr, scope, dtype), ATOM
        case Calls(function, args):
            return _calls(function, [expression(a, scope, dtype) for a in args], dtype), ATOM
        case Infinity(sign):
            return ("INFINITY", ATOM) if sign > 0 else ("-INFINITY", SUM)
        case Ref() | Delta():
            raise VerifyError(f"{expr} is a leaf of an earlier level")
        case _:
            assert_never(expr)


def _sum(terms: list[str]) -> str:
    text = terms[0]
    for term in terms[1:]:
        text += f" - {term[1:]}" if term.startswith("-") else f" + {term}"
    return text


def _suffix(complex_value: bool, dtype: str) -> str:
    return "z" if complex_value else "s" if dtype == "float32" else "d"


def _call(call: Call, scope: Scope, dtype: str) -> str:
    inside = expression(call.arg, scope, dtype)
    if is_complex(call, scope) or is_complex(call.arg, scope):
        return f"{_COMPLEX_CALLS.get(call.function, f'c{call.function}')}({inside})"
    match call.function:
        case "conj" | "real":
            return f"({inside})"
        case "imag":
            return f"(0*({inside}))"
        case function:
            return f"{_function(function, dtype)}({inside})"


def _function(name: str, dtype: str) -> str:
    """The name of a function of real numbers: in the C library, or in the templates."""
    if name in _OWN_CALLS:
        return f"{_OWN_CALLS[name]}_{_suffix(False, dtype)}"
    return f"{_REAL_CALLS.get(name, name)}{'f' if dtype == 'float32' else ''}"


def _calls(function: str, args: list[str], dtype: str) -> str:
    """A function of several arguments; a comparison is 1 or 0."""
    if function in _COMPARISONS:
        one, zero = literal(Fraction(1), dtype), literal(Fraction(0), dtype)
        return f"({args[0]} {_COMPARISONS[function]} {args[1]} ? {one} : {zero})"
    if function == "where":
        return f"({args[0]} != 0 ? {args[1]} : {args[2]})"
    return f"{_function(function, dtype)}({', '.join(args)})"
