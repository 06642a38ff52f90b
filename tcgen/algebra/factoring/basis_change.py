"""Linear changes of basis: a sum of products as fewer products of sums.

The terms of a sum that contract some tensor T with anything, over one iteration space, are

    sum C[out, left, right] * permute(out, T[left] * B[right])

where ``left`` runs over the orders in which the indices stand on T, ``out`` over the orders of the
sum's own indices, and B over the products of the other factors. A decomposition of C of rank n
needs n contractions, of sums of T with its permuted copies, whose results are added in several
orders.
For closed-shell equations these are the singlet and triplet combinations 2T - T' and T' of the
ring terms (Scuseria, Janssen, Schaefer, J. Chem. Phys. 89 (1988) 7382), read off C and not known
beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from itertools import product as choices
from typing import TypeAlias, TypeVar

from ..permutation_groups import least_order
from .canonical_forms import Part
from .greedy import Search, State
from .rank_one import Vector, decomposed
from .sums import Frame, Product, Sum, trivial

Out: TypeAlias = tuple[
    int, ...
]  # left index of the sum at each slot: left's own, right's own, both's
Shape: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Placement:
    """A term as ``sign * permute(out, left * right)``.

    Attributes:
        shape: spaces of the indices that left, right, both and neither's result hold.
        left: one tensor over its slots: left's own, both's, summed.
        right: the other factors over theirs: right's own, both's, summed.
    """

    shape: Shape
    out: Out
    left: Product
    right: Product
    sign: int


@dataclass(frozen=True, slots=True)
class Change:
    """A decomposition that saves contractions.

    Attributes:
        label: of the sum.
        terms: that it replaces.
        shape: of the contractions.
        parts: for each contraction its orders, left and right combinations.
    """

    label: int
    terms: tuple[Product, ...]
    shape: Shape
    parts: tuple[
        tuple[
            tuple[tuple[Out, Fraction], ...],
            tuple[tuple[Product, Fraction], ...],
            tuple[tuple[Product, Fraction], ...],
        ],
        ...,
    ]


@dataclass(slots=True)
class _Family:
    """Placements of the terms with one shape and one tensor on the left."""

    terms: dict[Product, list[Placement]] = field(default_factory=dict)


def changes(search: Search, state: State, label: int) -> list[Change]:
    """Changes of basis that would compute a sum with fewer contractions."""
    total = state.sums[label]
    families: dict[tuple[Shape, int], _Family] = {}
    for term in sorted(total.terms):
        for place in range(len(term[0])):
            found = _placement(search, term, total.frame, place)
            if found is not None:
                key = (found.shape, term[0][place][0])
                family = families.setdefault(key, _Family())
                family.terms.setdefault(term, []).append(found)
    result = []
    for (shape, _), family in sorted(families.items(), key=lambda x: x[0]):
        change = _change(search, label, total, shape, family)
        if change is not None:
            result.append(change)
    return result


def _placement(search: Search, term: Product, frame: Frame, place: int) -> Placement | None:
    """A term with the factor at ``place`` on the left; None where that has no use."""
    parts, spaces = term
    rest = [p for n, p in enumerate(parts) if n != place]
    if not rest:
        return None
    inside = set(parts[place][1])
    others = {i for _, held in rest for i in held}
    left = range(frame.rank)
    own = [i for i in left if i in inside and i not in others]
    other = [i for i in left if i in others and i not in inside]
    both = [i for i in left if i in inside and i in others]
    summed = sorted(i for i in inside & others if i >= frame.rank)
    if not summed or not other or not own:
        return None
    best: tuple[Product, Product, Out, int] | None = None
    orders = [list(_orders(group, spaces)) for group in (own, other, both, summed)]
    most = search.thresholds.placement_orders
    if len(orders[0]) * len(orders[1]) * len(orders[2]) * len(orders[3]) > most:
        orders = [found[:1] for found in orders]
    for m, n, h, k in choices(*orders):
        one, one_sign = _normal(search, (parts[place],), (*m, *h, *k), spaces)
        two, two_sign = _normal(search, tuple(rest), (*n, *h, *k), spaces)
        if not one_sign * two_sign:
            return None
        # the reader cannot tell the images from one another
        out, sign = least_order((*m, *n, *h), frame.group)
        key = (one, two, out, sign * one_sign * two_sign)
        if best is None or key < best:
            best = key
    assert best is not None
    m, n, h, k = (order[0] for order in orders)
    one, two, out, sign = best
    inner = search.prices.term(two, len(n) + len(h) + len(k)) if len(two[0]) > 1 else 0
    if search.prices.term(term, frame.rank) <= inner:
        return None
    shape = tuple(tuple(spaces[i] for i in group) for group in (m, n, h, k))
    return Placement((shape[0], shape[1], shape[2], shape[3]), out, one, two, sign)


def _orders(group: list[int], spaces: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Orders of some indices with their spaces ascending."""
    kinds = sorted({spaces[i] for i in group})
    classes = [[i for i in group if spaces[i] == kind] for kind in kinds]
    for choice in choices(*(permutations(c) for c in classes)):
        yield tuple(i for members in choice for i in members)


