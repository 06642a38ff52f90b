"""What a partition of array operations costs: the cost models of Kristensen et al.

Every model is a sum over blocks and, within a block, over arrays. So the saving of a merge is found
from the arrays that two blocks have in common alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from .wsp import Block, Graph, Operation, Partition, View


@dataclass(frozen=True, slots=True)
class CostModel:
    """A cost that is a sum over blocks and their arrays, plus a constant.

    Attributes:
        name: of the model.
        fixed: the constant.
        array: the cost of an array in a block, from the operations of the block that touch it, in
            program order; negative where the model counts savings.
        each: the cost of each block.
        counts_accesses: a block costs the elements of the views that it reads and writes, so that
            without some reads an array costs no more.
        counts_own_reads: also of views that it has written before.
    """

    name: str
    fixed: Callable[[Graph], int]
    array: Callable[[Graph, str, Sequence[int]], int]
    each: int = 0
    counts_accesses: bool = False
    counts_own_reads: bool = False

    def block(self, graph: Graph, block: Block) -> int:
        """The cost of a block."""
        users: dict[str, list[int]] = {}
        for v in sorted(block):
            for name in graph.operations[v].arrays:
                users.setdefault(name, []).append(v)
        return self.each + sum(self.array(graph, name, own) for name, own in users.items())

    def of(self, graph: Graph, partition: Partition) -> int:
        """Cost of a partition."""
        return self.fixed(graph) + sum(self.block(graph, b) for b in partition)


def _nothing(graph: Graph) -> int:  # noqa: ARG001  (as every ``fixed``)
    return 0


def _new_and_freed(graph: Graph, name: str, own: Sequence[int]) -> tuple[bool, bool]:
    """Whether an array begins in a block, and whether it ends in it and is not observed."""
    operations = [graph.operations[v] for v in own]
    freed = name not in graph.observed and any(name in o.freed for o in operations)
    return any(name in o.new for o in operations), freed


def _accesses(graph: Graph, name: str, own: Sequence[int]) -> int:
    """Definition 13 to the letter: reads of arrays that did not begin here, and writes."""
    new, freed = _new_and_freed(graph, name, own)
    operations = [graph.operations[v] for v in own]
    reads = {v for o in operations for v in o.reads if v.base == name and not new}
    writes = {v for o in operations for v in o.writes if v.base == name and not freed}
    return sum(v.amount for v in reads) + sum(v.amount for v in writes)


def _traffic(graph: Graph, name: str, own: Sequence[int]) -> int:
    """Memory traffic: reads of views the block has not written, writes that outlive the block."""
    new, freed = _new_and_freed(graph, name, own)
    reads: set[View] = set()
    writes: set[View] = set()
    for operation in (graph.operations[v] for v in own):
        if not new:
            reads.update(v for v in operation.reads if v.base == name and v not in writes)
        writes.update(v for v in operation.writes if v.base == name)
    return sum(v.amount for v in reads) + (0 if freed else sum(v.amount for v in writes))


def _begun(graph: Graph) -> int:
    return sum(len(o.new) for o in graph.operations)


def _uncontracted(graph: Graph, name: str, own: Sequence[int]) -> int:
    """Definition 19: minus one for an array that begins and ends inside."""
    return -all(_new_and_freed(graph, name, own))


def _shared(first: Operation, second: Operation, name: str) -> int:
    """Accesses to an array that two operations have in common, counted from both sides."""
    return len(_external(first, name) & _views(second, name)) + len(
        _external(second, name) & _views(first, name)
    )


def _external(operation: Operation, name: str) -> set[View]:
    reads = operation.reads if name not in operation.new else ()
    writes = operation.writes if name not in operation.freed else ()
    return {v for v in (*reads, *writes) if v.base == name}


def _views(operation: Operation, name: str) -> set[View]:
    return {v for v in (*operation.reads, *operation.writes) if v.base == name}


def _all_shared(graph: Graph) -> int:
    users: dict[str, list[int]] = {}
    for n, operation in enumerate(graph.operations):
        for name in operation.arrays:
            users.setdefault(name, []).append(n)
    return -sum(_apart(graph, name, own) for name, own in users.items())


def _apart(graph: Graph, name: str, own: Sequence[int]) -> int:
    operations = [graph.operations[v] for v in own]
    return -sum(_shared(one, two, name) for one, two in combinations(operations, 2))


def _weight(graph: Graph) -> int:
    return len({v for o in graph.operations for v in (*o.reads, *o.writes)})


def _robinson_fixed(graph: Graph) -> int:
    n = _weight(graph)
    return n * _begun(graph) + n * n * _all_shared(graph)


def _robinson(graph: Graph, name: str, own: Sequence[int]) -> int:
    n = _weight(graph)
    return n * _uncontracted(graph, name, own) + n * n * _apart(graph, name, own)


COST_MODELS: Mapping[str, CostModel] = {
    m.name: m
    for m in (
        CostModel("bytes", _nothing, _traffic, counts_accesses=True),
        CostModel("accesses", _nothing, _accesses, counts_accesses=True, counts_own_reads=True),
        CostModel("max-contract", _begun, _uncontracted),
        CostModel("max-locality", _all_shared, _apart),
        CostModel("robinson", _robinson_fixed, _robinson, each=1),
    )
}
"""Cost models by name.

- ``bytes``: memory traffic, in the unit of the views' weight.
- ``accesses``: Definition 13 to the letter, which counts a read of a view that the block wrote.
- ``max-contract``: arrays that do not begin and end in one block (Definition 19).
- ``max-locality``: accesses that operations in different blocks have in common (Definition 20 as
  printed, which counts a pair of operations from both sides).
- ``robinson``: locality before contraction before the number of blocks (Definition 21); N is the
  number of different views.
"""
