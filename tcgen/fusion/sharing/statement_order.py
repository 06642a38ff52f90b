"""An order of all statements for given loops, or the loops that stand against one another.

Nested loops on a program with several users of an array may need each other's results: one loop
must be done before another begins, and the other before it. Such a cycle says which loops cannot
be together.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise

from .candidates import Arrangement, Sharing, rivals
from .dependences import Walk, mask_of


@dataclass(frozen=True, slots=True)
class Link:
    """A statement, or a loop, that comes after one and before another in a cycle.

    Attributes:
        enter: its statement that needs the one before.
        leave: its statement that the next one needs.
        loop: walks of the loop; none where it is one statement.
    """

    enter: int
    leave: int
    loop: tuple[Walk, ...]

    @property
    def walk(self) -> Walk:
        """A walk of the loop."""
        return next(w for w in self.loop if w[0] == self.enter)


Cycle = tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class _Item:
    """A statement or an outermost loop of a body."""

    nodes: frozenset[int]
    loop: tuple[Walk, ...]


def in_order(
    found: Sharing, loops: tuple[tuple[Walk, ...], ...]
) -> Arrangement | tuple[Cycle, ...]:
    """Some order of all statements in which every loop is an interval.

    Returns:
        The order; or cycles of which no arrangement has all loops, unless some loop of a cycle is
        inside another. No cycle where only two uses of a generated input are in each other's way.
    """
    items = [_Item(frozenset(n for n, _ in walks), walks) for walks in loops]
    items.sort(key=lambda i: -len(i.nodes))
    order = _body(found, frozenset(n.id for n in found.graph.nodes), items)
    if isinstance(order, tuple):
        return order
    place = {u: n for n, u in enumerate(order)}
    if any(place[p] < place[d] and place[q] < place[c] for (p, c), (q, d) in rivals(found)):
        return ()
    return Arrangement(loops, tuple(order))


def _body(
    found: Sharing, nodes: frozenset[int], rest: list[_Item]
) -> list[int] | tuple[Cycle, ...]:
    free, items = nodes, list[_Item]()
    for inner in rest:
        if inner.nodes <= free:
            items.append(inner)
            free -= inner.nodes
    items += [_Item(frozenset((n,)), ()) for n in free]
    items.sort(key=lambda i: min(i.nodes))
    order: list[int] = []
    while items:
        ready = next((i for i in items if not any(_needs(found, i, o) for o in items)), None)
        if ready is None:
            return _cycles(found, items)
        items.remove(ready)
        inner_order: list[int] | tuple[Cycle, ...] = list(ready.nodes)
        if ready.loop:
            within = [r for r in rest if r.nodes <= ready.nodes and r is not ready]
            inner_order = _body(found, ready.nodes, within)
        if isinstance(inner_order, tuple):
            return inner_order
        order += inner_order
    return order


def _needs(found: Sharing, item: _Item, other: _Item) -> bool:
    return item is not other and bool(_demands(found, other, item))


def _demands(found: Sharing, first: _Item, last: _Item) -> list[tuple[int, int]]:
    """Statements of two items of which the first must run before the last."""
    after, mask = found.needs.after, mask_of(last.nodes)
    pairs = []
    for u in sorted(first.nodes):
        if after[u] & mask:
            pairs += [(u, v) for v in sorted(last.nodes) if after[u] >> v & 1]
    return pairs


def _cycles(found: Sharing, items: list[_Item]) -> tuple[Cycle, ...]:
    """All pairs of items that need each other; one longer cycle where there is no such pair."""
    cycles: list[Cycle] = []
    for one, other in combinations(items, 2):
        there, back = _demands(found, one, other), _demands(found, other, one)
        if there and back:
            (u, v), (w, x) = min(
                ((go, come) for go in there for come in back),
                key=lambda pair: (pair[1][1] != pair[0][0]) + (pair[0][1] != pair[1][0]),
            )
            cycles.append((Link(x, u, one.loop), Link(v, w, other.loop)))
    if cycles:
        return tuple(cycles)
    row = [items[0]]  # each item is followed by one that it needs
    while row[-1] not in row[:-1]:
        row.append(next(o for o in items if _needs(found, row[-1], o)))
    ring = row[row.index(row[-1]) :]
    steps = [_demands(found, later, item)[0] for item, later in pairwise(ring)]
    return (
        tuple(Link(steps[n][1], steps[n - 1][0], item.loop) for n, item in enumerate(ring[:-1])),
    )
