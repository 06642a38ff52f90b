"""Element-wise expressions with zeros in them."""

from __future__ import annotations

from fractions import Fraction

from ...ir.expr import Call, Const, Expr, Pow, Prod, Quot, Sum

_ZERO, _ONE = Const(Fraction(0)), Const(Fraction(1))
_AT_ZERO = {"sqrt": _ZERO, "abs": _ZERO, "sin": _ZERO, "tanh": _ZERO, "conj": _ZERO}
_AT_ZERO |= {"real": _ZERO, "imag": _ZERO, "exp": _ONE, "cos": _ONE}


def without_zeros(expr: Expr) -> Expr:
    """The expression without the parts that a zero in it makes zero.

    A division by zero stays.

    Example:
        >>> from tcgen.ir.tensor import Ref, Role, Tensor
        >>> x = Ref(Tensor("x", (), Role.INPUT))
        >>> without_zeros(Sum((x, Prod((x, _ZERO))))) == x
        True
    """
    match expr:
        case Sum(args):
            kept = tuple(a for a in map(without_zeros, args) if a != _ZERO)
            if not kept:
                return _ZERO
            return kept[0] if len(kept) == 1 else Sum(kept)
        case Prod(args):
            kept = tuple(map(without_zeros, args))
            return _ZERO if _ZERO in kept else Prod(kept)
        case Quot(num, den):
            above, below = without_zeros(num), without_zeros(den)
            return _ZERO if above == _ZERO and below != _ZERO else Quot(above, below)
        case Pow(base, exponent):
            inner = without_zeros(base)
            return _ZERO if inner == _ZERO and exponent > 0 else Pow(inner, exponent)
        case Call(function, arg):
            inner = without_zeros(arg)
            if inner == _ZERO and function in _AT_ZERO:
                return _AT_ZERO[function]
            return Call(function, inner)
        case _:
            return expr


def is_zero(expr: Expr) -> bool:
    """True for the number 0."""
    return expr == _ZERO
