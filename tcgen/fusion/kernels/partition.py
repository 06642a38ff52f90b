"""Searches for partitions of array operations into kernels (Kristensen et al., Section V).

The searches ``linear``, ``greedy``, ``unintrusive`` and ``optimal`` are those of the paper, but the
optimum is a shortest path instead of the result of branch and bound. Its places are
the sets of operations that may have run at some time, and each block is an edge from one set to the
next. Every set is visited once, the cost only has to be a sum over blocks, and exactly the legal
partitions are paths, since blocks that depend on each other in a circle have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TypeAlias

from ...errors import VerifyError
from ..sharing.dependences import bits_of
from .cost_models import TRAFFIC, CostModel, lower_bound
from .merging import greedy, unintrusive
from .wsp import (
    Block,
    Graph,
    Operation,
    Partition,
    View,
    barred_pairs,
    in_order,
    is_legal,
    wsp_graph,
)

_Structure: TypeAlias = tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Partitioned:
    """The result of a search: blocks in a legal order, and their cost under the model.

    No legal partition costs less than the bound, since merging never raises a cost. The status is
    "OPTIMAL" if cost and bound are equal, else "FEASIBLE".
    """

    blocks: Partition
    cost: int
    bound: int
    status: str


def partition(
    operations: tuple[Operation, ...],
    cost: CostModel = TRAFFIC,
    most_blocks: int | None = None,
) -> Partitioned:
    """Blocks of operations, each of which becomes a kernel.

    Operations of one structure, whatever the names of their arrays, are only partitioned once in a
    process (the merge cache of the paper).

    ``operations`` are in a legal order. If the search for the optimum would examine more than
    ``most_blocks`` blocks, the best result of the other searches is taken; None: no limit.

    Raises:
        VerifyError: a search returned an illegal partition.

    Example:
        >>> def view(name):
        ...     return View(name, ((0, 10),))
        >>> a, b, t = view("a"), view("b"), view("t")
        >>> work = (Operation("t=b*a", (a, b), (t,), new=("t",)),
        ...         Operation("a+=t", (a, t), (a,)),
        ...         Operation("free t", freed=("t",)))
        >>> partition(work).cost
        30
    """
    return _searched(structure(operations), cost, most_blocks)


def structure(operations: tuple[Operation, ...]) -> _Structure:
    """Operations with arrays named in order of occurrence: equal structure gives an equal key."""
    names: dict[str, str] = {}

    def named(name: str) -> str:
        return names.setdefault(name, f"a{len(names)}")

    def view(v: View) -> View:
        return replace(v, base=named(v.base))

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
def _searched(operations: _Structure, cost: CostModel, most: int | None) -> Partitioned:
    graph = wsp_graph(operations)
    blocks, bound = _best(graph, cost, most)
    if not is_legal(graph, blocks):
        raise VerifyError(f"the partition {blocks} is illegal")
    value = cost.of(graph, blocks)
    status = "OPTIMAL" if bound == value else "FEASIBLE"
    return Partitioned(in_order(graph, blocks), value, bound, status)


def _best(graph: Graph, cost: CostModel, most: int | None) -> tuple[Partition, int]:
    """The cheapest partition that is found, of few blocks, and a bound."""
    bound = lower_bound(graph, cost)

    def price(found: Partition) -> tuple[int, int]:
        return cost.of(graph, found), len(found)

    found = min((greedy(graph, cost), greedy(graph, cost, linear(graph))), key=price)
    if cost.of(graph, found) > bound:
        found = min((found, greedy(graph, cost, unintrusive(graph, cost))), key=price)
    if cost.of(graph, found) > bound:
        best = optimal(graph, cost, most)
        if best is not None:
            found, bound = min((found, greedy(graph, cost, best)), key=price), cost.of(graph, best)
    return found, bound


def linear(graph: Graph) -> Partition:
    """In program order; an operation that cannot join the current block begins a new one."""
    blocks: list[list[int]] = []
    for v in range(len(graph.operations)):
        if blocks and all((u, v) not in graph.fuse_preventing for u in blocks[-1]):
            blocks[-1].append(v)
        else:
            blocks.append([v])
    return tuple(map(tuple, blocks))


def optimal(graph: Graph, cost: CostModel, most: int | None) -> Partition | None:
    """The cheapest legal partition; None if more than ``most`` blocks would be examined.

    An operation that only frees arrays joins the block that has the last of their uses: nothing
    depends on it, and no block costs more with it.
    """
    count = len(graph.operations)
    needs, barred = [0] * count, barred_pairs(graph)
    for i, j in graph.before:
        needs[j] |= 1 << i
    awaited = {i for i, _ in graph.before}
    frees = [
        (v, needs[v])
        for v, o in enumerate(graph.operations)
        if o.only_frees and needs[v] and v not in awaited
    ]
    free_bits = sum(1 << v for v, _ in frees)

    @cache
    def cost_of(block: int) -> int:
        return cost.block(graph, tuple(bits_of(block)))

    # The least cost of each set, and the set before it.
    best: dict[int, tuple[int, int]] = {0: (0, 0)}
    waiting, tried = {0}, 0
    for _ in range(count + 1):
        layer = sorted(waiting, key=lambda done: (done.bit_count(), done))
        waiting = set()
        for done in layer:
            for block in _blocks_from(done, free_bits, needs, barred):
                tried += 1
                if most is not None and tried > most:
                    return None
                reached = done | block
                for v, used in frees:
                    if not used & ~reached:
                        reached |= 1 << v
                price = best[done][0] + cost_of(reached & ~done)
                if reached not in best or price < best[reached][0]:
                    best[reached] = (price, done)
                    waiting.add(reached)
    blocks: list[Block] = []
    here = (1 << count) - 1
    while here:
        before = best[here][1]
        blocks.append(tuple(bits_of(here & ~before)))
        here = before
    return tuple(reversed(blocks))


def _blocks_from(
    done: int, left_out: int, needs: list[int], fuse_preventing: list[int]
) -> Iterator[int]:
    """Every set of operations that may be the next block, without some."""

    def grow(block: int, barred: int, first: int) -> Iterator[int]:
        for v in range(first, len(needs)):
            bit = 1 << v
            if (done | block) & bit or barred & bit or needs[v] & ~(done | block):
                continue
            yield block | bit
            yield from grow(block | bit, barred | fuse_preventing[v], v + 1)

    # Operations are numbered in a legal order, so sets grow upwards.
    yield from grow(0, left_out, 0)
