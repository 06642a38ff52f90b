"""The order of a body: its statements and inner loops so that little lives at one time.

Two greedy orders, one from the front and one from the back; the better one is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from .dependences import mask_of


@dataclass(frozen=True, slots=True)
class Item:
    """A statement or a loop in a body: its statements, what comes later, and its own peak."""

    nodes: int
    later: int
    peak: int
    order: tuple[int, ...]
    alive: tuple[int, ...]


def scheduled(items: list[Item], arrays: list[tuple[int, int, int]]) -> Item | None:
    """A body whose items are in an order of little peak; None where they need each other."""
    nodes = later = 0
    for item in items:
        nodes |= item.nodes
        later |= item.later
    needs = [
        mask_of(m for m, o in enumerate(items) if m != n and o.later & item.nodes)
        for n, item in enumerate(items)
    ]
    needed = [
        sum(1 << m for m, need in enumerate(needs) if need >> n & 1) for n in range(len(items))
    ]
    uses = [[a for a, (_, users, _) in enumerate(arrays) if users & i.nodes] for i in items]
    users = [mask_of(n for n, u in enumerate(uses) if a in u) for a in range(len(arrays))]
    bytes_ = [held for held, _, _ in arrays]
    peaks = [item.peak for item in items]
    orders = []
    for before, reverse in ((needs, False), (needed, True)):
        order = _greedy(before, uses, users, bytes_, peaks)
        if order is None:
            return None
        orders.append(order[::-1] if reverse else order)
    best = None
    for order in orders:
        peak, at, alive = _peak(order, uses, users, bytes_, peaks)
        if best is None or peak < best[0]:
            best = (peak, at, alive, order)
    assert best is not None
    peak, at, alive, order = best
    inner = items[at].alive if items else ()
    return Item(
        nodes,
        later,
        peak,
        tuple(u for n in order for u in items[n].order),
        (*inner, *(arrays[a][2] for a in alive)),
    )


def _greedy(
    before: list[int],
    uses: list[list[int]],
    users: list[int],
    held: list[int],
    peaks: list[int],
) -> list[int] | None:
    """One ready item after the other: one that frees most, else one that takes least."""
    done, live = 0, [False] * len(held)
    order: list[int] = []
    left = list(range(len(before)))
    while left:
        best: tuple[bool, int, int, int] | None = None
        for n in left:
            if before[n] & ~done:
                continue
            new = sum(held[a] for a in uses[n] if not live[a])
            gone = sum(held[a] for a in uses[n] if not users[a] & ~done & ~(1 << n))
            during, change = new + peaks[n], new - gone
            key = (change > 0, during if change > 0 else change, change, n)
            if best is None or key < best:
                best = key
        if best is None:
            return None
        n = best[3]
        left.remove(n)
        order.append(n)
        done |= 1 << n
        for a in uses[n]:
            live[a] = bool(users[a] & ~done)
    return order


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
