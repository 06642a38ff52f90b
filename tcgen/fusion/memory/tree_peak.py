"""Least peak of a tree: ordered prefixes of loops, and the best order of every body.

The least peak of rounded sizes is a lower bound on that of the true sizes. Its loops, with the best
order of all statements, give an upper bound. The rounding becomes finer until the two meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from ...ir.program import Phase
from ...thresholds.planner import TreeThresholds
from ..placement.memory import whole_elements
from ..placement.nest import chains
from ..sharing.candidates import (
    Arrangement,
    FusionCandidates,
    exclusive_uses,
    instances_overlap,
    least_peak,
)
from ..sharing.graph import phase_of
from ..solver.memory_model import SearchResult
from .tree_fusions import (
    Branch,
    Profile,
    StepsSpent,
    TreeFusions,
    end_of,
    merged,
    peak_of,
    prefixes_of,
    profile_of,
)
from .tree_prefixes import Order

# Loops of each array, by its producer.
Prefixes = Mapping[int, Order]


def least_tree_peak(
    candidates: FusionCandidates,
    weights: Mapping[int, int],
    extents: Mapping[str, int],
    start: Arrangement,
    effort: int,
    thresholds: TreeThresholds,
) -> SearchResult | None:
    """The least peak of a tree, or a bound and a good arrangement; None for other programs."""
    branches = _branches(candidates, weights, extents)
    if branches is None:
        return None
    prefixes = _started(candidates, branches, start)
    order, peak = _ordered(candidates, branches, prefixes)
    bound, steps = least_peak(candidates, weights, extents, {}), thresholds.steps * effort
    unit = gcd(*(b.bytes(tuple(b.extents)) for b in branches.values()))
    parts = thresholds.first_parts
    while bound < peak:
        grain, before = max(unit, peak // parts), peak
        tables = TreeFusions(branches, grain, peak - 1, steps)
        try:
            least, now = _rounded(tables, _roots(candidates, branches), peak)
        except StepsSpent:
            break
        steps, bound = tables.steps, max(bound, least)
        if now is not None:
            order_now, peak_now = _ordered(candidates, branches, now)
            if peak_now < peak:
                prefixes, order, peak = now, order_now, peak_now
        if grain == unit:
            break
        if peak > before * thresholds.repeat_below:
            parts *= thresholds.more_parts
    arrangement = _arrangement(candidates, prefixes, order)
    return SearchResult(arrangement, arrangement is not None and bound >= peak, min(bound, peak))


def _branches(
    candidates: FusionCandidates, weights: Mapping[int, int], extents: Mapping[str, int]
) -> dict[int, Branch] | None:
    """All arrays that are held; None unless each has exactly one producer and one consumer."""
    edges = {e.producer: e for e in candidates.graph.edges}
    branches: dict[int, Branch] = {}
    for n, instance in enumerate(candidates.instances):
        array = instance.array
        if not array.is_held:
            continue
        if instance.persistent or not len(instance.producers) == len(instance.consumers) == 1:
            return None
        maker, reader = instance.producers[0], instance.consumers[0]
        edge = edges.get(maker)
        if edge is None and array.rank:
            return None
        axes = () if edge is None else edge.candidates
        sizes = {c.loop: array.spaces[c.axis].extent_in(extents) for c in axes}
        branches[maker] = Branch(maker, reader, weights[n] * whole_elements(array, extents), sizes)
    return branches


def _started(
    candidates: FusionCandidates, branches: Mapping[int, Branch], start: Arrangement
) -> Prefixes:
    """The prefixes of an arrangement; a loop with more statements is outside."""
    inside = {use: n for n, uses in enumerate(start.loops) for use in uses}
    prefixes: dict[int, Order] = dict.fromkeys(branches, ())
    for edge in candidates.graph.edges:
        shared = []
        for c in edge.candidates:
            number = inside.get((edge.producer, c.producer_index))
            if number is not None and number == inside.get((edge.consumer, c.consumer_index)):
                shared.append((-len(start.loops[number]), number, c.loop))
        prefixes[edge.producer] = tuple(loop for _, _, loop in sorted(shared))
    return prefixes


def _roots(candidates: FusionCandidates, branches: Mapping[int, Branch]) -> list[int]:
    """Last statements of the trees, in an order in which the trees can run."""
    nodes = (n.id for n in candidates.graph.nodes if n.id not in branches)
    return sorted(nodes, key=lambda n: (phase_of(candidates.graph, n) is Phase.VOLATILE, n))


def _rounded(tables: TreeFusions, roots: list[int], peak: int) -> tuple[int, Prefixes | None]:
    """Least peak of rounded sizes, and its prefixes; None where it is not below ``peak``."""
    least, prefixes = 0, dict[int, Order]()
    for root in roots:
        best = tables.least(root)
        if best is None:
            return peak, None
        least = max(least, best.inside)
        prefixes |= prefixes_of(best.chosen)
    return least, prefixes


def _ordered(
    candidates: FusionCandidates, branches: Mapping[int, Branch], prefixes: Prefixes
) -> tuple[tuple[int, ...], int]:
    """The best order of all statements for these prefixes, and its peak."""
    below: dict[int, list[int]] = {}
    for e, branch in branches.items():
        below.setdefault(branch.consumer, []).append(e)

    def node(number: int, depth: int) -> tuple[list[Profile], int, tuple[int, ...]]:
        """Profiles of a subtree in the bodies around its node; peak and statements of its item."""
        edges = below.get(number, ())
        bodies: list[Profile] = [()] * (max([depth, *(len(prefixes[e]) for e in edges)]) + 1)
        for e in edges:
            for n, profile in enumerate(edge(e)):
                bodies[n] = merged(bodies[n], profile)
        inside = 0
        statements: tuple[int, ...] = (number,)
        while len(bodies) > depth + 1:
            last = bodies.pop()
            inside = max(peak_of(last), end_of(last) + inside)
            statements = (*(u for _, _, more in last for u in more), *statements)
        return bodies, inside, statements

    def edge(e: int) -> list[Profile]:
        prefix = prefixes[e]
        size = branches[e].bytes(prefix)
        bodies, inside, statements = node(e, len(prefix))
        last = bodies[-1]
        bodies[-1] = profile_of((*last, (end_of(last) + inside + size, size, statements)))
        return bodies

    order, peak = list[int](), 0
    for root in _roots(candidates, branches):
        (body,), inside, statements = node(root, 0)
        order += [*(u for _, _, more in body for u in more), *statements]
        peak = max(peak, peak_of(body), end_of(body) + inside)
    return tuple(order), peak


def _arrangement(
    candidates: FusionCandidates, prefixes: Prefixes, order: tuple[int, ...]
) -> Arrangement | None:
    """The loops and the order; None where two instances of a generated input would be live."""
    if instances_overlap(exclusive_uses(candidates), order):
        return None
    fused = tuple(
        sorted((e.id, loop) for e in candidates.graph.edges for loop in prefixes[e.producer])
    )
    return Arrangement(tuple(c.bound for c in chains(candidates.graph, fused)), order)
