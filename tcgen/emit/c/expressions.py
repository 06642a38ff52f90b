"""Expressions, subscripts and addresses in C.

Reads level 4. Brackets are printed where precedence needs them. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
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
from ...ir.loop_analysis import chains_of
from ...ir.loops import BandVar, LoopVar
from ...ir.tensor import Packing, Ref
from ...simplices import parity
from ..printing import (
    ATOM,
    PROD,
    SUM,
    axis_length,
    extent,
    is_complex,
    literal,
    product,
    simplex,
    stored_lengths,
)
from ..scope import Scope

LOOPS = "c/kernels/loops.c"  # the template of kernels

_COMPLEX_CALLS = {"abs": "cabs", "conj": "conj", "real": "creal", "imag": "cimag"}
_REAL_CALLS = {
    "abs": "fabs",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
}
# Functions of the templates functions.c, functions.cu and reductions.c.
_OWN_CALLS = {
    "sign": "tc_signum",
    "mod": "tc_mod",
    "maximum": "tc_maximum",
    "minimum": "tc_minimum",
    "where": "tc_where",
    "logaddexp": "tc_logaddexp",
}
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
        bound = scope.variables[var.below]
        if not (isinstance(var, BandVar) and var.strict):
            bound += " + 1"
        high = bound if low == "0" else f"tc_min({high}, {bound})"
    return low, high


def loop_head(var: LoopVar | BandVar, scope: Scope, integer: str = "int64_t") -> str:
    """``for (int64_t i = 0; i < N_o; ++i)``."""
    name = scope.variables[var.name]
    low, high = bounds(var, scope)
    step = f"{name} += {var.tile}" if isinstance(var, LoopVar) and var.tile else f"++{name}"
    return f"for ({integer} {name} = {low}; {name} < {high}; {step})"


def group_lengths(group: tuple[BandVar, ...], scope: Scope) -> list[str]:
    """Number of values of each variable, of variables below each other together."""
    depths = {names[0]: (len(names), strict) for names, strict in chains_of(group)}
    lengths = []
    for var in group:
        low, high = bounds(var, scope)
        if var.below is not None:
            continue
        if var.name in depths:
            lengths.append(simplex(extent(var.space), *depths[var.name]))
        else:
            lengths.append(high if low == "0" else f"{high} - {low}")
    return lengths


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


def address(
    access: Access, scope: Scope, values: Mapping[str, str], places: Mapping[int, str] | None = None
) -> str:
    """Offset of the element in its buffer, in elements, by Horner's rule.

    ``values`` has texts that replace variables of loops; ``places`` has the places on groups of
    packed axes, by the first axis of a group.
    """
    buffer = scope.buffers[access.buffer]
    text = "0"
    for (axis, pair), length in zip(buffer.stored(), stored_lengths(buffer), strict=True):
        if length == "1":
            continue
        if pair is None:
            here = position(access.subscripts[axis], scope, values)
        elif places and pair.first in places:
            here = places[pair.first]
        else:
            here = _packed_place(packed_positions(access, scope, pair, values), pair, scope)
        if text == "0":
            text = here
        else:
            outer = text if text.isidentifier() else f"({text})"
            text = f"{outer}*{length}" + ("" if here == "0" else f" + {here}")
    return text


def pointer(access: Access, scope: Scope, values: Mapping[str, str]) -> str:
    """The address of an element: ``x``, ``x + i*N_o``, or ``&x`` of a scalar variable."""
    name = scope.names[access.buffer]
    if scope.buffers[access.buffer].place == "register":
        return f"&{name}"
    place = address(access, scope, values)
    return name if place == "0" else f"{name} + {place}"


def stride(access: Access, var: BandVar, scope: Scope) -> str:
    """Stride of a variable in elements."""
    axis = next(n for n, s in enumerate(access.subscripts) if s.variable == var.name)
    return axis_stride(access, axis, scope)


def axis_stride(access: Access, axis: int, scope: Scope) -> str:
    """Stride, in elements, of a logical axis of a buffer that is not packed."""
    buffer = scope.buffers[access.buffer]
    faster = buffer.order[buffer.order.index(axis) + 1 :]
    return product([axis_length(buffer, n) for n in faster])


def packed_positions(
    access: Access, scope: Scope, packing: Packing, values: Mapping[str, str]
) -> list[str]:
    """Positions on packed axes, in the order of the buffer: of stored values the largest first."""
    axes = (axis for axis in scope.buffers[access.buffer].order if axis in packing.axes)
    return [position(access.subscripts[axis], scope, values) for axis in axes]


def packed_place(access: Access, packing: Packing, scope: Scope) -> str:
    """The place of an element on its packed axes."""
    return _packed_place(packed_positions(access, scope, packing, {}), packing, scope)


def _packed_place(places: list[str], packing: Packing, scope: Scope) -> str:
    """The place of some positions on the packed axis.

    If the loops determine the order of the positions, the place has no branch, and the compiler
    recognises contiguous elements.
    """
    strict = packing.antisymmetric
    if set(places) == {"0"}:
        return "0"
    sort = scope.order_of(places)
    if sort is not None:
        return ordered_place([places[n] for n in sort], packing)
    if packing.count == 2:
        return f"tc_{'strict' if strict else 'triangle'}({places[0]}, {places[1]})"
    return f"tc_simplex({packing.count}, {int(strict)}, {_positions(places)})"


def ordered_place(places: list[str], packing: Packing) -> str:
    """The place on the packed axis of positions in order, the largest first."""
    strict, count = packing.antisymmetric, packing.count
    return " + ".join(simplex(p, count - n, strict) for n, p in enumerate(places))


def _positions(places: list[str]) -> str:
    return f"TC_POSITIONS({', '.join(places)})"


def _signed(text: str, level: int, places: list[str], scope: Scope) -> tuple[str, int]:
    """A value of antisymmetric axes with its sign, or 0."""
    inner = text if level >= PROD else f"({text})"
    sort = scope.order_of(places, strict=True)
    if sort is not None:
        return (text, level) if parity(sort) == 1 else (f"-{inner}", SUM)
    if len(places) == 2:
        row, column = places
        sort = scope.order_of(places)
        if sort is not None:  # the two may be equal
            value = inner if parity(sort) == 1 else f"-{inner}"
            return f"({row} == {column} ? 0 : {value})", ATOM
        return f"({row} == {column} ? 0 : tc_sign({row}, {column})*{inner})", ATOM
    sign = f"tc_parity({len(places)}, {_positions(places)})"
    return f"({sign} == 0 ? 0 : {sign}*{inner})", ATOM


def element(access: Access, scope: Scope) -> str:
    """An element in memory: ``t2[(i*N_v + a)*N_v + b]``, or a scalar variable."""
    name = scope.names[access.buffer]
    if scope.buffers[access.buffer].place == "register":
        return name
    return f"{name}[{address(access, scope, {})}]"


def value(access: Access, scope: Scope) -> tuple[str, int]:
    """The value at logical positions, with sign and zero of antisymmetric axes."""
    text, level = element(access, scope), ATOM
    for _, packing in scope.buffers[access.buffer].stored():
        if packing is not None and packing.antisymmetric:
            places = packed_positions(access, scope, packing, {})
            text, level = _signed(text, level, places, scope)
    return text, level


def store_guards(access: Access, scope: Scope) -> list[str]:
    """Conditions under which an element of a packed target is stored."""
    guards = []
    for _, packing in scope.buffers[access.buffer].stored():
        if packing is None:
            continue
        places = packed_positions(access, scope, packing, {})
        if scope.order_of(places, strict=packing.antisymmetric) != tuple(range(packing.count)):
            compare = ">" if packing.antisymmetric else ">="
            guards += [f"{row} {compare} {column}" for row, column in pairwise(places)]
    return guards


def expression(expr: Expr, scope: Scope, outer: int = 0) -> str:
    """An expression, in brackets if its precedence is below ``outer``."""
    text, level = _expression(expr, scope)
    return f"({text})" if level < outer else text


def _expression(expr: Expr, scope: Scope) -> tuple[str, int]:
    match expr:
        case Const(number):
            return literal(number, scope.dtype), SUM if number < 0 else ATOM
        case Access():
            return value(expr, scope)
        case Equal(left, right):
            first, second = position(left, scope, {}), position(right, scope, {})
            one, zero = literal(Fraction(1), scope.dtype), literal(Fraction(0), scope.dtype)
            return f"({first} == {second} ? {one} : {zero})", ATOM
        case Sum(args):
            return _sum([expression(a, scope, SUM) for a in args]), SUM
        case Prod(args):
            if args and args[0] == Const(Fraction(-1)) and len(args) > 1:
                return "-" + "*".join(expression(a, scope, ATOM) for a in args[1:]), SUM
            parts = [expression(a, scope, ATOM if n else PROD) for n, a in enumerate(args)]
            return "*".join(parts), PROD
        case Quot(num, den) if is_complex(den, scope):
            return f"tc_quotient_z({expression(num, scope)}, {expression(den, scope)})", ATOM
        case Quot(num, den):
            top = expression(num, scope, PROD)
            return f"{top}/{expression(den, scope, ATOM)}", PROD
        case Pow(base, exponent):
            kind = _suffix(is_complex(base, scope), scope.dtype)
            return f"tc_pow_{kind}({expression(base, scope)}, {exponent})", ATOM
        case Call():
            return _call(expr, scope), ATOM
        case Calls(function, args):
            kind = _suffix(is_complex(expr, scope), scope.dtype)
            return _calls(function, [expression(a, scope) for a in args], kind, scope.dtype), ATOM
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


def _call(call: Call, scope: Scope) -> str:
    inside = expression(call.arg, scope)
    if is_complex(call, scope) or is_complex(call.arg, scope):
        return f"{_COMPLEX_CALLS.get(call.function, f'c{call.function}')}({inside})"
    match call.function:
        case "conj" | "real":
            return f"({inside})"
        case "imag":
            return f"(0*({inside}))"
        case function:
            return f"{_function(function, scope.dtype)}({inside})"


def _function(name: str, dtype: str) -> str:
    """The name of a function of real numbers: in the C library, or in the templates."""
    if name in _OWN_CALLS:
        return f"{_OWN_CALLS[name]}_{_suffix(False, dtype)}"
    return f"{_REAL_CALLS.get(name, name)}{'f' if dtype == 'float32' else ''}"


def _calls(function: str, args: list[str], kind: str, dtype: str) -> str:
    """A function of several arguments, with a value of some kind; a comparison is 1 or 0."""
    if function == "where":
        return f"{_OWN_CALLS[function]}_{kind}({', '.join(args)})"
    if function in _COMPARISONS:
        one, zero = literal(Fraction(1), dtype), literal(Fraction(0), dtype)
        return f"({args[0]} {_COMPARISONS[function]} {args[1]} ? {one} : {zero})"
    return f"{_function(function, dtype)}({', '.join(args)})"
