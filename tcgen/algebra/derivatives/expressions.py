"""Derivatives of element-wise expressions: sums, products, quotients, powers and functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from typing import assert_never

from ...errors import ArgumentError
from ...ir.expr import (
    Access,
    Call,
    Calls,
    Const,
    Delta,
    Equal,
    Expr,
    Infinity,
    Pow,
    Prod,
    Quot,
    Sum,
    flat_product,
    refs,
)
from ...ir.tensor import Ref, Tensor

_ONE, _MINUS = Const(Fraction(1)), Const(Fraction(-1))


def tangent_expr(expr: Expr, tangents: Mapping[Tensor, Tensor]) -> Expr | None:
    """The first-order change of an expression when tensors change; None if it does not change.

    ``tangents`` has the tensors of the changes. Complex values are allowed: conj, real, imag and
    abs are differentiated as functions of the real and the imaginary part.
    """

    def of(part: Expr) -> Expr | None:
        return tangent_expr(part, tangents)

    match expr:
        case Ref(tensor, indices):
            return Ref(tangents[tensor], indices) if tensor in tangents else None
        case Const() | Infinity() | Delta() | Access() | Equal():
            return None
        case Sum(args):
            return _sum([d for a in args if (d := of(a)) is not None])
        case Prod(args):
            parts = [
                flat_product((*args[:n], d, *args[n + 1 :]))
                for n, a in enumerate(args)
                if (d := of(a)) is not None
            ]
            return _sum(parts)
        case Quot(num, den):
            parts = []
            if (d := of(num)) is not None:
                parts.append(Quot(d, den))
            if (d := of(den)) is not None:
                parts.append(Quot(flat_product((_MINUS, num, d)), Pow(den, 2)))
            return _sum(parts)
        case Call("conj" | "real" | "imag" as function, arg):
            return None if (d := of(arg)) is None else Call(function, d)
        case Call("abs", arg):
            if (d := of(arg)) is None:
                return None
            return Quot(Call("real", Prod((Call("conj", arg), d))), expr)
        case Calls(function, args):
            if any(of(arg) is not None for arg in args):
                raise _no_derivative(function)
            return None
        case Pow(arg, _) | Call(_, arg):
            return None if (d := of(arg)) is None else flat_product((_outer(expr), d))
        case _:
            assert_never(expr)


def partial_expr(expr: Expr, active: Collection[Tensor]) -> Iterator[tuple[Ref, Expr]]:
    """Each reference to an active tensor, with the derivative of the expression by it.

    Raises:
        ArgumentError: a reference stands inside conj, real, imag or abs.
    """
    match expr:
        case Ref(tensor, _):
            if tensor in active:
                yield expr, _ONE
        case Const() | Infinity() | Delta() | Access() | Equal():
            return
        case Sum(args):
            for arg in args:
                yield from partial_expr(arg, active)
        case Prod(args):
            for n, arg in enumerate(args):
                for ref, part in partial_expr(arg, active):
                    yield ref, flat_product((*args[:n], part, *args[n + 1 :]))
        case Quot(num, den):
            for ref, part in partial_expr(num, active):
                yield ref, Quot(part, den)
            for ref, part in partial_expr(den, active):
                yield ref, Quot(flat_product((_MINUS, num, part)), Pow(den, 2))
        case Call("conj" | "real" | "imag" | "abs" as function, arg):
            for ref in refs(arg):
                if ref.tensor in active:
                    raise ArgumentError(
                        f"{function}({ref}) has no complex derivative: use jvp, or write the "
                        f"equations for real values without {function}"
                    )
        case Calls(function, args):
            if any(ref.tensor in active for arg in args for ref in refs(arg)):
                raise _no_derivative(function)
        case Pow(arg, _) | Call(_, arg):
            for ref, part in partial_expr(arg, active):
                yield ref, flat_product((_outer(expr), part))
        case _:
            assert_never(expr)


def _outer(expr: Pow | Call) -> Expr:
    """Derivative of a power or function with respect to its argument."""
    match expr:
        case Pow(base, exponent):
            if exponent == 0:
                return Const(Fraction(0))
            power = base if exponent == 2 else Pow(base, exponent - 1)
            return (
                Const(Fraction(1))
                if exponent == 1
                else flat_product((Const(Fraction(exponent)), power))
            )
        case Call("sqrt", _):
            return Quot(Const(Fraction(1, 2)), expr)
        case Call("exp", _):
            return expr
        case Call("log", arg):
            return Quot(_ONE, arg)
        case Call("sin", arg):
            return Call("cos", arg)
        case Call("cos", arg):
            return Prod((_MINUS, Call("sin", arg)))
        case Call("tanh", _):
            return Sum((_ONE, Prod((_MINUS, Pow(expr, 2)))))
        case Call(function, _):
            raise _no_derivative(function)
        case _:
            assert_never(expr)


def _no_derivative(function: str) -> ArgumentError:
    return ArgumentError(f"{function} cannot be differentiated: write the derivative as equations")


def _sum(parts: list[Expr]) -> Expr | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Sum(tuple(parts))
