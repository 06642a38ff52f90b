"""What importers of printed equations share: problems in lines, exact numbers, integrals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ...errors import Diagnostic, Span, SpecError
from ..exact_numbers import literal

_SMOOTH = tuple(
    d
    for d in sorted(2**a * 3**b * 5**c for a in range(11) for b in range(7) for c in range(3))
    if d <= 14400
)


def refuse(filename: str, number: int, line: str, message: str, advice: str) -> SpecError:
    """The error of one line of a file."""
    return SpecError((Diagnostic(Span(filename, number, 1), message, line, advice),))


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


def integrals(*, real: bool) -> dict[str, Any]:
    """Declarations of f and of v = <pq||rs> for a term list: constant, antisymmetric as printed.

    Args:
        real: orbitals are real: bra and ket may be exchanged too, which needs fewer blocks.
    """
    bra_ket = (["sym(0,1)"], ["swap(01,23)"]) if real else ([], [])
    fock, physicist = ({"sym": text, "constant": True} for text in bra_ket)
    return {"f": fock, "v": {**physicist, "antisym": [[0, 1], [2, 3]]}}


def amplitudes_symmetry(upper: int, lower: int) -> dict[str, Any]:
    """Antisymmetry within the first ``upper`` axes and within the ``lower`` ones after them."""
    groups = [list(range(upper)), list(range(upper, upper + lower))]
    return {"antisym": [g for g in groups if len(g) > 1]}
