"""Numbers of the equations that the element type of the program cannot hold.

Reads level 1, before factoring, so that an error names the line of the user's text. What factoring
multiplies together is checked when the module is printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from ..dtypes import BY_NAME, fits
from ..errors import Diagnostic, Span, SpecError
from ..ir.expr import COMPLEX_BELOW_ZERO, Call, Const, Expr, Prod, Quot, format_expr, nodes
from ..ir.system import Apply, System, Term


def check_numbers(system: System, dtype: str) -> None:
    """Check that every number of the equations is a number of the element type.

    Args:
        system: the equations.
        dtype: of the program.

    Raises:
        SpecError: a coefficient, constant or default is larger than the largest number of the
            type, or so near to zero that it loses digits; or an equation takes the square root
            or the logarithm of a negative number in a real program.
    """
    problems: dict[tuple[Span, str], Diagnostic] = {}

    def note(span: Span, message: str, advice: str) -> None:
        problems.setdefault((span, message), Diagnostic(span, message, advice=advice))

    low, high = BY_NAME[dtype].smallest, BY_NAME[dtype].largest
    for span, number in _numbers(system):
        if not fits(number, dtype):
            note(
                span,
                f"{_short(number)} is outside the range of {dtype}, {low:.3g} to {high:.3g}",
                "scale the equation" if dtype != "float32" else "compile for float64, or scale",
            )
    if dtype != "complex128":
        for span, call in _calls(system):
            if call.function in COMPLEX_BELOW_ZERO and _negative(call.arg):
                note(
                    span,
                    f"{format_expr(call)} is not real",
                    f'compile with dtype="complex128" (--dtype complex128): this is {dtype}',
                )
    if problems:
        raise SpecError(tuple(problems.values()))


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


def _calls(system: System) -> Iterator[tuple[Span, Call]]:
    return ((span, node) for span, node in _nodes(system) if isinstance(node, Call))


def _negative(expr: Expr) -> bool:
    """True for a negative number, also as a product or a quotient of numbers."""
    match expr:
        case Const(value):
            return value < 0
        case Prod(args):
            return all(map(_is_number, args)) and sum(map(_negative, args)) % 2 == 1
        case Quot(num, den):
            return _is_number(num) and _is_number(den) and _negative(num) != _negative(den)
        case _:
            return False


def _is_number(expr: Expr) -> bool:
    return all(isinstance(node, Const | Prod | Quot) for node in nodes(expr))


def _short(number: Fraction) -> str:
    """A number as it is likely to be written."""
    if number.denominator == 1 and abs(number) < 10**15:
        return str(number)
    return f"{_decimal(number):.6g}"


def _decimal(number: Fraction) -> Decimal:
    """A number in decimal, also beyond the range of a float."""
    return Decimal(number.numerator) / Decimal(number.denominator)
