"""Which loops of which statements could be one loop: programs with several users of an array.

An axis of an array shrinks where the walks of all its producers and consumers on that axis are one
loop. What can never be shared, by the rules of :mod:`.dependences`, is left out of every search.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

from ...ir.tensor import Role, Tensor
from .dependences import (
    Dependences,
    Instance,
    Walk,
    bare_instances,
    carried_walks,
    dependences,
)
from .graph import FusionGraph, step_of


@dataclass(frozen=True, slots=True)
class Sharing:
    """What a program allows.

    Attributes:
        graph: nodes are the statements.
        instances: arrays, outputs included; these keep all their axes.
        needs: dependences between the statements.
        walks: groups of walks, in order; walks of two groups are never one loop.
        repeats: walks of statements that have no index for the loop, so that each iteration repeats
            them, and the walk of a reader that they follow.
    """

    graph: FusionGraph
    instances: tuple[Instance, ...]
    needs: Dependences
    walks: tuple[tuple[Walk, ...], ...]
    repeats: Mapping[Walk, Walk] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What is shared, and in which order statements run.

    Attributes:
        loops: members of each loop with their indices.
        order: statements that matter, in order of execution; the others have no loops.
    """

    loops: tuple[tuple[Walk, ...], ...]
    order: tuple[int, ...]


def sharing(graph: FusionGraph) -> Sharing:
    """Statements, arrays, dependences and the walks that could be one loop."""
    bare = bare_instances(graph)
    needs = dependences(graph, bare, carried_walks(graph, bare))
    return connected(graph, bare, needs, {}, ordered=True)


def without_order(found: Sharing) -> Sharing:
    """The same for searches that leave the order of the statements open."""
    bare = tuple(replace(i, axes=()) for i in found.instances)
    return connected(found.graph, bare, found.needs, {})


def connected(
    graph: FusionGraph,
    bare: tuple[Instance, ...],
    needs: Dependences,
    repeats: Mapping[Walk, Walk],
    shrinking: Collection[Tensor] | None = None,
    *,
    ordered: bool = False,
) -> Sharing:
    """What follows from the pairs that may be one loop.

    Args:
        graph: of the program.
        bare: arrays without axes.
        needs: dependences, repeated walks included.
        repeats: repeated walks and what they follow.
        shrinking: arrays that may shrink; None: all.
        ordered: with the walks of statements that only stand between the members of a loop.
    """
    instances = tuple(
        _with_axes(graph, i, needs) if shrinking is None or i.array in shrinking else i
        for i in bare
    )
    groups = _groups(graph, instances, needs, repeats, ordered=ordered)
    used = {walk for group in groups for walk in group}
    kept = {walk: origin for walk, origin in repeats.items() if walk in used}
    return Sharing(graph, instances, needs, groups, kept)


def _with_axes(
    graph: FusionGraph,
    instance: Instance,
    needs: Dependences,
) -> Instance:
    """The axes that all users walk whole, each by one index, in loops that can be one."""
    array = instance.array
    if array.role is Role.OUTPUT or instance.kept or not instance.consumers:
        return instance
    axes: list[tuple[int, tuple[Walk, ...]]] = []
    for axis, space in enumerate(array.spaces):
        walks: list[Walk] = [(n, step_of(graph, n).out.indices[axis]) for n in instance.producers]
        walks += [
            (n, ref.indices[axis])
            for n in instance.consumers
            for ref in step_of(graph, n).operands
            if ref.tensor == array
        ]
        members = tuple(dict.fromkeys(walks))
        whole = all(index.space == space for _, index in members)
        if whole and needs.forced(members) is not None:
            axes.append((axis, members))
    return Instance(
        array, instance.reader, instance.producers, instance.consumers, tuple(axes), False
    )


