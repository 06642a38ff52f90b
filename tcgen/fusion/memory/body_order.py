"""The order of the statements and inner loops of a body, for a small peak.

A greedy order is built from the front and another one from the back; the better one counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..sharing.dependences import bits_of, mask_of


@dataclass(frozen=True, slots=True)
class Item:
    """A statement or an inner loop of a body.

    Attributes:
        nodes: a bit for each of its statements.
        next: a bit for each statement that must run right after one of them.
        peak: of the arrays that are live inside it alone.
        order: of its statements.
        live: numbers of the arrays inside it that are live at its peak.
    """

    nodes: int
    next: int
    peak: int
    order: tuple[int, ...]
    live: tuple[int, ...]


def scheduled(items: list[Item], arrays: list[tuple[int, int, int]]) -> Item | None:
    """The body as one item, in an order with a small peak; None where its items need each other.

    Args:
        items: of the body.
        arrays: that belong to the body: bytes, users (a bit for each) and number of each.
    """
    nodes = following = 0
    owner: dict[int, int] = {}
    for n, item in enumerate(items):
        nodes |= item.nodes
        following |= item.next
        owner |= dict.fromkeys(bits_of(item.nodes), n)
    predecessors, successors = [0] * len(items), [0] * len(items)
    for n, item in enumerate(items):
        for node in bits_of(item.next & nodes & ~item.nodes):
            predecessors[owner[node]] |= 1 << n
            successors[n] |= 1 << owner[node]
    uses: list[list[int]] = [[] for _ in items]
    users = []
    for a, (_, touching, _) in enumerate(arrays):
        inside = {owner[node] for node in bits_of(touching & nodes)}
        users.append(mask_of(inside))
        for n in inside:
            uses[n].append(a)
    held = [size for size, _, _ in arrays]
    peaks = [item.peak for item in items]
    best = None
    forward, backward = (predecessors, successors), (successors, predecessors)
    for (first, then), reverse in ((forward, False), (backward, True)):
        order = _greedy(first, then, uses, users, held, peaks)
        if order is None:
            return None
        order = order[::-1] if reverse else order
        trial = (*_peak(order, uses, users, held, peaks), order)
        if best is None or trial[0] < best[0]:
            best = trial
    assert best is not None
    peak, at, live, order = best
    inner = items[at].live if items else ()
    return Item(
        nodes,
        following,
        peak,
        tuple(u for n in order for u in items[n].order),
        (*inner, *(arrays[a][2] for a in live)),
    )


def _greedy(
    before: list[int],
    after: list[int],
    uses: list[list[int]],
    users: list[int],
    held: list[int],
    peaks: list[int],
) -> list[int] | None:
    """An order that always continues with the ready item that frees most, or else takes least."""
    done, is_live = 0, [False] * len(held)
    order: list[int] = []

    def rank(n: int) -> tuple[bool, int, int, int]:
        new = gone = 0
        for a in uses[n]:
            if not is_live[a]:
                new += held[a]
            if not users[a] & ~done & ~(1 << n):
                gone += held[a]
        during, change = new + peaks[n], new - gone
        return (change > 0, during if change > 0 else change, change, n)

    ready = {n: rank(n) for n, first in enumerate(before) if not first}
    while ready:
        n = min(ready.values())[3]
        del ready[n]
        order.append(n)
        done |= 1 << n
        changed = 0
        for a in uses[n]:
            is_live[a] = bool(users[a] & ~done)
            changed |= users[a]
        for m in bits_of(changed & ~done):
            if m in ready:
                ready[m] = rank(m)
        for m in bits_of(after[n]):
            if not before[m] & ~done:
                ready[m] = rank(m)
    return order if len(order) == len(before) else None


def _peak(
    order: list[int],
    uses: list[list[int]],
    users: list[int],
    held: list[int],
    peaks: list[int],
) -> tuple[int, int, list[int]]:
    """The peak of an order, the item at which it occurs, and the arrays that are live there."""
    done, is_live = 0, set[int]()
    best: tuple[int, int, list[int]] = (-1, 0, [])
    for n in order:
        is_live.update(uses[n])
        now = sum(held[a] for a in is_live) + peaks[n]
        if now > best[0]:
            best = (now, n, sorted(is_live))
        done |= 1 << n
        is_live.difference_update([a for a in uses[n] if not users[a] & ~done])
    return best if order else (0, 0, [])
