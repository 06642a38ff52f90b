"""Element-wise expressions: denominators, functions, products of elements.

The same node classes serve two levels: leaves are :class:`~tcgen.ir.tensor.Ref` in systems and
programs, and :class:`Access` in modules, where a reference is an element of a buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, TypeAlias, assert_never

import numpy as np

from ..records.loops import Access as Access
from ..records.loops import Subscript as Subscript
from .tensor import Index, Ref, distinct

FUNCTIONS = ("sqrt", "exp", "log", "abs", "sin", "cos", "tanh", "conj", "real", "imag")
REAL_FUNCTIONS = (
    *("tan", "sinh", "cosh", "arcsin", "arccos", "arctan", "floor", "sign", "rint"),
    *("log1p", "expm1", "exp2", "cbrt"),
)
# Functions of several arguments, which are real; only what ``where`` chooses from may be complex.
# Conditions are real numbers: 0 is false. A comparison gives 1 or 0, and with NaN it is false,
# unless it is ``not_equal``.
ARGUMENT_COUNTS: dict[str, int] = {
    **dict.fromkeys(("maximum", "minimum", "arctan2", "pow", "mod", "hypot", "logaddexp"), 2),
    **dict.fromkeys(("less", "less_equal", "equal", "not_equal"), 2),
    "where": 3,
}
REAL_VALUED = frozenset((*REAL_FUNCTIONS, *ARGUMENT_COUNTS))
# Functions with complex values at negative numbers: a complex program evaluates them with complex
# arguments, even if the argument is a number or is real. A real program gives NaN there.
COMPLEX_BELOW_ZERO = ("sqrt", "log")
_NOT_REAL = np.complex128(complex(np.nan, np.nan))


@dataclass(frozen=True, slots=True)
class Const:
    """An exact number."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Infinity:
    """Infinity with a sign, 1 or -1: the neutral element of minima and maxima."""

    sign: int


@dataclass(frozen=True, slots=True)
class Delta:
    """1 if both indices name the same orbital of the same base space, else 0."""

    left: Index
    right: Index

    def renamed(self, names: Mapping[Index, Index]) -> Delta:
        """The delta with indices replaced, all at once."""
        return Delta(names.get(self.left, self.left), names.get(self.right, self.right))


@dataclass(frozen=True, slots=True)
class Equal:
    """Level 4 form of :class:`Delta`: 1 if two positions are equal, else 0."""

    left: Subscript
    right: Subscript


@dataclass(frozen=True, slots=True)
class Sum:
    """Sum of expressions."""

    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Prod:
    """Product of expressions."""

    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Quot:
    """Numerator over denominator; division by zero follows IEEE."""

    num: Expr
    den: Expr


