"""Refuse equations whose values the element type of the program cannot hold.

Numbers must lie in the range of the type. Complex numbers have no order: maxima, minima and
comparisons are refused unless their arguments are real. Both read level 1, before factoring, so
that an error names the line of the user's text. Products of numbers that factoring forms are
checked when the module is printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from ..dtypes import BY_NAME, fits
from ..errors import Diagnostic, Span, SpecError
from ..ir.expr import (
    COMPLEX_BELOW_ZERO,
    REAL_VALUED,
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
    Sum,
    format_expr,
    has_no_value,
    is_complex_number,
    nodes,
)
from ..ir.system import Apply, System, Term
from ..ir.tensor import Ref


def check_numbers(system: System, dtype: str) -> None:
    """Raise a SpecError for numbers that the element type cannot hold.

    These are coefficients, constants and defaults larger than the largest number of the type, or so
    near to zero that they lose digits; and functions of numbers that are not real, which in a
    complex program only square roots and logarithms can be.
    """
    problems: list[Diagnostic] = []
    low, high = BY_NAME[dtype].smallest, BY_NAME[dtype].largest
    for span, number in _numbers(system):
        if not fits(number, dtype):
            message = f"{_short(number)} is outside the range of {dtype}, {low:.3g} to {high:.3g}"
            advice = "scale the equation" if dtype != "float32" else "compile for float64, or scale"
            problems.append(Diagnostic(span, message, advice=advice))
    for span, node in () if problems else _nodes(system):
        if has_no_value(node):
            advice = "only sqrt and log have complex values: write the number another way"
        elif dtype != "complex128" and is_complex_number(node):
            advice = f'compile with dtype="complex128" (--dtype complex128): this is {dtype}'
        else:
            continue
        problems.append(Diagnostic(span, f"{format_expr(node)} is not real", advice=advice))
    if problems:
        raise SpecError(tuple(dict.fromkeys(problems)))


def _terms(system: System) -> Iterator[tuple[Span, Term]]:
    for equation in system.equations:
        for term in equation.terms:
            yield term.span or equation.span or Span(equation.lhs.tensor.name, 1, 1), term


def _nodes(system: System) -> Iterator[tuple[Span, Expr]]:
    for span, term in _terms(system):
        for factor in term.factors:
            if isinstance(factor, Apply):
                for node in nodes(factor.expr):
                    yield span, node


def _numbers(system: System) -> Iterator[tuple[Span, Fraction]]:
    for tensor in system.tensors:
        if tensor.default is not None:
            yield Span(tensor.name, 1, 1), tensor.default
    for span, term in _terms(system):
        yield span, term.coeff
    for span, node in _nodes(system):
        if isinstance(node, Const):
            yield span, node.value


def _short(number: Fraction) -> str:
    """A number as it is likely to be written."""
    if number.denominator == 1 and abs(number) < 10**15:
        return str(number)
    return f"{_decimal(number):.6g}"


def _decimal(number: Fraction) -> Decimal:
    """A number in decimal, also beyond the range of a float."""
    return Decimal(number.numerator) / Decimal(number.denominator)


def check_real_arguments(system: System) -> None:
    """Raise a SpecError that names maxima, minima and functions whose argument may be complex."""
    problems: list[Diagnostic] = []
    advice = "take abs(..) or real(..) of it, or declare the inputs real"
    for equation in system.equations:
        for term in equation.terms:
            span = term.span or equation.span or Span(equation.lhs.tensor.name, 1, 1)
            for factor in term.factors:
                if not isinstance(factor, Apply):
                    continue
                if term.reduction.orders and not _is_real(factor.expr):
                    message = f"{term.reduction.value} of {format_expr(factor.expr)}"
                    problems.append(
                        Diagnostic(span, f"{message}, which may be complex", advice=advice)
                    )
                for node in nodes(factor.expr):
                    wrong = next((a for a in _real_arguments(node) if not _is_real(a)), None)
                    if wrong is not None:
                        message = f"{format_expr(node)}: {format_expr(wrong)} may be complex"
                        problems.append(Diagnostic(span, message, advice=advice))
    if problems:
        raise SpecError(tuple(dict.fromkeys(problems)))


def _real_arguments(node: Expr) -> tuple[Expr, ...]:
    """The arguments that must be real."""
    match node:
        case Call(function, arg) if function in REAL_VALUED:
            return (arg,)
        case Calls("where", args):
            return args[:1]
        case Calls(_, args):
            return args
        case _:
            return ()


def _is_real(expr: Expr) -> bool:
    """True where a value is real in a complex program whatever its inputs are."""
    match expr:
        case Calls("where", args):
            return all(map(_is_real, args[1:]))
        case Const() | Infinity() | Delta() | Equal() | Calls():
            return True
        case Ref(tensor):
            return tensor.real
        case Access():
            return False
        case Sum(args) | Prod(args):
            return all(map(_is_real, args))
        case Quot(num, den):
            return _is_real(num) and _is_real(den)
        case Pow(base):
            return _is_real(base)
        case Call(function, arg):
            if function in ("abs", "real", "imag") or function in REAL_VALUED:
                return True
            return function not in COMPLEX_BELOW_ZERO and _is_real(arg)
