"""Tables of the fusions of a tree that matter for its peak, from the leaves to the root.

As for the static sum, the loops of a node have one order, and each of its edges is fused in a
prefix of it. The subtree below an edge runs in the bodies of the loops of its prefix. For each of
these bodies, outermost first, a *profile* describes how memory rises and falls while the subtree
runs there. The profiles of two edges of a node are merged body by body. A loop that no edge further
up shares is complete: it is one item of the body around it, and the part of the subtree in that
body runs before it.

For each edge and prefix the table holds the Pareto-optimal fusions of the subtree. They are few
because sizes are *rounded* down to multiples of a grain, and an array that is rounded to zero bytes
gains nothing from more shared loops: without its innermost loop, the two parts of that loop run one
after the other and no other array grows.

A profile is a row of segments, each of which rises to a hill and falls to a valley. From one
segment to the next, hills become lower and valleys higher. Whatever else has to run in between, it
is best to interrupt at a valley only; and of several parts that may run in any order, the next
segment should be the one whose hill is highest above its valley.

Source: Liu, An application of generalized tree pebbling to sparse matrix factorization (1987).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from .tree_prefixes import Order, twins

Segment = tuple[int, int, tuple[int, ...]]  # (hill, valley, statements that run)
Profile = tuple[Segment, ...]
Chosen = tuple[object, ...]  # (edge, prefix), or several of these tuples, nested


def profile_of(segments: Iterable[Segment]) -> Profile:
    """The profile of segments that run in this order.

    Example:
        >>> profile_of([(5, 1, (0,)), (7, 3, (1,)), (4, 2, (2,))])
        ((7, 2, (0, 1, 2)),)
    """
    profile: list[Segment] = []
    for hill, valley, statements in segments:
        while profile:
            before = profile[-1]
            if before[0] > hill and before[1] < valley:
                break
            hill, statements = max(before[0], hill), before[2] + statements
            profile.pop()
        profile.append((hill, valley, statements))
    return tuple(profile)


def end_of(profile: Profile) -> int:
    """Memory that is still held at the end."""
    return profile[-1][1] if profile else 0


def peak_of(profile: Profile) -> int:
    """The highest hill."""
    return profile[0][0] if profile else 0


def merged(one: Profile, other: Profile) -> Profile:
    """The best order of two parts that do not depend on each other.

    Example:
        >>> merged(((9, 1, (0,)),), ((5, 4, (1,)),))
        ((9, 1, (0,)), (6, 5, (1,)))
    """
    if not one or not other:
        return one or other
    segments: list[Segment] = []
    i = j = left = right = 0
    while i < len(one) or j < len(other):
        first = j == len(other) or (
            i < len(one) and one[i][0] - one[i][1] >= other[j][0] - other[j][1]
        )
        if first:
            hill, valley, statements = one[i]
            segments.append((hill + right, valley + right, statements))
            left, i = valley, i + 1
        else:
            hill, valley, statements = other[j]
            segments.append((hill + left, valley + left, statements))
            right, j = valley, j + 1
    return profile_of(segments)


def no_worse(one: Profile, other: Profile) -> bool:
    """True where the first part can always replace the second.

    Whenever the second is at a valley, the first is at a valley that is not higher, and passed no
    higher hill before.
    """
    if one == other or not one:
        return True
    if not other or one[0][0] > other[0][0] or one[-1][1] > other[-1][1]:
        return False
    # Number of segments of the first part that have run.
    at = 0
    for hill, valley, _ in other:
        while at < len(one) and one[at][0] <= hill and one[at][1] <= valley:
            at += 1
    return at == len(one)


class StepsSpent(Exception):  # noqa: N818 - not an error: the search ends
    """The search has used up its steps."""


@dataclass(frozen=True, slots=True)
class Branch:
    """An array and the statements at its ends.

    ``whole`` counts its bytes; ``extents`` are those of the loops that it could share.
    """

    producer: int
    consumer: int
    whole: int
    extents: Mapping[int, int]

    def bytes(self, prefix: Order) -> int:
        """Bytes of the array with these loops shared."""
        return self.whole // prod(self.extents[loop] for loop in prefix)


@dataclass(frozen=True, slots=True)
class SubtreeFusion:
    """A fusion of the subtree below a node, or below an edge.

    Attributes:
        bodies: profiles of the subtree in the bodies of the loops around it, outermost first.
        inside: peak of the item that is the node, or contains it.
        least: peak of the subtree by itself.
        chosen: prefixes of the edges below.
    """

    bodies: tuple[Profile, ...]
    inside: int
    least: int
    chosen: Chosen

    def replaces(self, other: SubtreeFusion) -> bool:
        """True where it takes no more memory than the other one, whatever runs around it."""
        if self.inside > other.inside:
            return False
        for one, two in zip(
            self.bodies, other.bodies, strict=True
        ):  # a loop for speed: most time is spent here
            if one != two and not no_worse(one, two):
                return False
        return True

    def deeper(self, count: int) -> SubtreeFusion:
        """The same inside ``count`` more loops without other statements."""
        return SubtreeFusion((*self.bodies, *((),) * count), self.inside, self.least, self.chosen)

    def closed(self) -> SubtreeFusion:
        """The same with its innermost loop complete, as an item of the body around it."""
        last = self.bodies[-1]
        inside = max(peak_of(last), end_of(last) + self.inside)
        return SubtreeFusion(self.bodies[:-1], inside, self.least, self.chosen)

    def made(self, size: int, chosen: Chosen) -> SubtreeFusion:
        """The same, followed by the item that makes an array of this size in the innermost body."""
        *outer, last = self.bodies
        item = (end_of(last) + self.inside + size, size, ())
        bodies = (*outer, profile_of((*last, item)))
        return SubtreeFusion(bodies, 0, least_of(bodies), (*self.chosen, chosen))


def least_of(bodies: tuple[Profile, ...]) -> int:
    """Peak of a subtree by itself: outer bodies are done before inner ones begin."""
    held = top = 0
    for body in bodies:
        if body:
            top = max(top, held + body[0][0])
            held += body[-1][1]
    return top


class TreeFusions:
    """Tables of one tree, for sizes rounded to multiples of a grain."""

    def __init__(self, branches: Mapping[int, Branch], grain: int, most: int, steps: int):
        """Prepare for arrays by their producers, which are numbered before their consumers.

        Sizes count down to a multiple of ``grain``. Fusions with a peak above ``most`` are not
        tabulated. At most ``steps`` comparisons and merges are made.
        """
        self.branches, self.grain, self.most, self.steps = branches, grain, most, steps
        self.below: dict[int, list[int]] = {}
        for producer, branch in branches.items():
            self.below.setdefault(branch.consumer, []).append(producer)
        self.twin = twins({e: b.extents for e, b in branches.items()})
        self.tables: dict[int, dict[Order, list[SubtreeFusion]]] = {}
        # The fusions that end here: no edge below has more loops than the order.
        self.ended: dict[int, dict[Order, list[SubtreeFusion]]] = {}

    def least(self, root: int) -> SubtreeFusion | None:
        """The fusion of least peak; None where all exceed ``most``; may raise ``StepsSpent``."""
        nodes = [root]
        for node in nodes:
            nodes += self.below.get(node, ())
        for node in reversed(nodes):
            if node in self.below:
                self.tables[node], self.ended[node] = {}, {}
                starts = [self._edge(e, ()) for e in self.below[node]]
                self._node(node, (), starts, self.below[node])
        fusions = self.tables[root][()] if root in self.below else [SubtreeFusion(((),), 0, 0, ())]
        return min((w.closed() for w in fusions), key=lambda w: w.inside, default=None)

    def _size(self, e: int, prefix: Order) -> int:
        size = self.branches[e].bytes(prefix)
        return size - size % self.grain

    def _node(
        self, node: int, order: Order, edges: list[list[SubtreeFusion]], open_edges: list[int]
    ) -> list[SubtreeFusion]:
        """The fusions whose orders begin with ``order``, with all deeper loops complete.

        ``edges`` has the fusions of each edge below, in a prefix of the order; ``open_edges`` share
        all loops of the order and still have a size above zero.
        """
        ended = edges[0]
        for more in edges[1:]:
            ended = self._best(self._both(a, b) for a in ended for b in more)
        fusions = list(ended)
        wanted = dict.fromkeys(loop for e in open_edges for loop in self.branches[e].extents)
        for loop in wanted:
            if loop in order or self.twin.get(loop, loop) not in (loop, *order):
                continue
            longer = (*order, loop)
            longer_edges = [e for e in open_edges if loop in self.branches[e].extents]
            inner = [
                self._best((*(w.deeper(1) for w in old), *self._edge(e, longer)))
                if e in longer_edges
                else [w.deeper(1) for w in old]
                for e, old in zip(self.below[node], edges, strict=True)
            ]
            longer_edges = [e for e in longer_edges if self._size(e, longer)]
            fusions += [w.closed() for w in self._node(node, longer, inner, longer_edges)]
        self.tables[node][order], self.ended[node][order] = self._best(fusions), ended
        return self.tables[node][order]

    def _edge(self, e: int, prefix: Order) -> list[SubtreeFusion]:
        """The fusions of an edge that is fused in this prefix."""
        size, table = self._size(e, prefix), self.tables.get(e)
        if size > self.most:
            return []
        if table is None:
            below = [SubtreeFusion(((),) * (len(prefix) + 1), 0, 0, ())]
        elif prefix in table:
            below = table[prefix]
        else:
            known = prefix
            while known not in table:
                known = known[:-1]
            below = [w.deeper(len(prefix) - len(known)) for w in self.ended[e][known]]
        return self._best(w.made(size, (e, prefix)) for w in below)

    def _both(self, one: SubtreeFusion, other: SubtreeFusion) -> SubtreeFusion:
        self.steps -= 1
        bodies = tuple(map(merged, one.bodies, other.bodies))
        return SubtreeFusion(bodies, 0, least_of(bodies), (one.chosen, other.chosen))

    def _best(self, fusions: Iterable[SubtreeFusion]) -> list[SubtreeFusion]:
        """The Pareto-optimal ones: those that no other one replaces."""
        fitting = sorted((w for w in fusions if w.least <= self.most), key=lambda w: w.least)
        optimal: list[SubtreeFusion] = []
        for fusion in fitting:
            self.steps -= 1 + len(optimal)
            if self.steps < 0:
                raise StepsSpent
            if not any(other.replaces(fusion) for other in optimal):
                optimal.append(fusion)
        return optimal


def prefixes_of(chosen: Chosen) -> dict[int, Order]:
    """The prefix of every edge of a fusion."""
    prefixes: dict[int, Order] = {}
    rows = [chosen]
    while rows:
        for row in rows.pop():
            assert isinstance(row, tuple)
            if row and isinstance(row[0], int):
                prefixes[row[0]] = row[1]
            elif row:
                rows.append(row)
    return prefixes
