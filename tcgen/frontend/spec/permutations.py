"""Permutation operators: P(i,j), P(ia,jb), P(i/jk), S(..) as signed renamings of indices."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import TypeAlias

from ...ir.system import Permutation
from ...ir.tensor import Index
from ..permutation_counts import permutation_lists

Renaming: TypeAlias = tuple[tuple[Index, Index], ...]
"""Pairs (old index, new index); other indices are unchanged."""
Signed: TypeAlias = tuple[tuple[int, Renaming], ...]
"""Terms of an operator: how often each renaming is added, or subtracted; the identity first.

Operators that cancel are ``((0, ()),)``.
"""


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


def term_count(groups: tuple[int, ...], slashed: bool) -> int:
    """Terms of an operator, before it is made: of P(i,j,k) 6, of P(i/jk) 3.

    Args:
        groups: letters of each group between slashes; the number of tuples if there are none.
        slashed: the groups stand between slashes.

    Example:
        >>> term_count((3,), False), term_count((1, 2), True), term_count((1, 1, 1), True)
        (6, 3, 6)
    """
    if not slashed:
        return math.factorial(groups[0])
    return math.prod(math.comb(sum(groups[n:]), groups[n]) for n in range(len(groups) - 1))


def compose(outer: Signed, inner: Signed) -> Signed:
    """The operator that applies ``inner`` first, then ``outer``; equal renamings are added.

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> i, j = Index("i", Space("o")), Index("j", Space("o"))
        >>> exchange = tuple_operator(((i,), (j,)), True)
        >>> [count for count, _ in compose(exchange, exchange)]
        [2, -2]
        >>> compose(exchange, tuple_operator(((i,), (j,)), False))
        ((0, ()),)
    """
    counts: Counter[Renaming] = Counter()
    for sign, after in outer:
        then = dict(after)
        for other, before in inner:
            first = dict(before)
            letters = (*first, *(x for x in then if x not in first))
            pairs = ((x, then.get(first.get(x, x), first.get(x, x))) for x in letters)
            moved = sorted(((x, y) for x, y in pairs if x != y), key=lambda pair: pair[0].name)
            counts[tuple(moved)] += sign * other
    left = tuple((count, renaming) for renaming, count in counts.items() if count)
    return left or ((0, ()),)


def position_images(renaming: Renaming, lhs: tuple[Index, ...]) -> tuple[int, ...]:
    """The renaming as positions of left indices: index k becomes ``lhs[images[k]]``."""
    images = dict(renaming)
    return tuple(lhs.index(images.get(x, x)) for x in lhs)


def gather(
    operator: Signed, lhs: tuple[Index, ...]
) -> list[tuple[Fraction, tuple[Permutation, ...]]]:
    """The operator as factors and permutation lists of terms (:func:`permutation_lists`)."""
    if not operator:
        return [(Fraction(1), ())]
    counts: Counter[tuple[int, ...]] = Counter()
    for count, renaming in operator:
        counts[position_images(renaming, lhs)] += count
    return permutation_lists(counts, len(lhs))


def _parity(order: tuple[int, ...]) -> int:
    inversions = sum(a > b for a, b in itertools.combinations(order, 2))
    return -1 if inversions % 2 else 1
