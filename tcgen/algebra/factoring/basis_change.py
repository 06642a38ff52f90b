"""Linear changes of basis: a sum of products written with fewer products of sums.

The terms of a sum that contract a tensor T with other factors, over one iteration space, are

    sum C[out, left, right] * permute(out, T[left] * B[right])

where ``left`` runs over the orders of the indices on T, ``out`` over the orders of the left indices
of the sum, and ``right`` over the products B of the other factors. A decomposition of C of rank n
needs n contractions: each contracts a combination of T and its transposes with a combination of
the B, and its result is added in several orders of its axes.

In the ring terms of closed-shell equations, the combinations of T are the singlet and triplet
combinations 2T - T' and T' (Scuseria, Janssen, Schaefer, J. Chem. Phys. 89 (1988) 7382). The
decomposition finds them in C; they are not built in.

Perfect squares are a further change. If the left side of a sum does not change when two halves of
its indices are exchanged, a product ``x*y`` of an operand over one half and an operand over the
other half equals ``y*x``. Terms such as ``b*b + 2*b*x + x*x`` are then a quadratic form in the
operands b and x, and a form of rank n is a combination of n squares, here of ``(b + x)*(b + x)``
only. Factoring by rows of the form, as a greedy search does, needs a product for each operand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from itertools import product as choices
from math import prod
from typing import TypeAlias, TypeVar

from ..permutation_groups import least_order
from ..rational_matrices import Vector, decomposed, symmetric_squares
from .canonical_forms import Part
from .greedy import Search, State
from .sums import Frame, Product, TermSum, relabelled, renumbered, trivial

# The indices of a placement form four groups: m (only the left operand and the left side hold
# them), n (only the right operand and the left side), batch (both operands and the left side) and k
# (both operands, summed).
Out: TypeAlias = tuple[int, ...]  # left index of the sum at each m, n and batch index
Shape: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]

# Left indices of the first operand, the second and both, and the spaces of the summed ones.
_Halves: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]
_Form: TypeAlias = dict[Product, tuple[Product, Product, int]]  # operands and sign by term

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Placement:
    """A term as ``sign * permute(out, left * right)``.

    Attributes:
        shape: spaces of the indices m, n, batch and k.
        out: left index of the sum at each m, n and batch index.
        left: the tensor T over m, batch and k.
        right: the other factors over n, batch and k.
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
        terms: terms of the sum that it replaces.
        shape: spaces of the indices m, n, batch and k of the contractions.
        parts: the contractions, each with the orders of its result, its left and its right
            combination, all with coefficients.
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
    """Placements of the terms that have one shape and one tensor as left operand."""

    terms: dict[Product, list[Placement]] = field(default_factory=dict)


def changes(search: Search, state: State, label: int) -> list[Change]:
    """Changes of basis that compute a sum with fewer contractions."""
    total = state.sums[label]
    families: dict[tuple[Shape, int], _Family] = {}
    for term in sorted(total.terms):
        for place in range(len(term.factors)):
            placement = _placement(search, term, total.frame, place)
            if placement is not None:
                key = (placement.shape, term.factors[place][0])
                family = families.setdefault(key, _Family())
                family.terms.setdefault(term, []).append(placement)
    result = []
    for (shape, _), family in sorted(families.items(), key=lambda x: x[0]):
        change = _change(search, label, total, shape, family)
        if change is not None:
            result.append(change)
    return result


def _placement(search: Search, term: Product, frame: Frame, place: int) -> Placement | None:
    """A term with the factor at ``place`` as left operand; None if it cannot save anything."""
    parts, spaces = term
    rest = [p for n, p in enumerate(parts) if n != place]
    if not rest:
        return None
    inside = set(parts[place][1])
    others = {i for _, held in rest for i in held}
    left = range(frame.rank)
    m = [i for i in left if i in inside and i not in others]
    n = [i for i in left if i in others and i not in inside]
    batch = [i for i in left if i in inside and i in others]
    k = sorted(i for i in inside & others if i >= frame.rank)
    if not k or not n or not m:
        return None
    best: tuple[Product, Product, Out, int] | None = None
    orders = [list(orders_of(group, spaces)) for group in (m, n, batch, k)]
    if prod(map(len, orders)) > search.thresholds.placement_orders:
        orders = [group_orders[:1] for group_orders in orders]
    for m_order, n_order, batch_order, k_order in choices(*orders):
        left_slots = (*m_order, *batch_order, *k_order)
        right_slots = (*n_order, *batch_order, *k_order)
        left_operand, left_sign = normal_operand(search, (parts[place],), left_slots, spaces)
        right_operand, right_sign = normal_operand(search, tuple(rest), right_slots, spaces)
        if not left_sign * right_sign:
            return None
        # The reader of the sum gives the same result for all images: the least one is taken.
        out, sign = least_order((*m_order, *n_order, *batch_order), frame.group)
        key = (left_operand, right_operand, out, sign * left_sign * right_sign)
        if best is None or key < best:
            best = key
    assert best is not None
    left_operand, right_operand, out, sign = best
    right_rank = len(n) + len(batch) + len(k)
    costs = search.product_costs
    inner = costs.term(right_operand, right_rank) if len(right_operand.factors) > 1 else 0
    if costs.term(term, frame.rank) <= inner:
        return None
    m_spaces, n_spaces, batch_spaces, k_spaces = (
        tuple(spaces[i] for i in group_orders[0]) for group_orders in orders
    )
    shape = (m_spaces, n_spaces, batch_spaces, k_spaces)
    return Placement(shape, out, left_operand, right_operand, sign)


