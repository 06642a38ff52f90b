"""Numbers as people and programs write them: exact, and such as a program can hold."""

from __future__ import annotations

import re
import sys
from fractions import Fraction
from typing import Any

_SMOOTH = tuple(
    d
    for d in sorted(2**a * 3**b * 5**c for a in range(11) for b in range(7) for c in range(3))
    if d <= 14400
)


OUTSIDE = "choose other units, or pass the number as an input"
_LONGEST = 1000  # characters, and decimal digits of numerator and denominator
_LARGEST_POWER_OF_TEN = 400
_MOST, _LEAST = Fraction(sys.float_info.max), Fraction(5e-324)


def literal(text: str) -> Fraction:
    """The exact value of a number: ``0.25``, ``1e-3``, ``1/4``.

    Raises:
        ValueError: it is no number, or one that no program can hold (:func:`why_not`).

    Example:
        >>> literal("-1e-3")
        Fraction(-1, 1000)
    """
    power = re.search(r"[eE]([+-]?[0-9]+)\s*$", text)
    shown = text if len(text) <= 20 else f"{text[:20]}..."
    if len(text) > _LONGEST:
        raise ValueError(f"{shown} has more than {_LONGEST} digits")
    if power and abs(int(power[1])) > _LARGEST_POWER_OF_TEN:
        raise ValueError(f"{shown} is outside the range of floating-point numbers")
    value = Fraction(text)
    reason = why_not(value)
    if reason:
        raise ValueError(f"{shown} {reason}")
    return value


def why_not(value: Fraction) -> str:
    """Why no program can hold a number; empty where one can.

    Example:
        >>> why_not(Fraction(1, 3)), why_not(Fraction(10) ** 400)
        ('', 'is outside the range of floating-point numbers')
    """
    if value and not _LEAST <= abs(value) <= _MOST:
        return "is outside the range of floating-point numbers"
    if max(abs(value.numerator), value.denominator) >= 10**_LONGEST:
        return f"is a ratio of numbers with more than {_LONGEST} digits"
    return ""


def rational(text: str) -> Fraction:
    """The number that a program printed as these digits.

    Coefficients of diagrams are ratios of small factorials; the least such denominator whose ratio
    prints as ``text`` is taken. A number that is none of these is taken as written.

    Raises:
        ValueError: ``text`` is no number.

    Example:
        >>> [str(rational(x)) for x in ("-0.083333333333", "0.028", "+1.000", "3/8", "0.1234567")]
        ['-1/12', '1/36', '1', '3/8', '1234567/10000000']
    """
    written = literal(text.replace(" ", ""))
    if "." not in text:
        return written
    digits = len(text.partition(".")[2].partition("e")[0].strip())
    half = Fraction(1, 2 * 10**digits)
    for denominator in _SMOOTH:
        near = Fraction(round(written * denominator), denominator)
        if abs(near - written) <= half and (near or not written):
            return near
    return written


def nearest_ratio(value: float) -> Fraction:
    """The ratio of small factorials that a computed coefficient stands for, within 1e-12.

    A value that is none of these is taken as it is.

    Example:
        >>> [str(nearest_ratio(x)) for x in (0.2499999999999998, -1.0000000000000002, 1 / 36, 0.3)]
        ['1/4', '-1', '1/36', '3/10']
    """
    for denominator in _SMOOTH:
        near = Fraction(round(value * denominator), denominator)
        if abs(float(near) - value) <= 1e-12 and (near or not value):
            return near
    return Fraction(value)


def exact(value: Any) -> Fraction:
    """A coefficient as an exact number: 0.3333333333333333 is 1/3.

    Raises:
        ValueError: for anything but a finite number or the text of one.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is no number")
    try:
        written = literal(str(value))
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{value!r:.40} is no number that a program can hold") from None
    simple = written.limit_denominator(10**6)
    close = abs(simple - written) <= abs(written) / 10**15
    return simple if isinstance(value, float) and close else written
