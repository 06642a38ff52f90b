"""What every array takes for each set of contracted axes, and what any plan takes at least."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations
from math import prod

from ...ir.cost import extent_of
from .candidates import Sharing
from .dependences import Instance

Table = tuple[tuple[tuple[int, ...], int], ...]  # (contracted axes, what is taken)


def least_peak(
    found: Sharing,
    weights: Mapping[int, int],
    extents: Mapping[str, int],
    tiles: Mapping[str, int],
) -> int:
    """A lower bound on the peak that needs no search.

    What one statement touches, each array contracted as far as it may be by itself.
    """
    return least_of(found, tables_of(found, weights, extents, tiles), peak=True)


def tables_of(
    found: Sharing,
    weights: Mapping[int, int],
    extents: Mapping[str, int],
    tiles: Mapping[str, int],
) -> dict[int, Table]:
    """What every array that is held takes, by position among the instances."""
    return {
        n: _table(i, weights[n], extents, tiles)
        for n, i in enumerate(found.instances)
        if i.array.is_held
    }


def least_of(found: Sharing, tables: Mapping[int, Table], *, peak: bool) -> int:
    """A lower bound on the static sum, or on the peak, from the tables alone."""
    least = {n: min(size for _, size in t) for n, t in tables.items()}
    if not peak:
        return sum(least.values())
    nodes = (n.id for n in found.graph.nodes)
    return max((sum(least[n] for n in touched(found, u, tables)) for u in nodes), default=0)


def touched(found: Sharing, node: int, counted: Collection[int]) -> list[int]:
    """Arrays that live while a statement runs, whatever the order."""
    users = ((n, found.instances[n]) for n in counted)
    return [n for n, i in users if i.kept or node in i.producers or node in i.consumers]


def _table(
    instance: Instance, weight: int, extents: Mapping[str, int], tiles: Mapping[str, int]
) -> Table:
    """What an array takes for every set of contracted axes, each of which counts its tile."""
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
