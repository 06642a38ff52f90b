"""How many multiply-adds of a contraction are equal by the symmetries of its two factors.

A permutation of the indices of ``C[free] += A[..] * B[..]`` that leaves both factors unchanged up
to sign, and exchanges free indices (those of the result) only with free ones, maps each
multiply-add to an equal one. One point of each orbit is enough: the packed cost is the number of
points divided by the order of the group of all such permutations. An antisymmetric group of k
indices contributes a factor k!, whether one factor has it or both do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

I = TypeVar("I", bound=Hashable)
Perm = tuple[int, ...]


def equal_points(
    one: tuple[Iterable[Perm], Sequence[I]],
    two: tuple[Iterable[Perm], Sequence[I]],
    free: Collection[I],
) -> int:
    """Order of the group of index permutations that leave both factors unchanged up to sign.

    Args:
        one: permutations of the axes of a factor (its whole group, signs left out) and the index
            on each axis.
        two: the same of the other factor.
        free: indices of the result.

    Example:
        The ladder ``r[a,b,i,j] += v[a,b,c,d] * t[c,d,i,j]`` with antisymmetric pairs: 2 for each
        of the pairs ab, ij and cd.

        >>> pairs = [(0, 1, 2, 3), (1, 0, 2, 3), (0, 1, 3, 2), (1, 0, 3, 2)]
        >>> equal_points((pairs, "abcd"), (pairs, "cdij"), "abij")
        8
    """
    place = {i: n for n, i in enumerate(dict.fromkeys((*one[1], *two[1])))}
    return _equal_points(
        (tuple(one[0]), tuple(place[i] for i in one[1])),
        (tuple(two[0]), tuple(place[i] for i in two[1])),
        frozenset(place[i] for i in free if i in place),
    )


@lru_cache(maxsize=10_000)
def _equal_points(
    one: tuple[tuple[Perm, ...], Perm], two: tuple[tuple[Perm, ...], Perm], free: frozenset[int]
) -> int:
    """The order of the group; the indices are numbers, for a program has few such patterns."""
    common = tuple(i for i in dict.fromkeys(one[1]) if i in two[1])
    first = _restricted(*one, common, free)
    second = _restricted(*two, common, free)
    return sum(count * second[images] for images, count in first.items())


def _restricted(
    perms: Iterable[Perm], held: Sequence[I], common: tuple[I, ...], free: Collection[I]
) -> Counter[tuple[I, ...]]:
    """Number of index permutations of one factor for each image of the common indices."""
    names = tuple(dict.fromkeys(held))
    colour = {i: (i in common, i in free) for i in names}
    restricted: dict[tuple[I, ...], tuple[I, ...]] = {}
    for perm in perms:
        images: dict[I, I] = {}
        for axis, source in enumerate(perm):
            if images.setdefault(held[axis], held[source]) != held[source]:
                break  # the axes of a diagonal would get different indices
        else:
            if all(colour[i] == colour[image] for i, image in images.items()):
                whole = tuple(images[i] for i in names)
                if len(set(whole)) == len(names):
                    restricted[whole] = tuple(images[i] for i in common)
    return Counter(restricted.values())
