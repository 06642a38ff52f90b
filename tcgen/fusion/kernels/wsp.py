"""The Weighted Subroutine Partition (WSP) problem: operations and legal partitions.

Source: Kristensen et al., Fusion of Array Operations at Runtime (2016), Definitions 1 to 21. If
the text leaves a choice, the docstrings state it. :mod:`.cost_models` has the costs of partitions,
and :mod:`.partition` solves the problem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import combinations, product
from math import gcd, prod
from typing import TypeAlias

from ...ir.program import Contract, FormulaSequence, Produce, Step
from ...ir.tensor import Index, Ref, Role, element_bytes

Block: TypeAlias = tuple[int, ...]
Partition: TypeAlias = tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class View:
    """A part of the array ``base`` as an operation uses it.

    Attributes:
        ranges: first element and end on each axis, whatever the direction.
        order: equal for views that one loop reads in step; () where it is so for all of the base.
        weight: weight of an element, for example its bytes.
        steps: distance of neighbours on each axis, negative if the loop begins at the end;
            () where all are 1.
    """

    base: str
    ranges: tuple[tuple[int, int], ...]
    order: tuple[int, ...] = ()
    weight: int = 1
    steps: tuple[int, ...] = ()

    @property
    def amount(self) -> int:
        """Elements times their weight."""
        axes = zip(self.ranges, self.steps or (1,) * len(self.ranges), strict=True)
        return self.weight * prod(len(range(*ends, abs(step))) for ends, step in axes)

    def disjoint(self, other: View) -> bool:
        """True if no element belongs to both.

        Example:
            >>> red, black = View("x", ((0, 9),), steps=(2,)), View("x", ((1, 9),), steps=(-2,))
            >>> red.disjoint(black), red.disjoint(View("x", ((0, 9),)))
            (True, False)
        """
        if self.base != other.base:
            return True
        ones = (1,) * len(self.ranges)
        return any(
            end <= first or last <= start or (start - first) % gcd(step, other_step)
            for (start, end), (first, last), step, other_step in zip(
                self.ranges,
                other.ranges,
                self.steps or ones,
                other.steps or ones,
                strict=True,
            )
        )


@dataclass(frozen=True, slots=True)
class Operation:
    """One array operation (a vertex).

    Attributes:
        new: arrays that begin here; those of ``freed`` end here.
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

    @property
    def changed(self) -> frozenset[str]:
        """Names of the arrays that it writes, begins, ends or hands out."""
        return frozenset({v.base for v in self.writes} | {*self.new, *self.freed, *self.observed})

    def access(self, array: str) -> Hashable:
        """The accesses to an array; equal for operations that do the same."""
        reads = frozenset(v for v in self.reads if v.base == array)
        writes = frozenset(v for v in self.writes if v.base == array)
        return reads, writes, array in self.new, array in self.freed

    @property
    def only_frees(self) -> bool:
        """True if it ends arrays and does nothing else."""
        return bool(self.freed) and not (self.reads or self.writes or self.new or self.observed)


@dataclass(frozen=True, slots=True)
class Graph:
    """A WSP graph (Definition 1).

    Attributes:
        operations: vertices, in a legal order.
        before: pairs (i, j), i < j, such that j must not run before i.
        fuse_preventing: pairs (i, j), i < j, that may not share a kernel.
        observed: arrays that some operation hands out.
    """

    operations: tuple[Operation, ...]
    before: frozenset[tuple[int, int]]
    fuse_preventing: frozenset[tuple[int, int]]
    observed: frozenset[str]


def users_of(operations: Iterable[tuple[int, Operation]]) -> dict[str, list[int]]:
    """Numbers of the operations that touch each array."""
    users: dict[str, list[int]] = {}
    for number, operation in operations:
        for name in operation.arrays:
            users.setdefault(name, []).append(number)
    return users


def wsp_graph(operations: Iterable[Operation]) -> Graph:
    """The graph of operations in program order."""
    listed = tuple(operations)
    users = users_of(enumerate(listed))
    changes: dict[str, list[int]] = {}
    of_space: dict[Hashable, list[int]] = {}
    for n, operation in enumerate(listed):
        for name in operation.changed:
            changes.setdefault(name, []).append(n)
        if operation.space is not None:
            of_space.setdefault(operation.space, []).append(n)
    # Operations depend on each other only if one of them changes an array of the other.
    common = {
        (min(pair), max(pair))
        for name, places in changes.items()
        for pair in product(places, users[name])
        if pair[0] != pair[1]
    }
    apart = {(i, j) for i, j in common if not fusible(listed[i], listed[j])}
    for one, two in combinations(of_space.values(), 2):
        apart.update((min(pair), max(pair)) for pair in product(one, two))
    return Graph(
        listed,
        frozenset((i, j) for i, j in common if _depends(listed[i], listed[j])),
        frozenset(apart),
        frozenset(name for o in listed for name in o.observed),
    )


def barred_pairs(graph: Graph) -> list[int]:
    """For each operation, those with which it may not share a kernel, as bits."""
    barred = [0] * len(graph.operations)
    for i, j in graph.fuse_preventing:
        barred[i] |= 1 << j
        barred[j] |= 1 << i
    return barred


