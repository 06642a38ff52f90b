"""Reduction of the values of a term over its bound indices, by the sum or another operation.

A running reduction keeps its index: each element is the reduction of all values up to it.

Maximum, minimum and product have their neutral elements, with which a reduction begins. They do
not distribute over coefficients and factors as the sum does, so that a reduction by them stands in
an equation of its own, over one expression.
"""

from __future__ import annotations

from enum import Enum
from fractions import Fraction
from typing import TypeAlias

from .expr import Const, Expr, Infinity, Prod


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


class Running(Enum):
    """A running reduction along one index, which the result has too.

    ``y[i] = cumsum(i) x[i]`` is ``x[0] + ... + x[i]``, added in this order.
    """

    SUM = "cumsum"
    MAX = "cummax"
    MIN = "cummin"
    PROD = "cumprod"

    @property
    def each(self) -> Reduction:
        """The operation that combines each value with the result before it."""
        return Reduction[self.name]

    @property
    def neutral(self) -> Expr:
        """The result before the first value: -0 for the sum, since 0 + (-0) is 0."""
        if self is Running.SUM:
            return Prod((Const(Fraction(-1)), Const(Fraction(0))))
        return self.each.neutral

    @property
    def orders(self) -> bool:
        """True for maximum and minimum."""
        return self.each.orders


AnyReduction: TypeAlias = Reduction | Running

REDUCTION_WORDS = tuple(r.value for r in Reduction)
"""The words of all reductions."""
