"""Which loops of which statements could be one loop: programs with several users of an array.

A statement is an execution of a step, a walk is one loop of a statement. An axis of an array
shrinks where the walks of all its producers and consumers on that axis are one loop. Sharing has
consequences: whatever must be computed between two members of a loop is a member too, and a
producer and a consumer in one loop walk the same axis with it. ``forced`` follows these
consequences, so that what can never be shared is left out of every search.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise

from ..ir.program import Phase, Step
from ..ir.tensor import Index, Role, Tensor
from .graph import FusionGraph

Walk = tuple[int, Index]  # (statement, its index)
Allowed = frozenset[tuple[Index, Index]]  # (producer's index, consumer's index) on one axis


@dataclass(frozen=True, slots=True)
class Instance:
    """An array and the statements that use it.

    Attributes:
        array: the tensor.
        reader: for an array made for each of its readers: id of the step that it is made for.
        producers: statements that write it.
        consumers: statements that read it.
        axes: that may shrink, each with the walks that must be one loop for it.
        kept: the constant phase leaves it for the volatile one, so that it lives all the time.
    """

    array: Tensor
    reader: int | None
    producers: tuple[int, ...]
    consumers: tuple[int, ...]
    axes: tuple[tuple[int, tuple[Walk, ...]], ...]
    kept: bool


@dataclass(frozen=True, slots=True)
class Sharing:
    """What a program allows.

    Attributes:
        graph: nodes are the statements.
        instances: arrays, outputs included; these keep all their axes.
        carried: for each producer and consumer, the pairs of indices that may be one loop.
        after: for each statement, a bit for each statement that depends on it.
        walks: groups of walks, in order; walks of two groups are never one loop.
        repeats: walks of statements that have no index for the loop, so that each iteration repeats
            them, and the walk of a reader that they follow.
        known: pairs of walks that were looked at, and whether they could be one loop.
    """

    graph: FusionGraph
    instances: tuple[Instance, ...]
    carried: Mapping[tuple[int, int], Allowed]
    after: tuple[int, ...]
    walks: tuple[tuple[Walk, ...], ...]
    repeats: Mapping[Walk, Walk] = field(default_factory=dict)
    known: dict[tuple[Walk, Walk], bool] = field(default_factory=dict, compare=False)

    def together(self, a: Walk, b: Walk) -> bool:
        """True where two walks could be one loop."""
        if a[0] == b[0]:
            return False
        if (a, b) not in self.known:
            could = forced((a, b), self.carried, self.after) is not None
            self.known[a, b] = self.known[b, a] = could
        return self.known[a, b]

    def precedes(self, first: int, last: int) -> bool:
        """True where ``last`` depends on ``first``."""
        return bool(self.after[first] >> last & 1)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What is shared, and in which order statements run.

    Attributes:
        loops: members of each loop with their indices.
        order: statements that matter, in order of execution; the others have no loops.
    """

    loops: tuple[tuple[Walk, ...], ...]
    order: tuple[int, ...]


def sharing(graph: FusionGraph, *, ordered: bool = True) -> Sharing:
    """Statements, arrays, dependences and the walks that could be one loop.

    Args:
        graph: of the program.
        ordered: False for searches that leave the order of the statements open.
    """
    bare = bare_instances(graph)
    carried = carried_walks(graph, bare)
    return connected(graph, bare, carried, {}, ordered=ordered)


def carried_walks(graph: FusionGraph, bare: tuple[Instance, ...]) -> dict[tuple[int, int], Allowed]:
    """For each producer and consumer, the pairs of their indices that may be one loop."""
    return {
        (p, c): _allowed(step_of(graph, p), step_of(graph, c))
        for instance in bare
        for p in instance.producers
        for c in instance.consumers
    }


def connected(
    graph: FusionGraph,
    bare: tuple[Instance, ...],
    carried: Mapping[tuple[int, int], Allowed],
    repeats: Mapping[Walk, Walk],
    shrinking: Collection[Tensor] | None = None,
    *,
    ordered: bool = False,
) -> Sharing:
    """What follows from the pairs that may be one loop.

    Args:
        graph: of the program.
        bare: arrays without axes.
        carried: pairs of indices of a producer and a consumer, repeated walks included.
        repeats: repeated walks and what they follow.
        shrinking: arrays that may shrink; None: all.
        ordered: with the walks of statements that only stand between the members of a loop.
    """
    after = _after(graph, bare, carried)
    instances = tuple(
        _with_axes(graph, i, carried, after) if shrinking is None or i.array in shrinking else i
        for i in bare
    )
    groups = _groups(graph, instances, carried, after, repeats, ordered=ordered)
    used = {walk for group in groups for walk in group}
    kept = {walk: origin for walk, origin in repeats.items() if walk in used}
    return Sharing(graph, instances, carried, after, groups, kept)


