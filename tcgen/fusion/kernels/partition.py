"""Searches for partitions of array operations into kernels (Kristensen et al., Section V).

``singleton``, ``linear``, ``greedy``, ``unintrusive`` and ``optimal`` as in the paper. The optimum
is found by shortest path instead of branch and bound: the operations that have run are a set closed
under what must run before, each such set is a place, and a block leads from one to the next. That
visits each set once, needs nothing of the cost but that it adds up over blocks, and takes no legal
partition amiss, since blocks that wait in a circle have no such path.
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
    """What a search found.

    Attributes:
        blocks: in an order in which they may run.
        cost: under the model.
        bound: no legal partition costs less, since merging never raises a cost.
        status: "OPTIMAL" where cost and bound are one, else "FEASIBLE".
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
    """Blocks of operations, each to be a kernel.

    Operations of one structure, whatever their arrays are called, are searched once in a process
    (the merge cache of the paper).

    Args:
        operations: in an order in which they may run.
        algorithm: one of ALGORITHMS.
        model: a name of :data:`tcgen.fusion.kernels.wsp.COST_MODELS`.
        most_blocks: that ``optimal`` looks at before it gives up and the better of greedy and
            unintrusive is the answer; None: as many as it takes.

    Raises:
        PlanError: there is no such algorithm or model.

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
            f"no partition by {algorithm!r} for {model!r}: algorithms are {', '.join(ALGORITHMS)}; "
            f"cost models are {', '.join(COST_MODELS)}"
        )
    return _searched(structure(operations), algorithm, model, most_blocks)


def structure(operations: tuple[Operation, ...]) -> _Structure:
    """Operations with arrays named by their first occurrence: equal work gives an equal key."""
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
            tuple(map(named, o.kept)),
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
            found = singleton(graph)
        case "linear":
            found = linear(graph)
        case "greedy":
            found = greedy(graph, cost)
        case "unintrusive":
            found = unintrusive(graph, cost)
        case _:
            start = unintrusive(graph, cost)
            best = optimal(graph, cost, most)
            rivals = [greedy(graph, cost), greedy(graph, cost, start), start]
            status = "FEASIBLE" if best is None else "OPTIMAL"
            found = best or min(rivals, key=lambda p: cost.of(graph, p))
    if not is_legal(graph, found):
        raise VerifyError(f"partition by {algorithm}: {found} cannot run")
    value = cost.of(graph, found)
    together = cost.of(graph, (tuple(range(len(operations))),)) if operations else value
    bound = value if status == "OPTIMAL" else min(value, together)
    return Partitioned(
        in_order(graph, found), value, bound, "OPTIMAL" if bound == value else status
    )


def singleton(graph: Graph) -> Partition:
    """Every operation by itself."""
    return tuple((v,) for v in range(len(graph.operations)))


def linear(graph: Graph) -> Partition:
    """In program order, a new block where an operation does not go with all of the current one."""
    blocks: list[list[int]] = []
    for v in range(len(graph.operations)):
        if blocks and all((u, v) not in graph.apart for u in blocks[-1]):
            blocks[-1].append(v)
        else:
            blocks.append([v])
    return tuple(map(tuple, blocks))


def greedy(graph: Graph, cost: CostModel, start: Partition | None = None) -> Partition:
    """Merge the two blocks that save most, as long as a merge saves something (Fig. 7)."""
    prices, blocks = Prices(graph, cost), start or singleton(graph)
    while True:
        ways = Ways(graph, blocks)
        saved = ((prices.saving(*pair), pair) for pair in combinations(blocks, 2))
        merges = sorted((m for m in saved if m[0] > 0), key=lambda m: -m[0])
        pair = next((pair for _, pair in merges if ways.may_merge(*pair)), None)
        if pair is None:
            return blocks
        blocks = _merged(blocks, *pair)


def unintrusive(graph: Graph, cost: CostModel) -> Partition:
    """Merges that stand in nobody's way (Theorem 3), repeated until there is none.

    A block with one neighbour is merged with it where whatever the block cannot share a kernel with
    is kept from that neighbour as well, and the merge saves something. Theorem 3 asks for equal
    sets, which its own example does not have; Bohrium asks for a subset, as here, and pairs that
    are forbidden themselves count.
    """
    prices, blocks = Prices(graph, cost), singleton(graph)
    while True:
        ways = Ways(graph, blocks)
        pair = next(
            (
                pair
                for pair in combinations(blocks, 2)
                if prices.saving(*pair) > 0
                and ways.may_merge(*pair)
                and ways.stands_in_no_way(*pair)
            ),
            None,
        )
        if pair is None:
            return blocks
        blocks = _merged(blocks, *pair)


def optimal(graph: Graph, cost: CostModel, most: int | None) -> Partition | None:
    """The cheapest legal partition; None where more than ``most`` blocks would be looked at."""
    count = len(graph.operations)
    needs = [0] * count
    for i, j in graph.before:
        needs[j] |= 1 << i
    apart = [0] * count
    for i, j in graph.apart:
        apart[i] |= 1 << j
        apart[j] |= 1 << i
    prices = Prices(graph, cost)
    best: dict[int, tuple[int, int]] = {0: (0, 0)}  # cost so far, and the set before
    waiting, looked = {0}, 0
    for _ in range(count + 1):
        layer = sorted(waiting, key=lambda done: (done.bit_count(), done))
        waiting = set()
        for done in layer:
            for block in _blocks_from(done, needs, apart):
                looked += 1
                if most is not None and looked > most:
                    return None
                price = best[done][0] + prices.of(_members(block))
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


def _blocks_from(done: int, needs: list[int], apart: list[int]) -> Iterator[int]:
    """Every set of operations that may run together next."""

    def grow(block: int, barred: int, first: int) -> Iterator[int]:
        for v in range(first, len(needs)):
            bit = 1 << v
            if (done | block) & bit or barred & bit or needs[v] & ~(done | block):
                continue
            yield block | bit
            yield from grow(block | bit, barred | apart[v], v + 1)

    # Operations are numbered in an order in which they may run, so sets grow upwards.
    yield from grow(0, 0, 0)


def _members(block: int) -> Block:
    return tuple(v for v in range(block.bit_length()) if block >> v & 1)


def _merged(blocks: Partition, one: Block, two: Block) -> Partition:
    joined = tuple(sorted(one + two))
    return tuple(sorted((*(b for b in blocks if b not in (one, two)), joined)))


class Prices:
    """Costs of blocks of one graph, each worked out once."""

    def __init__(self, graph: Graph, cost: CostModel) -> None:
        self.graph, self.cost = graph, cost
        self.known: dict[Block, int] = {}

    def of(self, block: Block) -> int:
        """Cost of a block."""
        if block not in self.known:
            self.known[block] = self.cost.block(self.graph, block)
        return self.known[block]

    def saving(self, one: Block, two: Block) -> int:
        """What a merge saves; 0 where a pair of operations forbids it."""
        if any((min(u, v), max(u, v)) in self.graph.apart for u in one for v in two):
            return 0
        return self.of(one) + self.of(two) - self.of(tuple(sorted(one + two)))


class Ways:
    """Which blocks of a partition wait for which, at once and through others."""

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
        """Lemma 1, of a pair that nothing forbids: no way between them through a third block.

        Figure 5 of the paper prints the test the other way round.
        """
        return not any(
            last in self.after[c]
            for first, last in ((one, two), (two, one))
            for c in self.next[first]
            if c != last
        )

    def stands_in_no_way(self, one: Block, two: Block) -> bool:
        """A block with this one neighbour loses nothing by joining it."""
        for block, other in ((one, two), (two, one)):
            if self._neighbours(block) == {other} and self._kept_from(block) <= self._kept_from(
                other
            ):
                return True
        return False

    def _neighbours(self, block: Block) -> set[Block]:
        """Blocks before and behind, with no other one in between."""
        before = {b for b in self.blocks if block in self.after[b]}
        found = {b for b in before if not self.after[b] & before}
        behind = self.after[block]
        return found | {b for b in behind if not any(b in self.after[c] for c in behind)}

    def _kept_from(self, block: Block) -> set[Block]:
        """Blocks that can never join: forbidden, or beyond a forbidden pair on the way to them."""
        found = {b for b in self.blocks if b != block and self._forbidden(b, block)}
        before = {b: {c for c in self.blocks if b in self.next[c]} for b in self.blocks}
        for order, ahead in ((self.order, self.next), (tuple(reversed(self.order)), before)):
            barred: dict[Block, bool] = {block: False}
            for b in order:
                if b in barred:
                    for c in ahead[b]:
                        walled = barred[b] or self._forbidden(b, c)
                        barred[c] = barred.get(c, False) or walled
            found |= {b for b, wall in barred.items() if wall}
        return found

    def _forbidden(self, one: Block, two: Block) -> bool:
        return any((min(u, v), max(u, v)) in self.graph.apart for u in one for v in two)
