"""The neutral form of a formula sequence: plain statements, for checkers without tcgen."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, assert_never

from ...errors import TcgenError
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
)
from ...ir.pretty.equations import pretty_step
from ...ir.program import FormulaSequence, Map, Produce, Step
from ...ir.reduction import Reduction
from ...ir.tensor import Index, Ref, Space
from ...ir.term_rewriting import fresh_index

_LETTERS_OF_KIND = {
    "occupied": "ijklmno",
    "virtual": "abcdefgh",
    "auxiliary": "PQRSTUVX",
    "quadrature": "W",
}
_KIND_OF_NAME = {"o": "occupied", "v": "virtual", "x": "auxiliary", "q": "quadrature"}


@dataclass(frozen=True, slots=True)
class _Text:
    """A product as text: exact coefficient, factors, and the terms of its denominator."""

    coeff: Fraction
    factors: tuple[str, ...] = ()
    denominator: tuple[str, ...] = ()


def neutral_sequence(program: FormulaSequence) -> dict[str, Any]:
    """The statements of a formula sequence, each ``out += sum of coef * factors / denom``.

    The first letter of an index tells its space: i..o occupied, a..h virtual, P..X auxiliary,
    W quadrature. A block has the name of its tensor. Coefficients are exact fractions.

    Returns:
        ``{"statements": [{"out": "x[i,j]", "terms": [{"coef": "1/2", "factors": [..]}]}]}``.

    Raises:
        TcgenError: a step cannot be written in this form; the message names the step.
    """
    statements = [_statement(s) for s in program.steps if not isinstance(s.op, Produce)]
    return {"statements": statements}


def _statement(step: Step) -> dict[str, Any]:
    """A step as a statement of the neutral form."""
    names = _index_names(step)
    if step.reduction is not Reduction.SUM:
        raise _inexpressible(step, f"a {step.reduction.value} over indices")
    if isinstance(step.op, Map):
        products = [
            _Text(step.coeff * p.coeff, p.factors, p.denominator)
            for p in _products(step.op.expr, names, step)
        ]
    else:
        products = [_Text(step.coeff, tuple(_ref(r, names) for r in step.operands))]
    terms = []
    for product in products:
        if product.coeff == 0:
            continue
        if not product.factors:
            raise _inexpressible(step, "a term without factors")
        term: dict[str, Any] = {"coef": str(product.coeff), "factors": list(product.factors)}
        if product.denominator:
            term["denom"] = list(product.denominator)
        terms.append(term)
    return {"out": _ref(step.out, names), "terms": terms}


def _index_names(step: Step) -> dict[Index, str]:
    """A name for each index of a step: its own name if the first letter tells its space."""
    names: dict[Index, str] = {}
    taken: set[str] = set()
    for index in step.indices:
        letters = _LETTERS_OF_KIND[_kind(index.space, step)]
        plain = index.name if index.name[0] in letters else letters[0]
        free = next((x for x in (plain, *letters) if x not in taken), None)
        name = free or fresh_index(Index(letters[0], index.space), taken).name
        taken.add(name)
        names[index] = name
    return names


def _kind(space: Space, step: Step) -> str:
    """The kind of a space: its declared kind, or the one that its name implies."""
    kind = space.kind or _KIND_OF_NAME.get(space.name, "")
    if kind not in _LETTERS_OF_KIND:
        raise _inexpressible(step, f"an index of space {space.name}")
    return kind


def _ref(ref: Ref, names: dict[Index, str]) -> str:
    """A reference as text."""
    name = ref.tensor.family or ref.tensor.name
    if not ref.indices:
        return name
    return f"{name}[{','.join(names[i] for i in ref.indices)}]"


def _products(expr: Expr, names: dict[Index, str], step: Step) -> list[_Text]:
    """An expression as a sum of products whose denominators are sums of references."""
    match expr:
        case Const(value):
            return [_Text(value)]
        case Ref():
            return [_Text(Fraction(1), (_ref(expr, names),))]
        case Sum(args):
            return [p for a in args for p in _products(a, names, step)]
        case Prod(args):
            total = [_Text(Fraction(1))]
            for arg in args:
                total = [_joined(x, y, step) for x in total for y in _products(arg, names, step)]
            return total
        case Quot(num, den):
            below = _products(den, names, step)
            if any(p.denominator or len(p.factors) > 1 for p in below):
                raise _inexpressible(step, "a denominator that is not a sum of references")
            if len(below) == 1 and not below[0].factors and below[0].coeff != 0:
                scale = 1 / below[0].coeff
                return [
                    _Text(p.coeff * scale, p.factors, p.denominator)
                    for p in _products(num, names, step)
                ]
            if any(abs(p.coeff) != 1 or len(p.factors) != 1 for p in below):
                raise _inexpressible(step, "a denominator that is not a sum of references")
            text = tuple(("-" if p.coeff < 0 else "") + p.factors[0] for p in below)
            return [
                _joined(p, _Text(Fraction(1), (), text), step) for p in _products(num, names, step)
            ]
        case Pow(base, exponent) if exponent >= 1:
            return _products(Prod((base,) * exponent), names, step)
        case Pow(base, exponent) if exponent < 0:
            power = base if exponent == -1 else Pow(base, -exponent)
            return _products(Quot(Const(Fraction(1)), power), names, step)
        case Pow() | Call() | Calls() | Infinity() | Delta() | Access() | Equal():
            raise _inexpressible(step, "a function, power or delta")
        case _:
            assert_never(expr)


def _joined(one: _Text, two: _Text, step: Step) -> _Text:
    """The product of two products."""
    if one.denominator and two.denominator:
        raise _inexpressible(step, "a product of two quotients")
    return _Text(
        one.coeff * two.coeff, one.factors + two.factors, one.denominator or two.denominator
    )


def _inexpressible(step: Step, what: str) -> TcgenError:
    """The error for a step that the neutral form does not have."""
    return TcgenError(
        f"step s{step.id} cannot be written in the neutral form, because it has {what}: "
        f"{pretty_step(step)}"
    )
