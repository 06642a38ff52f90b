"""Exact values of numbers in text, within the range of floating-point numbers.

Decimals are exact: 0.1 is 1/10. Programs that derive equations compute in floating point and print
1/3 as 0.3333333. Such a decimal is read as the fraction that it rounds, if it has enough digits to
tell it from others (:func:`rational` for printed text, :func:`exact` for floats).
"""

from __future__ import annotations

import re
import sys
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations_with_replacement
from math import prod
from typing import Any

# Denominators of coefficients of diagrams: ratios of small factorials.
_SMOOTH = tuple(
    d
    for d in sorted(2**a * 3**b * 5**c for a in range(11) for b in range(7) for c in range(3))
    if d <= 14400
)
_FACTORIALS = (2, 6, 24, 120, 720, 5040, 40320)
# Factorials of one denominator.
_MOST_FACTORIALS = 6
_MOST_NUMERATOR = 9
OUTSIDE = "choose other units, or pass the number as an input"
_LONGEST = 1000  # characters of a number; decimal digits of its numerator and denominator
_LARGEST_POWER_OF_TEN = 400  # beyond the range of float64; larger ones take long to compute
_MOST, _LEAST = Fraction(sys.float_info.max), Fraction(5e-324)
# Digits after the point that C++ prints; pdaggerq also prints 7, 12 or 14.
_PRINTED_DIGITS = 6
_FLOAT_DIGITS = 15  # significant digits of a decimal that survive as a float
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE](?P<power>[+-]?[0-9]+)|/[0-9]+)?"
)


def literal(text: str) -> Fraction:
    """The exact value of a number: ``0.25``, ``-1e-3``, ``1/4``.

    A ValueError refuses other text, and what is not representable (:func:`rejection_reason`).
    """
    text = text.strip()
    shown = text if len(text) <= 20 else f"{text[:20]}..."
    if len(text) > _LONGEST:
        raise ValueError(f"{shown} has more than {_LONGEST} digits")
    number = _NUMBER.fullmatch(text)
    if number is None or ("/" in text and "." in text):
        raise ValueError(f"{shown!r} is not a number")
    if number["power"] and abs(int(number["power"])) > _LARGEST_POWER_OF_TEN:
        raise ValueError(f"{shown} is outside the range of floating-point numbers")
    try:
        value = Fraction(text)
    except ZeroDivisionError:
        raise ValueError(f"{shown} divides by 0") from None
    reason = rejection_reason(value)
    if reason:
        raise ValueError(f"{shown} {reason}")
    return value


def rejection_reason(value: Fraction) -> str:
    """The reason why a program cannot represent a number; empty if it can.

    Example:
        >>> rejection_reason(Fraction(1, 3)), rejection_reason(Fraction(10) ** 400)
        ('', 'is outside the range of floating-point numbers')
    """
    if value and not _LEAST <= abs(value) <= _MOST:
        return "is outside the range of floating-point numbers"
    if max(abs(value.numerator), value.denominator) >= 10**_LONGEST:
        return f"is a ratio of numbers with more than {_LONGEST} digits"
    return ""


