"""Signed permutation groups: least images, and sums of images in stages.

The canonical form of a product needs the image of its indices with the least code, and a
quadruples amplitude has 576 images. Most groups are all permutations within disjoint sets of axes
(a Young subgroup; the groups of antisymmetric tensors are of this kind). For these, sorting each
set gives the least image, and only equal codes leave a choice.

The images of a sum under a group are added in stages: 2 + 3 additions give the six of S3. If the
sum has a symmetry in common with the group, fewer stages are left. Each of its terms may be
replaced by an image, which adds the same to the result: ``t[a,b]*x[c]`` and ``y[a]*t[b,c]`` have no
symmetry in common, ``t[a,b]*x[c]`` and ``y[c]*t[a,b]`` have that of t.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, permutations, product
from math import factorial, prod
from typing import Any, TypeAlias

from ..ir.tensor import exchanged

Group: TypeAlias = tuple[tuple[tuple[int, ...], int], ...]  # (permutation of the axes, sign)


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
    """A group of permutations of axes, prepared for the search for least images.

    Attributes:
        sets: sets of axes that the group permutes freely; None for a group of another kind.
        orbits: least axis that a symmetry exchanges each axis with.
        exchange: sign of an exchange of two axes of a set, by the first axis of the set.
    """

    group: Group
    sets: tuple[tuple[int, ...], ...] | None
    signs: dict[tuple[int, ...], int]
    orbits: tuple[int, ...]
    exchange: dict[int, int]

    def least(
        self,
        values: Sequence[Any],
        twins: Sequence[int] | None = None,
        ranks: Sequence[int] | None = None,
    ) -> Group:
        """Images that include all images of least code whose twins stand in ascending order.

        Twins are indices that may be exchanged wherever they stand. Exchanging them gives nothing
        new, so one order of them is enough. ``values`` has the contribution of each axis to the
        code; only twins and indices that colours do not tell apart have equal values. ``twins`` has
        a number that twins have in common, -1 (the default) for an index without twins, and
        ``ranks`` the place of each index among its twins.

        Example:
            >>> swaps = tuple((p, 1) for p in permutations(range(3)))
            >>> images_of(swaps).least((7, 3, 5))
            (((1, 2, 0), 1),)
        """
        if self.sets is None:
            return self.group
        if twins is None or ranks is None:
            twins, ranks = (-1,) * len(values), (0,) * len(values)
        perms = _sorting_perms(self.sets, tuple(values), tuple(twins), tuple(ranks))
        return tuple((perm, self.signs[perm]) for perm in perms)


@lru_cache(maxsize=100_000)
def _sorting_perms(
    sets: tuple[tuple[int, ...], ...],
    values: tuple[Any, ...],
    twins: tuple[int, ...],
    ranks: tuple[int, ...],
) -> tuple[tuple[int, ...], ...]:
    """Permutations of axes within sets that bring their values into ascending order."""
    orders_by_set: list[list[tuple[int, ...]]] = []
    for axes in sets:
        ordered = [a for *_, a in sorted((values[a], twins[a], ranks[a], a) for a in axes)]
        runs = [tuple(run) for _, run in groupby(ordered, key=lambda a: values[a])]
        choices = product(*(_interleaved(run, tuple(twins[a] for a in run)) for run in runs))
        orders_by_set.append([tuple(a for run in choice for a in run) for choice in choices])
    perms = []
    for orders in product(*orders_by_set):
        perm = [0] * len(values)
        for axes, order in zip(sets, orders, strict=True):
            for place, axis in zip(axes, order, strict=True):
                perm[place] = axis
        perms.append(tuple(perm))
    return tuple(perms)


def _interleaved(run: tuple[int, ...], twins: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    """Orders of axes of equal value in which twins stay in ascending order."""
    if len(run) == 1 or (twins[0] >= 0 and len(set(twins)) == 1):
        return (run,)
    return (tuple(run[n] for n in order) for order in _twin_orders(twins))


@lru_cache(maxsize=10_000)
def _twin_orders(twins: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Permutations of positions that keep the order of twins."""
    return tuple(
        order
        for order in permutations(range(len(twins)))
        if all(
            order[a] < order[b] or twins[order[a]] < 0 or twins[order[a]] != twins[order[b]]
            for a in range(len(order))
            for b in range(a + 1, len(order))
        )
    )


@lru_cache(maxsize=10_000)
def images_of(group: Group) -> Images:
    """The group prepared for the search for least images."""
    sets, signs = _free_sets(group), dict(group)
    exchange = {
        axes[0]: signs[exchanged(len(group[0][0]), (axes[0], axes[1]))]
        for axes in sets or ()
        if len(axes) > 1
    }
    return Images(group, sets, signs, orbits(group), exchange)


@lru_cache(maxsize=1000)
def signed_rearrangements(
    members: tuple[int, ...], sign: int
) -> tuple[tuple[tuple[tuple[int, int], ...], int], ...]:
    """Every permutation of some numbers as (old, new) pairs, with ``sign`` for each exchange."""
    result = []
    for images in permutations(members):
        inversions = sum(a > b for n, a in enumerate(images) for b in images[n + 1 :])
        result.append((tuple(zip(members, images, strict=True)), sign**inversions))
    return tuple(result)


