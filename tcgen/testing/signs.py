"""Signs of inputs under which no denominator vanishes and sqrt and log get positive arguments.

Orbital energies are the model: ``e_o[i] + e_o[j] - e_v[a] - e_v[b]`` stays below zero when every
occupied energy is negative and every virtual one positive. A block of a tensor (one base space on
each axis) has one sign, so a whole vector over a joined space serves as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TypeAlias, assert_never

from ..ir.expr import Access, Call, Const, Delta, Equal, Expr, Pow, Prod, Quot, Sum, nodes, refs
from ..ir.system import Apply, Equation, System, Term
from ..ir.tensor import Ref, Space, Tensor, symmetry_group

Signs: TypeAlias = dict[tuple[Tensor, tuple[Space, ...]], int]


def choose_signs(system: System) -> tuple[Signs, tuple[Expr, ...]]:
    """Signs of blocks of inputs, and the expressions that no choice of signs keeps from zero."""
    equations = {e.lhs.tensor: e for e in system.equations}
    positive: list[Expr] = []
    nonzero: list[Expr] = []
    for expr in _atoms(system):
        for wanted, kind in _demands(expr):
            (positive if kind == "positive" else nonzero).append(wanted)
    signs: Signs = {}
    open_exprs = []
    for n, expr in enumerate(positive + nonzero):
        for sign in (1,) if n < len(positive) else (-1, 1):
            trial = dict(signs)
            if _require(expr, sign, trial, equations):
                signs = trial
                break
        else:
            open_exprs.append(expr)
    return signs, tuple(dict.fromkeys(open_exprs))


def sources(expr: Expr, system: System) -> tuple[Tensor, ...]:
    """Inputs from which an expression is computed, through intermediates, each once."""
    equations = {e.lhs.tensor: e for e in system.equations}
    found: dict[Tensor, None] = {}
    rest = [r.tensor for r in refs(expr)]
    while rest:
        tensor = rest.pop()
        if tensor not in found:
            found[tensor] = None
            if tensor in equations:
                rest += [r.tensor for t in equations[tensor].terms for r in t.refs]
    return tuple(t for t in found if t.is_input)


def _atoms(system: System) -> Iterator[Expr]:
    for equation in system.equations:
        for term in equation.terms:
            for factor in term.factors:
                if isinstance(factor, Apply):
                    yield factor.expr


def _demands(expr: Expr) -> Iterator[tuple[Expr, str]]:
    """Sub-expressions that must be positive (sqrt, log) or away from zero (denominators)."""
    for node in nodes(expr):
        match node:
            case Quot(_, den):
                yield den, "nonzero"
            case Pow(base, exponent) if exponent < 0:
                yield base, "nonzero"
            case Call("sqrt" | "log", arg):
                yield arg, "positive"
            case _:
                pass  # the others are defined everywhere


def _require(expr: Expr, sign: int, signs: Signs, equations: Mapping[Tensor, Equation]) -> bool:
    """Make the expression have ``sign`` by adding to ``signs``; False where that cannot be."""
    match expr:
        case Const(value):
            return value * sign > 0
        case Ref():
            return _require_ref(expr, sign, signs, equations)
        case Delta() | Equal():
            return sign > 0  # zero or one: harmless in a sum that has another positive part
        case Access():
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
        case Call():
            return False
        case _:
            assert_never(expr)


def _require_product(
    args: tuple[Expr, ...], sign: int, signs: Signs, equations: Mapping[Tensor, Equation]
) -> bool:
    """Numbers give their sign; the first other factor takes what is left, the rest positive."""
    rest = []
    for arg in args:
        if isinstance(arg, Const):
            sign *= 1 if arg.value > 0 else -1
        else:
            rest.append(arg)
    if not rest:
        return sign > 0 and all(not isinstance(a, Const) or a.value != 0 for a in args)
    wanted = (sign, *(1 for _ in rest[1:]))
    return all(_require(a, s, signs, equations) for a, s in zip(rest, wanted, strict=True))


def _require_ref(ref: Ref, sign: int, signs: Signs, equations: Mapping[Tensor, Equation]) -> bool:
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
    if any(p.sign < 0 for p in term.perms):
        return False
    args = tuple(f.expr if isinstance(f, Apply) else f for f in term.factors)
    return _require_product((Const(term.coeff), *args), sign, signs, equations)