def orders_of(group: list[int], spaces: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Orders of some indices in which their spaces are ascending."""
    kinds = sorted({spaces[i] for i in group})
    classes = [[i for i in group if spaces[i] == kind] for kind in kinds]
    for choice in choices(*(permutations(c) for c in classes)):
        yield tuple(i for members in choice for i in members)


def normal_operand(
    search: Search, parts: tuple[Part, ...], slots: tuple[int, ...], spaces: tuple[int, ...]
) -> tuple[Product, int]:
    """The canonical product of some factors whose left indices are ``slots``, and its sign."""
    frame = Frame(tuple(spaces[i] for i in slots), trivial(len(slots)))
    return search.algebra.normal(renumbered(parts, slots, spaces), frame)


def _change(
    search: Search, label: int, total: TermSum, shape: Shape, family: _Family
) -> Change | None:
    """The change of basis that a family allows; None if it saves nothing."""
    rights: dict[Product, dict[tuple[Out, Product], Fraction]] = {}
    for term, placements in family.terms.items():
        # A term that holds T twice has two placements and counts half in each.
        coeff = total.terms[term] / len(placements)
        for placement in placements:
            entries = rights.setdefault(placement.right, {})
            row = (placement.out, placement.left)
            entries[row] = entries.get(row, Fraction(0)) + coeff * placement.sign
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
    m, n, batch, k = change.shape
    rank = len(m) + len(n) + len(batch)
    frame = Frame((*m, *n, *batch), trivial(rank))
    for term in change.terms:
        del total.terms[term]
    indices = list(range(rank + len(k)))
    m_indices, n_indices = indices[: len(m)], indices[len(m) : len(m) + len(n)]
    common_indices = indices[len(m) + len(n) :]
    made: list[int] = []
    for outs, lefts, rights in change.parts:
        operands: list[int] = []
        left, left_scale = _operand(search, state, change.label, lefts, (*m, *batch, *k), operands)
        right, right_scale = _operand(
            search, state, change.label, rights, (*n, *batch, *k), operands
        )
        spaces = [*frame.spaces, *k]
        parts = [
            *_placed(left, (*m_indices, *common_indices), spaces),
            *_placed(right, (*n_indices, *common_indices), spaces),
        ]
        product, sign = search.algebra.normal(Product(tuple(sorted(parts)), tuple(spaces)), frame)
        scale = left_scale * right_scale * sign
        if not scale:
            continue
        if len(outs) > 1:
            result = TermSum(frame, {product: Fraction(1)})
            label, axes, factor = search.array(state, result, change.label, made)
            product, scale = Product(((label, axes),), frame.spaces), scale * factor
        made.extend(operand for operand in operands if operand not in made)
        for out, weight in outs:
            moved = relabelled(product.factors, dict(enumerate(out)))
            permuted = Product(moved, (*total.frame.spaces, *product.spaces[rank:]))
            search.algebra.add(total, permuted, scale * weight)
    return made


def _operand(
    search: Search,
    state: State,
    reader: int,
    terms: tuple[tuple[Product, Fraction], ...],
    spaces: tuple[int, ...],
    made: list[int],
) -> tuple[Product, Fraction]:
    """A combination as one product: its only term, or an array of its terms."""
    if len(terms) == 1:
        return terms[0]
    total = TermSum(Frame(spaces, trivial(len(spaces))), dict(terms))
    label, axes, scale = search.array(state, total, reader, made)
    return Product(((label, axes),), spaces), scale


def _placed(product: Product, slots: tuple[int, ...], spaces: list[int]) -> Iterator[Part]:
    """The factors of a product with left indices ``slots`` and new numbers for the others."""
    number = dict(enumerate(slots))
    for n in range(len(slots), len(product.spaces)):
        number[n] = len(spaces)
        spaces.append(product.spaces[n])
    for part, held in product.factors:
        yield part, tuple(number[i] for i in held)


def squares(search: Search, state: State, label: int) -> list[Change]:
    """Changes that compute a sum with fewer contractions, as squares of combinations."""
    total = state.sums[label]
    result = []
    for exchange, sign in total.frame.group:
        is_identity = all(image == i for i, image in enumerate(exchange))
        is_involution = all(exchange[image] == i for i, image in enumerate(exchange))
        if sign < 0 or is_identity or not is_involution:
            continue
        for halves, form in sorted(_forms(search, total, exchange).items()):
            change = _squared(label, total, halves, form)
            if change is not None:
                result.append(change)
    return result


def _forms(search: Search, total: TermSum, exchange: tuple[int, ...]) -> dict[_Halves, _Form]:
    """The quadratic forms under an exchange of left indices, by the indices of their operands."""
    found: dict[_Halves, dict[Product, list[tuple[Product, Product, int]]]] = {}
    for term in sorted(total.terms):
        for halves, one, two, sign in _monomials(search, term, total.frame.rank, exchange):
            found.setdefault(halves, {}).setdefault(term, []).append((one, two, sign))
    forms: dict[_Halves, _Form] = {}
    for halves, monomials in found.items():
        squared = {one for pairs in monomials.values() for one, two, _ in pairs if one == two}
        form: _Form = {}
        for term, pairs in monomials.items():
            known = [p for p in pairs if p[0] in squared and p[1] in squared]
            if known:  # a square is preferred
                form[term] = min(known, key=lambda p: (p[0] != p[1], p))
        forms[halves] = form
    return forms


def _monomials(
    search: Search, term: Product, rank: int, exchange: tuple[int, ...]
) -> Iterator[tuple[_Halves, Product, Product, int]]:
    """The ways to write a term as two operands over halves that the exchange maps to each other."""
    parts, spaces = term
    for mask in range(1, (1 << len(parts)) - 1, 2):  # the first factor is in the first operand
        first = tuple(p for n, p in enumerate(parts) if mask >> n & 1)
        second = tuple(p for n, p in enumerate(parts) if not mask >> n & 1)
        in_first = {i for _, held in first for i in held}
        in_second = {i for _, held in second for i in held}
        m = sorted(i for i in in_first - in_second if i < rank)
        n = sorted(i for i in in_second - in_first if i < rank)
        batch = sorted(i for i in in_first & in_second if i < rank)
        k = [i for i in in_first & in_second if i >= rank]
        if not m or not k or len(m) + len(n) + len(batch) != rank:
            continue
        if sorted(exchange[i] for i in m) != n or any(exchange[i] != i for i in batch):
            continue
        if n < m:
            first, second, m, n = second, first, n, m
        images = [exchange[i] for i in m]
        best: tuple[Product, Product, int] | None = None
        for k_order in orders_of(k, spaces):
            one, sign = normal_operand(search, first, (*m, *batch, *k_order), spaces)
            two, other_sign = normal_operand(search, second, (*images, *batch, *k_order), spaces)
            candidate = (min(one, two), max(one, two), sign * other_sign)
            best = candidate if best is None else min(best, candidate)
        assert best is not None
        if best[2]:
            k_spaces = tuple(sorted(spaces[i] for i in k))
            yield (tuple(m), tuple(images), tuple(batch), k_spaces), *best


def _squared(label: int, total: TermSum, halves: _Halves, form: _Form) -> Change | None:
    """The squares of a quadratic form; None if they are not fewer than its operands."""
    operands = sorted({operand for one, two, _ in form.values() for operand in (one, two)})
    place = {operand: n for n, operand in enumerate(operands)}
    matrix = [[Fraction(0)] * len(operands) for _ in operands]
    for term, (one, two, sign) in form.items():
        row, column = place[one], place[two]
        matrix[row][column] += total.terms[term] * sign / 2
        matrix[column][row] += total.terms[term] * sign / 2
    if len(operands) < 2:
        return None
    pivots = symmetric_squares(matrix)
    if pivots is None or len(pivots) >= len(operands):
        return None
    m, n, batch, k_spaces = halves
    spaces = total.frame.spaces
    shape: Shape = (
        tuple(spaces[i] for i in m),
        tuple(spaces[i] for i in n),
        tuple(spaces[i] for i in batch),
        k_spaces,
    )
    parts = tuple(
        ((((*m, *n, *batch), weight),), combination, combination)
        for weight, row in pivots
        for combination in (tuple((o, x) for o, x in zip(operands, row, strict=True) if x),)
    )
    return Change(label, tuple(form), shape, parts)