def fusible(first: Operation, second: Operation) -> bool:
    """Definition 12: both can be computed together, element by element."""
    spaces = (first.space, second.space)
    if None not in spaces and spaces[0] != spaces[1]:
        return False
    hazards = [
        *((r, w) for r in second.reads for w in first.writes),
        *((v, w) for v in second.writes for w in (*first.writes, *first.reads)),
    ]
    return all(v.base != w.base or v == w or v.disjoint(w) for v, w in hazards)


def _depends(first: Operation, second: Operation) -> bool:
    """True if one of them writes, begins, ends or hands out an array that the other touches."""
    for one, two in ((first, second), (second, first)):
        changed = (*one.new, *one.freed, *one.observed)
        if changed and not two.arrays.isdisjoint(changed):
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
    depend on each other, so an order of the blocks is required here.
    """
    block_of = {v: n for n, block in enumerate(partition) for v in block}
    if sorted(block_of) != list(range(len(graph.operations))):
        return False
    if any(block_of[i] == block_of[j] for i, j in graph.fuse_preventing):
        return False
    return len(in_order(graph, partition)) == len(partition)


def in_order(graph: Graph, partition: Partition) -> Partition:
    """Blocks in a legal order, without those that depend on each other."""
    block_of = {v: n for n, block in enumerate(partition) for v in block}
    ahead: dict[int, set[int]] = {n: set() for n in range(len(partition))}
    for i, j in graph.before:
        if block_of[i] != block_of[j]:
            ahead[block_of[i]].add(block_of[j])
    waits = Counter(n for later in ahead.values() for n in later)
    ready = [(min(block), n) for n, block in enumerate(partition) if not waits[n]]
    heapify(ready)
    done: list[int] = []
    while ready:
        _, here = heappop(ready)
        done.append(here)
        for n in ahead[here]:
            waits[n] -= 1
            if not waits[n]:
                heappush(ready, (min(partition[n]), n))
    return tuple(partition[n] for n in done)


def loop_operations(
    program: FormulaSequence,
    steps: Sequence[Step],
    around: int,
    extents: Mapping[str, int],
    dtype: str,
) -> tuple[Operation, ...]:
    """Steps in some common loops as operations, and the ends of arrays that no other step uses.

    Two of them are fusible if the next loop inside can be one loop: an element that one of them
    writes there is used in the same iteration. The space is that of this loop. Steps without one
    share none, nor do matrix products, steps that read generated inputs, which come in tiles, and
    steps whose result is a part of an array.
    """
    inside = {step.id for step in steps}
    operations = []
    temporary = set[str]()
    for step in steps:
        array, loops = step.out.tensor, loops_of(step)
        loop = loops[around] if around < len(loops) else None
        view = partial(_view, step, loops[:around], loop, extents, dtype)
        writes, reads = (view(step.out, True),), tuple(view(r, False) for r in step.operands)
        users = (*program.producers(array), *program.consumers(array))
        if array.role is Role.TEMP and inside.issuperset(s.id for s in users):
            temporary.add(array.name)
        new = array.name in temporary and not step.accumulate
        operations.append(
            Operation(
                f"s{step.id}",
                (*reads, *writes) if step.accumulate else reads,
                writes,
                (array.name,) if new else (),
                observed=() if array.name in temporary else (array.name,),
                space=("alone", step.id) if loop is None or not shares_loops(step) else loop.space,
            )
        )
    return (*operations, *(Operation(f"free {n}", freed=(n,)) for n in sorted(temporary)))


def shares_loops(step: Step) -> bool:
    """True for steps that are computed element by element, in loops of several steps."""
    fetched = any(r.tensor.role is Role.GENERATED for r in step.operands)
    product = isinstance(step.op, Produce) or (isinstance(step.op, Contract) and bool(step.sums))
    whole = tuple(i.space for i in step.out.indices) == step.out.tensor.spaces
    return whole and not product and not fetched


def loops_of(step: Step) -> tuple[Index, ...]:
    """Loops of a step, outermost first, in the order of an array that has all of its indices."""
    for ref in (step.out, *step.operands):
        if len(ref.indices) == len(step.indices) and {*ref.indices} == {*step.indices}:
            return ref.indices
    return step.indices


def _view(
    step: Step,
    around: Sequence[Index],
    loop: Index | None,
    extents: Mapping[str, int],
    dtype: str,
    ref: Ref,
    writes: bool,
) -> View:
    """A view in one iteration of the loops ``around``; its order marks the axis of ``loop``.

    What a step writes in all iterations of the loop is read after it.
    """
    ranges = []
    for index, space in zip(ref.indices, ref.tensor.spaces, strict=True):
        before = space.before(index.space) or ()
        start = sum(extents[base.name] for base in before)
        length = 1 if index in around else index.space.extent_in(extents)
        ranges.append((start, start + length))
    order = tuple(int(index == loop) for index in ref.indices)
    if writes and loop not in ref.indices:
        order = (-1 - step.id,)
    return View(ref.tensor.name, tuple(ranges), order or (0,), element_bytes(ref.tensor, dtype))