def _groups(
    graph: FusionGraph,
    instances: tuple[Instance, ...],
    needs: Dependences,
    repeats: Mapping[Walk, Walk],
    *,
    ordered: bool,
) -> tuple[tuple[Walk, ...], ...]:
    """Walks connected by an axis that may shrink, or by what stands between two of them.

    A statement may be repeated in a loop of its reader. One that stands between two members and
    reads nothing of theirs, as a product of inputs that is added in between, may walk their loop
    with any index: it takes part only where the order matters.
    """
    groups: list[set[Walk]] = []

    def join(walks: set[Walk]) -> bool:
        met = [g for g in groups if not g.isdisjoint(walks)]
        if len(met) == 1 and walks <= met[0]:
            return False
        groups[:] = [g for g in groups if g.isdisjoint(walks)] + [walks.union(*met)]
        return True

    for instance in instances:
        for _, members in instance.axes:
            join(set((needs.forced(members) or {}).items()))
    changed = True
    while changed:
        changed = False
        for group in tuple(groups):
            inside = needs.between({n for n, _ in group})
            for (p, c), allowed in needs.carried.items():
                if p in inside and c in inside:
                    for made, read in sorted(allowed, key=str):
                        if (p, made) in group or (c, read) in group:
                            changed |= join({(p, made), (c, read)})
            if not ordered:
                continue
            member = next(iter(group))
            linked = {n for pair in needs.carried if inside.issuperset(pair) for n in pair}
            for node in inside - linked:
                indices = step_of(graph, node).indices
                free = {(node, i) for i in indices if i.space == member[1].space}
                if free and not free <= group:
                    changed |= join({member, *free})
        for repeated, origin in repeats.items():
            if any(origin in group for group in groups):
                changed |= join({repeated, origin})

    def order(walk: Walk) -> tuple[int, str, str]:
        return (walk[0], walk[1].name, walk[1].space.name)

    return tuple(sorted((tuple(sorted(g, key=order)) for g in groups), key=lambda g: order(g[0])))


def pairs_of(found: Sharing) -> tuple[tuple[Walk, Walk], ...]:
    """Pairs of walks that could be one loop."""
    return tuple(
        (a, b)
        for group in found.walks
        for a, b in combinations(group, 2)
        if found.needs.together(a, b)
    )


def rivals(found: Sharing) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Uses of one generated input by two readers: (produced, read) of each.

    Only one instance of an input lives at a time, so that one use ends before the other begins.
    """
    made = [i for i in found.instances if i.reader is not None]
    return [
        ((a.producers[0], a.consumers[0]), (b.producers[0], b.consumers[0]))
        for a, b in combinations(made, 2)
        if a.array == b.array
    ]


def independent(found: Sharing) -> tuple[Sharing, ...]:
    """The parts of a program that no statement connects, fewest walks first.

    The static sum is the sum over the parts, and loops of two parts never meet at a statement.
    """
    clusters: list[tuple[set[int], list[tuple[Walk, ...]]]] = []
    for group in found.walks:
        nodes, groups = {n for n, _ in group}, [group]
        for other in [c for c in clusters if not c[0].isdisjoint(nodes)]:
            clusters.remove(other)
            nodes, groups = nodes | other[0], other[1] + groups
        clusters.append((nodes, groups))
    parts = [
        replace(
            found,
            walks=tuple(groups),
            instances=tuple(i for i in found.instances if i.axes and i.producers[0] in nodes),
        )
        for nodes, groups in clusters
    ]
    whole = replace(found, walks=(), instances=tuple(i for i in found.instances if not i.axes))
    return (whole, *sorted(parts, key=lambda part: sum(map(len, part.walks))))


def unmodelled(part: Sharing, found: Sharing) -> dict[Walk, frozenset[int]]:
    """By walk of a part, statements that ``found`` lets share its loop by a walk the part lacks."""
    groups = {walk: group for group in found.walks for walk in group}
    return {
        walk: frozenset(
            other[0]
            for other in groups[walk]
            if other not in group and found.needs.together(walk, other)
        )
        for group in part.walks
        for walk in group
    }
