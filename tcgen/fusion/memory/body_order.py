"""The order of a body: its statements and inner loops so that little lives at one time.

Two greedy orders, one from the front and one from the back; the better one is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..sharing.dependences import bits_of, mask_of


@dataclass(frozen=True, slots=True)
class Item:
    """A statement or a loop in a body: its statements, those that come next, and its own peak."""

    nodes: int
    next: int
    peak: int
    order: tuple[int, ...]
    alive: tuple[int, ...]


def scheduled(items: list[Item], arrays: list[tuple[int, int, int]]) -> Item | None:
    """A body whose items are in an order of little peak; None where they need each other.

    Args:
        items: of the body.
        arrays: that live in it: bytes, users and number of each.
    """
    nodes = following = 0
    owner: dict[int, int] = {}
    for n, item in enumerate(items):
        nodes |= item.nodes
        following |= item.next
        owner |= dict.fromkeys(bits_of(item.nodes), n)
    needs, needed = [0] * len(items), [0] * len(items)
    for n, item in enumerate(items):
        for node in bits_of(item.next & nodes & ~item.nodes):
            needs[owner[node]] |= 1 << n
            needed[n] |= 1 << owner[node]
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
    for first, then, reverse in ((needs, needed, False), (needed, needs, True)):
        order = _greedy(first, then, uses, users, held, peaks)
        if order is None:
            return None
        order = order[::-1] if reverse else order
        found = (*_peak(order, uses, users, held, peaks), order)
        if best is None or found[0] < best[0]:
            best = found
    assert best is not None
    peak, at, alive, order = best
    inner = items[at].alive if items else ()
    return Item(
        nodes,
        following,
        peak,
        tuple(u for n in order for u in items[n].order),
        (*inner, *(arrays[a][2] for a in alive)),
    )


def _greedy(
    before: list[int],
    after: list[int],
    uses: list[list[int]],
    users: list[int],
    held: list[int],
    peaks: list[int],
) -> list[int] | None:
    """One ready item after the other: one that frees most, else one that takes least."""
    done, live = 0, [False] * len(held)
    order: list[int] = []

    def rank(n: int) -> tuple[bool, int, int, int]:
        new = gone = 0
        for a in uses[n]:
            if not live[a]:
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
            live[a] = bool(users[a] & ~done)
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
    """The peak of an order, the item at which it is, and what lives there."""
    done, live = 0, set[int]()
    best: tuple[int, int, list[int]] = (-1, 0, [])
    for n in order:
        live.update(uses[n])
        now = sum(held[a] for a in live) + peaks[n]
        if now > best[0]:
            best = (now, n, sorted(live))
        done |= 1 << n
        live.difference_update([a for a in uses[n] if not users[a] & ~done])
    return best if order else (0, 0, [])