@lru_cache(maxsize=100_000)
def least_order(order: tuple[int, ...], group: Group) -> tuple[tuple[int, ...], int]:
    """The least image of ``order`` under a group of the indices 0, 1, .., and its sign.

    ``order`` holds every index that the group moves, each once.

    Example:
        >>> least_order((2, 1, 0), (((0, 1, 2), 1), ((1, 0, 2), -1)))
        ((2, 0, 1), -1)
    """
    sets = _free_sets(group)
    if sets is None or len(order) < len(group[0][0]):
        return min((tuple(perm[i] for i in order), sign) for perm, sign in group)
    pending = {members: iter(members) for members in sets}
    set_of = {index: members for members in sets for index in members}
    least = tuple(next(pending[set_of[index]]) for index in order)
    image_of = dict(zip(order, least, strict=True))
    return least, _signs(group)[tuple(image_of[i] for i in range(len(order)))]


def stages_of(group: Group, start: Group = ()) -> tuple[Group, ...]:
    """Sets of signed permutations whose images, added stage by stage, give those of the group.

    ``start`` is a subgroup that is already a symmetry of the sum; empty if only the identity is.

    Example:
        >>> stages_of((((0, 1), 1), ((1, 0), -1)))
        ((((0, 1), 1), ((1, 0), -1)),)
    """
    rank = len(group[0][0])
    signs = dict(group)
    reached: set[tuple[int, ...]] = {tuple(range(rank)), *(perm for perm, _ in start)}
    stages: list[Group] = []
    while len(reached) < len(signs):
        larger = _next_larger(reached, sorted(signs))
        covered: set[tuple[int, ...]] = set()
        stage = []
        for perm in sorted(larger):
            if perm not in covered:
                stage.append((perm, signs[perm]))
                covered.update(_coset(perm, reached))
        stages.append(tuple(stage))
        reached = larger
    return tuple(stages)


def aligned(group: Group, own_groups: Sequence[Group]) -> tuple[Group, Group]:
    """The image of each term of a sum with which the sum has the most symmetry.

    ``group`` is the symmetry of the result, and ``own_groups`` has the members under which each
    term is unchanged; there is at least one term. The terms with the least symmetry choose first.
    Of equal images, the one with the most exchanges of neighbouring axes is chosen, since such axes
    are stored packed. Returned are the signed permutation of the left indices of each term, and the
    symmetry of their sum.

    Example:
        >>> swap, last = ((1, 0, 2), -1), ((0, 2, 1), -1)
        >>> one = ((0, 1, 2), 1)
        >>> cycles = (((1, 2, 0), 1), ((2, 0, 1), 1), ((2, 1, 0), -1))
        >>> aligned((one, swap, last, *cycles), [(one, swap), (one, last)])
        ((((0, 1, 2), 1), ((2, 0, 1), 1)), (((0, 1, 2), 1), ((1, 0, 2), -1)))
    """
    signs = dict(group)
    common = frozenset(signs)
    moves: dict[int, tuple[int, ...]] = {}
    for n in sorted(range(len(own_groups)), key=lambda n: len(own_groups[n])):
        own = [perm for perm, _ in own_groups[n]]
        images: dict[frozenset[tuple[int, ...]], tuple[int, ...]] = {}
        for perm in sorted(signs):
            images.setdefault(frozenset(_conjugate(perm, inner) for inner in own), perm)
        best = max(images, key=lambda image: (len(common & image), _neighbours(common & image)))
        moves[n], common = images[best], common & best
    chosen = tuple((moves[n], signs[moves[n]]) for n in range(len(own_groups)))
    return chosen, tuple((perm, signs[perm]) for perm in sorted(common))


def _conjugate(perm: tuple[int, ...], inner: tuple[int, ...]) -> tuple[int, ...]:
    """A symmetry of a term, of its image whose left indices are permuted by ``perm``."""
    moved = dict(zip(perm, (perm[n] for n in inner), strict=True))
    return tuple(moved[n] for n in range(len(perm)))


def _neighbours(perms: frozenset[tuple[int, ...]]) -> int:
    """Number of exchanges of two neighbouring axes."""
    moved = ([axis for axis, image in enumerate(perm) if axis != image] for perm in perms)
    return sum(len(axes) == 2 and axes[1] == axes[0] + 1 for axes in moved)


def _next_larger(
    subgroup: set[tuple[int, ...]], group: list[tuple[int, ...]]
) -> set[tuple[int, ...]]:
    """The smallest subgroup of ``group`` that one more permutation and ``subgroup`` generate."""
    best: set[tuple[int, ...]] | None = None
    done: set[tuple[int, ...]] = set(subgroup)
    for perm in group:
        if perm in done:
            continue
        done |= _coset(perm, subgroup)  # its members generate the same subgroup
        larger = _generated(subgroup, perm, len(best) if best is not None else len(group))
        if larger is None:
            continue
        if best is None or (len(larger), sorted(larger)) < (len(best), sorted(best)):
            best = larger
    assert best is not None
    return best


def _generated(
    subgroup: set[tuple[int, ...]], perm: tuple[int, ...], most: int
) -> set[tuple[int, ...]] | None:
    """The group that a subgroup and a permutation generate; None if it has more than ``most``."""
    members = set(subgroup)
    pending = [tuple(range(len(perm)))]
    while pending:
        member = pending.pop()
        for inner in subgroup:
            image = tuple(perm[inner[n]] for n in member)
            if image not in members:
                members |= _coset(image, subgroup)
                if len(members) > most:
                    return None
                pending.append(image)
    return members


def _coset(perm: tuple[int, ...], subgroup: set[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """The products of a permutation with all members of a subgroup."""
    return {tuple(perm[n] for n in inner) for inner in subgroup}
