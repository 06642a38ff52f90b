"""Searches for partitions of array operations into kernels (Kristensen et al., Section V).

The algorithms are ``singleton``, ``linear``, ``greedy``, ``unintrusive`` and ``optimal``, as in the
paper, but the optimum is a shortest path instead of the result of branch and bound. Its places are
the sets of operations that may have run at some time, and each block is an edge from one set to the
next. Every set is visited once, the cost only has to be a sum over blocks, and exactly the legal
partitions are paths, since blocks that wait for each other in a circle have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import TypeAlias

from ...errors import PlanError, VerifyError
from .wsp import (
    COST_MODELS,
    Block,
    CostModel,
    Graph,
    Operation,
    Partition,
    View,
    in_order,
    is_legal,
)
from .wsp import wsp_graph as graph_of

ALGORITHMS = ("singleton", "linear", "greedy", "unintrusive", "optimal")
_Structure: TypeAlias = tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Partitioned:
    """The result of a search.

    Attributes:
        blocks: in an order in which they may run.
        cost: under the model.
        bound: no legal partition costs less, since merging never raises a cost.
        status: "OPTIMAL" if cost and bound are equal, else "FEASIBLE".
    """

    blocks: Partition
    cost: int
    bound: int
    status: str


def partition(
    operations: tuple[Operation, ...],
    algorithm: str = "optimal",
    model: str = "bytes",
    most_blocks: int | None = None,
) -> Partitioned:
    """Blocks of operations, each of which becomes a kernel.

    Operations of one structure, whatever the names of their arrays, are only partitioned once in a
    process (the merge cache of the paper).

    Args:
        operations: in an order in which they may run.
        algorithm: one of ALGORITHMS.
        model: a name of :data:`tcgen.fusion.kernels.wsp.COST_MODELS`.
        most_blocks: that ``optimal`` examines before it gives up, so that the result is the better
            of greedy and unintrusive; None: as many as necessary.

    Raises:
        PlanError: the algorithm or the model is unknown.
        VerifyError: a search returned an illegal partition.

    Example:
        >>> def view(name):
        ...     return View(name, ((0, 10),))
        >>> a, b, t = view("a"), view("b"), view("t")
        >>> work = (Operation("t=b*a", (a, b), (t,), new=("t",)),
        ...         Operation("a+=t", (a, t), (a,)),
        ...         Operation("free t", freed=("t",)))
        >>> partition(work, "singleton").cost, partition(work).cost
        (60, 30)
    """
    if algorithm not in ALGORITHMS or model not in COST_MODELS:
        raise PlanError(
            f"partition algorithm {algorithm!r} with cost model {model!r} is not available: "
            f"algorithms are {', '.join(ALGORITHMS)}; cost models are {', '.join(COST_MODELS)}"
        )
    return _searched(structure(operations), algorithm, model, most_blocks)


def structure(operations: tuple[Operation, ...]) -> _Structure:
    """Operations with arrays named in order of occurrence: equal structure gives an equal key."""
    names: dict[str, str] = {}

    def named(name: str) -> str:
        return names.setdefault(name, f"a{len(names)}")

    def view(v: View) -> View:
        return View(named(v.base), v.ranges, v.order, v.weight)

    return tuple(
        Operation(
            "",
            tuple(map(view, o.reads)),
            tuple(map(view, o.writes)),
            tuple(map(named, o.new)),
            tuple(map(named, o.freed)),
            tuple(map(named, o.observed)),
            o.space,
        )
        for o in operations
    )


@lru_cache(maxsize=1024)
def _searched(operations: _Structure, algorithm: str, model: str, most: int | None) -> Partitioned:
    graph, cost = graph_of(operations), COST_MODELS[model]
    status = "FEASIBLE"
    match algorithm:
        case "singleton":
            blocks = singleton(graph)
        case "linear":
            blocks = linear(graph)
        case "greedy":
            blocks = greedy(graph, cost)
        case "unintrusive":
            blocks = unintrusive(graph, cost)
        case _:
            start = unintrusive(graph, cost)
            best = optimal(graph, cost, most)
            heuristics = [greedy(graph, cost), greedy(graph, cost, start), start]
            status = "FEASIBLE" if best is None else "OPTIMAL"
            blocks = best or min(heuristics, key=lambda p: cost.of(graph, p))
    if not is_legal(graph, blocks):
        raise VerifyError(f"the {algorithm} partition {blocks} is illegal; please report it")
    value = cost.of(graph, blocks)
    one_block = cost.of(graph, (tuple(range(len(operations))),)) if operations else value
    bound = value if status == "OPTIMAL" else min(value, one_block)
    return Partitioned(
        in_order(graph, blocks), value, bound, "OPTIMAL" if bound == value else status
    )


def singleton(graph: Graph) -> Partition:
    """Every operation by itself."""
    return tuple((v,) for v in range(len(graph.operations)))


def linear(graph: Graph) -> Partition:
    """In program order; an operation that cannot join the current block begins a new one."""
    blocks: list[list[int]] = []
    for v in range(len(graph.operations)):
        if blocks and all((u, v) not in graph.fuse_preventing for u in blocks[-1]):
            blocks[-1].append(v)
        else:
            blocks.append([v])
    return tuple(map(tuple, blocks))


def greedy(graph: Graph, cost: CostModel, start: Partition | None = None) -> Partition:
    """Merge the two blocks that save most, until no merge saves anything (Fig. 7)."""
    costs, blocks = BlockCosts(graph, cost), start or singleton(graph)
    while True:
        order = BlockOrder(graph, blocks)
        saved = ((costs.saving(*pair), pair) for pair in combinations(blocks, 2))
        merges = sorted((m for m in saved if m[0] > 0), key=lambda m: -m[0])
        pair = next((pair for _, pair in merges if order.may_merge(*pair)), None)
        if pair is None:
            return blocks
        blocks = _merged(blocks, *pair)


def unintrusive(graph: Graph, cost: CostModel) -> Partition:
    """Merges that prevent no other merge (Theorem 3), repeated until there are none.

    A block with one neighbour is merged with it if that saves something and the neighbour can
    already not share a kernel with any block that the first block cannot share one with. Theorem 3
    requires equal sets of such blocks, which its own example does not have; Bohrium requires a
    subset, as here, in which directly forbidden pairs count.
    """
    costs, blocks = BlockCosts(graph, cost), singleton(graph)
    while True:
        order = BlockOrder(graph, blocks)
        pair = next(
            (
                pair
                for pair in combinations(blocks, 2)
                if costs.saving(*pair) > 0
                and order.may_merge(*pair)
                and order.is_unintrusive(*pair)
            ),
            None,
        )
        if pair is None:
            return blocks
        blocks = _merged(blocks, *pair)


def optimal(graph: Graph, cost: CostModel, most: int | None) -> Partition | None:
    """The cheapest legal partition; None if more than ``most`` blocks would be examined."""
    count = len(graph.operations)
    needs = [0] * count
    for i, j in graph.before:
        needs[j] |= 1 << i
    fuse_preventing = [0] * count
    for i, j in graph.fuse_preventing:
        fuse_preventing[i] |= 1 << j
        fuse_preventing[j] |= 1 << i
    costs = BlockCosts(graph, cost)
    best: dict[int, tuple[int, int]] = {0: (0, 0)}  # by set: the least cost, and the previous set
    waiting, tried = {0}, 0
    for _ in range(count + 1):
        layer = sorted(waiting, key=lambda done: (done.bit_count(), done))
        waiting = set()
        for done in layer:
            for block in _blocks_from(done, needs, fuse_preventing):
                tried += 1
                if most is not None and tried > most:
                    return None
                price = best[done][0] + costs.of(_members(block))
                reached = done | block
                if reached not in best or price < best[reached][0]:
                    best[reached] = (price, done)
                    waiting.add(reached)
    blocks: list[Block] = []
    here = (1 << count) - 1
    while here:
        before = best[here][1]
        blocks.append(_members(here & ~before))
        here = before
    return tuple(reversed(blocks))


def _blocks_from(done: int, needs: list[int], fuse_preventing: list[int]) -> Iterator[int]:
    """Every set of operations that may be the next block."""

    def grow(block: int, barred: int, first: int) -> Iterator[int]:
        for v in range(first, len(needs)):
            bit = 1 << v
            if (done | block) & bit or barred & bit or needs[v] & ~(done | block):
                continue
            yield block | bit
            yield from grow(block | bit, barred | fuse_preventing[v], v + 1)

    # Operations are numbered in an order in which they may run, so sets grow upwards.
    yield from grow(0, 0, 0)


def _members(block: int) -> Block:
    return tuple(v for v in range(block.bit_length()) if block >> v & 1)


def _merged(blocks: Partition, one: Block, two: Block) -> Partition:
    joined = tuple(sorted(one + two))
    return tuple(sorted((*(b for b in blocks if b not in (one, two)), joined)))


class BlockCosts:
    """Costs of blocks of one graph, each computed once."""

    def __init__(self, graph: Graph, cost: CostModel) -> None:
        self.graph, self.cost = graph, cost
        self.known: dict[Block, int] = {}

    def of(self, block: Block) -> int:
        """Cost of a block."""
        if block not in self.known:
            self.known[block] = self.cost.block(self.graph, block)
        return self.known[block]

    def saving(self, one: Block, two: Block) -> int:
        """The cost that a merge saves; 0 where a pair of operations prevents it."""
        if any((min(u, v), max(u, v)) in self.graph.fuse_preventing for u in one for v in two):
            return 0
        return self.of(one) + self.of(two) - self.of(tuple(sorted(one + two)))


class BlockOrder:
    """The order of the blocks of a partition: which block must run after which."""

    def __init__(self, graph: Graph, blocks: Partition) -> None:
        self.graph, self.blocks = graph, blocks
        block_of = {v: b for b in blocks for v in b}
        self.next: dict[Block, set[Block]] = {b: set() for b in blocks}
        for i, j in graph.before:
            if block_of[i] != block_of[j]:
                self.next[block_of[i]].add(block_of[j])
        self.order = in_order(graph, blocks)
        self.after: dict[Block, set[Block]] = {b: set(self.next[b]) for b in blocks}
        for b in reversed(self.order):
            self.after[b].update(*(self.after[c] for c in self.next[b]))

    def may_merge(self, one: Block, two: Block) -> bool:
        """Lemma 1 for a pair that may be fused: no path between them through a third block.

        Figure 5 of the paper prints the opposite test.
        """
        return not any(
            last in self.after[c]
            for first, last in ((one, two), (two, one))
            for c in self.next[first]
            if c != last
        )

    def is_unintrusive(self, one: Block, two: Block) -> bool:
        """True where merging two blocks prevents no other merge."""
        return any(
            self._neighbours(block) == {other}
            and self._incompatible(block) <= self._incompatible(other)
            for block, other in ((one, two), (two, one))
        )

    def _neighbours(self, block: Block) -> set[Block]:
        """Blocks before and after, with no other block in between."""
        before = {b for b in self.blocks if block in self.after[b]}
        last = {b for b in before if not self.after[b] & before}
        after = self.after[block]
        return last | {b for b in after if not any(b in self.after[c] for c in after)}

    def _incompatible(self, block: Block) -> set[Block]:
        """Blocks that can never join: forbidden, or only reached through a forbidden pair."""
        incompatible = {b for b in self.blocks if b != block and self._forbidden(b, block)}
        before = {b: {c for c in self.blocks if b in self.next[c]} for b in self.blocks}
        for order, ahead in ((self.order, self.next), (tuple(reversed(self.order)), before)):
            barred: dict[Block, bool] = {block: False}
            for b in order:
                if b in barred:
                    for c in ahead[b]:
                        walled = barred[b] or self._forbidden(b, c)
                        barred[c] = barred.get(c, False) or walled
            incompatible |= {b for b, wall in barred.items() if wall}
        return incompatible

    def _forbidden(self, one: Block, two: Block) -> bool:
        return any((min(u, v), max(u, v)) in self.graph.fuse_preventing for u in one for v in two)
