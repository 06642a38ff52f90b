"""An order of all statements for given loops, or the loops that contradict each other.

If arrays have several users, two loops may each need results of the other, so that neither can run
first. The loops of that cycle of loops and statements cannot be combined; nor can two loops that
overlap, each of which has a statement that the other lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

from .candidates import Arrangement, FusionCandidates, exclusive_uses, instances_overlap
from .dependences import LoopUse, mask_of


@dataclass(frozen=True, slots=True)
class Link:
    """A statement or a loop in a cycle of items that need each other.

    Attributes:
        enter: its statement that needs the previous link.
        leave: its statement that the next link needs.
        loop: members of the loop; empty for a single statement.
    """

    enter: int
    leave: int
    loop: tuple[LoopUse, ...]

    @property
    def use(self) -> LoopUse:
        """The loop use of ``enter``."""
        return next(w for w in self.loop if w[0] == self.enter)


Cycle = tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class _Item:
    """A statement or an outermost loop of a body."""

    nodes: frozenset[int]
    loop: tuple[LoopUse, ...]


def in_order(
    candidates: FusionCandidates, loops: tuple[tuple[LoopUse, ...], ...]
) -> Arrangement | tuple[Cycle, ...]:
    """An order of all statements in which every loop is an interval.

    Without such an order: cycles, such that no arrangement has all loops of a cycle unless one is
    inside another; none if only the readers of a generated input contradict each other.
    """
    items = [_Item(frozenset(n for n, _ in uses), uses) for uses in loops]
    items.sort(key=lambda i: -len(i.nodes))
    overlaps = tuple(_overlaps(items))
    if overlaps:
        return overlaps
    order = _body(candidates, frozenset(n.id for n in candidates.graph.nodes), items)
    if isinstance(order, tuple):
        return order
    if instances_overlap(exclusive_uses(candidates), order):
        return ()
    return Arrangement(loops, tuple(order))


def _overlaps(items: list[_Item]) -> Iterator[Cycle]:
    """Loops that have a statement in common, of which neither is inside the other."""
    for one, other in combinations(items, 2):
        common = one.nodes & other.nodes
        if common and not other.nodes <= one.nodes:
            met, first, last = map(min, (common, one.nodes - common, other.nodes - common))
            yield Link(first, met, one.loop), Link(last, met, other.loop)


def _body(
    candidates: FusionCandidates, nodes: frozenset[int], rest: list[_Item]
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
        ready = next((i for i in items if not any(_needs(candidates, i, o) for o in items)), None)
        if ready is None:
            return _cycles(candidates, items)
        items.remove(ready)
        inner_order: list[int] | tuple[Cycle, ...] = list(ready.nodes)
        if ready.loop:
            within = [r for r in rest if r.nodes <= ready.nodes and r is not ready]
            inner_order = _body(candidates, ready.nodes, within)
        if isinstance(inner_order, tuple):
            return inner_order
        order += inner_order
    return order


def _needs(candidates: FusionCandidates, item: _Item, other: _Item) -> bool:
    return item is not other and bool(_ordered_pairs(candidates, other, item))


def _ordered_pairs(
    candidates: FusionCandidates, first: _Item, last: _Item
) -> list[tuple[int, int]]:
    """Pairs of a statement of the first item and one of the last that must run after it."""
    after, mask = candidates.dependences.after, mask_of(last.nodes)
    pairs = []
    for u in sorted(first.nodes):
        if after[u] & mask:
            pairs += [(u, v) for v in sorted(last.nodes) if after[u] >> v & 1]
    return pairs


def _cycles(candidates: FusionCandidates, items: list[_Item]) -> tuple[Cycle, ...]:
    """All pairs of items that need each other; without such a pair, one longer cycle."""
    cycles: list[Cycle] = []
    for one, other in combinations(items, 2):
        there, back = _ordered_pairs(candidates, one, other), _ordered_pairs(candidates, other, one)
        if there and back:
            (u, v), (w, x) = min(
                ((go, come) for go in there for come in back),
                key=lambda pair: (pair[1][1] != pair[0][0]) + (pair[0][1] != pair[1][0]),
            )
            cycles.append((Link(x, u, one.loop), Link(v, w, other.loop)))
    if cycles:
        return tuple(cycles)
    # After each item comes one that it needs.
    row = [items[0]]
    while row[-1] not in row[:-1]:
        row.append(next(o for o in items if _needs(candidates, row[-1], o)))
    ring = row[row.index(row[-1]) :]
    steps = [_ordered_pairs(candidates, later, item)[0] for item, later in pairwise(ring)]
    return (
        tuple(Link(steps[n][1], steps[n - 1][0], item.loop) for n, item in enumerate(ring[:-1])),
    )