@lru_cache(maxsize=10_000)
def rational(text: str) -> tuple[Fraction, bool]:
    """The number that a program printed as these digits after rounding it, and if it is certain.

    A decimal with six digits or more after the point is the ratio with the least denominator among
    ratios of small factorials that rounds to it, if these digits tell the ratio from its
    neighbours: ``10 * denominator**2`` is at most ``10**digits``. Otherwise it is the ratio of a
    numerator up to 9 to a product of factorials that rounds to it, if no other such ratio is within
    ten times the error of rounding. Without one it is as printed, and not certain: nor are 0, and
    shorter decimals with other denominators.

    Example:
        >>> [str(rational(x)[0]) for x in ("-0.083333333333", "0.0277778", "+1.000", "0.333")]
        ['-1/12', '1/36', '1', '333/1000']
        >>> [f"{value} {certain}" for value, certain in map(rational, ("0.0008681", "0.000150"))]
        ['1/1152 True', '3/20000 False']
    """
    text = text.replace(" ", "")
    written = literal(text)
    decimals = re.fullmatch(r"[+-]?[0-9]*\.([0-9]*)", text)
    if decimals is None or len(decimals[1]) < _PRINTED_DIGITS:
        denominator = written.denominator
        known = denominator in _SMOOTH or denominator in _factorial_products()
        return written, bool(written) and (known or "/" in text)
    finest = 10 ** len(decimals[1])
    for denominator in _SMOOTH:
        near = Fraction(round(written * denominator), denominator)
        if 10 * denominator**2 > finest:
            break
        if abs(near - written) <= Fraction(1, 2 * finest) and (near or not written):
            return near, bool(near)
    last_digits = int(abs(written) * finest)
    near_ones = {
        Fraction(numerator, product)
        for numerator in range(1, _MOST_NUMERATOR + 1)
        for product in _factorial_products()
        if 2 * abs(numerator * finest - last_digits * product) <= 10 * product
    }
    found = near_ones.pop() if len(near_ones) == 1 else Fraction(0)
    if not found or 2 * abs(found * finest - last_digits) > 1:
        return written, False
    return found if written > 0 else -found, True


@cache
def _factorial_products() -> frozenset[int]:
    """Denominators of diagrams: products of factorials."""
    return frozenset(
        prod(chosen)
        for count in range(_MOST_FACTORIALS + 1)
        for chosen in combinations_with_replacement(_FACTORIALS, count)
    )


def nearest_ratio(value: float) -> Fraction:
    """The ratio of small factorials that a program computed in several steps of rounding.

    It lies within 1e-12 of the value, which must be finite (ValueError). A float that is a decimal
    of fewer than 15 digits was not computed: it is this decimal.

    Example:
        >>> [str(nearest_ratio(x)) for x in (0.2499999999999998, -1.0000000000000002, 1 / 36, 0.01)]
        ['1/4', '-1', '1/36', '1/100']
    """
    written = _decimal(value)
    if _significant(value) < _FLOAT_DIGITS:
        return written
    for denominator in _SMOOTH:
        near = Fraction(round(written * denominator), denominator)
        if abs(near - written) <= Fraction(1, 10**12) and (near or not written):
            return near
    return written


def exact(value: Any) -> Fraction:
    """A coefficient as an exact number: a text and a float are decimals.

    A float of 15 digits or more within 1e-15 of a fraction is this fraction: 0.3333333333333333
    is 1/3. The distance is relative, and the denominator is at most a million. A ValueError refuses
    what is neither a finite number nor the text of one.

    Example:
        >>> [str(exact(x)) for x in (0.1, 0.3333333333333333, "0.3333333333333333", 2)]
        ['1/10', '1/3', '3333333333333333/10000000000000000', '2']
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{_shown(value)} is not a number")
    if isinstance(value, float):
        written = _decimal(value)
        simple = written.limit_denominator(10**6)
        close = abs(simple - written) <= abs(written) / 10**15
        return simple if close and _significant(value) >= _FLOAT_DIGITS else written
    if isinstance(value, int):
        reason = rejection_reason(Fraction(value))
        if reason:
            raise ValueError(f"the integer {reason}")
        return Fraction(value)
    return literal(value)


def _decimal(value: float) -> Fraction:
    """The shortest decimal that is this float."""
    if value - value != 0:
        raise ValueError(f"{value} is not a finite number")
    return Fraction(repr(float(value)))


def _significant(value: float) -> int:
    """Digits of the shortest decimal that is this float, without zeros at both ends."""
    return len(repr(float(value)).partition("e")[0].replace(".", "").lstrip("-0").rstrip("0"))


def _shown(value: object) -> str:
    """A value of a foreign list in a message; it may be nested too deeply to be printed."""
    try:
        return f"{value!r:.40}"
    except RecursionError:
        return f"a {type(value).__name__}"
