"""The size of every array for each set of contracted axes, and lower bounds on any plan's memory.

Sizes are in units of a weight for one element: 1, or its bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations
from math import prod

from ...ir.cost import extent_of
from .candidates import FusionCandidates
from .dependences import Instance

Table = tuple[tuple[tuple[int, ...], int], ...]  # (contracted axes, size)


def least_peak(
    candidates: FusionCandidates,
    weights: Mapping[int, int],
    extents: Mapping[str, int],
    tiles: Mapping[str, int],
) -> int:
    """A lower bound on the peak that needs no search: the most that one statement touches.

    Each array counts with as many contracted axes as it could have by itself.

    Args:
        candidates: of the program.
        weights: by position in ``candidates.instances``, of one element.
        extents: of the base spaces.
        tiles: elements of a tile, by space; a contracted axis of any other space counts 1.
    """
    return least_of(candidates, tables_of(candidates, weights, extents, tiles), peak=True)


def tables_of(
    candidates: FusionCandidates,
    weights: Mapping[int, int],
    extents: Mapping[str, int],
    tiles: Mapping[str, int],
) -> dict[int, Table]:
    """Sizes of every array that is held, by position among the instances."""
    return {
        n: _table(i, weights[n], extents, tiles)
        for n, i in enumerate(candidates.instances)
        if i.array.is_held
    }


def least_of(candidates: FusionCandidates, tables: Mapping[int, Table], *, peak: bool) -> int:
    """A lower bound on the static sum, or on the peak, from the tables alone."""
    least = {n: min(size for _, size in t) for n, t in tables.items()}
    if not peak:
        return sum(least.values())
    nodes = (n.id for n in candidates.graph.nodes)
    return max((sum(least[n] for n in touched(candidates, u, tables)) for u in nodes), default=0)


def touched(candidates: FusionCandidates, node: int, counted: Collection[int]) -> list[int]:
    """Arrays that are live while a statement runs, whatever the order."""
    users = ((n, candidates.instances[n]) for n in counted)
    return [n for n, i in users if i.persistent or node in i.producers or node in i.consumers]


def _table(
    instance: Instance, weight: int, extents: Mapping[str, int], tiles: Mapping[str, int]
) -> Table:
    """Sizes of an array for every set of contracted axes, each of which counts its tile."""
    spaces = instance.array.spaces
    shape = [extent_of(space, extents) for space in spaces]
    tile = [min(n, tiles.get(s.name, 1)) for n, s in zip(shape, spaces, strict=True)]
    axes = [axis for axis, _ in instance.axes if tile[axis] < shape[axis]]
    return tuple(
        (
            chosen,
            weight * prod(tile[a] if a in chosen else n for a, n in enumerate(shape)),
        )
        for count in range(len(axes) + 1)
        for chosen in combinations(axes, count)
    )
