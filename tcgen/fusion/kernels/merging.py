"""Partitions by merging blocks: greedy, and unintrusive (Kristensen et al., Section V)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import reduce
from heapq import heappop, heappush
from operator import or_

from ..sharing.dependences import bits_of
from .cost_models import CostModel
from .wsp import Graph, Partition, barred_pairs, in_order, users_of

# Greedy first compares a block with so many on either side, of those that touch the same array: the
# pairs of 1,000 readers of an array would be half a million.
_REACH = 8


class Merging:
    """Blocks while they are merged. A block has the name of its first operation.

    Attributes:
        arrays: operations of each block that touch an array, if they cost something.
        members: operations of each block, as bits.
        barred: operations with which a block may share no kernel.
        after: operations that run after a block, through any number of others; ``before`` likewise.
    """

    def __init__(self, graph: Graph, cost: CostModel, blocks: Partition) -> None:
        self.graph, self.cost = graph, cost
        self.alike: dict[tuple[str, int], Hashable] = {}
        count = len(graph.operations)
        follow, lead, apart = [0] * count, [0] * count, barred_pairs(graph)
        for i, j in graph.before:
            follow[i] |= 1 << j
            lead[j] |= 1 << i
        self.members: dict[int, int] = {}
        self.barred: dict[int, int] = {}
        self.next: dict[int, int] = {}
        self.previous: dict[int, int] = {}
        self.arrays: dict[int, dict[str, tuple[int, ...]]] = {}
        block_of = [0] * count
        for block in blocks:
            name, mask = min(block), sum(1 << v for v in block)
            self.members[name] = mask
            self.barred[name] = reduce(or_, (apart[v] for v in block))
            self.next[name] = reduce(or_, (follow[v] for v in block)) & ~mask
            self.previous[name] = reduce(or_, (lead[v] for v in block)) & ~mask
            for v in block:
                block_of[v] = name
            users = users_of((v, graph.operations[v]) for v in sorted(block))
            self.arrays[name] = {a: self._different(a, own) for a, own in users.items()}
        self.users: dict[str, list[int]] = {}  # blocks that touch an array, in order
        for name, touched in sorted(self.arrays.items()):
            for array in touched:
                self.users.setdefault(array, []).append(name)
        self.block_of = block_of
        self.order = [min(block) for block in in_order(graph, blocks)]
        self.after = self._closure(reversed(self.order), self.next)
        self.before = self._closure(self.order, self.previous)
        self.known: dict[tuple[str, tuple[int, ...]], int] = {}

    def _closure(self, order: Iterator[int] | list[int], step: dict[int, int]) -> dict[int, int]:
        reached: dict[int, int] = {}
        for name in order:
            mask = step[name]
            for other in {self.block_of[v] for v in bits_of(mask)}:
                mask |= self.members[other] | reached[other]
            reached[name] = mask
        return reached

    @property
    def blocks(self) -> Partition:
        """The blocks, each in program order."""
        return tuple(tuple(bits_of(self.members[name])) for name in sorted(self.members))

    def neighbours(self, name: int) -> set[int]:
        """Blocks that touch an array of a block."""
        return set().union(*(self.users[array] for array in self.arrays[name])) - {name}

    def allowed(self, name: int) -> list[int]:
        """Blocks that no pair of operations keeps apart from a block."""
        everything = (1 << len(self.block_of)) - 1
        return sorted({self.block_of[v] for v in bits_of(everything & ~self.barred[name])} - {name})

    def near(self, name: int) -> set[int]:
        """Those of the neighbours that are among the next ones on each side for some array."""
        found: set[int] = set()
        for array in self.arrays[name]:
            users = self.users[array]
            if len(users) > 1:
                here = bisect_left(users, name)
                found.update(users[max(0, here - _REACH) : here + _REACH + 1])
        return found - {name}

    def saving(self, one: int, two: int) -> int:
        """The cost that a merge saves."""
        first, second = self.arrays[one], self.arrays[two]
        if len(second) < len(first):
            first, second = second, first
        total = self.cost.each
        for array, own in first.items():
            other = second.get(array)
            if other is not None:
                both = self._different(array, sorted(own + other))
                total += self._array(array, own) + self._array(array, other)
                total -= self._array(array, both)
        return total

    def _different(self, array: str, own: Sequence[int]) -> tuple[int, ...]:
        """The operations without those that access the array as an earlier one does.

        Where accesses are counted, a block that has accessed a view accesses it again for nothing.
        """
        if not self.cost.counts_accesses or len(own) == 1:
            return tuple(own)
        first: dict[Hashable, int] = {}
        for v in own:
            access = self.alike.get((array, v))
            if access is None:
                access = self.alike[array, v] = self.graph.operations[v].access(array)
            first.setdefault(access, v)
        return tuple(first.values())

    def _array(self, array: str, own: tuple[int, ...]) -> int:
        found = self.known.get((array, own))
        if found is None:
            found = self.known[array, own] = self.cost.array(self.graph, array, own)
        return found

    def may_fuse(self, one: int, two: int) -> bool:
        """True if no pair of operations of the two blocks prevents it."""
        return not self.barred[one] & self.members[two]

    def may_merge(self, one: int, two: int) -> bool:
        """Lemma 1: they may be fused, and no path between them leads through a third block.

        Figure 5 of the paper prints the opposite test.
        """
        return (
            self.may_fuse(one, two)
            and not self.after[one] & self.before[two]
            and not self.after[two] & self.before[one]
        )

    def merge(self, one: int, two: int) -> int:
        """Merge two blocks; the name of the result."""
        name, gone = min(one, two), max(one, two)
        for table in (self.members, self.barred, self.next, self.previous, self.after, self.before):
            table[name] |= table.pop(gone)
        mask = self.members[name]
        for table in (self.next, self.previous, self.after, self.before):
            table[name] &= ~mask
        users = self.arrays[name]
        for array, own in self.arrays.pop(gone).items():
            touching = self.users[array]
            del touching[bisect_left(touching, gone)]
            if array not in users:
                insort(touching, name)
            users[array] = self._different(array, sorted(users.get(array, ()) + own))
        after, before = self.after[name] | mask, self.before[name] | mask
        for other, there in self.after.items():
            if there & mask:
                self.after[other] = there | after
        for other, there in self.before.items():
            if there & mask:
                self.before[other] = there | before
        for v in bits_of(mask):
            self.block_of[v] = name
        return name

    def is_unintrusive(self, one: int, two: int) -> bool:
        """True where merging two blocks prevents no other merge."""
        return any(
            self._only_neighbour(block) == other
            and self._incompatible(block) <= self._incompatible(other)
            for block, other in ((one, two), (two, one))
        )

    def _only_neighbour(self, name: int) -> int | None:
        """The block directly before or after a block, if there is one alone."""
        last = self.before[name]
        for v in bits_of(self.before[name]):
            last &= ~self.before[self.block_of[v]]
        first = self.after[name]
        for v in bits_of(self.after[name]):
            first &= ~self.after[self.block_of[v]]
        found = {self.block_of[v] for v in bits_of(last | first)}
        return found.pop() if len(found) == 1 else None

    def _incompatible(self, name: int) -> set[int]:
        """Blocks that can never join: forbidden, or only reached through a forbidden pair."""
        incompatible = {self.block_of[v] for v in bits_of(self.barred[name])} - {name}
        for ahead, reached in ((self.next, self.after), (self.previous, self.before)):
            walled: dict[int, bool] = {name: False}
            inside = {self.block_of[v] for v in bits_of(reached[name])}
            for block in sorted(inside | {name}, key=lambda b: -reached[b].bit_count()):
                if block in walled:
                    for other in {self.block_of[v] for v in bits_of(ahead[block])}:
                        wall = walled[block] or not self.may_fuse(block, other)
                        walled[other] = walled.get(other, False) or wall
            incompatible |= {b for b, wall in walled.items() if wall}
        return incompatible


def greedy(graph: Graph, cost: CostModel, start: Partition | None = None) -> Partition:
    """Merge the two blocks that save most, until no two may be merged (Fig. 7).

    Merges that save nothing come last: there are fewer blocks for the same cost, and some merges
    only save after them. The saving of a pair does not change while neither block is merged, and an
    illegal merge never becomes legal. So a heap holds the pending pairs, and each merge adds those
    of the new block. If many blocks touch one array, each is paired only with the nearest ones,
    because all pairs would be the square of their number. When none of these is left, all pairs are
    compared.
    """
    merging = Merging(graph, cost, start or tuple((v,) for v in range(len(graph.operations))))
    pending: list[tuple[int, int, int]] = []
    least = 1  # saving of the pairs that are compared

    def propose(one: int, others: Iterable[int]) -> None:
        for other in others:
            if other != one and merging.may_merge(one, other):
                saving = merging.saving(one, other)
                if saving >= least:
                    heappush(pending, (-saving, min(one, other), max(one, other)))

    for name in merging.members:
        propose(name, (other for other in merging.near(name) if name < other))
    while True:
        while pending:
            saving, one, two = heappop(pending)
            if one not in merging.members or two not in merging.members:
                continue
            # One of them may have been merged since.
            if -saving != merging.saving(one, two) or not merging.may_merge(one, two):
                continue
            # Savings change only for blocks that touch an array of the vanishing block.
            partners = merging.near(max(one, two))
            made = merging.merge(one, two)
            propose(made, sorted(partners) if least else merging.allowed(made))
        if not least:
            return merging.blocks
        for name in merging.members:
            propose(name, (n for n in merging.neighbours(name) if name < n))
        if not pending:
            least = 0
            for name in merging.members:
                propose(name, (n for n in merging.allowed(name) if name < n))


def unintrusive(graph: Graph, cost: CostModel) -> Partition:
    """Merges that prevent no other merge (Theorem 3), repeated until there are none.

    A block with one neighbour is merged with it if that saves something and the neighbour can
    already not share a kernel with any block that the first block cannot share one with. Theorem 3
    requires equal sets of these blocks, which its own example does not have; Bohrium requires a
    subset, as here, in which directly forbidden pairs count.
    """
    merging = Merging(graph, cost, tuple((v,) for v in range(len(graph.operations))))
    merged = True
    while merged:
        merged = False
        for name in sorted(merging.members):
            if name not in merging.members:
                continue
            others = merging.members if cost.each else merging.neighbours(name)
            for other in sorted(others):
                if (
                    name < other
                    and name in merging.members
                    and other in merging.members
                    and merging.may_merge(name, other)
                    and merging.saving(name, other) > 0
                    and merging.is_unintrusive(name, other)
                ):
                    merging.merge(name, other)
                    merged = True
    return merging.blocks
