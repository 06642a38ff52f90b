"""Arrays without which the value of an expression is zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..ir.expr import Call, Calls, Const, Delta, Expr, Pow, Prod, Quot, Sum
from ..ir.tensor import Ref

Leaf: TypeAlias = Ref | Delta

# Functions with f(0) = 0.
ZERO_AT_ZERO = frozenset(
    ("sqrt", "abs", "sin", "tanh", "conj", "real", "imag", "tan", "sinh", "arcsin", "arctan")
) | {"floor", "sign", "rint", "log1p", "expm1", "cbrt"}


def required(expr: Expr, conserved: Callable[[Ref], bool]) -> frozenset[Leaf] | None:
    """References and deltas of which each one makes an expression zero where it is zero.

    None if the expression is the number 0.
    """
    match expr:
        case Const(value):
            return None if value == 0 else frozenset()
        case Ref():
            return frozenset((expr,)) if conserved(expr) else frozenset()
        case Delta():
            return frozenset((expr,))
        case Prod(args):
            found = [required(arg, conserved) for arg in args]
            if None in found:
                return None
            return frozenset().union(*(f for f in found if f is not None))
        case Sum(args):
            parts = [f for f in (required(arg, conserved) for arg in args) if f is not None]
            return frozenset.intersection(*parts) if parts else None
        case Quot(num, _):
            return required(num, conserved)
        case Pow(base, exponent) if exponent > 0:
            return required(base, conserved)
        case Call(function, arg) if function in ZERO_AT_ZERO:
            return required(arg, conserved)
        case Calls("where", (_, one, other)):
            return required(Sum((one, other)), conserved)
        case _:
            return frozenset()
