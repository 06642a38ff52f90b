"""Products of three and more factors as products of two, each inner product a symmetric array."""

from __future__ import annotations

from fractions import Fraction

from .costs import positions
from .greedy import Search, State
from .packed_costs import PackedLedger
from .sums import Product, Sum


def split_products(search: Search, ledger: PackedLedger, state: State) -> State:
    """A state of equal value in which every term has at most two factors.

    Terms are split in their cheapest packed order; the array of a side has whatever symmetry the
    other side and the left side leave open.
    """
    result = state.copy()
    waiting = list(result.sums)
    while waiting:
        label = waiting.pop(0)
        total = result.sums[label]
        fresh = Sum(total.frame, {})
        for term, coeff in sorted(total.terms.items()):
            product, factor = _split(search, ledger, result, label, term, waiting)
            fresh.add(product, coeff * factor)
        result.sums[label] = fresh
    return result


def _split(
    search: Search,
    ledger: PackedLedger,
    state: State,
    label: int,
    term: Product,
    waiting: list[int],
) -> tuple[Product, Fraction]:
    """A term as a product of two factors, and its coefficient."""
    frame = state.sums[label].frame
    scale = Fraction(1)
    while len(term[0]) > 2:
        node = ledger.tree(term, frame)
        assert isinstance(node, tuple)
        sides = [positions(n) for n in node]
        chosen = max(sides, key=len)
        mask = sum(1 << n for n in range(len(term[0])) if n not in chosen)
        split = search.algebra.split(term, frame, mask)
        if split is None:  # zero under its left side
            return term, Fraction(0)
        inner = Sum(split.frame, {split.rest: Fraction(1)})
        array, axes, factor = search.array(state, inner, label, waiting)
        joined = search.algebra.joined(split, array, axes)
        term, sign = search.algebra.normal(joined, frame)
        scale *= factor * split.sign * sign
        if not scale:
            break
    return term, scale
