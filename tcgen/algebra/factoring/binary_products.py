"""Products of three and more factors as products of two, each inner product a symmetric array."""

from __future__ import annotations

from fractions import Fraction

from .costs import positions
from .greedy import Search, State
from .packed_costs import PackedSequenceCosts
from .sums import Product, TermSum


def split_products(search: Search, costs: PackedSequenceCosts, state: State) -> State:
    """A state of equal value in which every term has at most two factors.

    Terms are split in their cheapest packed order. The array of an inner product gets every
    symmetry under which the other factors and the left side do not change.
    """
    result = state.copy()
    waiting = list(result.sums)
    while waiting:
        label = waiting.pop(0)
        total = result.sums[label]
        split_sum = TermSum(total.frame, {})
        for term, coeff in sorted(total.terms.items()):
            product, factor = _split(search, costs, result, label, term, waiting)
            split_sum.add(product, coeff * factor)
        result.sums[label] = split_sum
    return result


def _split(
    search: Search,
    costs: PackedSequenceCosts,
    state: State,
    label: int,
    term: Product,
    waiting: list[int],
) -> tuple[Product, Fraction]:
    """A term of the sum ``label`` as a product of two factors, and its coefficient.

    New arrays are appended to ``waiting``.
    """
    frame = state.sums[label].frame
    scale = Fraction(1)
    while len(term.factors) > 2:
        node = costs.tree(term, frame)
        assert isinstance(node, tuple)
        longer_side = max((positions(side) for side in node), key=len)
        mask = sum(1 << n for n in range(len(term.factors)) if n not in longer_side)
        split = search.algebra.split(term, frame, mask)
        if split is None:  # the term is zero by the symmetry of the left side
            return term, Fraction(0)
        inner = TermSum(split.frame, {split.rest: Fraction(1)})
        array, axes, factor = search.array(state, inner, label, waiting)
        joined = search.algebra.joined(split, array, axes)
        term, sign = search.algebra.normal(joined, frame)
        scale *= factor * split.sign * sign
        if not scale:
            break
    return term, scale
