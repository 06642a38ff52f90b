"""Fusion candidates: the loop uses that may share a loop, on any program, and sizes of arrays.

An axis of an array is contracted if its producers and consumers all use it in one loop. Loop uses
that can never share a loop, by the rules of :mod:`.dependences`, are in different groups, so that
no search considers them together. The table of an array has its size for each set of contracted
axes, in units of a weight for one element: 1, or its bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import prod

from ...ir.cost import saving
from ...ir.tensor import Role, Tensor
from .dependences import (
    Dependences,
    Instance,
    LoopUse,
    bare_instances,
    find_dependences,
    index_pairs_of,
    sort_key,
)
from .graph import FusionGraph, step_of

# Pairs of uses of one generated input, each of which is (producer, reader).
ExclusiveUses = list[tuple[tuple[int, int], tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class FusionCandidates:
    """The fusions that a program allows.

    Attributes:
        instances: arrays; outputs are among them, without an axis that may be contracted.
        groups: groups of loop uses, in order; two groups never have a loop in common.
        repeats: loop uses of statements that have no index for the loop, so that each iteration
            repeats them; each with the loop use of a reader that it follows.
        linear: an array counts the elements that Eq. (10) of Allam et al. would save on its axes
            that are not contracted, instead of its size.
    """

    graph: FusionGraph
    instances: tuple[Instance, ...]
    dependences: Dependences
    groups: tuple[tuple[LoopUse, ...], ...]
    repeats: Mapping[LoopUse, LoopUse] = field(default_factory=dict)
    linear: bool = False


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Shared loops, each by its members, and an order of execution.

    Statements that are absent from the order have no loops and may run anywhere.
    """

    loops: tuple[tuple[LoopUse, ...], ...]
    order: tuple[int, ...]


def fusion_candidates(graph: FusionGraph, *, linear: bool = False) -> FusionCandidates:
    """The fusion candidates of a program, for searches that also order the statements."""
    bare = bare_instances(graph)
    dependences = find_dependences(graph, bare, index_pairs_of(graph, bare))
    return build_candidates(graph, bare, dependences, {}, ordered=True, linear=linear)


def without_order(candidates: FusionCandidates) -> FusionCandidates:
    """The same candidates, for searches that leave the order of the statements open."""
    bare = tuple(replace(i, axes=()) for i in candidates.instances)
    linear = candidates.linear
    return build_candidates(candidates.graph, bare, candidates.dependences, {}, linear=linear)


def build_candidates(
    graph: FusionGraph,
    bare: tuple[Instance, ...],
    dependences: Dependences,
    repeats: Mapping[LoopUse, LoopUse],
    shrinking: Collection[Tensor] | None = None,
    *,
    ordered: bool = False,
    linear: bool = False,
) -> FusionCandidates:
    """The candidates that follow from the pairs of indices that may be one loop.

    Of ``bare``, arrays without axes, only those in ``shrinking`` may be contracted; None: all.
    ``repeats`` has loop uses of repeated statements, and those that they follow; ``dependences``
    includes those of repeated statements. With ``ordered``, statements that only run between the
    members of a loop are included.
    """
    instances = tuple(
        _with_axes(graph, i, dependences) if shrinking is None or i.array in shrinking else i
        for i in bare
    )
    groups = _groups(graph, instances, dependences, repeats, ordered=ordered)
    used = {use for group in groups for use in group}
    useful = {use: origin for use, origin in repeats.items() if use in used}
    return FusionCandidates(graph, instances, dependences, groups, useful, linear)


def _with_axes(
    graph: FusionGraph,
    instance: Instance,
    dependences: Dependences,
) -> Instance:
    """The instance with the axes that may be contracted.

    There every user covers the whole space with one index, and their loop uses may be one loop.
    """
    array = instance.array
    if array.role is Role.OUTPUT or instance.persistent or not instance.consumers:
        return instance
    axes: list[tuple[int, tuple[LoopUse, ...]]] = []
    for axis, space in enumerate(array.spaces):
        uses: list[LoopUse] = [(n, step_of(graph, n).out.indices[axis]) for n in instance.producers]
        uses += [
            (n, ref.indices[axis])
            for n in instance.consumers
            for ref in step_of(graph, n).operands
            if ref.tensor == array
        ]
        members = tuple(dict.fromkeys(uses))
        whole = all(index.space == space for _, index in members)
        if whole and dependences.closure(members) is not None:
            axes.append((axis, members))
    return Instance(
        array, instance.reader, instance.producers, instance.consumers, tuple(axes), False
    )


