"""Sums of permutations as the lists of terms: equal ones are counted, and their number is bounded.

Operators multiply: P(i,j) P(a,b) is four permutations. Written again and again they would be 2^n,
although only n! differ. Front ends therefore count permutations after each operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

from ..ir.system import Permutation

Counts: TypeAlias = Mapping[tuple[int, ...], int]
"""How often each permutation is added, by the images of positions; negative: subtracted."""

# Permutations of one term: enough for two antisymmetric groups of five indices (14,400), and read
# within a second.
MOST_PERMUTATIONS = 20_000
TOO_MANY = f"more than {MOST_PERMUTATIONS:,} permutations"
FEWER = "declare the symmetry of tensors, and write only operators that change the product"


def permutation_lists(counts: Counts, rank: int) -> list[tuple[Fraction, tuple[Permutation, ...]]]:
    """Factors and permutation lists of terms that add up to the counted permutations.

    The common count of permutations becomes a factor, and those that cancel are left out. Each list
    has the identity.

    Args:
        counts: of each permutation.
        rank: number of left indices.

    Returns:
        Pairs (factor, permutations), where () stands for the identity alone. An empty list if the
        sum is zero.

    Example:
        >>> permutation_lists({(0, 1): 2, (1, 0): -2}, 2)[0][0]
        Fraction(2, 1)
        >>> permutation_lists({(0, 1): 0}, 2)
        []
    """
    left = {images: count for images, count in counts.items() if count}
    identity = tuple(range(rank))
    if not left:
        return []
    common = {abs(count) for count in left.values()}
    if len(common) == 1 and left.get(identity, 0) > 0:
        factor = Fraction(common.pop())
        perms = tuple(Permutation(1 if n > 0 else -1, images) for images, n in left.items())
        return [(factor, perms if len(perms) > 1 else ())]
    return _one_by_one(left, identity)


def _one_by_one(
    counts: Counts, identity: tuple[int, ...]
) -> list[tuple[Fraction, tuple[Permutation, ...]]]:
    """Uneven counts: X + p X is a list with the identity, so p alone is (1 + p) X - X."""
    result: list[tuple[Fraction, tuple[Permutation, ...]]] = []
    alone = Fraction(counts.get(identity, 0))
    for images, count in counts.items():
        if images != identity:
            result.append((Fraction(count), (Permutation(1, identity), Permutation(1, images))))
            alone -= count
    return [*result, (alone, ())] if alone else result
