"""Exact values of SymPy's numbers, and the number of terms that an expression expands to."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy

from ..exact_numbers import OUTSIDE, exact, literal, why_not
from .sympy_ranges import wrong

_FLOAT_BITS = 53
_MOST_TERMS = 10_000  # of one expression; read in a few seconds


def exact_number(number: Any) -> Fraction:
    """The value of a Rational, or of a Float: the decimal that it shows, or the fraction it rounds.

    Raises:
        SpecError: no program can hold it.

    Example:
        >>> [str(exact_number(sympy.Float(x))) for x in (0.1, 1 / 3, "0.100000000000000000000001")]
        ['1/10', '1/3', '100000000000000000000001/1000000000000000000000000']
    """
    try:
        if isinstance(number, sympy.Float):
            is_plain = number._prec == _FLOAT_BITS
            value = exact(float(number)) if is_plain else literal(str(number))
            if number and not value:
                raise ValueError("it is outside the range of floating-point numbers")
        else:
            value = Fraction(int(number.p), int(number.q))
        reason = why_not(value)
    except (ValueError, OverflowError) as error:
        reason, value = str(error), Fraction(0)
    if reason:
        raise wrong(f"a number of the expression is not usable: {reason}", OUTSIDE)
    return value


def check_term_count(expression: Any, *, powers: bool) -> None:
    """Refuse an expression that expands to too many products.

    Args:
        expression: of SymPy.
        powers: powers of sums are expanded too; else those alone that hold a Sum.

    Raises:
        SpecError: it does.
    """
    if _count(expression, powers) > _MOST_TERMS:
        raise wrong(
            f"the expression expands to more than {_MOST_TERMS:,} terms",
            "give brackets names, in equations of their own",
        )


def _count(expression: Any, powers: bool) -> int:
    """Terms after expansion; about right where there are too many."""
    if isinstance(expression, sympy.Add):
        return sum(_count(part, powers) for part in expression.args)
    if isinstance(expression, sympy.Mul):
        count = 1
        for part in expression.args:
            count = min(count * _count(part, powers), _MOST_TERMS + 1)
        return count
    if isinstance(expression, sympy.Sum):
        return _count(expression.function, powers)
    if isinstance(expression, sympy.Pow) and (powers or expression.base.has(sympy.Sum)):
        exponent, base = expression.exp, _count(expression.base, powers)
        if exponent.is_Integer and exponent > 0 and base > 1:
            return int(base ** min(int(exponent), 14))
    return 1
