"""The factors of a product of two array elements, of each perhaps the complex conjugate."""

from __future__ import annotations

from dataclasses import dataclass

from .expr import Access, Call, Expr, Prod


@dataclass(frozen=True, slots=True)
class Factor:
    """An element of an array; ``conjugated``: its complex conjugate, which differs in a sign."""

    access: Access
    conjugated: bool = False


def factor_of(expr: Expr) -> Factor | None:
    """``x[i]`` or ``conj(x[i])`` as a factor; None for any other expression."""
    match expr:
        case Access():
            return Factor(expr)
        case Call("conj", Access() as access):
            return Factor(access, conjugated=True)
        case _:
            return None


def two_factors(expr: Expr) -> tuple[Factor, Factor] | None:
    """The factors of a product of two elements; None for any other expression.

    Example:
        >>> two_factors(Prod((Access("x"), Call("conj", Access("y")))))
        (Factor(access=Access(buffer='x', subscripts=()), conjugated=False),
         Factor(access=Access(buffer='y', subscripts=()), conjugated=True))
    """
    if not isinstance(expr, Prod) or len(expr.args) != 2:
        return None
    first, second = map(factor_of, expr.args)
    return None if first is None or second is None else (first, second)


def factors_in_order(expr: Expr, *, swapped: bool) -> tuple[Factor, Factor]:
    """The factors of such a product, the second one first if ``swapped``."""
    factors = two_factors(expr)
    assert factors is not None, "the terms of tiles are products of two elements"
    return factors[::-1] if swapped else factors
