"""Least memory of a tree by a dynamic program over ordered fused prefixes."""

from __future__ import annotations

from functools import cache
from itertools import permutations
from math import prod

from tcgen.fusion.sharing.graph import FusionGraph


def least_by_prefixes(graph: FusionGraph, part, extents) -> int:
    """Dynamic program: the state is the ordered fused prefix on the edge to the root."""
    below: dict[int, list[int]] = {}
    for e in part:
        below.setdefault(graph.edges[e].consumer, []).append(e)

    def size(e: int, held: tuple[int, ...]) -> int:
        edge = graph.edges[e]
        return prod(
            edge.array.spaces[c.axis].extent_in(extents)
            for c in edge.candidates
            if c.loop not in held
        )

    @cache
    def best(node: int, prefix: tuple[int, ...]) -> int:
        edges = below.get(node, [])
        more = sorted({loop for e in edges for loop in graph.edges[e].loops} - set(prefix))
        return min(
            sum(
                min(
                    size(e, order[:n]) + best(graph.edges[e].producer, order[:n])
                    for n in range(len(order) + 1)
                    if set(order[:n]) <= set(graph.edges[e].loops)
                )
                for e in edges
            )
            for order in ((*prefix, *rest) for rest in permutations(more))
        )

    return best(graph.edges[part[-1]].consumer, ())
