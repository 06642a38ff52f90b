"""Least images under groups that permute sets of axes freely, found by sorting.

An amplitude of quadruples has 576 images, of which the canonical form wants the one with the least
code. Where a group is all permutations within disjoint sets of axes (a Young subgroup, as those of
antisymmetric tensors are), sorting each set finds it; only equal codes leave a choice.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def least_images(group: Group, values: Sequence[Any]) -> Group:
    """Images among which those of least code are.

    Args:
        group: of a factor.
        values: what each axis adds to the code, distinct unless two of its indices look alike.

    Example:
        >>> swaps = tuple((p, 1) for p in permutations(range(3)))
        >>> least_images(swaps, (7, 3, 5))
        (((1, 2, 0), 1),)
    """
    if len(group) <= _FEW:
        return group
    sets = _free_sets(group)
    if sets is None:
        return group
    arranged: list[list[tuple[int, ...]]] = []
    for axes in sets:
        ordered = sorted(axes, key=lambda a: values[a])
        runs = [tuple(run) for _, run in groupby(ordered, key=lambda a: values[a])]
        ways = product(*(permutations(run) for run in runs))
        arranged.append([tuple(a for run in way for a in run) for way in ways])
    signs = _signs(group)
    found = []
    for choice in product(*arranged):
        perm = [0] * len(values)
        for axes, order in zip(sets, choice, strict=True):
            for place, axis in zip(axes, order, strict=True):
                perm[place] = axis
        images = tuple(perm)
        found.append((images, signs[images]))
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
