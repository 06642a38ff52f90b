"""Least images under groups that permute sets of axes freely, found by sorting.

An amplitude of quadruples has 576 images, of which the canonical form wants the one with the least
code. Where a group is all permutations within disjoint sets of axes (a Young subgroup, as those of
antisymmetric tensors are), sorting each set finds it; only equal codes leave a choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, permutations, product
from math import factorial, prod
from typing import Any, TypeAlias

Group: TypeAlias = tuple[tuple[tuple[int, ...], int], ...]  # (permutation of the axes, sign)

_FEW = 4  # images are simply all looked at


@lru_cache(maxsize=10_000)
def orbits(group: Group) -> tuple[int, ...]:
    """For each axis, the least axis that a symmetry exchanges it with."""
    least = list(range(len(group[0][0])))
    for perm, _ in group:
        for axis, image in enumerate(perm):
            least[image] = min(least[image], axis)
    return tuple(least)


@lru_cache(maxsize=10_000)
def _free_sets(group: Group) -> tuple[tuple[int, ...], ...] | None:
    """Sets of axes that the group permutes freely and independently; None for other groups."""
    least = orbits(group)
    sets = [tuple(a for a, x in enumerate(least) if x == first) for first in sorted(set(least))]
    if len(group) != prod(factorial(len(s)) for s in sets):
        return None
    return tuple(sets)


@lru_cache(maxsize=10_000)
def _signs(group: Group) -> dict[tuple[int, ...], int]:
    return dict(group)


@dataclass(frozen=True, slots=True)
class Images:
    """A group of axes with what finds least images fast.

    Attributes:
        free_orbits: for each axis the first axis of the set in which all may be exchanged freely;
            -1 where the group is not made of such sets.
        exchange: sign of one exchange within a set, by its first axis.
    """

    group: Group
    sets: tuple[tuple[int, ...], ...] | None
    signs: dict[tuple[int, ...], int]
    free_orbits: tuple[int, ...]
    exchange: dict[int, int]

    def least(
        self,
        values: Sequence[Any],
        alike: Sequence[int] | None = None,
        ages: Sequence[int] | None = None,
    ) -> Group:
        """Images among which those of least code are, twins in ascending order.

        Args:
            values: what each axis adds to the code, distinct unless two indices look alike.
            alike: equal for twins, -1 for an axis whose index has none; all axes if None.
            ages: place of each index among its twins.

        Example:
            >>> swaps = tuple((p, 1) for p in permutations(range(3)))
            >>> images_of(swaps).least((7, 3, 5))
            (((1, 2, 0), 1),)
        """
        if self.sets is None or (alike is None and len(self.group) <= _FEW):
            return self.group
        if alike is None or ages is None:
            alike, ages = (-1,) * len(values), (0,) * len(values)
        found = _arranged(self.sets, tuple(values), tuple(alike), tuple(ages))
        return tuple((images, self.signs[images]) for images in found)


@lru_cache(maxsize=100_000)
def _arranged(
    sets: tuple[tuple[int, ...], ...],
    values: tuple[Any, ...],
    alike: tuple[int, ...],
    ages: tuple[int, ...],
) -> tuple[tuple[int, ...], ...]:
    """Permutations of axes within sets that bring their values into ascending order."""
    arranged: list[list[tuple[int, ...]]] = []
    for axes in sets:
        ordered = [a for *_, a in sorted((values[a], alike[a], ages[a], a) for a in axes)]
        runs = [tuple(run) for _, run in groupby(ordered, key=lambda a: values[a])]
        ways = product(*(_interleaved(run, tuple(alike[a] for a in run)) for run in runs))
        arranged.append([tuple(a for run in way for a in run) for way in ways])
    found = []
    for choice in product(*arranged):
        perm = [0] * len(values)
        for axes, order in zip(sets, choice, strict=True):
            for place, axis in zip(axes, order, strict=True):
                perm[place] = axis
        found.append(tuple(perm))
    return tuple(found)


def _interleaved(run: tuple[int, ...], alike: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    """Orders of axes in which those that are alike keep theirs."""
    if len(run) == 1 or (alike[0] >= 0 and len(set(alike)) == 1):
        return (run,)
    return (tuple(run[n] for n in way) for way in _ways(alike))


@lru_cache(maxsize=10_000)
def _ways(alike: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(
        way
        for way in permutations(range(len(alike)))
        if all(
            way[a] < way[b] or alike[way[a]] < 0 or alike[way[a]] != alike[way[b]]
            for a in range(len(way))
            for b in range(a + 1, len(way))
        )
    )


@lru_cache(maxsize=10_000)
def images_of(group: Group) -> Images:
    """A group with what finds least images fast."""
    sets = _free_sets(group)
    rank = len(group[0][0])
    signs = dict(group)
    if sets is None:
        return Images(group, None, signs, (-1,) * rank, {})
    exchange = {}
    for axes in sets:
        if len(axes) > 1:
            perm = list(range(rank))
            perm[axes[0]], perm[axes[1]] = axes[1], axes[0]
            exchange[axes[0]] = signs[tuple(perm)]
    return Images(group, sets, signs, orbits(group), exchange)


@lru_cache(maxsize=1000)
def shuffled(
    members: tuple[int, ...], sign: int
) -> tuple[tuple[tuple[tuple[int, int], ...], int], ...]:
    """Every exchange of some numbers as (old, new) pairs, with ``sign`` for each swap of two."""
    found = []
    for images in permutations(members):
        swaps = sum(a > b for n, a in enumerate(images) for b in images[n + 1 :])
        found.append((tuple(zip(members, images, strict=True)), sign**swaps))
    return tuple(found)


@lru_cache(maxsize=100_000)
def least_order(order: tuple[int, ...], group: Group) -> tuple[tuple[int, ...], int]:
    """The least of ``order`` with its indices exchanged by a group of them, and the sign of it.

    Args:
        order: every index that the group moves, each once.
        group: of the indices 0, 1, ..

    Example:
        >>> least_order((2, 0, 1), (((0, 1, 2), 1), ((1, 0, 2), -1)))
        ((2, 0, 1), 1)
        >>> least_order((2, 1, 0), (((0, 1, 2), 1), ((1, 0, 2), -1)))
        ((2, 0, 1), -1)
    """
    sets = _free_sets(group)
    if sets is None or len(group) <= _FEW or len(order) < len(group[0][0]):
        return min((tuple(perm[i] for i in order), sign) for perm, sign in group)
    waiting = {members: iter(members) for members in sets}
    of = {index: members for members in sets for index in members}
    least = tuple(next(waiting[of[index]]) for index in order)
    moved = dict(zip(order, least, strict=True))
    return least, _signs(group)[tuple(moved[i] for i in range(len(order)))]