@dataclass(frozen=True, slots=True)
class Pow:
    """Integer power of an expression."""

    base: Expr
    exponent: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function of FUNCTIONS, or of REAL_FUNCTIONS, whose arguments are real."""

    function: str
    arg: Expr


@dataclass(frozen=True, slots=True)
class Calls:
    """A function of several arguments."""

    function: str
    args: tuple[Expr, ...]


Expr: TypeAlias = (
    Const | Infinity | Ref | Access | Delta | Equal | Sum | Prod | Quot | Pow | Call | Calls
)


def map_leaves(expr: Expr, leaf: Callable[[Ref | Access | Delta | Equal], Expr]) -> Expr:
    """The expression with every leaf that is not a number replaced by ``leaf(it)``."""
    match expr:
        case Const() | Infinity():
            return expr
        case Ref() | Access() | Delta() | Equal():
            return leaf(expr)
        case Sum(args) | Prod(args):
            return type(expr)(tuple(map_leaves(a, leaf) for a in args))
        case Quot(num, den):
            return Quot(map_leaves(num, leaf), map_leaves(den, leaf))
        case Pow(base, exponent):
            return Pow(map_leaves(base, leaf), exponent)
        case Call(function, arg):
            return Call(function, map_leaves(arg, leaf))
        case Calls(function, args):
            return Calls(function, tuple(map_leaves(a, leaf) for a in args))
        case _:
            assert_never(expr)


def nodes(expr: Expr) -> Iterator[Expr]:
    """An expression and all its parts, outermost first, left to right, repeats included."""
    yield expr
    for part in _parts(expr):
        yield from nodes(part)


def depth(expr: Expr) -> int:
    """The number of operations of an expression that stand inside each other."""
    parts = _parts(expr)
    return 1 + max(map(depth, parts)) if parts else 0


def _parts(expr: Expr) -> tuple[Expr, ...]:
    """The operands of an operation; () for a leaf."""
    match expr:
        case Const() | Infinity() | Ref() | Access() | Delta() | Equal():
            return ()
        case Sum(args) | Prod(args) | Calls(_, args):
            return args
        case Quot(num, den):
            return (num, den)
        case Pow(part, _) | Call(_, part):
            return (part,)
        case _:
            assert_never(expr)


def leaves(expr: Expr) -> Iterator[Ref | Access | Delta | Equal]:
    """Leaves that are not numbers, left to right, repeats included."""
    return (n for n in nodes(expr) if isinstance(n, Ref | Access | Delta | Equal))


def refs(expr: Expr) -> tuple[Ref, ...]:
    """References in an expression, left to right, repeats included."""
    return tuple(leaf for leaf in leaves(expr) if isinstance(leaf, Ref))


def accesses_of(expr: Expr) -> tuple[Access, ...]:
    """Accesses in an expression, left to right, repeats included."""
    return tuple(leaf for leaf in leaves(expr) if isinstance(leaf, Access))


def functions(expr: Expr) -> Iterator[str]:
    """Names of the functions that an expression calls, outermost first, repeats included."""
    return (n.function for n in nodes(expr) if isinstance(n, Call | Calls))


def expr_indices(expr: Expr) -> tuple[Index, ...]:
    """Indices in an expression, each once, in order of first occurrence."""
    occurring: list[Index] = []
    for leaf in leaves(expr):
        match leaf:
            case Ref(_, indices):
                occurring.extend(indices)
            case Delta(left, right):
                occurring.extend((left, right))
            case Access() | Equal():
                pass
            case _:
                assert_never(leaf)
    return distinct(tuple(occurring))


def number_of(expr: Expr) -> Any:
    """The value of an expression of numbers in floating point; None for any other.

    It is complex where it is not real, as for ``sqrt(-1)``, and then NaN for a function that has
    only real values, such as ``arccos(2)``.
    """
    values = [number_of(part) for part in _parts(expr)]
    if any(value is None for value in values):
        return None
    with np.errstate(all="ignore"):
        match expr:
            case Const(value):
                return np.float64(value)
            case Infinity(sign):
                return np.float64(sign * np.inf)
            case Ref() | Access() | Delta() | Equal():
                return None
            case Sum():
                return sum(values[1:], start=values[0])
            case Prod():
                return prod(values[1:], start=values[0])
            case Quot():
                return values[0] / values[1]
            case Pow(_, exponent):
                return values[0] ** exponent
            case Call(function) | Calls(function):
                return _call(function, values)
            case _:
                assert_never(expr)


def _call(function: str, values: list[Any]) -> Any:
    """The value of a function of numbers, by NumPy's functions of real or complex ones."""
    real, where = function in REAL_VALUED, function == "where"
    if real and any(map(np.iscomplexobj, values[:1] if where else values)):
        return _NOT_REAL
    if where:
        return values[1] if values[0] != 0 else values[2]
    value = getattr(np, "float_power" if function == "pow" else function)(*values) + 0.0
    if np.isnan(value) and not any(map(np.isnan, values)):
        name = "power" if function == "pow" else function
        value = getattr(np.emath, name, lambda *_: value)(*values)
    return _NOT_REAL if real and np.iscomplexobj(value) else value


def is_complex_number(expr: Expr) -> bool:
    """True for a root or logarithm that makes a complex number of real ones, such as ``1j``."""
    if not isinstance(expr, Call) or expr.function not in COMPLEX_BELOW_ZERO:
        return False
    return np.iscomplexobj(number_of(expr)) and not np.iscomplexobj(number_of(expr.arg))


def has_no_value(expr: Expr) -> bool:
    """True for a real function of numbers at which it is not real, such as ``arccos(2)``."""
    if not isinstance(expr, Call | Calls) or expr.function not in REAL_VALUED:
        return False
    number = number_of(expr)
    return np.iscomplexobj(number) and bool(np.isnan(number))


