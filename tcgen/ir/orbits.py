"""How many points of a contraction do equal work, by the symmetries of its two factors.

A permutation of the indices of ``C[kept] += A[..] * B[..]`` that leaves both factors unchanged up
to sign, and mixes no kept with a summed index, maps each multiply-add to an equal one. One point
of every orbit is enough: the packed cost is the number of points divided by the order of the
group of all such permutations. For antisymmetric groups of k indices this is the factor k! for
each group that stands in one factor only, and for each group that both factors share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import TypeVar

I = TypeVar("I", bound=Hashable)
Perm = tuple[int, ...]


def equal_points(
    one: tuple[Iterable[Perm], Sequence[I]],
    two: tuple[Iterable[Perm], Sequence[I]],
    kept: Collection[I],
) -> int:
    """Order of the group of index permutations that leave both factors unchanged up to sign.

    Args:
        one: permutations of the axes of a factor (its whole group, signs left out) and the index
            on each axis.
        two: the same of the other factor.
        kept: indices of the result.

    Example:
        The ladder ``r[a,b,i,j] += v[a,b,c,d] * t[c,d,i,j]`` with antisymmetric pairs: 2 for each
        of the pairs ab, ij and cd.

        >>> pairs = [(0, 1, 2, 3), (1, 0, 2, 3), (0, 1, 3, 2), (1, 0, 3, 2)]
        >>> equal_points((pairs, "abcd"), (pairs, "cdij"), "abij")
        8
    """
    shared = tuple(i for i in dict.fromkeys(one[1]) if i in two[1])
    first = _restricted(*one, shared, kept)
    second = _restricted(*two, shared, kept)
    return sum(count * second[images] for images, count in first.items())


def _restricted(
    perms: Iterable[Perm], held: Sequence[I], shared: tuple[I, ...], kept: Collection[I]
) -> Counter[tuple[I, ...]]:
    """How many index permutations of one factor act on the shared indices in each way."""
    names = tuple(dict.fromkeys(held))
    colour = {i: (i in shared, i in kept) for i in names}
    found: dict[tuple[I, ...], tuple[I, ...]] = {}
    for perm in perms:
        images: dict[I, I] = {}
        for axis, source in enumerate(perm):
            if images.setdefault(held[axis], held[source]) != held[source]:
                break  # axes of a diagonal go different ways
        else:
            if all(colour[i] == colour[image] for i, image in images.items()):
                whole = tuple(images[i] for i in names)
                if len(set(whole)) == len(names):
                    found[whole] = tuple(images[i] for i in shared)
    return Counter(found.values())
