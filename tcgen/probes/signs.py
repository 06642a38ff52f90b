"""Signs of inputs that keep denominators from zero and arguments of sqrt and log positive.

Orbital energies are the model: ``e_o[i] + e_o[j] - e_v[a] - e_v[b]`` is negative if all occupied
energies are negative and all virtual ones are positive. Each block of a tensor (one base space on
each axis) has one sign, so that this also works for one vector over a joined space.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TypeAlias, assert_never

from ..ir.expr import (
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
    nodes,
    refs,
)
from ..ir.system import Apply, Equation, System, Term
from ..ir.tensor import Ref, Space, Tensor, symmetry_group

Signs: TypeAlias = dict[tuple[Tensor, tuple[Space, ...]], int]


def choose_signs(system: System) -> tuple[Signs, tuple[Expr, ...]]:
    """Signs of blocks of inputs, and the expressions that no choice of signs keeps from zero."""
    equations = {e.lhs.tensor: e for e in system.equations}
    positive: list[Expr] = []
    nonzero: list[Expr] = []
    for expr in _element_wise(system):
        for part, condition in _conditions(expr):
            (positive if condition == "positive" else nonzero).append(part)
    signs: Signs = {}
    unprotected = []
    for n, expr in enumerate(positive + nonzero):
        for sign in () if _may_vanish(expr, equations) else (1,) if n < len(positive) else (-1, 1):
            trial = dict(signs)
            if _require(expr, sign, trial, equations):
                signs = trial
                break
        else:
            unprotected.append(expr)
    return signs, tuple(dict.fromkeys(unprotected))


def sources(expr: Expr, system: System) -> tuple[Tensor, ...]:
    """The inputs on which an expression depends, directly or through intermediates."""
    equations = {e.lhs.tensor: e for e in system.equations}
    visited: dict[Tensor, None] = {}
    rest = [r.tensor for r in refs(expr)]
    while rest:
        tensor = rest.pop()
        if tensor not in visited:
            visited[tensor] = None
            if tensor in equations:
                rest += [r.tensor for t in equations[tensor].terms for r in t.refs]
    return tuple(t for t in visited if t.is_input)


def _element_wise(system: System) -> Iterator[Expr]:
    """The element-wise expressions of a system."""
    for equation in system.equations:
        for term in equation.terms:
            for factor in term.factors:
                if isinstance(factor, Apply):
                    yield factor.expr


def _conditions(expr: Expr) -> Iterator[tuple[Expr, str]]:
    """Sub-expressions that must be positive (sqrt, log) or nonzero (denominators)."""
    for node in nodes(expr):
        match node:
            case Quot(_, den):
                yield den, "nonzero"
            case Pow(base, exponent) if exponent < 0:
                yield base, "nonzero"
            case Call("sqrt" | "log", arg):
                yield arg, "positive"
            case _:
                pass


def _may_vanish(expr: Expr, equations: Mapping[Tensor, Equation]) -> bool:
    """True if signs of inputs do not keep an expression from zero: a scalar of default 0, a delta.

    A sum of them and a term that has the sign is not zero.
    """
    match expr:
        case Const(value):
            return value == 0
        case Ref(tensor=tensor) if tensor in equations:
            return all(_term_may_vanish(term, equations) for term in equations[tensor].terms)
        case Ref(tensor=tensor):
            return tensor.default == 0
        case Delta() | Equal():
            return True
        case Sum(args):
            return all(_may_vanish(arg, equations) for arg in args)
        case Prod(args):
            return any(_may_vanish(arg, equations) for arg in args)
        case Quot(arg, _) | Pow(arg, _) | Call("abs" | "sqrt" | "tanh" | "real" | "conj", arg):
            return _may_vanish(arg, equations)
        case _:
            return False


def _term_may_vanish(term: Term, equations: Mapping[Tensor, Equation]) -> bool:
    factors = [f.expr if isinstance(f, Apply) else f for f in term.factors]
    if term.sums:  # a sum of deltas is not zero
        factors = [f for f in factors if not isinstance(f, Delta | Equal)]
    return any(_may_vanish(factor, equations) for factor in factors)


def _require(expr: Expr, sign: int, signs: Signs, equations: Mapping[Tensor, Equation]) -> bool:
    """Extend ``signs`` so that the expression has ``sign``; False if that is not possible."""
    match expr:
        case Const(value):
            return value * sign > 0
        case Ref():
            return _require_ref(expr, sign, signs, equations)
        case Delta() | Equal():
            return sign > 0  # 0 or 1: a sum with another positive term stays positive
        case Access() | Infinity():
            return False
        case Sum(args):
            return all(_require(a, sign, signs, equations) for a in args)
        case Prod(args):
            return _require_product(args, sign, signs, equations)
        case Quot(num, den):
            return _require(num, sign, signs, equations) and _require(den, 1, signs, equations)
        case Pow(base, exponent):
            if exponent % 2 == 0:
                return sign > 0 and _require(base, 1, signs, equations)
            return _require(base, sign, signs, equations)
        case Call("exp", _):
            return sign > 0
        case Call("abs" | "sqrt", arg):
            return sign > 0 and _require(arg, 1, signs, equations)
        case Call("tanh" | "real" | "conj", arg):
            return _require(arg, sign, signs, equations)
        case Call() | Calls():
            return False
        case _:
            assert_never(expr)


def _require_product(
    args: tuple[Expr, ...], sign: int, signs: Signs, equations: Mapping[Tensor, Equation]
) -> bool:
    """The first factor that is not a number gets the sign that numbers leave; others positive."""
    rest = []
    for arg in args:
        if isinstance(arg, Const):
            sign *= 1 if arg.value > 0 else -1
        else:
            rest.append(arg)
    if not rest:
        return sign > 0 and all(not isinstance(a, Const) or a.value != 0 for a in args)
    factor_signs = (sign, *(1 for _ in rest[1:]))
    return all(_require(a, s, signs, equations) for a, s in zip(rest, factor_signs, strict=True))


def _require_ref(ref: Ref, sign: int, signs: Signs, equations: Mapping[Tensor, Equation]) -> bool:
    """Give the blocks of an input a sign, or require it of the equation of an intermediate."""
    tensor = ref.tensor
    if tensor in equations and not tensor.accumulate:
        return all(_require_term(t, sign, signs, equations) for t in equations[tensor].terms)
    if tensor in equations:
        return False
    if tensor.default is not None:
        return tensor.default * sign >= 0
    for block in itertools.product(*(index.space.bases for index in ref.indices)):
        for g in symmetry_group(tensor):
            image = tuple(block[k] for k in g.perm)
            if signs.setdefault((tensor, image), sign * g.sign) != sign * g.sign:
                return False
    return True


def _require_term(
    term: Term, sign: int, signs: Signs, equations: Mapping[Tensor, Equation]
) -> bool:
    """Require a sign of a term; permutations with a minus sign exclude any."""
    if any(p.sign < 0 for p in term.perms):
        return False
    args = tuple(f.expr if isinstance(f, Apply) else f for f in term.factors)
    return _require_product((Const(term.coeff), *args), sign, signs, equations)
