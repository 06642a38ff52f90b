"""Perfect squares: a sum of symmetric products written with fewer squares of sums.

Where the left side of a sum does not change if two halves of its indices are exchanged, a product
``x*y`` of an operand over one half and an operand over the other half equals ``y*x``. Terms such as
``b*b + 2*b*x + x*x`` are then a quadratic form in the operands b and x, and a form of rank n is a
combination of n squares, here of ``(b + x)*(b + x)`` alone. Factoring by rows of the form, as a
greedy search does, needs a product for each operand.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TypeAlias

from .basis_change import Change, Shape, normal_operand, orders_of
from .greedy import Search, State
from .rank_one import symmetric_squares
from .sums import Product, TermSum

# Left indices of the first operand, the second and both, and the spaces of the summed ones.
_Halves: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]
_Form: TypeAlias = dict[Product, tuple[Product, Product, int]]  # for a term its operands and sign


def squares(search: Search, state: State, label: int) -> list[Change]:
    """Changes that compute a sum with fewer contractions, as squares of combinations.

    Args:
        search: the search.
        state: its state.
        label: of the sum.
    """
    total = state.sums[label]
    result = []
    for exchange, sign in total.frame.group:
        is_identity = all(image == i for i, image in enumerate(exchange))
        is_involution = all(exchange[image] == i for i, image in enumerate(exchange))
        if sign < 0 or is_identity or not is_involution:
            continue
        for halves, form in sorted(_forms(search, total, exchange).items()):
            change = _change(label, total, halves, form)
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
            if known:  # as a square, where it is one
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


def _change(label: int, total: TermSum, halves: _Halves, form: _Form) -> Change | None:
    """The squares of a quadratic form; None where they are not fewer than its operands."""
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