def _groups(
    graph: FusionGraph,
    instances: tuple[Instance, ...],
    dependences: Dependences,
    repeats: Mapping[LoopUse, LoopUse],
    *,
    ordered: bool,
) -> tuple[tuple[LoopUse, ...], ...]:
    """Groups of loop uses: connected by an axis that may be contracted, or by what runs in between.

    A statement may be repeated in a loop of its reader. A statement that runs between two members
    but shares no array with them, such as a product of inputs that is added in between, may be in
    their loop with any index; it is a member only where the order is searched too.
    """
    groups: list[set[LoopUse]] = []

    def join(uses: set[LoopUse]) -> bool:
        met = [g for g in groups if not g.isdisjoint(uses)]
        if len(met) == 1 and uses <= met[0]:
            return False
        groups[:] = [g for g in groups if g.isdisjoint(uses)] + [uses.union(*met)]
        return True

    for instance in instances:
        for _, members in instance.axes:
            join(set((dependences.closure(members) or {}).items()))
    changed = True
    while changed:
        changed = False
        for group in tuple(groups):
            inside = dependences.between({n for n, _ in group})
            for (p, c), fusable in dependences.index_pairs.items():
                if p in inside and c in inside:
                    for made, read in sorted(fusable, key=str):
                        if (p, made) in group or (c, read) in group:
                            changed |= join({(p, made), (c, read)})
            if not ordered:
                continue
            member = next(iter(group))
            linked = {
                n for pair in dependences.index_pairs if inside.issuperset(pair) for n in pair
            }
            for node in inside - linked:
                indices = step_of(graph, node).indices
                free = {(node, i) for i in indices if i.space == member[1].space}
                if free and not free <= group:
                    changed |= join({member, *free})
        for repeated, origin in repeats.items():
            if any(origin in group for group in groups):
                changed |= join({repeated, origin})

    ordered_groups = (tuple(sorted(g, key=sort_key)) for g in groups)
    return tuple(sorted(ordered_groups, key=lambda g: sort_key(g[0])))


def pairs_of(candidates: FusionCandidates) -> tuple[tuple[LoopUse, LoopUse], ...]:
    """Pairs of loop uses that may be one loop."""
    return tuple(
        (a, b)
        for group in candidates.groups
        for a, b in combinations(group, 2)
        if candidates.dependences.can_fuse(a, b)
    )


def exclusive_uses(candidates: FusionCandidates) -> ExclusiveUses:
    """Pairs of readers of one generated input: (producer, reader) of each.

    One instance of an input is live at a time: one reader is done before the other's is produced.
    """
    made = [i for i in candidates.instances if i.reader is not None]
    return [
        ((a.producers[0], a.consumers[0]), (b.producers[0], b.consumers[0]))
        for a, b in combinations(made, 2)
        if a.array == b.array
    ]


def instances_overlap(uses: ExclusiveUses, order: Iterable[int]) -> bool:
    """True where an order of the statements lets two instances of an input be live at one time."""
    if not uses:
        return False
    place = {node: n for n, node in enumerate(order)}
    return any(place[p] < place[d] and place[q] < place[c] for (p, c), (q, d) in uses)


def independent(candidates: FusionCandidates) -> tuple[FusionCandidates, ...]:
    """The parts of a program that have no statement in common, fewest loop uses first.

    The static sum is the sum over the parts, and loops of two parts never meet at a statement.
    """
    clusters: list[tuple[set[int], list[tuple[LoopUse, ...]]]] = []
    for group in candidates.groups:
        nodes, groups = {n for n, _ in group}, [group]
        for other in [c for c in clusters if not c[0].isdisjoint(nodes)]:
            clusters.remove(other)
            nodes, groups = nodes | other[0], other[1] + groups
        clusters.append((nodes, groups))
    parts = [
        replace(
            candidates,
            groups=tuple(groups),
            instances=tuple(i for i in candidates.instances if i.axes and i.producers[0] in nodes),
        )
        for nodes, groups in clusters
    ]
    whole = replace(
        candidates, groups=(), instances=tuple(i for i in candidates.instances if not i.axes)
    )
    return (whole, *sorted(parts, key=lambda part: sum(map(len, part.groups))))


def unmodelled(
    part: FusionCandidates, candidates: FusionCandidates
) -> dict[LoopUse, frozenset[int]]:
    """For each loop use of a part, statements that may share its loop by a use the part lacks."""
    groups = {use: group for group in candidates.groups for use in group}
    return {
        use: frozenset(
            other[0]
            for other in groups[use]
            if other not in group and candidates.dependences.can_fuse(use, other)
        )
        for group in part.groups
        for use in group
    }


Table = tuple[tuple[tuple[int, ...], int], ...]  # (contracted axes, size)


def least_peak(
    candidates: FusionCandidates,
    weights: Mapping[int, int],
    extents: Mapping[str, int],
    tiles: Mapping[str, int],
) -> int:
    """A lower bound on the peak that needs no search: the most that one statement touches.

    Each array counts with as many contracted axes as it could have by itself.
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
        n: _table(i, weights[n], extents, tiles, linear=candidates.linear)
        for n, i in enumerate(candidates.instances)
        if i.array.is_held
    }


def least_of(candidates: FusionCandidates, tables: Mapping[int, Table], *, peak: bool) -> int:
    """A lower bound on the static sum, or on the peak, from the tables only."""
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
    instance: Instance,
    weight: int,
    extents: Mapping[str, int],
    tiles: Mapping[str, int],
    *,
    linear: bool,
) -> Table:
    """Sizes of an array for every set of contracted axes, each of which counts its tile."""
    spaces = instance.array.spaces
    shape = [space.extent_in(extents) for space in spaces]
    tile = [min(n, tiles.get(s.name, 1)) for n, s in zip(shape, spaces, strict=True)]
    axes = [axis for axis, _ in instance.axes if tile[axis] < shape[axis]]

    def size(chosen: tuple[int, ...]) -> int:
        if linear:
            return sum(saving(instance.array, a, extents) for a in axes if a not in chosen)
        return prod(tile[a] if a in chosen else n for a, n in enumerate(shape))

    return tuple(
        (chosen, weight * size(chosen))
        for count in range(len(axes) + 1)
        for chosen in combinations(axes, count)
    )