def operation_count(expr: Expr) -> int:
    """Flops to evaluate the expression once: every +, -, *, /, function and power step is 1.

    A factor -1 is a sign, not a multiplication: ``x - y`` is one flop.
    """
    match expr:
        case Const() | Infinity() | Ref() | Access() | Delta() | Equal():
            own = 0
        case Sum(args):
            own = len(args) - 1
        case Prod(args):
            own = max(0, sum(a != Const(Fraction(-1)) for a in args) - 1)
        case Pow(_, exponent):
            own = max(1, abs(exponent) - 1)
        case Quot() | Call() | Calls():
            own = 1
        case _:
            assert_never(expr)
    return own + sum(map(operation_count, _parts(expr)))


_SUM, _PROD, _ATOM = 1, 2, 3


def scaled(coeff: Fraction, expr: Expr) -> Expr:
    """An expression times a number, which is the first factor unless it is 1."""
    if coeff == 1:
        return expr
    return Prod((Const(coeff), *(expr.args if isinstance(expr, Prod) else (expr,))))


def flat_product(parts: Iterable[Expr]) -> Expr:
    """The flat product, without factors 1, with its numbers multiplied into one in front."""
    number = Fraction(1)
    rest: list[Expr] = []
    for part in parts:
        if isinstance(part, Const):
            number *= part.value
        elif isinstance(part, Prod):
            rest += part.args
        else:
            rest.append(part)
    if number != 1 or not rest:
        rest.insert(0, Const(number))
    return rest[0] if len(rest) == 1 else Prod(tuple(rest))


def format_expr(expr: Expr) -> str:
    """The expression in the .spec notation, with as few brackets as precedence allows."""
    return _format(expr, 0)


def _format(expr: Expr, outer: int) -> str:
    match expr:
        case Const(value):
            text, level = str(value), _ATOM if value >= 0 and value.denominator == 1 else _SUM
        case Infinity(sign):
            text, level = ("inf", _ATOM) if sign > 0 else ("-inf", _SUM)
        case Ref() | Access():
            text, level = str(expr), _ATOM
        case Delta(left, right) | Equal(left, right):
            text, level = f"delta[{left},{right}]", _ATOM
        case Sum(args):
            parts = [_format(args[0], _SUM)]
            for arg in args[1:]:
                part = _format(arg, _SUM)
                parts.append(f"- {part[1:]}" if part.startswith("-") else f"+ {part}")
            text, level = " ".join(parts), _SUM
        case Prod(args):
            if args[0] == Const(Fraction(-1)) and len(args) > 1:
                text, level = "-" + "*".join(_format(a, _PROD) for a in args[1:]), _SUM
            else:
                text, level = "*".join(_format(a, _PROD) for a in args), _PROD
        case Quot(num, den):
            text, level = f"{_format(num, _PROD)}/{_format(den, _ATOM)}", _PROD
        case Pow(base, exponent):
            power = str(exponent) if exponent >= 0 else f"({exponent})"
            text, level = f"{_format(base, _ATOM)}**{power}", _ATOM
        case Call(function, arg):
            text, level = f"{function}({_format(arg, 0)})", _ATOM
        case Calls(function, args):
            text, level = f"{function}({', '.join(_format(a, 0) for a in args)})", _ATOM
        case _:
            assert_never(expr)
    return f"({text})" if level < outer else text


@dataclass(frozen=True, slots=True)
class Element:
    """An element of an array, or its complex conjugate."""

    access: Access
    conjugated: bool = False


def factor_of(expr: Expr) -> Element | None:
    """``x[i]`` or ``conj(x[i])`` as a factor; None for any other expression."""
    match expr:
        case Access():
            return Element(expr)
        case Call("conj", Access() as access):
            return Element(access, conjugated=True)
        case _:
            return None


def two_factors(expr: Expr) -> tuple[Element, Element] | None:
    """The factors of a product of two elements, ``x[i]*conj(y[j])``; None for any other."""
    if not isinstance(expr, Prod) or len(expr.args) != 2:
        return None
    first, second = map(factor_of, expr.args)
    return None if first is None or second is None else (first, second)


def factors_in_order(expr: Expr, *, swapped: bool) -> tuple[Element, Element]:
    """The factors of a product of two elements, the second one first if ``swapped``."""
    factors = two_factors(expr)
    assert factors is not None, "the terms of tiles are products of two elements"
    return factors[::-1] if swapped else factors
