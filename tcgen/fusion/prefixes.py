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

from ..ir.cost import extent_of
from .graph import FusionGraph
from .legality import Variable
from .memory import whole_elements

Order = tuple[int, ...]  # loops, outermost first

_MOST = 400_000  # prefixes of all edges that are tried; a second or two


@dataclass(slots=True)
class _Place:
    """What a node knows of one order of loops.

    Attributes:
        least: for each edge below, the least cost among the prefixes of the order, and that prefix.
        total: least cost of the subtree if the order begins like this.
        more: the loop that comes next in the best order, or None where it ends.
    """

    least: tuple[tuple[int, Order], ...]
    total: int
    more: int | None


def least_static(graph: FusionGraph, extents: Mapping[str, int]) -> tuple[Variable, ...] | None:
    """What to fuse for the least sum of all arrays; None where there are too many prefixes.

    Among equal sums each node's order is the shortest that was found first.

    Source: the algorithm of Lam et al. for trees; legality as in Theorem 1 of Allam et al.

    Args:
        graph: of a program that is a tree, or several.
        extents: of the base spaces.
    """
    if graph.restricted or sum(_prefixes(len(e.loops)) for e in graph.edges) > _MOST:
        return None
    fused: list[Variable] = []
    for part in graph.parts:
        fused += _Tree(graph, part, extents).fused()
    return tuple(sorted(fused))


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
        self.places: dict[int, dict[Order, _Place]] = {}
        self.sizes = {e: self._sizes(e) for e in part}
        for node in sorted(self.below):  # producers come first
            self.places[node] = {}
            edges = self.below[node]
            whole = [whole_elements(graph.edges[e].array, extents) for e in edges]
            least = tuple((n + self._below(e, ()), ()) for e, n in zip(edges, whole, strict=True))
            alive = tuple(zip(range(len(edges)), edges, whole, strict=True))
            self._walk(node, (), least, sum(n for n, _ in least), alive)

    def _sizes(self, e: int) -> dict[int, int]:
        edge = self.graph.edges[e]
        return {c.loop: extent_of(edge.array.spaces[c.axis], self.extents) for c in edge.candidates}

    def _below(self, e: int, order: Order) -> int:
        """Least cost of all below an edge whose prefix is ``order``."""
        node = self.graph.edges[e].producer
        return self._at(node, order).total if node in self.places else 0

    def _at(self, node: int, order: Order) -> _Place:
        """The place of an order; where no edge can go on, that of its longest known prefix."""
        known = self.places[node]
        while order not in known:
            order = order[:-1]
            if order in known:  # what comes next belongs to no edge: nothing can follow
                place = known[order]
                return _Place(place.least, sum(n for n, _ in place.least), None)
        return known[order]

    def _walk(
        self,
        node: int,
        order: Order,
        least: tuple[tuple[int, Order], ...],
        total: int,
        alive: tuple[tuple[int, int, int], ...],
    ) -> int:
        """Fill the places of all orders that begin with ``order``; returns the least total.

        Args:
            node: whose edges are ordered.
            order: of loops so far.
            least: as in a place.
            total: sum of ``least``.
            alive: edges that have all loops of the order: number, edge, what its array then takes.
        """
        sizes, best, more = self.sizes, total, None
        for loop in dict.fromkeys([loop for _, e, _ in alive for loop in sizes[e]]):
            if loop in order:
                continue
            longer, sum_now, found = (*order, loop), total, least
            still = []
            for number, e, held in alive:
                if loop not in sizes[e]:
                    continue
                kept = held // sizes[e][loop]
                still.append((number, e, kept))
                cost, before = kept + self._below(e, longer), found[number][0]
                if cost < before:
                    found = (*found[:number], (cost, longer), *found[number + 1 :])
                    sum_now += cost - before
            reached = self._walk(node, longer, found, sum_now, tuple(still))
            if reached < best:
                best, more = reached, loop
        self.places[node][order] = _Place(least, best, more)
        return best

    def fused(self) -> list[Variable]:
        """The fused loops of each edge in the best orders, from the root to the leaves."""
        chosen: list[Variable] = []
        nodes: list[tuple[int, Order]] = [(self.root, ())]
        while nodes:
            node, order = nodes.pop()
            if node not in self.places:
                continue
            place = self._at(node, order)
            while place.more is not None:
                order = (*order, place.more)
                place = self.places[node][order]
            for e, (_, prefix) in zip(self.below[node], place.least, strict=True):
                chosen += [(e, loop) for loop in prefix]
                nodes.append((self.graph.edges[e].producer, prefix))
        return chosen
