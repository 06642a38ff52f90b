"""Permutation operators: P(i,j), P(ia,jb), P(i/jk), S(..) as signed renamings of indices."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import TypeAlias

from ...ir.system import Permutation
from ...ir.tensor import Index

Renaming: TypeAlias = tuple[tuple[Index, Index], ...]
"""Pairs (index, what it is renamed to); indices that are not named stay."""
Signed: TypeAlias = tuple[tuple[int, Renaming], ...]
"""Terms of an operator: sign and renaming, the identity first."""


def tuple_operator(items: tuple[tuple[Index, ...], ...], signed: bool) -> Signed:
    """P(i,j) and S(ia,jb): all permutations of the tuples, signed for P.

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> i, j = Index("i", Space("o")), Index("j", Space("o"))
        >>> [(sign, [f"{a}->{b}" for a, b in m]) for sign, m in tuple_operator(((i,), (j,)), True)]
        [(1, []), (-1, ['i->j', 'j->i'])]
    """
    result = []
    for order in itertools.permutations(range(len(items))):
        sign = _parity(order) if signed else 1
        pairs = tuple(
            (old, new)
            for k, image in enumerate(order)
            for old, new in zip(items[k], items[image], strict=True)
            if old != new
        )
        result.append((sign, pairs))
    return tuple(result)


def slash_operator(groups: tuple[tuple[Index, ...], ...], signed: bool) -> Signed:
    """P(A/B): all exchanges of k letters of A with k of B, sign (-1)**k; A/B/C: P(A/BC) P(B/C).

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> i, j, k, l = (Index(x, Space("o")) for x in "ijkl")
        >>> len(slash_operator(((i, j), (k, l)), True))
        6
    """
    first, rest = groups[0], groups[1:]
    others = tuple(x for group in rest for x in group)
    here = []
    for count in range(min(len(first), len(others)) + 1):
        for left in itertools.combinations(first, count):
            for right in itertools.combinations(others, count):
                pairs = (*zip(left, right, strict=True), *zip(right, left, strict=True))
                here.append((-1 if signed and count % 2 else 1, pairs))
    return compose(tuple(here), slash_operator(rest, signed)) if len(rest) > 1 else tuple(here)


def compose(outer: Signed, inner: Signed) -> Signed:
    """The operator that applies ``inner`` first, then ``outer``."""
    result = []
    for sign, after in outer:
        then = dict(after)
        for other, before in inner:
            first = dict(before)
            letters = (*first, *(x for x in then if x not in first))
            pairs = ((x, then.get(first.get(x, x), first.get(x, x))) for x in letters)
            result.append((sign * other, tuple((x, y) for x, y in pairs if x != y)))
    return tuple(result)


def position_images(renaming: Renaming, lhs: tuple[Index, ...]) -> tuple[int, ...]:
    """The renaming as positions of left indices: index k becomes ``lhs[images[k]]``."""
    images = dict(renaming)
    return tuple(lhs.index(images.get(x, x)) for x in lhs)


def gather(
    operator: Signed, lhs: tuple[Index, ...]
) -> list[tuple[Fraction, tuple[Permutation, ...]]]:
    """The operator as factors and permutation lists of terms.

    Permutations that occur several times are counted: their common count becomes a factor, and
    what cancels is left out. Each list holds the identity.

    Returns:
        Pairs (factor, permutations); () for the identity alone. None at all where the operator
        is zero.
    """
    if not operator:
        return [(Fraction(1), ())]
    counts: Counter[tuple[int, ...]] = Counter()
    for sign, renaming in operator:
        counts[position_images(renaming, lhs)] += sign
    left = {images: count for images, count in counts.items() if count}
    identity = tuple(range(len(lhs)))
    if not left:
        return []
    common = {abs(count) for count in left.values()}
    if len(common) == 1 and left.get(identity, 0) > 0:
        factor = Fraction(common.pop())
        perms = tuple(Permutation(1 if n > 0 else -1, images) for images, n in left.items())
        return [(factor, perms if len(perms) > 1 else ())]
    return _one_by_one(left, identity)


def _one_by_one(
    counts: dict[tuple[int, ...], int], identity: tuple[int, ...]
) -> list[tuple[Fraction, tuple[Permutation, ...]]]:
    """Uneven counts: X + p X is a list with the identity, so p alone is (1 + p) X - X."""
    result: list[tuple[Fraction, tuple[Permutation, ...]]] = []
    alone = Fraction(counts.get(identity, 0))
    for images, count in counts.items():
        if images != identity:
            result.append((Fraction(count), (Permutation(1, identity), Permutation(1, images))))
            alone -= count
    return [*result, (alone, ())] if alone else result


def _parity(order: tuple[int, ...]) -> int:
    inversions = sum(a > b for a, b in itertools.combinations(order, 2))
    return -1 if inversions % 2 else 1
