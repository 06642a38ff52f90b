"""Reduction of the values of a term over its bound indices, by the sum or another operation.

Maximum, minimum and product have their neutral elements, with which a reduction begins. They do
not distribute over coefficients and factors as the sum does, so that a reduction by them stands in
an equation of its own, over one expression.
"""

from __future__ import annotations

from enum import Enum
from fractions import Fraction

from .expr import Const, Expr, Infinity


class Reduction(Enum):
    """An associative and commutative operation; the value is its word in specs."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"

    @property
    def neutral(self) -> Expr:
        """The result over no elements: 0 (sum), -infinity (max), infinity (min) or 1 (product)."""
        match self:
            case Reduction.SUM:
                return Const(Fraction(0))
            case Reduction.PROD:
                return Const(Fraction(1))
            case Reduction.MAX:
                return Infinity(-1)
            case Reduction.MIN:
                return Infinity(1)

    @property
    def orders(self) -> bool:
        """True for maximum and minimum: complex numbers have none."""
        return self in (Reduction.MAX, Reduction.MIN)


REDUCTION_WORDS = tuple(r.value for r in Reduction)
"""The words of all reductions."""
