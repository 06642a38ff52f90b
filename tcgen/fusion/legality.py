"""Legality of fusion on trees as linear inequalities over 0-1 variables, kept as data.

Two loops must be nested or apart. The inequalities of Allam et al. say so exactly when a path is
read as a path of edges: its ends are its first and last edge, the slack runs over the edges between
them, and a potential fusion edge that does not exist is the constant 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import combinations

from .sharing.graph import Edge, FusionGraph, Variable


@dataclass(frozen=True, slots=True)
class Inequality:
    """``sum of coefficient * variable <= bound``; terms in order of the variables, none is 0."""

    terms: tuple[tuple[Variable, int], ...]
    bound: int

    @property
    def vacuous(self) -> bool:
        """True where no choice of 0 and 1 can break it."""
        return sum(c for _, c in self.terms if c > 0) <= self.bound

    def holds(self, fused: Collection[Variable]) -> bool:
        """True where the fused variables satisfy it."""
        return sum(c for v, c in self.terms if v in fused) <= self.bound


def variables(graph: FusionGraph, part: tuple[int, ...]) -> tuple[Variable, ...]:
    """Potential fusion edges of a tree: x1, x2, ... of the paper's Table 1."""
    return tuple((e, loop) for e in part for loop in graph.edges[e].loops)


def path_inequalities(graph: FusionGraph, part: tuple[int, ...]) -> tuple[Inequality, ...]:
    """All inequalities of a tree, two for each path and pair of loops, vacuous ones included.

    Source: Allam et al., Eq. (1) and Figure 5.
    """
    order = {v: n for n, v in enumerate(variables(graph, part))}
    found: list[Inequality] = []
    for first, inner, last in _paths(graph, part):
        start, stop = set(graph.edges[first].loops), set(graph.edges[last].loops)
        allowed = start | stop
        for edge in inner:
            allowed &= set(graph.edges[edge].loops)
        for j, k in combinations(sorted(allowed & (start | stop)), 2):
            if (j in start and k in stop) or (k in start and j in stop):
                found.append(_inequality(order, first, inner, last, j, k))
                found.append(_inequality(order, first, inner, last, k, j))
    return tuple(found)


def _inequality(
    order: dict[Variable, int], first: int, inner: tuple[int, ...], last: int, j: int, k: int
) -> Inequality:
    """(x_sj + x_tk) - (x_sk + x_tj) <= 1 + sum over inner edges a of (1 - x_ak)."""
    terms = [((first, j), 1), ((last, k), 1), ((first, k), -1), ((last, j), -1)]
    terms += [((edge, k), 1) for edge in inner]
    kept = sorted(((v, c) for v, c in terms if v in order), key=lambda term: order[term[0]])
    return Inequality(tuple(kept), 1 + len(inner))


def _paths(graph: FusionGraph, part: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...], int]]:
    """Paths of two or more edges: first edge, edges between, last edge (a larger id).

    A path goes on only while the edges between share two loops, as no inequality needs more.
    """
    touching: dict[int, list[Edge]] = {}
    for edge in (graph.edges[e] for e in part):
        touching.setdefault(edge.producer, []).append(edge)
        touching.setdefault(edge.consumer, []).append(edge)

    def extend(
        first: int, inner: tuple[int, ...], last: Edge, node: int, shared: frozenset[int] | None
    ) -> Iterator[tuple[int, tuple[int, ...], int]]:
        for edge in touching[node]:
            if edge == last:
                continue
            if edge.id > first:
                yield first, inner, edge.id
            common = frozenset(edge.loops) if shared is None else shared.intersection(edge.loops)
            if len(common) >= 2:
                beyond = edge.producer if edge.consumer == node else edge.consumer
                yield from extend(first, (*inner, edge.id), edge, beyond, common)

    for edge in (graph.edges[e] for e in part):
        for node in (edge.producer, edge.consumer):
            yield from extend(edge.id, (), edge, node, None)
