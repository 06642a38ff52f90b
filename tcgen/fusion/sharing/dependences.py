"""Dependences between statements, and the loops that statements may share in spite of them.

A *statement* is one execution of a step; a *loop use* is a statement and one of its indices. A loop
that several statements share is a set of loop uses, its members. It is legal if a producer and a
consumer in it use the same axis of the array for it, and if every statement that must run between
two of its members is a member as well. :meth:`Dependences.closure` adds these statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import pairwise

from ...ir.program import Phase, Step
from ...ir.tensor import Index, Role, Tensor
from .graph import FusionGraph, phase_of, step_of

LoopUse = tuple[int, Index]  # a loop use: (statement, its index)
IndexPairs = frozenset[tuple[Index, Index]]  # (producer's index, consumer's index) on one axis
# A neighbour of a statement, and its indices that may be one loop with each of the statement's.
Link = tuple[int, Mapping[Index, tuple[Index, ...]]]


@dataclass(frozen=True, slots=True)
class Instance:
    """An array and the statements that use it.

    Attributes:
        reader: if the array is made once for each of its readers, the id of that reader's step.
        axes: axes that may be contracted, each with the loop uses that must be one loop.
        persistent: the constant phase leaves it to the volatile phase, so that it is always live.
    """

    array: Tensor
    reader: int | None
    producers: tuple[int, ...]
    consumers: tuple[int, ...]
    axes: tuple[tuple[int, tuple[LoopUse, ...]], ...]
    persistent: bool


@dataclass(frozen=True, slots=True)
class Dependences:
    """The dependences between the statements of a program.

    Attributes:
        index_pairs: pairs of indices that may be one loop, by producer and consumer.
        after: bits of the statements that come later in every order, by statement, because they
            depend on it, write the same array after it, or belong to the volatile phase.
        next: the immediate successors among those in ``after``.
        links: producers and consumers of each statement, and their indices that may be one loop
            with its own.
        known: pairs of loop uses that were examined, and whether they may be one loop.
    """

    index_pairs: Mapping[tuple[int, int], IndexPairs]
    after: tuple[int, ...]
    before: tuple[int, ...]
    next: tuple[int, ...]
    links: tuple[tuple[Link, ...], ...]
    known: dict[tuple[LoopUse, LoopUse], bool] = field(default_factory=dict, compare=False)

    def can_fuse(self, a: LoopUse, b: LoopUse) -> bool:
        """True where two loop uses may be one loop."""
        if a[0] == b[0]:
            return False
        if (a, b) not in self.known:
            self.known[a, b] = self.known[b, a] = self.closure((a, b)) is not None
        return self.known[a, b]

    def precedes(self, first: int, last: int) -> bool:
        """True where ``last`` comes later in every order."""
        return bool(self.after[first] >> last & 1)

    def between(self, nodes: Iterable[int]) -> set[int]:
        """The statements, and all that must run after one of them and before another."""
        return set(bits_of(self._between(mask_of(nodes))))

    def _between(self, nodes: int) -> int:
        later = earlier = 0
        for node in bits_of(nodes):
            later |= self.after[node]
            earlier |= self.before[node]
        return nodes | later & earlier

    def closure(self, start: Iterable[LoopUse]) -> dict[int, Index] | None:
        """Members of the smallest loop with these loop uses, by statement; None if none is legal.

        Where T1 -> T2 -> T3 and T1 and T3 share a loop, T2 is a member too.
        """
        bound: dict[int, Index] = {}
        for node, index in start:
            if bound.setdefault(node, index) != index:
                return None
        changed = True
        # The last round adds nothing, and has examined all pairs of members.
        while changed:
            changed = False
            inside = self._between(mask_of(bound))
            for node, index in tuple(bound.items()):
                for other, indices in self.links[node]:
                    if not inside >> other & 1:
                        continue
                    fitting = indices.get(index, ())
                    if not fitting or (other in bound and bound[other] not in fitting):
                        return None
                    # A diagonal leaves a choice.
                    if other not in bound and len(fitting) == 1:
                        bound[other] = fitting[0]
                        changed = True
        return bound


def find_dependences(
    graph: FusionGraph,
    instances: tuple[Instance, ...],
    index_pairs: Mapping[tuple[int, int], IndexPairs],
) -> Dependences:
    """The dependences of a program."""
    after = _after(graph, instances, index_pairs)
    before = [0] * len(after)
    for node, later in enumerate(after):
        for other in bits_of(later):
            before[other] |= 1 << node
    following = list(after)
    for node, later in enumerate(after):
        for other in bits_of(later):
            following[node] &= ~after[other]
    links: list[list[Link]] = [[] for _ in graph.nodes]
    for (producer, consumer), fusable in index_pairs.items():
        pairs = sorted(fusable, key=str)
        links[producer].append((consumer, _by_first(pairs)))
        links[consumer].append((producer, _by_first([(c, p) for p, c in pairs])))
    return Dependences(
        index_pairs, after, tuple(before), tuple(following), tuple(map(tuple, links))
    )


def _by_first(pairs: list[tuple[Index, Index]]) -> dict[Index, tuple[Index, ...]]:
    seconds: dict[Index, tuple[Index, ...]] = {}
    for first, second in pairs:
        seconds[first] = (*seconds.get(first, ()), second)
    return seconds


def index_pairs_of(
    graph: FusionGraph, bare: tuple[Instance, ...]
) -> dict[tuple[int, int], IndexPairs]:
    """For each producer and consumer, the pairs of their indices that may be one loop."""
    return {
        (p, c): _index_pairs(
            step_of(graph, p), step_of(graph, c), alone=len(instance.producers) == 1
        )
        for instance in bare
        for p in instance.producers
        for c in instance.consumers
    }


def bare_instances(graph: FusionGraph) -> tuple[Instance, ...]:
    """The instances of arrays in order of the program, with no axis that may be contracted."""
    program = graph.program
    instances: list[Instance] = []
    for tensor in program.tensors:
        if tensor.role is Role.INPUT:
            continue
        made = [n for n in graph.nodes if program.steps[n.step].out.tensor == tensor]
        read = [
            n for n in graph.nodes if tensor in (r.tensor for r in program.steps[n.step].operands)
        ]
        phases = {phase_of(graph, n.id) for n in (*made, *read)}
        copied = tensor in graph.per_reader
        instances += [
            Instance(
                tensor,
                reader,
                tuple(n.id for n in made if not copied or n.reader == reader),
                tuple(n.id for n in read if reader is None or n.step == reader),
                (),
                not copied and len(phases) > 1,
            )
            for reader in (dict.fromkeys(n.reader for n in made) if copied else (None,))
        ]
    return tuple(instances)


def _index_pairs(maker: Step, reader: Step, *, alone: bool) -> IndexPairs:
    """Pairs of indices with which both statements use one axis of the array.

    Where the reader takes a diagonal, either axis will do for a single producer; several producers
    must all use the same axis, and that is the first.
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
    index_pairs: Mapping[tuple[int, int], IndexPairs],
) -> tuple[int, ...]:
    """For each statement, a bit for each one that comes later in every order."""
    direct = [0] * len(graph.nodes)
    for first, second in (pair for i in instances for pair in pairwise(i.producers)):
        direct[first] |= 1 << second
    for p, c in index_pairs:
        direct[p] |= 1 << c
    late = sum(1 << n.id for n in graph.nodes if phase_of(graph, n.id) is Phase.VOLATILE)
    for statement in graph.nodes:
        if phase_of(graph, statement.id) is Phase.CONSTANT:
            direct[statement.id] |= late
    later = list(direct)
    successors = {node: bits_of(following) for node, following in enumerate(direct)}
    for node in TopologicalSorter(successors).static_order():  # successors come first
        for other in bits_of(direct[node]):
            later[node] |= later[other]
    return tuple(later)


def sort_key(use: LoopUse) -> tuple[int, str, str]:
    """A key that orders loop uses: by statement, then by the names of index and space."""
    return use[0], use[1].name, use[1].space.name


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
