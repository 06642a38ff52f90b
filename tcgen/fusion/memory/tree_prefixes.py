"""Least static sum of a tree by dynamic programming over ordered prefixes of loops.

The loops of all edges of a node have one order, and the fused loops of each edge are a prefix of
it. So the least memory of the subtree below an edge depends only on the ordered prefix that is
fused on that edge. The result is exact. Where many loops are interchangeable, as batch indices of
all arrays are, this is far quicker than a search.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import factorial

from ..placement.memory import whole_elements
from ..sharing.graph import FusionGraph, Variable

Order = tuple[int, ...]  # loops, outermost first


@dataclass(slots=True)
class _Entry:
    """The table entry of a node for one order of loops.

    Attributes:
        least: least cost of each edge below among the prefixes of the order, and that prefix.
        total: least cost of the subtree over all orders that begin with this one.
        more: the next loop of the best of these orders; None where it ends.
        longer: entries of the orders with one more loop. A loop without an entry belongs to no edge
            below, or is the twin of a loop that has to come first.
    """

    least: tuple[tuple[int, Order], ...]
    total: int
    more: int | None
    longer: dict[int, _Entry]

    @property
    def here(self) -> int:
        """Cost of the subtree if the order ends here."""
        return sum(cost for cost, _ in self.least)


# An edge that shares all loops of an order: its number at the node, the edge, its array's size, and
# the subtree below: its table entry, or its cost if a longer order cannot change that.
OpenEdge = tuple[int, int, int, _Entry | int]


def least_static(
    graph: FusionGraph, extents: Mapping[str, int], most: int
) -> tuple[Variable, ...] | None:
    """The fused loops of least static sum of one or several trees.

    The result is None for other graphs, and if all edges have more than ``most`` ordered prefixes.
    Among equal sums, each node's order is the shortest, and of these the first in order of loops.

    Source: the algorithm of Lam et al. for trees; legality as in Theorem 1 of Allam et al.
    """
    if graph.restricted or sum(_prefixes(len(e.loops)) for e in graph.edges) > most:
        return None
    fused: list[Variable] = []
    for part in graph.parts:
        fused += _Tree(graph, part, extents).fused()
    return tuple(sorted(fused))


def twins(extents: Mapping[int, Mapping[int, int]]) -> dict[int, int]:
    """For each loop, the one before it that belongs to the same edges with the same extents.

    Batch indices are such loops. Where a prefix has only the later one of two twins, they could be
    exchanged there and on all surrounding edges that share either. So it is enough to consider
    orders in which each loop is inside the one before it.

    Example:
        >>> twins({0: {5: 10, 6: 10, 7: 10}, 1: {5: 10, 6: 10}})
        {6: 5}
    """
    users: dict[int, list[tuple[int, int]]] = {}
    for e, loops in extents.items():
        for loop, extent in loops.items():
            users.setdefault(loop, []).append((e, extent))
    last: dict[tuple[tuple[int, int], ...], int] = {}
    previous: dict[int, int] = {}
    for loop, edges in users.items():
        if tuple(edges) in last:
            previous[loop] = last[tuple(edges)]
        last[tuple(edges)] = loop
    return previous


def _prefixes(count: int) -> int:
    """Ordered selections of any number of loops out of ``count`` (0 to 5: 1, 2, 5, 16, 65, 326)."""
    return sum(factorial(count) // factorial(n) for n in range(count + 1))


class _Tree:
    """Tables of one tree, from the leaves to the root."""

    def __init__(self, graph: FusionGraph, part: tuple[int, ...], extents: Mapping[str, int]):
        self.graph, self.extents = graph, extents
        self.below: dict[int, list[int]] = {}
        for e in part:  # producers first
            self.below.setdefault(graph.edges[e].consumer, []).append(e)
        self.root = graph.edges[part[-1]].consumer
        # Entries of the empty order, by node.
        self.entries: dict[int, _Entry] = {}
        self.sizes = {e: self._sizes(e) for e in part}
        self.twin = twins(self.sizes)
        for node in sorted(self.below):  # producers come first
            open_edges: list[OpenEdge] = []
            least: tuple[tuple[int, Order], ...] = ()
            for number, e in enumerate(self.below[node]):
                edge = graph.edges[e]
                whole = whole_elements(edge.array, extents)
                under = self.entries.get(edge.producer)
                open_edges.append((number, e, whole, 0 if under is None else under))
                least = (*least, (whole + (0 if under is None else under.total), ()))
            loops = tuple(dict.fromkeys(loop for e in self.below[node] for loop in self.sizes[e]))
            self.entries[node] = self._entry((), loops, least, sum(n for n, _ in least), open_edges)

    def _sizes(self, e: int) -> dict[int, int]:
        edge = self.graph.edges[e]
        return {c.loop: edge.array.spaces[c.axis].extent_in(self.extents) for c in edge.candidates}

    def _entry(
        self,
        order: Order,
        left: Order,
        least: tuple[tuple[int, Order], ...],
        total: int,
        open_edges: list[OpenEdge],
    ) -> _Entry:
        """The entry of ``order``, with those of all orders that begin with it.

        ``left`` has the loops outside of the order, ``least`` and ``total`` the least cost of each
        edge and their sum. ``open_edges`` share all loops of the order.
        """
        sizes, best, more = self.sizes, total, None
        entries: dict[int, _Entry] = {}
        for n, loop in enumerate(left):
            if self.twin.get(loop, loop) not in (loop, *order):
                continue
            longer, sum_now, least_now = (*order, loop), total, least
            still: list[OpenEdge] = []
            for number, e, held, under in open_edges:
                extent = sizes[e].get(loop)
                if extent is None:
                    continue
                size = cost = held // extent
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
                still.append((number, e, size, under))
                before = least_now[number][0]
                if cost < before:
                    least_now = (*least_now[:number], (cost, longer), *least_now[number + 1 :])
                    sum_now += cost - before
            if not still:
                continue
            entry = self._entry(longer, (*left[:n], *left[n + 1 :]), least_now, sum_now, still)
            entries[loop] = entry
            if entry.total < best:
                best, more = entry.total, loop
        return _Entry(least, best, more, entries)

    def fused(self) -> list[Variable]:
        """The fused loops of each edge in the best orders, from the root to the leaves."""
        chosen: list[Variable] = []
        nodes: list[tuple[int, Order]] = [(self.root, ())]
        while nodes:
            node, order = nodes.pop()
            if node not in self.entries:
                continue
            entry, ends = self.entries[node], False
            for loop in order:
                if loop not in entry.longer:
                    ends = True
                    break
                entry = entry.longer[loop]
            while entry.more is not None and not ends:
                entry = entry.longer[entry.more]
            for e, (_, prefix) in zip(self.below[node], entry.least, strict=True):
                chosen += [(e, loop) for loop in prefix]
                nodes.append((self.graph.edges[e].producer, prefix))
        return chosen
