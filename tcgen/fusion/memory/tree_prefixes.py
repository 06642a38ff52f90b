"""Least static sum of a tree by dynamic programming over ordered prefixes of loops.

At a node the loops of all its edges stand in one order, and the fused loops of each edge are a
prefix of it. So the least memory of the subtree below an edge depends only on the ordered prefix
that is fused on that edge. Exact, and far quicker than a search where many loops could be
exchanged for one another: batch indices that all arrays have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import factorial

from ...ir.cost import extent_of
from ..placement.memory import whole_elements
from ..sharing.graph import FusionGraph, Variable

Order = tuple[int, ...]  # loops, outermost first


@dataclass(slots=True)
class _Place:
    """What a node knows of one order of loops.

    Attributes:
        least: for each edge below, the least cost among the prefixes of the order, and that prefix.
        total: least cost of the subtree if the order begins like this.
        more: the loop that comes next in the best order, or None where it ends.
        longer: places of the orders with one loop more. A loop that is not here belongs to no edge
            below, so that nothing can follow it, or is the twin of one that has to come first.
    """

    least: tuple[tuple[int, Order], ...]
    total: int
    more: int | None
    longer: dict[int, _Place]

    @property
    def here(self) -> int:
        """Least cost of the subtree if the order ends here."""
        return sum(cost for cost, _ in self.least)


# An edge that has all loops of an order: its number at the node, the edge, what its array then
# takes, and what is below: a place, or a cost that stays where the order can go no further there.
Alive = tuple[int, int, int, _Place | int]


def least_static(
    graph: FusionGraph, extents: Mapping[str, int], most: int
) -> tuple[Variable, ...] | None:
    """What to fuse for the least sum of all arrays; None where there are too many prefixes.

    Among equal sums each node's order is the shortest that was found first.

    Source: the algorithm of Lam et al. for trees; legality as in Theorem 1 of Allam et al.

    Args:
        graph: of a program that is a tree, or several.
        extents: of the base spaces.
        most: prefixes of all edges that may be tabulated.
    """
    if graph.restricted or sum(_prefixes(len(e.loops)) for e in graph.edges) > most:
        return None
    fused: list[Variable] = []
    for part in graph.parts:
        fused += _Tree(graph, part, extents).fused()
    return tuple(sorted(fused))


def twins(extents: Mapping[int, Mapping[int, int]]) -> dict[int, int]:
    """For a loop that the same edges have as another one, with the same extent: that other one.

    Batch indices are such loops. Where a prefix has one of them and not yet the one before it, the
    two could be exchanged there and on all edges around that share either; so only orders need be
    looked at in which each is inside the one before it.

    Args:
        extents: of the loops of every edge.

    Example:
        >>> twins({0: {5: 10, 6: 10, 7: 10}, 1: {5: 10, 6: 10}})
        {6: 5}
    """
    users: dict[int, list[tuple[int, int]]] = {}
    for e, loops in extents.items():
        for loop, extent in loops.items():
            users.setdefault(loop, []).append((e, extent))
    last: dict[tuple[tuple[int, int], ...], int] = {}
    found: dict[int, int] = {}
    for loop, edges in users.items():
        if tuple(edges) in last:
            found[loop] = last[tuple(edges)]
        last[tuple(edges)] = loop
    return found


def _prefixes(count: int) -> int:
    """Ordered selections of any number of loops out of ``count``.

    Example:
        >>> [_prefixes(n) for n in range(6)]
        [1, 2, 5, 16, 65, 326]
    """
    return sum(factorial(count) // factorial(n) for n in range(count + 1))


class _Tree:
    """Tables of one tree, from the leaves to the root."""

    def __init__(self, graph: FusionGraph, part: tuple[int, ...], extents: Mapping[str, int]):
        self.graph, self.extents = graph, extents
        self.below: dict[int, list[int]] = {}
        for e in part:  # producers first
            self.below.setdefault(graph.edges[e].consumer, []).append(e)
        self.root = graph.edges[part[-1]].consumer
        self.places: dict[int, _Place] = {}  # of the empty order, by node
        self.sizes = {e: self._sizes(e) for e in part}
        self.twin = twins(self.sizes)
        for node in sorted(self.below):  # producers come first
            alive: list[Alive] = []
            least: tuple[tuple[int, Order], ...] = ()
            for number, e in enumerate(self.below[node]):
                edge = graph.edges[e]
                whole = whole_elements(edge.array, extents)
                under = self.places.get(edge.producer)
                alive.append((number, e, whole, 0 if under is None else under))
                least = (*least, (whole + (0 if under is None else under.total), ()))
            loops = tuple(dict.fromkeys(loop for e in self.below[node] for loop in self.sizes[e]))
            self.places[node] = self._place((), loops, least, sum(n for n, _ in least), alive)

    def _sizes(self, e: int) -> dict[int, int]:
        edge = self.graph.edges[e]
        return {c.loop: extent_of(edge.array.spaces[c.axis], self.extents) for c in edge.candidates}

    def _place(
        self,
        order: Order,
        left: Order,
        least: tuple[tuple[int, Order], ...],
        total: int,
        alive: list[Alive],
    ) -> _Place:
        """The places of all orders that begin with ``order``.

        Args:
            order: of loops so far.
            left: loops that are not in it.
            least: as in a place.
            total: sum of ``least``.
            alive: edges that have all loops of the order.
        """
        sizes, best, more = self.sizes, total, None
        places: dict[int, _Place] = {}
        for n, loop in enumerate(left):
            if self.twin.get(loop, loop) not in (loop, *order):
                continue
            longer, sum_now, found = (*order, loop), total, least
            still: list[Alive] = []
            for number, e, held, under in alive:
                extent = sizes[e].get(loop)
                if extent is None:
                    continue
                kept = cost = held // extent
                if isinstance(under, int):
                    cost += under
                else:
                    deeper = under.longer.get(loop)
                    if deeper is None:
                        under = under.here
                        cost += under
                    else:
                        under = deeper
                        cost += deeper.total
                still.append((number, e, kept, under))
                before = found[number][0]
                if cost < before:
                    found = (*found[:number], (cost, longer), *found[number + 1 :])
                    sum_now += cost - before
            if not still:
                continue
            place = self._place(longer, (*left[:n], *left[n + 1 :]), found, sum_now, still)
            places[loop] = place
            if place.total < best:
                best, more = place.total, loop
        return _Place(least, best, more, places)

    def fused(self) -> list[Variable]:
        """The fused loops of each edge in the best orders, from the root to the leaves."""
        chosen: list[Variable] = []
        nodes: list[tuple[int, Order]] = [(self.root, ())]
        while nodes:
            node, order = nodes.pop()
            if node not in self.places:
                continue
            place, ends = self.places[node], False
            for loop in order:
                if loop not in place.longer:
                    ends = True
                    break
                place = place.longer[loop]
            while place.more is not None and not ends:
                place = place.longer[place.more]
            for e, (_, prefix) in zip(self.below[node], place.least, strict=True):
                chosen += [(e, loop) for loop in prefix]
                nodes.append((self.graph.edges[e].producer, prefix))
        return chosen
