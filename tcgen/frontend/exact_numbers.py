"""Numbers as people and programs write them: exact, and such as a program can hold."""

from __future__ import annotations

import re
import sys
from fractions import Fraction

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
