"""The Weighted Subroutine Partition (WSP) problem: operations, legal partitions and their cost.

Source: Kristensen et al., Fusion of Array Operations at Runtime (2016), Definitions 1 to 21. Where
the text leaves a choice, the docstrings say what is chosen here.
:mod:`tcgen.fusion.kernels.partition` solves the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TypeAlias

from ...ir.cost import extent_of
from ...ir.program import Contract, FormulaSequence, Produce, Step
from ...ir.tensor import Index, Ref, Role, element_bytes

Block: TypeAlias = tuple[int, ...]
Partition: TypeAlias = tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class View:
    """A part of an array as an operation uses it.

    Attributes:
        base: name of the array.
        ranges: first element and end on each axis.
        order: the loop of each axis; () where it is the same for all views of the base.
        weight: of an element, for example its bytes.
    """

    base: str
    ranges: tuple[tuple[int, int], ...]
    order: tuple[int, ...] = ()
    weight: int = 1

    @property
    def amount(self) -> int:
        """Elements times their weight."""
        return self.weight * prod(end - start for start, end in self.ranges)

    def disjoint(self, other: View) -> bool:
        """True if no element belongs to both."""
        if self.base != other.base:
            return True
        return any(
            end <= first or last <= start
            for (start, end), (first, last) in zip(self.ranges, other.ranges, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Operation:
    """One array operation (a vertex).

    Attributes:
        name: for messages.
        reads: views read.
        writes: views written.
        new: arrays that begin here.
        freed: arrays that end here.
        observed: arrays with values that are used outside from here on; they are not contracted.
        space: loops; operations of different spaces share no kernel. None shares with all.
    """

    name: str
    reads: tuple[View, ...] = ()
    writes: tuple[View, ...] = ()
    new: tuple[str, ...] = ()
    freed: tuple[str, ...] = ()
    observed: tuple[str, ...] = ()
    space: Hashable = None

    @property
    def arrays(self) -> frozenset[str]:
        """Names of all arrays that it touches."""
        views = {v.base for v in (*self.reads, *self.writes)}
        return frozenset(views | {*self.new, *self.freed, *self.observed})


@dataclass(frozen=True, slots=True)
class Graph:
    """A WSP graph (Definition 1).

    Attributes:
        operations: vertices, in an order in which they may run.
        before: pairs (i, j), i < j, of which j must not run before i.
        fuse_preventing: pairs (i, j), i < j, that may not share a kernel.
        observed: arrays that some operation hands out.
    """

    operations: tuple[Operation, ...]
    before: frozenset[tuple[int, int]]
    fuse_preventing: frozenset[tuple[int, int]]
    observed: frozenset[str]


def wsp_graph(operations: Iterable[Operation]) -> Graph:
    """The graph of operations in program order."""
    listed = tuple(operations)
    pairs = list(combinations(range(len(listed)), 2))
    return Graph(
        listed,
        frozenset((i, j) for i, j in pairs if _depends(listed[i], listed[j])),
        frozenset((i, j) for i, j in pairs if not fusible(listed[i], listed[j])),
        frozenset(name for o in listed for name in o.observed),
    )


def fusible(first: Operation, second: Operation) -> bool:
    """Definition 12: both can be computed together, element by element."""
    spaces = (first.space, second.space)
    if None not in spaces and spaces[0] != spaces[1]:
        return False
    hazards = [
        *((r, w) for r in second.reads for w in first.writes),
        *((v, w) for v in second.writes for w in (*first.writes, *first.reads)),
    ]
    return all(v == w or v.disjoint(w) for v, w in hazards)


def _depends(first: Operation, second: Operation) -> bool:
    """True if one of them writes, begins, ends or hands out an array that the other touches."""
    if not {*first.new, *first.freed, *first.observed}.isdisjoint(second.arrays):
        return True
    if not {*second.new, *second.freed, *second.observed}.isdisjoint(first.arrays):
        return True
    return any(
        not v.disjoint(w)
        for one, two in ((first, second), (second, first))
        for w in one.writes
        for v in (*two.reads, *two.writes)
    )


def is_legal(graph: Graph, partition: Partition) -> bool:
    """Definition 5: no fuse-preventing pair in a block, and the blocks have an order.

    The formula printed in 5(2) only says that each block is convex. Two convex blocks may still
    wait for each other, so an order of the blocks is required here.
    """
    block_of = {v: n for n, block in enumerate(partition) for v in block}
    if sorted(block_of) != list(range(len(graph.operations))):
        return False
    if any(block_of[i] == block_of[j] for i, j in graph.fuse_preventing):
        return False
    return len(in_order(graph, partition)) == len(partition)


def in_order(graph: Graph, partition: Partition) -> Partition:
    """Blocks in an order in which they may run; those that wait for each other are left out."""
    block_of = {v: n for n, block in enumerate(partition) for v in block}
    waits: dict[int, set[int]] = {n: set() for n in range(len(partition))}
    for i, j in graph.before:
        if block_of[i] != block_of[j]:
            waits[block_of[j]].add(block_of[i])
    order = sorted(waits, key=lambda n: min(partition[n]))
    done: dict[int, None] = {}
    while (ready := next((n for n in order if waits[n] <= done.keys()), None)) is not None:
        order.remove(ready)
        done[ready] = None
    return tuple(partition[n] for n in done)


@dataclass(frozen=True, slots=True)
class CostModel:
    """A cost that is a sum over the blocks, plus a constant.

    Attributes:
        name: of the model.
        fixed: the constant.
        block: the cost of a block, negative where the model counts savings.
    """

    name: str
    fixed: Callable[[Graph], int]
    block: Callable[[Graph, Block], int]

    def of(self, graph: Graph, partition: Partition) -> int:
        """Cost of a partition."""
        return self.fixed(graph) + sum(self.block(graph, b) for b in partition)


def _nothing(graph: Graph) -> int:  # noqa: ARG001  (as every ``fixed``)
    return 0


def _inside(graph: Graph, block: Block) -> tuple[set[str], set[str]]:
    """Arrays that begin in a block, and those that end in it and are not observed."""
    operations = [graph.operations[v] for v in block]
    new = {n for o in operations for n in o.new}
    return new, {n for o in operations for n in o.freed if n not in graph.observed}


def _accesses(graph: Graph, block: Block) -> int:
    """Definition 13 to the letter: reads of arrays that did not begin here, and writes."""
    new, freed = _inside(graph, block)
    operations = [graph.operations[v] for v in block]
    reads = {v for o in operations for v in o.reads if v.base not in new}
    writes = {v for o in operations for v in o.writes if v.base not in freed}
    return sum(v.amount for v in reads) + sum(v.amount for v in writes)


def _traffic(graph: Graph, block: Block) -> int:
    """Memory traffic: reads of views the block has not written, writes that outlive the block."""
    new, freed = _inside(graph, block)
    reads: set[View] = set()
    writes: set[View] = set()
    for operation in (graph.operations[v] for v in sorted(block)):
        reads.update(v for v in operation.reads if v not in writes and v.base not in new)
        writes.update(operation.writes)
    return sum(v.amount for v in reads) + sum(v.amount for v in writes if v.base not in freed)


def _begun(graph: Graph) -> int:
    return sum(len(o.new) for o in graph.operations)


def _uncontracted(graph: Graph, block: Block) -> int:
    """Definition 19: minus one for each array that begins and ends inside."""
    new, freed = _inside(graph, block)
    return -len(new & freed)


def _shared(graph: Graph, i: int, j: int) -> int:
    """Accesses that two operations have in common, counted from both sides."""
    first, second = graph.operations[i], graph.operations[j]
    return len(_external(first) & _views(second)) + len(_external(second) & _views(first))


def _external(operation: Operation) -> set[View]:
    reads = {v for v in operation.reads if v.base not in operation.new}
    return reads | {v for v in operation.writes if v.base not in operation.freed}


def _views(operation: Operation) -> set[View]:
    return {*operation.reads, *operation.writes}


def _all_shared(graph: Graph) -> int:
    return sum(_shared(graph, i, j) for i, j in combinations(range(len(graph.operations)), 2))


def _apart(graph: Graph, block: Block) -> int:
    return -sum(_shared(graph, i, j) for i, j in combinations(sorted(block), 2))


def _weight(graph: Graph) -> int:
    return len({v for o in graph.operations for v in _views(o)})


def _robinson_fixed(graph: Graph) -> int:
    n = _weight(graph)
    return n * _begun(graph) + n * n * _all_shared(graph)


def _robinson(graph: Graph, block: Block) -> int:
    n = _weight(graph)
    return 1 + n * _uncontracted(graph, block) + n * n * _apart(graph, block)


COST_MODELS: Mapping[str, CostModel] = {
    m.name: m
    for m in (
        CostModel("bytes", _nothing, _traffic),
        CostModel("accesses", _nothing, _accesses),
        CostModel("max-contract", _begun, _uncontracted),
        CostModel("max-locality", _all_shared, _apart),
        CostModel("robinson", _robinson_fixed, _robinson),
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


def program_operations(
    program: FormulaSequence, extents: Mapping[str, int], dtype: str
) -> tuple[Operation, ...]:
    """Steps of a formula sequence as operations, and the end of each intermediate.

    The space of a step is that of its result. Some steps share no kernel: matrix products, which
    are not computed element by element; steps that read generated inputs, which come in tiles;
    scalars; and results that are a slice of an array.

    Args:
        program: a formula sequence.
        extents: of each base space.
        dtype: of the program; views weigh their bytes.
    """
    operations = []
    for step in program.steps:
        array, temp = step.out.tensor, step.out.tensor.role is Role.TEMP
        writes = (_view(step.out, step, extents, dtype),)
        reads = tuple(_view(r, step, extents, dtype) for r in step.operands)
        spaces = tuple(i.space for i in step.out.indices)
        product = isinstance(step.op, Contract) and bool(step.sums)
        fetched = isinstance(step.op, Produce) or any(
            r.tensor.role is Role.GENERATED for r in step.operands
        )
        alone = product or fetched or not spaces or spaces != array.spaces
        operations.append(
            Operation(
                f"s{step.id}",
                (*reads, *writes) if step.accumulate else reads,
                writes,
                (array.name,) if temp and not step.accumulate else (),
                observed=() if temp else (array.name,),
                space=("alone", step.id) if alone else (step.phase, spaces),
            )
        )
    names = [t.name for t in program.intermediates]
    return (*operations, *(Operation(f"free {n}", freed=(n,)) for n in names))


def _view(ref: Ref, step: Step, extents: Mapping[str, int], dtype: str) -> View:
    loops: tuple[Index, ...] = step.indices
    ranges = []
    for index, space in zip(ref.indices, ref.tensor.spaces, strict=True):
        before = space.before(index.space) or ()
        start = sum(extents[base.name] for base in before)
        ranges.append((start, start + extent_of(index.space, extents)))
    inner = len(step.out.indices)
    order = tuple(loops.index(i) for i in ref.indices)
    # A summed index is a loop of this step alone.
    own = tuple(n if n < inner else -1 - step.id * len(loops) - n for n in order)
    return View(ref.tensor.name, tuple(ranges), own, element_bytes(ref.tensor, dtype))