def forced(
    start: tuple[Walk, ...],
    carried: Mapping[tuple[int, int], Allowed],
    after: tuple[int, ...],
) -> dict[int, Index] | None:
    """Members of a loop that holds the given walks, by statement; None where there is no such loop.

    Example: T1 -> T2 -> T3 in a row, T1 and T3 in one loop: T2 is in it, and with what index.
    """
    bound: dict[int, Index] = {}
    for node, index in start:
        if bound.setdefault(node, index) != index:
            return None
    changed = True
    while changed:
        changed = False
        inside = between(set(bound), after)
        for (p, c), allowed in carried.items():
            if p not in inside or c not in inside or (p not in bound and c not in bound):
                continue
            if p in bound and c in bound:
                if (bound[p], bound[c]) not in allowed:
                    return None
                continue
            known, other, side = (p, c, 0) if p in bound else (c, p, 1)
            found = [pair[1 - side] for pair in allowed if pair[side] == bound[known]]
            if len(found) > 1:  # a diagonal: either index will do, so nothing is forced
                continue
            if not found:
                return None
            bound[other] = found[0]
            changed = True
    return bound


def step_of(graph: FusionGraph, node: int) -> Step:
    """The step that a statement executes."""
    return graph.program.steps[graph.nodes[node].step]


def phase_of(graph: FusionGraph, node: int) -> Phase:
    """Phase in which a statement runs: a generated input is fetched with its reader."""
    found = graph.nodes[node]
    return graph.program.steps[found.step if found.reader is None else found.reader].phase


def bare_instances(graph: FusionGraph) -> tuple[Instance, ...]:
    """Arrays in order of the program, without the axes that may shrink."""
    program = graph.program
    found: list[Instance] = []
    for tensor in program.tensors:
        if tensor.role is Role.INPUT:
            continue
        made = [n for n in graph.nodes if program.steps[n.step].out.tensor == tensor]
        read = [n for n in graph.nodes if _reads(program.steps[n.step], tensor)]
        phases = {phase_of(graph, n.id) for n in (*made, *read)}
        apart = tensor in graph.apart
        found += [
            Instance(
                tensor,
                reader,
                tuple(n.id for n in made if not apart or n.reader == reader),
                tuple(n.id for n in read if reader is None or n.step == reader),
                (),
                not apart and len(phases) > 1,
            )
            for reader in (dict.fromkeys(n.reader for n in made) if apart else (None,))
        ]
    return tuple(found)


def _reads(step: Step, tensor: Tensor) -> bool:
    return any(ref.tensor == tensor for ref in step.operands)


def _allowed(maker: Step, reader: Step) -> Allowed:
    """Carried dependences: a common loop walks one axis of the array in both."""
    reads = [r.indices for r in reader.operands if r.tensor == maker.out.tensor]
    return frozenset(
        (made, reads[0][axis])
        for axis, made in enumerate(maker.out.indices)
        if all(r[axis] == reads[0][axis] for r in reads) and made.space == reads[0][axis].space
    )


def _after(
    graph: FusionGraph,
    instances: tuple[Instance, ...],
    carried: Mapping[tuple[int, int], Allowed],
) -> tuple[int, ...]:
    """For each statement, those that come later in every order.

    They depend on it, write the same array after it, or are of the volatile phase.
    """
    direct = [0] * len(graph.nodes)
    for first, second in (pair for i in instances for pair in pairwise(i.producers)):
        direct[first] |= 1 << second
    for p, c in carried:
        direct[p] |= 1 << c
    late = sum(1 << n.id for n in graph.nodes if phase_of(graph, n.id) is Phase.VOLATILE)
    for statement in graph.nodes:
        if phase_of(graph, statement.id) is Phase.CONSTANT:
            direct[statement.id] |= late
    changed = True
    while changed:
        changed = False
        for node in range(len(direct)):
            total = direct[node]
            for other in range(len(direct)):
                if direct[node] >> other & 1:
                    total |= direct[other]
            if total != direct[node]:
                direct[node], changed = total, True
    return tuple(direct)


def between(nodes: set[int], after: tuple[int, ...]) -> set[int]:
    """The nodes and all that depend on one of them and are needed by another."""
    mask = sum(1 << n for n in nodes)
    below = 0
    for n in nodes:
        below |= after[n]
    return nodes | {n for n in range(len(after)) if below >> n & 1 and after[n] & mask}


def _with_axes(
    graph: FusionGraph,
    instance: Instance,
    carried: Mapping[tuple[int, int], Allowed],
    after: tuple[int, ...],
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
        if whole and forced(members, carried, after) is not None:
            axes.append((axis, members))
    return Instance(
        array, instance.reader, instance.producers, instance.consumers, tuple(axes), False
    )


def _groups(
    graph: FusionGraph,
    instances: tuple[Instance, ...],
    carried: Mapping[tuple[int, int], Allowed],
    after: tuple[int, ...],
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
            join(set((forced(members, carried, after) or {}).items()))
    changed = True
    while changed:
        changed = False
        for group in tuple(groups):
            inside = between({n for n, _ in group}, after)
            for (p, c), allowed in carried.items():
                if p in inside and c in inside:
                    for made, read in sorted(allowed, key=str):
                        if (p, made) in group or (c, read) in group:
                            changed |= join({(p, made), (c, read)})
            if not ordered:
                continue
            member = next(iter(group))
            linked = {n for pair in carried if inside.issuperset(pair) for n in pair}
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
        (a, b) for group in found.walks for a, b in combinations(group, 2) if found.together(a, b)
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
