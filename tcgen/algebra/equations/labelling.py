"""The least labelling of the indices of a product, on which all canonical forms rest.

The search labels indices factor by factor, breadth first, and keeps every partial labelling whose
code is least so far. The code of a factor has a label for an index that has one already, and a rank
for a new index. Ranks, refined by the factors that hold an index, leave few ties.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ..permutation_groups import Images

UNLABELLED = 1_000_000  # codes from here on are ranks of indices without a label

# A factor: a label, equal for equal functions of the indices, and the indices.
Labelled = tuple[Any, tuple[int, ...]]


class Labelling(NamedTuple):
    """The least labelling of a product.

    Attributes:
        codes: code of each factor.
        ties: every order of the indices that gives these codes, and its sign; 0 for both signs.
        exact: False if the search was cut off, so that ties are missing.
        work: number of images of factors visited.
    """

    codes: tuple[tuple[int, ...], ...]
    ties: tuple[tuple[tuple[int, ...], int], ...]
    exact: bool
    work: int


def least_labelling(
    parts: Sequence[Labelled],
    images: Sequence[Images],
    rank: Mapping[int, int],
    twins: Sequence[tuple[tuple[int, ...], int]] = (),
    most: int | None = None,
) -> Labelling:
    """The least labelling of factors that are sorted by label, with their symmetries ``images``.

    ``rank`` has the rank of each index, see :func:`refined_ranks`. Indices of a set of ``twins``
    may be exchanged in all factors; only ties that have them in ascending order are listed. At most
    ``most`` partial labellings are kept.
    """
    twin_rank = {i: n for members, _ in twins for n, i in enumerate(members)}
    first_twin = {i: members[0] for members, _ in twins for i in members}
    # (indices in the order labelled, places of the factors left) -> sign, 0 for both signs
    states: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {((), tuple(range(len(parts)))): 1}
    codes: list[tuple[int, ...]] = []
    exact, work = True, 0
    for _ in parts:
        best: tuple[int, ...] | None = None
        fresh: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        for (order, left), sign in states.items():
            label = parts[left[0]][0]
            tried: set[tuple[int, ...]] = set()
            seen = {index: n for n, index in enumerate(order)}
            for place in left:
                if parts[place][0] != label:
                    break
                held = parts[place][1]
                if held in tried:  # an equal factor
                    continue
                tried.add(held)
                rest = tuple(p for p in left if p != place)
                candidates = images[place].group
                if len(set(held)) == len(held):
                    values = [seen.get(i, UNLABELLED + rank[i]) for i in held]
                    twin_of = [first_twin.get(i, -1) if i not in seen else -1 for i in held]
                    ranks = [twin_rank.get(i, 0) for i in held]
                    candidates = images[place].least(values, twin_of, ranks)
                work += len(candidates)
                for perm, factor in candidates:
                    code, extended = _code(held, perm, rank, seen, order)
                    if best is not None and code > best:
                        continue
                    if best is None or code < best:
                        best, fresh = code, {}
                    state = (extended, rest)
                    new = sign * factor
                    fresh[state] = new if fresh.get(state, new) == new else 0
        assert best is not None
        codes.append(best)
        states = fresh
        if most is not None and len(states) > most:
            states, exact = dict(islice(states.items(), most)), False
    ties = tuple((order, sign) for (order, _), sign in states.items())
    return Labelling(tuple(codes), ties, exact, work)


def _code(
    held: tuple[int, ...],
    perm: tuple[int, ...],
    rank: Mapping[int, int],
    seen: dict[int, int],
    order: tuple[int, ...],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Code of one image of a factor, and the labelled indices with its new ones appended."""
    code = []
    fresh: list[int] = []
    known = len(order)
    for axis in perm:
        index = held[axis]
        label = seen.get(index)
        if label is not None:
            code.append(label)
        elif index in fresh:
            code.append(known + fresh.index(index))
        else:
            code.append(UNLABELLED + rank[index])
            fresh.append(index)
    return tuple(code), (*order, *fresh) if fresh else order


def refined_ranks(
    parts: Sequence[Labelled], images: Sequence[Images], kinds: Mapping[int, Any]
) -> dict[int, int]:
    """Rank of each index by its kind, refined twice by the factors that hold it."""
    rank = _ranked(kinds)
    for _ in range(2):
        if len(set(rank.values())) == len(rank):
            break
        around: dict[int, list[tuple[Any, int, tuple[int, ...]]]] = {i: [] for i in rank}
        for (label, held), image in zip(parts, images, strict=True):
            ranks = tuple(sorted(rank[i] for i in held))
            for axis, index in enumerate(held):
                around[index].append((label, image.orbits[axis], ranks))
        rank = _ranked({i: (rank[i], tuple(sorted(around[i]))) for i in rank})
    return rank


def _ranked(details: Mapping[int, Any]) -> dict[int, int]:
    """The rank of the detail of each index among all of them."""
    level = {detail: n for n, detail in enumerate(sorted(set(details.values())))}
    return {index: level[detail] for index, detail in details.items()}
