"""Costs of partitions of array operations, and lower bounds.

A cost is a sum over blocks and, within a block, over arrays. So the saving of a merge follows
from the arrays that two blocks share.

Every partition divides the operations that touch one array among blocks, and some of them can never
share one. The least cost of an array over all divisions of its own operations, added over the
arrays, is a lower bound on the cost of any partition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..sharing.dependences import bits_of
from .wsp import Block, Graph, Partition, View, barred_pairs, users_of


@dataclass(frozen=True, slots=True)
class CostModel:
    """A cost that is a sum over blocks (``each``) and their arrays, plus a constant (``fixed``).

    Attributes:
        array: the cost of an array in a block, from the operations of the block that touch it, in
            program order; negative where the model counts savings.
        counts_accesses: a block costs the elements of the views that it reads and writes, so that
            without some reads an array costs no more.
        counts_own_reads: also of views that it has written before.
    """

    name: str
    array: Callable[[Graph, str, Sequence[int]], int]
    fixed: Callable[[Graph], int] = lambda _: 0
    each: int = 0
    counts_accesses: bool = False
    counts_own_reads: bool = False

    def block(self, graph: Graph, block: Block) -> int:
        """The cost of a block."""
        users = users_of((v, graph.operations[v]) for v in sorted(block))
        return self.each + sum(self.array(graph, name, own) for name, own in users.items())

    def of(self, graph: Graph, partition: Partition) -> int:
        """Cost of a partition."""
        return self.fixed(graph) + sum(self.block(graph, b) for b in partition)


def new_and_freed(graph: Graph, name: str, own: Sequence[int]) -> tuple[bool, bool]:
    """Whether an array begins in a block, and whether it ends in it and is not observed."""
    operations = [graph.operations[v] for v in own]
    freed = name not in graph.observed and any(name in o.freed for o in operations)
    return any(name in o.new for o in operations), freed


def _traffic(graph: Graph, name: str, own: Sequence[int]) -> int:
    """Memory traffic: reads of views the block has not written, writes that outlive the block."""
    new, freed = new_and_freed(graph, name, own)
    reads: set[View] = set()
    writes: set[View] = set()
    for operation in (graph.operations[v] for v in own):
        if not new:
            reads.update(v for v in operation.reads if v.base == name and v not in writes)
        writes.update(v for v in operation.writes if v.base == name)
    return sum(v.amount for v in reads) + (0 if freed else sum(v.amount for v in writes))


# Its unit is that of the weights of views.
TRAFFIC = CostModel("bytes", _traffic, counts_accesses=True)

_MOST_DIVIDED = 8  # operations on one array whose divisions are all examined (8: 4,140)


def lower_bound(graph: Graph, cost: CostModel) -> int:
    """A cost below which no legal partition is."""
    apart = never_together(graph)
    users = users_of(enumerate(graph.operations))
    total = cost.fixed(graph) + (cost.each if graph.operations else 0)
    return total + sum(_least(graph, cost, name, own, apart) for name, own in users.items())


def never_together(graph: Graph) -> list[int]:
    """For each operation, those that are in no block with it, as bits.

    Two operations in one block have all operations between them in the block as well.
    """
    count = len(graph.operations)
    after, before, barred = [0] * count, [0] * count, barred_pairs(graph)
    for i, j in sorted(graph.before, key=lambda pair: -pair[0]):
        after[i] |= 1 << j | after[j]
    for i, j in sorted(graph.before, key=lambda pair: pair[1]):
        before[j] |= 1 << i | before[i]
    apart = list(barred)
    choosy = sum(1 << k for k, others in enumerate(barred) if others)
    for distance in range(1, count):
        for i in range(count - distance):
            j = i + distance
            if apart[i] >> j & 1 or not after[i] >> j & 1:
                continue
            between = after[i] & before[j]
            inside = between & (apart[i] | apart[j])
            if inside or any(barred[k] & between for k in bits_of(between & choosy)):
                apart[i] |= 1 << j
                apart[j] |= 1 << i
    return apart


def _least(
    graph: Graph, cost: CostModel, name: str, own: Sequence[int], apart: Sequence[int]
) -> int:
    """The least cost of an array in all divisions of its operations that keep pairs apart."""
    mask = sum(1 << v for v in own)
    if not any(apart[v] & mask for v in own):
        # Merging never raises a cost.
        return cost.array(graph, name, own)
    if len(own) <= _MOST_DIVIDED:
        return _least_of_divisions(graph, cost, name, own, apart)
    if not cost.counts_accesses:
        return cost.array(graph, name, own)
    of_views = _least_of_views(graph, cost, name, own, apart)
    chosen = _chosen(graph, name, own, apart)
    if chosen is None:
        return max(of_views, cost.array(graph, name, own))
    return max(of_views, _least_of_divisions(graph, cost, name, chosen, apart))


def _least_of_views(
    graph: Graph, cost: CostModel, name: str, own: Sequence[int], apart: Sequence[int]
) -> int:
    """Each view in as many blocks as operations on it can share no block with each other."""
    operations = [(v, graph.operations[v]) for v in own]
    begins = any(name in o.new for _, o in operations)
    ends = name not in graph.observed and any(name in o.freed for _, o in operations)
    total = 0
    for view in {v for _, o in operations for v in (*o.reads, *o.writes) if v.base == name}:
        readers = [n for n, o in operations if view in o.reads]
        writers = [n for n, o in operations if view in o.writes]
        reads = _clique(readers, apart)
        if not cost.counts_own_reads:
            # A block that has written a view reads it for nothing.
            sure = [r for r in readers if all(w >= r or apart[r] >> w & 1 for w in writers)]
            reads = max(_clique(sure, apart), reads - len(writers))
        times = max(0, reads - begins) + max(0, _clique(writers, apart) - ends)
        total += view.amount * times
    return total


def _clique(operations: Sequence[int], apart: Sequence[int]) -> int:
    """The number of some operations no two of which share a block."""
    most = 0
    for first in operations:
        found = [first]
        for v in operations:
            if all(apart[v] >> u & 1 for u in found):
                found.append(v)
        most = max(most, len(found))
    return most


def _least_of_divisions(
    graph: Graph, cost: CostModel, name: str, chosen: Sequence[int], apart: Sequence[int]
) -> int:
    """The least cost of an array over all divisions of some of its operations."""
    best: int | None = None

    def divide(blocks: list[list[int]], place: int) -> None:
        nonlocal best
        if place == len(chosen):
            total = sum(cost.array(graph, name, block) for block in blocks)
            best = total if best is None or total < best else best
            return
        v = chosen[place]
        for block in blocks:
            if not any(apart[v] >> u & 1 for u in block):
                block.append(v)
                divide(blocks, place + 1)
                block.pop()
        blocks.append([v])
        divide(blocks, place + 1)
        blocks.pop()

    divide([], 0)
    assert best is not None
    return best


def _chosen(graph: Graph, name: str, own: Sequence[int], apart: Sequence[int]) -> list[int] | None:
    """Few operations that cost no more than all do; None if there are too many.

    Operations that write the array, begin or end it stay; reads are left out.
    """
    needed, readers = [], []
    for v in own:
        operation = graph.operations[v]
        changes = any(view.base == name for view in operation.writes)
        if changes or name in (*operation.new, *operation.freed, *operation.observed):
            needed.append(v)
        else:
            readers.append(v)
    if len(needed) > _MOST_DIVIDED:
        return None
    mask = sum(1 << v for v in own)
    readers.sort(key=lambda v: -(apart[v] & mask).bit_count())
    return sorted((*needed, *readers[: _MOST_DIVIDED - len(needed)]))
