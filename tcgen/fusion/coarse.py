"""Least peak from the large arrays alone: a good start, and a lower bound that holds for all.

The peak of a program is decided by its few large arrays, while most of its loops and statements
belong to small ones. A search over the large arrays is much smaller. It is solved twice at most:

- with the small arrays whole and all rules in force: each of its arrangements is one of
  the program;
- with whatever the loops of small arrays might change left out of the rules: each arrangement of
  the program is one of this search too and counts no more here, so that its bound is a bound for
  the program. Where nothing had to be left out the first search says this already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import comb, prod

from ..ir.cost import extent_of
from ..ir.tensor import Role
from .exact import Found, FusionModel
from .sharing import Arrangement, Sharing, Walk, connected

_PART = 16  # at first an array is large where it takes this part of a known peak or more
_FINER = 4  # and the part becomes so much smaller from search to search
_LARGEST_PART = 400_000  # of ``rules``
_LARGEST_MODEL = 2_000_000


@dataclass(frozen=True, slots=True)
class Large:
    """The arrays of a search and the loops that they may be in.

    Attributes:
        arrays: positions among the instances.
        part: what the program allows these arrays alone.
    """

    arrays: frozenset[int]
    part: Sharing


def finer(
    found: Sharing, weights: Mapping[int, int], extents: Mapping[str, int], known: int
) -> Iterator[Large]:
    """Ever more of the arrays, largest first, as long as searches stay small; never all arrays."""
    whole = {
        n: weights[n] * prod(extent_of(space, extents) for space in i.array.spaces)
        for n, i in enumerate(found.instances)
        if i.array.role is not Role.OUTPUT
    }
    bare = tuple(replace(i, axes=()) for i in found.instances)
    part, last = _PART, frozenset[int]()
    while len(last) < len(whole):
        large = frozenset(n for n, size in whole.items() if size * part >= known)
        part *= _FINER
        if large == last or len(large) == len(whole):
            last = large
            continue
        tensors = {found.instances[n].array for n in large}
        less = connected(found.graph, bare, found.carried, {}, tensors)
        if rules(less) > _LARGEST_PART:
            return
        yield Large(large, less)
        last = large


def solve_coarse(
    found: Sharing,
    large: Large,
    weights: Mapping[int, int],
    extents: Mapping[str, int],
    work: float,
    hint: Arrangement,
) -> Found:
    """The arrangement of least peak of the large arrays, and a lower bound on the peak of all.

    Args:
        found: what the program allows.
        large: arrays to count.
        weights: by position in ``found.instances``, bytes of one element.
        extents: of the base spaces.
        work: deterministic seconds.
        hint: an arrangement to start from.

    Returns:
        The arrangement with the small arrays whole; ``proven`` for the large arrays, not for all;
        the bound is 0 where the work did not suffice.

    Raises:
        PlanError: the solver refuses the model.
    """

    def model(start: Arrangement, unmodelled: Mapping[Walk, frozenset[int]]) -> FusionModel:
        return FusionModel(
            large.part,
            weights,
            extents,
            start,
            peak=True,
            ordered=True,
            only=large.arrays,
            unmodelled=unmodelled,
        )

    best = model(hint, {}).solve(work / 2)
    bound, unmodelled = best.bound, _unmodelled(large.part, found)
    if not best.proven:  # the second search would not come further
        bound = 0
    elif any(unmodelled.values()):
        bound = model(best.arrangement or hint, unmodelled).solve(work / 2).bound
    return Found(best.arrangement, best.proven, bound)


def rules(found: Sharing) -> int:
    """About as many rules has the model of all that a program allows: pairs times statements."""
    pairs = sum(comb(len(group), 2) for group in found.walks)
    return pairs * len({node for group in found.walks for node, _ in group})


def too_large(found: Sharing) -> bool:
    """True where the search over all arrays would not come to an end in reasonable time."""
    return rules(found) > _LARGEST_MODEL


def _unmodelled(part: Sharing, found: Sharing) -> dict[Walk, frozenset[int]]:
    """By walk of a part, statements with a walk in its group of ``found`` that the part lacks."""
    groups = {walk: frozenset(group) for group in found.walks for walk in group}
    return {
        walk: frozenset(node for node, _ in groups[walk] - frozenset(group))
        for group in part.walks
        for walk in group
    }
