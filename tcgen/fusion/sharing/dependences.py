"""Dependences between statements: what comes later, what may be one loop along them, what must be.

A statement is an execution of a step, a walk is one loop of a statement. A producer and a consumer
in one loop walk the same axis of the array with it, and whatever must be computed between two
members of a loop is a member too. ``forced`` follows these consequences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from ...ir.program import Phase, Step
from ...ir.tensor import Index, Role, Tensor
from .graph import FusionGraph, phase_of, step_of

Walk = tuple[int, Index]  # (statement, its index)
Allowed = frozenset[tuple[Index, Index]]  # (producer's index, consumer's index) on one axis
Link = tuple[int, Mapping[Index, tuple[Index, ...]]]  # (statement, its indices for each of ours)


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
class Dependences:
    """What the arrays of a program demand of its statements.

    Attributes:
        carried: for each producer and consumer, the pairs of indices that may be one loop.
        after: for each statement, a bit for each statement that comes later in every order: those
            that depend on it, write the same array after it, or are of the volatile phase.
        before: the same for statements that come earlier.
        next: of those that come later, the ones that come after no other of them.
        links: for each statement, its producers and consumers, and what may be one loop with them.
        known: pairs of walks that were looked at, and whether they could be one loop.
    """

    carried: Mapping[tuple[int, int], Allowed]
    after: tuple[int, ...]
    before: tuple[int, ...]
    next: tuple[int, ...]
    links: tuple[tuple[Link, ...], ...]
    known: dict[tuple[Walk, Walk], bool] = field(default_factory=dict, compare=False)

    def together(self, a: Walk, b: Walk) -> bool:
        """True where two walks could be one loop."""
        if a[0] == b[0]:
            return False
        if (a, b) not in self.known:
            self.known[a, b] = self.known[b, a] = self.forced((a, b)) is not None
        return self.known[a, b]

    def precedes(self, first: int, last: int) -> bool:
        """True where ``last`` comes later in every order."""
        return bool(self.after[first] >> last & 1)

    def between(self, nodes: Iterable[int]) -> set[int]:
        """The statements and all that come after one of them and before another."""
        return set(bits_of(self._between(mask_of(nodes))))

    def _between(self, nodes: int) -> int:
        later = earlier = 0
        for node in bits_of(nodes):
            later |= self.after[node]
            earlier |= self.before[node]
        return nodes | later & earlier

    def forced(self, start: Iterable[Walk]) -> dict[int, Index] | None:
        """Members of a loop that holds these walks, by statement; None where there is no such loop.

        Example: T1 -> T2 -> T3 in a row, T1 and T3 in one loop: T2 is in it, and with what index.
        """
        bound: dict[int, Index] = {}
        for node, index in start:
            if bound.setdefault(node, index) != index:
                return None
        changed = True
        while changed:  # the last round adds nothing, and has looked at all pairs of members
            changed = False
            inside = self._between(mask_of(bound))
            for node, index in tuple(bound.items()):
                for other, indices in self.links[node]:
                    if not inside >> other & 1:
                        continue
                    found = indices.get(index, ())
                    if not found or (other in bound and bound[other] not in found):
                        return None
                    if other not in bound and len(found) == 1:  # on a diagonal either index will do
                        bound[other] = found[0]
                        changed = True
        return bound


def dependences(
    graph: FusionGraph, instances: tuple[Instance, ...], carried: Mapping[tuple[int, int], Allowed]
) -> Dependences:
    """What follows from the arrays of a program.

    Args:
        graph: of the program.
        instances: arrays, with or without axes.
        carried: pairs of indices of a producer and a consumer, repeated walks included.
    """
    after = _after(graph, instances, carried)
    before = [0] * len(after)
    for node, later in enumerate(after):
        for other in bits_of(later):
            before[other] |= 1 << node
    following = list(after)
    for node, later in enumerate(after):
        for other in bits_of(later):
            following[node] &= ~after[other]
    links: list[list[Link]] = [[] for _ in graph.nodes]
    for (producer, consumer), allowed in carried.items():
        pairs = sorted(allowed, key=str)
        links[producer].append((consumer, _by_first(pairs)))
        links[consumer].append((producer, _by_first([(c, p) for p, c in pairs])))
    return Dependences(carried, after, tuple(before), tuple(following), tuple(map(tuple, links)))


def _by_first(pairs: list[tuple[Index, Index]]) -> dict[Index, tuple[Index, ...]]:
    found: dict[Index, tuple[Index, ...]] = {}
    for first, second in pairs:
        found[first] = (*found.get(first, ()), second)
    return found


def carried_walks(graph: FusionGraph, bare: tuple[Instance, ...]) -> dict[tuple[int, int], Allowed]:
    """For each producer and consumer, the pairs of their indices that may be one loop."""
    return {
        (p, c): _allowed(step_of(graph, p), step_of(graph, c), alone=len(instance.producers) == 1)
        for instance in bare
        for p in instance.producers
        for c in instance.consumers
    }


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


def _allowed(maker: Step, reader: Step, *, alone: bool) -> Allowed:
    """Carried dependences: a common loop walks one axis of the array in both.

    On a diagonal either axis will do, but several producers must all take the same one: the first.
    """
    reads = [r.indices for r in reader.operands if r.tensor == maker.out.tensor]
    return frozenset(
        (made, reads[0][axis])
        for axis, made in enumerate(maker.out.indices)
        if all(r[axis] == reads[0][axis] for r in reads) and made.space == reads[0][axis].space
        if alone or reads[0][axis] not in reads[0][:axis]
    )


def _after(
    graph: FusionGraph,
    instances: tuple[Instance, ...],
    carried: Mapping[tuple[int, int], Allowed],
) -> tuple[int, ...]:
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
    while changed:  # the last statements first: most of what follows them is known by then
        changed = False
        for node in reversed(range(len(direct))):
            total = direct[node]
            for other in bits_of(direct[node]):
                total |= direct[other]
            if total != direct[node]:
                direct[node], changed = total, True
    return tuple(direct)


def mask_of(nodes: Iterable[int]) -> int:
    """A bit for each statement."""
    mask = 0
    for node in nodes:
        mask |= 1 << node
    return mask


def bits_of(mask: int) -> Iterator[int]:
    """The statements of a mask, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