def _normal(
    search: Search, parts: tuple[Part, ...], slots: tuple[int, ...], spaces: tuple[int, ...]
) -> tuple[Product, int]:
    """Factors over numbered slots, canonical."""
    number = {index: n for n, index in enumerate(slots)}
    inner = [spaces[i] for i in slots]
    for _, held in parts:
        for i in held:
            if i not in number:
                number[i] = len(number)
                inner.append(spaces[i])
    renamed = tuple(sorted((t, tuple(number[i] for i in held)) for t, held in parts))
    frame = Frame(tuple(inner[: len(slots)]), trivial(len(slots)))
    return search.algebra.normal((renamed, tuple(inner)), frame)


def _change(search: Search, label: int, total: Sum, shape: Shape, family: _Family) -> Change | None:
    """The decomposition of a family; None where it saves nothing."""
    rights: dict[Product, dict[tuple[Out, Product], Fraction]] = {}
    for term, found in family.terms.items():
        share = total.terms[term] / len(found)  # a term with T twice stands half in each place
        for one in found:
            entries = rights.setdefault(one.right, {})
            row = (one.out, one.left)
            entries[row] = entries.get(row, Fraction(0)) + share * one.sign
    used = sorted({row for e in rights.values() for row, x in e.items() if x})
    if len(used) < 2 or len(rights) < 2:
        return None
    outs = sorted({out for out, _ in used})
    lefts = sorted({left for _, left in used})
    if len(outs) * len(lefts) > search.thresholds.basis_rows:
        return None
    ordered = sorted(rights)
    matrices = tuple(
        tuple(rights[r].get((out, left), Fraction(0)) for out in outs for left in lefts)
        for r in ordered
    )
    pairs, weights = decomposed(matrices, len(outs), search.thresholds.pencil_pairs)
    if len(pairs) >= len(used) or all(p.terms == 2 for p in pairs):
        return None
    parts = tuple(
        (
            _weighted(outs, pair.row),
            _weighted(lefts, pair.column),
            _weighted(ordered, tuple(w[n] for w in weights)),
        )
        for n, pair in enumerate(pairs)
    )
    return Change(label, tuple(family.terms), shape, parts)


def _weighted(things: list[_T], numbers: Vector) -> tuple[tuple[_T, Fraction], ...]:
    return tuple((t, x) for t, x in zip(things, numbers, strict=True) if x)


def apply_change(search: Search, state: State, change: Change) -> list[int]:
    """Rewrite a sum by a change of basis; returns the arrays that this made, readers first."""
    total = state.sums[change.label]
    own, other, both, summed = change.shape
    rank = len(own) + len(other) + len(both)
    frame = Frame((*own, *other, *both), trivial(rank))
    for term in change.terms:
        del total.terms[term]
    place = list(range(rank + len(summed)))
    shared = place[len(own) + len(other) :]
    made: list[int] = []
    for outs, lefts, rights in change.parts:
        inner: list[int] = []
        one, one_scale = _side(search, state, change.label, lefts, (*own, *both, *summed), inner)
        two, two_scale = _side(search, state, change.label, rights, (*other, *both, *summed), inner)
        spaces = [*frame.spaces, *summed]
        parts = [
            *_placed(one, (*place[: len(own)], *shared), spaces),
            *_placed(two, (*place[len(own) : len(own) + len(other)], *shared), spaces),
        ]
        joined, sign = search.algebra.normal((tuple(sorted(parts)), tuple(spaces)), frame)
        scale = one_scale * two_scale * sign
        if not scale:
            continue
        if len(outs) > 1:
            result = Sum(frame, {joined: Fraction(1)})
            label, axes, factor = search.array(state, result, change.label, made)
            joined, scale = (((label, axes),), frame.spaces), scale * factor
        made.extend(n for n in inner if n not in made)
        for out, weight in outs:
            number = dict(enumerate(out))
            renamed = tuple(
                sorted((t, tuple(number.get(i, i) for i in held)) for t, held in joined[0])
            )
            whole = (renamed, (*total.frame.spaces, *joined[1][rank:]))
            normal, sign = search.algebra.normal(whole, total.frame)
            if sign:
                total.add(normal, scale * weight * sign)
    return made


def _side(
    search: Search,
    state: State,
    reader: int,
    terms: tuple[tuple[Product, Fraction], ...],
    spaces: tuple[int, ...],
    made: list[int],
) -> tuple[Product, Fraction]:
    """A combination as one product over its slots, an array where it has several terms."""
    if len(terms) == 1:
        return terms[0]
    total = Sum(Frame(spaces, trivial(len(spaces))), dict(terms))
    label, axes, scale = search.array(state, total, reader, made)
    return (((label, axes),), spaces), scale


def _placed(product: Product, slots: tuple[int, ...], spaces: list[int]) -> Iterator[Part]:
    """The factors of a product with its left indices at ``slots`` and new ones for the others."""
    number = dict(enumerate(slots))
    for n in range(len(slots), len(product[1])):
        number[n] = len(spaces)
        spaces.append(product[1][n])
    for part, held in product[0]:
        yield part, tuple(number[i] for i in held)
