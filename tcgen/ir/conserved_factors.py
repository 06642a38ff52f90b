"""Products of tensors that conserve something, and what a product conserves.

A factor differs from zero only where the weighted sum of the irreps of its indices is its charge.
Summed indices that leave one factor and enter another cancel in the sum of these conditions, and
what remains is a condition on the left side. A condition may be negated as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import assert_never

from ..errors import Span, TcgenError
from ..records.signature import Charge, Signature
from .expr import (
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
    format_expr,
    number_of,
)
from .tensor import Index, Ref

_ZERO = Const(Fraction(0))
_MOST_PRODUCTS = 1000  # products of one element-wise expression


class NotConservedError(TcgenError):
    """A product or a function conserves nothing; ``advice`` says what to do."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message, advice)
        self.message, self.advice = message, advice


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault at a place, or in the declaration of ``tensor``, and what to do about it."""

    tensor: str
    span: Span | None
    message: str
    advice: str


@dataclass(frozen=True, slots=True)
class Conserved:
    """A factor, with the weights of its indices in the sum of irreps that equals ``charge``.

    Attributes:
        factor: a reference, or the delta of two indices.
        weights: indices whose weight is not zero.
        phase: 1, -1 if it is conjugated, 0 if it is an absolute value, None as the argument of any
            other function.
    """

    factor: Ref | Delta
    weights: Mapping[Index, int]
    charge: Charge = ()
    phase: int | None = 1


@dataclass(frozen=True, slots=True)
class Product:
    """Factors that conserve something, and all indices of the others, which are labels."""

    factors: tuple[Conserved, ...] = ()
    labels: frozenset[Index] = field(default_factory=frozenset)


def times(products: Sequence[Sequence[Product]]) -> tuple[Product, ...]:
    """The expanded product of sums of products."""
    if prod(map(len, products)) > _MOST_PRODUCTS:
        raise NotConservedError(
            f"an expression has more than {_MOST_PRODUCTS:,} products", "name parts of it"
        )
    return tuple(
        Product(
            tuple(f for p in chosen for f in p.factors),
            frozenset(i for p in chosen for i in p.labels),
        )
        for chosen in product(*products)
    )


def factor_of(
    leaf: Ref | Delta,
    signatures: Mapping[str, Signature],
    graded: Collection[str],
    *,
    own_inverse: bool,
) -> Product:
    """A reference to a tensor, or the delta of two orbitals, as a product of one factor."""
    if isinstance(leaf, Ref):
        indices, signature = leaf.indices, signatures[leaf.tensor.name]
    else:
        indices, sign = (leaf.left, leaf.right), int(leaf.left.space.name in graded)
        signature = Signature((sign, -sign))
    weights = Counter[Index]()
    for index, sign in zip(indices, signature.signs, strict=True):
        weights[index] += abs(sign) if own_inverse else sign
    kept = {i: w for i, w in weights.items() if (w % 2 if own_inverse else w)}
    free = frozenset(indices) - kept.keys()
    factor = Conserved(leaf, kept, signature.charge)
    return Product((factor,) if kept or signature.charge else (), free)


def common_factors(products: Iterable[Product]) -> frozenset[Ref | Delta]:
    """The factors of which each one makes a sum of products zero where it is zero.

    References with equal weights and charges are zero for the same irreps: one stands for all.
    """
    first, *others = (
        {_zeros(factor): factor.factor for factor in found.factors} for found in products
    )
    return frozenset(first[zeros] for zeros in first if all(zeros in other for other in others))


def _zeros(factor: Conserved) -> object:
    if isinstance(factor.factor, Delta):
        return factor.factor
    return frozenset(factor.weights.items()), factor.charge


def is_sparse(products: Iterable[Product], left: Collection[Index]) -> bool:
    """Whether factors allow fewer blocks than an array whose indices ``left`` have signs.

    No factor of a product has all of these indices, so that several conditions hold at once.
    """
    return all(not any(f.weights.keys() >= {*left} for f in p.factors) for p in products)


def products_of(expr: Expr, leaf: Callable[[Ref | Delta], Product]) -> tuple[Product, ...]:
    """The products of which an element-wise expression is a sum, as far as zeros are concerned.

    Raises:
        NotConservedError: a tensor that conserves something is in a denominator, or the argument of
            a function that is not zero at zero.
    """
    match expr:
        case Const() | Infinity():
            return (Product(),)
        case Ref() | Delta():
            return (leaf(expr),)
        case Access() | Equal():
            raise AssertionError("equations have references, not elements of buffers")
        case Sum(args):
            return tuple(p for arg in args for p in products_of(arg, leaf))
        case Prod(args):
            return times([products_of(arg, leaf) for arg in args])
        case Quot(num, den):
            below = products_of(den, leaf)
            _refuse_conserved(below, f"the denominator {format_expr(den)}")
            return times([products_of(num, leaf), (_all_labels(below),)])
        case Pow(base, exponent):
            inner = products_of(base, leaf)
            if exponent <= 0:
                _refuse_conserved(inner, f"the denominator {format_expr(base)}")
                return (_all_labels(inner),)
            # A third factor has no other zeros than the first two.
            return times([inner] * min(exponent, 2))
        case Call(function, arg):
            return _function(expr, function, (arg,), leaf)
        case Calls(function, args):
            return _function(expr, function, args, leaf)
        case _:
            assert_never(expr)


def _function(
    expr: Expr, function: str, args: tuple[Expr, ...], leaf: Callable[[Ref | Delta], Product]
) -> tuple[Product, ...]:
    found = [products_of(arg, leaf) for arg in args]
    inner = tuple(p for products in found for p in products)
    if not any(p.factors for p in inner):
        return (_all_labels(inner),)
    zeros = (_ZERO,) * len(args)
    zero: Expr = Call(function, _ZERO) if isinstance(expr, Call) else Calls(function, zeros)
    if function == "where":
        _refuse_conserved(found[0], f"the condition of {format_expr(expr)}")
        return times([(_all_labels(found[0]),), (*found[1], *found[2])])
    if number_of(zero) != 0 or not all(p.factors for p in inner):
        _refuse_conserved(inner, f"the argument of {format_expr(expr)}, which is not zero at zero,")
    if function == "conj":
        return tuple(_with_phase(p, lambda phase: None if phase is None else -phase) for p in inner)
    if function == "abs" and len(inner) == 1:
        return (_with_phase(inner[0], lambda _: 0),)
    return tuple(_with_phase(p, lambda _: None) for p in inner)


def _with_phase(made: Product, change: Callable[[int | None], int | None]) -> Product:
    return replace(made, factors=tuple(replace(f, phase=change(f.phase)) for f in made.factors))


def _refuse_conserved(products: Iterable[Product], what: str) -> None:
    for made in products:
        for factor in made.factors:
            raise NotConservedError(
                f"{what} reads {format_expr(factor.factor)}, which is zero between different "
                f"irreps",
                "write it with labels only, such as orbital energies, or declare the tensor label",
            )


def _all_labels(products: Sequence[Product]) -> Product:
    return Product((), frozenset(i for p in products for i in p.labels))


def left_signatures(
    made: Product, left: Sequence[Index], bound: Collection[Index], *, own_inverse: bool
) -> tuple[Signature, ...]:
    """The signatures that a product allows its left side, best first; factors may be turned around.

    With ``own_inverse``, weights count modulo 2.

    Raises:
        NotConservedError: an index enters one factor and no other, or a factor contradicts the
            others.
    """
    kept = _without_alone(made, left, bound)
    remaining = Counter(i for f in kept for i in f.weights if i in bound)
    uses = Counter(i for f in kept for i in f.weights)
    found: dict[Signature, None] = {}
    for signs in _signs(kept, uses, remaining, bound, own_inverse):
        totals = Counter[Index]()
        charge = Counter[str]()
        for sign, f in zip(signs, kept, strict=True):
            totals.update({i: sign * w for i, w in f.weights.items()})
            charge.update({n: sign * k for n, k in f.charge})
        weights = tuple(totals[i] % 2 if own_inverse else totals[i] for i in left)
        if all(abs(w) <= 1 for w in weights):
            whole = {n: k % 2 if own_inverse else k for n, k in sorted(charge.items())}
            found[Signature(weights, tuple((n, k) for n, k in whole.items() if k))] = None
    if not found:
        raise _contradiction(kept, bound)
    return tuple(sorted(found, key=lambda s: -sum(map(abs, s.signs))))


def _without_alone(
    made: Product, left: Sequence[Index], bound: Collection[Index]
) -> tuple[Conserved, ...]:
    """The factors without those of which a summed index enters no other factor.

    Their condition says nothing on the left side if that index is a label as well, or if the factor
    has no connection with the left side.
    """
    kept, held = list(made.factors), set(made.labels)
    while True:
        uses = Counter(i for f in kept for i in f.weights if i in bound)
        alone = [(f, i) for f in kept for i in f.weights if uses[i] == 1]
        if not alone:
            return tuple(kept)
        factor, index = alone[0]
        joined = _connected(factor, kept, bound)
        reaches = any(i in f.weights for f in joined for i in left)
        if reaches and index not in held:
            raise NotConservedError(
                f"index {index} of {format_expr(factor.factor)} enters no other factor",
                f"sum over products of two factors with {index}, or declare a tensor whose values "
                f"belong to orbitals as label",
            )
        held |= set(factor.weights)
        kept.remove(factor)


def _connected(
    start: Conserved, factors: Sequence[Conserved], bound: Collection[Index]
) -> list[Conserved]:
    """The factors that summed indices connect with one of them, itself included."""
    joined, rest = [start], [f for f in factors if f is not start]
    for one in joined:
        near = [f for f in rest if any(i in bound for i in f.weights.keys() & one.weights.keys())]
        joined += near
        rest = [f for f in rest if f not in near]
    return joined


def _signs(
    factors: Sequence[Conserved],
    uses: Mapping[Index, int],
    remaining: Counter[Index],
    bound: Collection[Index],
    own_inverse: bool,
) -> Iterator[tuple[int, ...]]:
    """Signs of the conditions of factors with which all summed indices cancel.

    A condition is left out, sign 0, only where others hold all its indices.
    """

    def walk(
        place: int, totals: Counter[Index], left: Counter[Index], chosen: tuple[int, ...]
    ) -> Iterator[tuple[int, ...]]:
        if place == len(factors):
            if any(chosen) or not chosen:
                yield chosen
            return
        f = factors[place]
        first = not any(chosen)
        signs = [1] if first or own_inverse else [1, -1]
        if all(uses[i] > (2 if i in bound else 1) for i in f.weights):
            signs.append(0)
        for sign in signs:
            new, rest = totals.copy(), left.copy()
            for i, w in f.weights.items():
                if i in bound:
                    new[i] += sign * w
                    rest[i] -= 1
            settled = [new[i] for i in f.weights if i in bound and not rest[i]]
            if not any(total % 2 if own_inverse else total for total in settled):
                yield from walk(place + 1, new, rest, (*chosen, sign))

    return walk(0, Counter(), remaining, ())


def _contradiction(factors: Sequence[Conserved], bound: Collection[Index]) -> NotConservedError:
    """The factor at which the others cannot be continued, with the sides of its indices."""
    turns: dict[int, int] = {}
    pending = list(range(len(factors)))
    guilty = factors[-1]
    entering: dict[Index, int] = {}
    while pending:
        known = [n for n in pending if any(i in entering for i in factors[n].weights)]
        place = known[0] if known else pending[0]
        pending.remove(place)
        f = factors[place]
        wanted = {-entering[i] * w for i, w in f.weights.items() if i in bound and i in entering}
        if len(wanted) > 1:
            guilty = f
            break
        turns[place] = wanted.pop() if wanted else 1
        for i, w in f.weights.items():
            entering.setdefault(i, turns[place] * w)
    return NotConservedError(
        f"{format_expr(guilty.factor)} conserves {sides_text(guilty.weights.items())}, which "
        f"contradicts the other factors",
        "if its axes are in another order, such as that of (pq|rs), declare conserves "
        "(0,2)->(1,3); else correct the indices",
    )


def sides_text(signs: Iterable[tuple[object, int]]) -> str:
    """Indices or axes that enter and those that leave, ``(i,j)->(a,b)``.

    Example:
        >>> sides_text([("i", 1), ("a", -1), ("x", 0)])
        '(i)->(a)'
    """
    known = list(signs)
    sides = (",".join(str(what) for what, w in known if w * side > 0) for side in (1, -1))
    return "->".join(f"({side})" for side in sides)
