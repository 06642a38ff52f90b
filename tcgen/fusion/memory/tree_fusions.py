"""The ways to fuse a tree that matter for its peak, from the leaves to the root.

As for the static sum, the loops of a node stand in one order and each of its edges is fused in a
prefix of it. What stands below an edge runs in the bodies of the loops of its prefix: for each of
these bodies, outermost first, a profile says how memory rises and falls there. The profiles of two
edges of a node are merged body by body. A loop that no edge further up shares is complete: it is
one item in the body around it, and before it runs what hangs below it there.

Of the ways to fuse what stands below an edge with the same prefix those are kept that no other one
can replace. There are few of them because sizes are *rounded* down to multiples of a grain: an
array that takes nothing then needs no more loops. For if the innermost loop is taken from its edge,
the two parts of that loop can run one after the other, and nothing takes more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from .tree_prefixes import Order, twins

Segment = tuple[int, int, tuple[int, ...]]  # (hill, valley, statements that run)
Profile = tuple[Segment, ...]
Chosen = tuple[object, ...]  # (edge, prefix), or two or more of such rows


def profile_of(segments: Iterable[Segment]) -> Profile:
    """The profile of what runs in this order.

    Example:
        >>> profile_of([(5, 1, (0,)), (7, 3, (1,)), (4, 2, (2,))])
        ((7, 2, (0, 1, 2)),)
    """
    found: list[Segment] = []
    for hill, valley, statements in segments:
        while found:
            before = found[-1]
            if before[0] > hill and before[1] < valley:
                break
            hill, statements = max(before[0], hill), before[2] + statements
            found.pop()
        found.append((hill, valley, statements))
    return tuple(found)


def end_of(profile: Profile) -> int:
    """What is left in the end."""
    return profile[-1][1] if profile else 0


def peak_of(profile: Profile) -> int:
    """The highest hill."""
    return profile[0][0] if profile else 0


def merged(one: Profile, other: Profile) -> Profile:
    """The best of all ways to run two parts that do not need each other.

    Example:
        >>> merged(((9, 1, (0,)),), ((5, 4, (1,)),))
        ((9, 1, (0,)), (6, 5, (1,)))
    """
    if not one or not other:
        return one or other
    found: list[Segment] = []
    i = j = left = right = 0
    while i < len(one) or j < len(other):
        first = j == len(other) or (
            i < len(one) and one[i][0] - one[i][1] >= other[j][0] - other[j][1]
        )
        if first:
            hill, valley, statements = one[i]
            found.append((hill + right, valley + right, statements))
            left, i = valley, i + 1
        else:
            hill, valley, statements = other[j]
            found.append((hill + left, valley + left, statements))
            right, j = valley, j + 1
    return profile_of(found)


def no_worse(one: Profile, other: Profile) -> bool:
    """True where the first part can always run in place of the second.

    Whenever the second is at a valley, the first is at one that is no higher, and on its way
    there it met no higher hill.
    """
    if one == other or not one:
        return True
    if not other or one[0][0] > other[0][0] or one[-1][1] > other[-1][1]:
        return False
    at = 0  # segments of the first part that ran
    for hill, valley, _ in other:
        while at < len(one) and one[at][0] <= hill and one[at][1] <= valley:
            at += 1
    return at == len(one)


class WorkSpent(Exception):  # noqa: N818 - no error: the search ends
    """The work is used up."""


@dataclass(frozen=True, slots=True)
class Branch:
    """An array and the statements at its ends.

    Attributes:
        producer: statement that writes it.
        consumer: statement that reads it.
        whole: bytes.
        extents: of the loops that it could share.
    """

    producer: int
    consumer: int
    whole: int
    extents: Mapping[int, int]

    def bytes(self, prefix: Order) -> int:
        """What it takes with these loops shared."""
        return self.whole // prod(self.extents[loop] for loop in prefix)


@dataclass(frozen=True, slots=True)
class Way:
    """A way to fuse what stands below a node, or below an edge.

    Attributes:
        bodies: profiles in the bodies of the loops around it.
        inside: peak of the item that is the node, or holds it.
        least: most that lives at one time, whatever else there is.
        chosen: prefixes of the edges below.
    """

    bodies: tuple[Profile, ...]
    inside: int
    least: int
    chosen: Chosen

    def replaces(self, other: Way) -> bool:
        """True where it takes no more than the other one, whatever runs around it."""
        if self.inside > other.inside:
            return False
        for one, two in zip(self.bodies, other.bodies, strict=True):  # a loop: this is most work
            if one != two and not no_worse(one, two):
                return False
        return True

    def deeper(self, count: int) -> Way:
        """The same inside so many more loops, in which nothing else runs."""
        return Way((*self.bodies, *((),) * count), self.inside, self.least, self.chosen)

    def closed(self) -> Way:
        """With the innermost loop complete: an item of the body around it."""
        last = self.bodies[-1]
        inside = max(peak_of(last), end_of(last) + self.inside)
        return Way(self.bodies[:-1], inside, self.least, self.chosen)

    def made(self, size: int, chosen: Chosen) -> Way:
        """With the item that makes an array of this size in the innermost body."""
        *outer, last = self.bodies
        item = (end_of(last) + self.inside + size, size, ())
        bodies = (*outer, profile_of((*last, item)))
        return Way(bodies, 0, least_of(bodies), (*self.chosen, chosen))


def least_of(bodies: tuple[Profile, ...]) -> int:
    """Most that lives at one time: the outer bodies are done before the inner ones begin."""
    held = top = 0
    for body in bodies:
        if body:
            top = max(top, held + body[0][0])
            held += body[-1][1]
    return top


class Ways:
    """Tables of one tree, for sizes rounded to multiples of a grain."""

    def __init__(self, branches: Mapping[int, Branch], grain: int, most: int, work: int):
        """Prepare.

        Args:
            branches: arrays by their producers, which are numbered before their consumers.
            grain: sizes count down to a multiple of it.
            most: ways that take more are of no interest.
            work: most comparisons and merges.
        """
        self.branches, self.grain, self.most, self.work = branches, grain, most, work
        self.below: dict[int, list[int]] = {}
        for producer, branch in branches.items():
            self.below.setdefault(branch.consumer, []).append(producer)
        self.twin = twins({e: b.extents for e, b in branches.items()})
        self.tables: dict[int, dict[Order, list[Way]]] = {}
        self.ended: dict[int, dict[Order, list[Way]]] = {}  # where no edge below goes further

    def least(self, root: int) -> Way | None:
        """The way of least peak; None where all take more than what is of interest.

        Raises:
            WorkSpent: it takes too much work.
        """
        nodes = [root]
        for node in nodes:
            nodes += self.below.get(node, ())
        for node in reversed(nodes):
            if node in self.below:
                self.tables[node], self.ended[node] = {}, {}
                starts = [self._edge(e, ()) for e in self.below[node]]
                self._node(node, (), starts, self.below[node])
        ways = self.tables[root][()] if root in self.below else [Way(((),), 0, 0, ())]
        return min((w.closed() for w in ways), key=lambda w: w.inside, default=None)

    def _size(self, e: int, prefix: Order) -> int:
        size = self.branches[e].bytes(prefix)
        return size - size % self.grain

    def _node(self, node: int, order: Order, edges: list[list[Way]], alive: list[int]) -> list[Way]:
        """Ways of the orders that begin with ``order``, with all that is deeper complete.

        Args:
            node: whose edges are fused.
            order: of loops.
            edges: ways of each edge below in a prefix of the order.
            alive: the edges that have all its loops and still take something.
        """
        ended = edges[0]
        for more in edges[1:]:
            ended = self._best(self._both(a, b) for a in ended for b in more)
        ways = list(ended)
        wanted = dict.fromkeys(loop for e in alive for loop in self.branches[e].extents)
        for loop in wanted:
            if loop in order or self.twin.get(loop, loop) not in (loop, *order):
                continue
            longer = (*order, loop)
            going = [e for e in alive if loop in self.branches[e].extents]
            inner = [
                self._best((*(w.deeper(1) for w in old), *self._edge(e, longer)))
                if e in going
                else [w.deeper(1) for w in old]
                for e, old in zip(self.below[node], edges, strict=True)
            ]
            going = [e for e in going if self._size(e, longer)]
            ways += [w.closed() for w in self._node(node, longer, inner, going)]
        self.tables[node][order], self.ended[node][order] = self._best(ways), ended
        return self.tables[node][order]

    def _edge(self, e: int, prefix: Order) -> list[Way]:
        """Ways of an edge that is fused in a prefix."""
        size, table = self._size(e, prefix), self.tables.get(e)
        if size > self.most:
            return []
        if table is None:
            below = [Way(((),) * (len(prefix) + 1), 0, 0, ())]
        elif prefix in table:
            below = table[prefix]
        else:
            known = prefix
            while known not in table:
                known = known[:-1]
            below = [w.deeper(len(prefix) - len(known)) for w in self.ended[e][known]]
        return self._best(w.made(size, (e, prefix)) for w in below)

    def _both(self, one: Way, other: Way) -> Way:
        self.work -= 1
        bodies = tuple(map(merged, one.bodies, other.bodies))
        return Way(bodies, 0, least_of(bodies), (one.chosen, other.chosen))

    def _best(self, ways: Iterable[Way]) -> list[Way]:
        """Those that no other one can replace."""
        fitting = sorted((w for w in ways if w.least <= self.most), key=lambda w: w.least)
        found: list[Way] = []
        for way in fitting:
            self.work -= 1 + len(found)
            if self.work < 0:
                raise WorkSpent
            if not any(other.replaces(way) for other in found):
                found.append(way)
        return found


def prefixes_of(chosen: Chosen) -> dict[int, Order]:
    """The prefix of every edge in a way."""
    found: dict[int, Order] = {}
    rows = [chosen]
    while rows:
        for row in rows.pop():
            assert isinstance(row, tuple)
            if row and isinstance(row[0], int):
                found[row[0]] = row[1]
            elif row:
                rows.append(row)
    return found
