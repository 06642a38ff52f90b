"""Small peaks without a solver: a local search that contracts one more axis at the peak at a time.

A choice of contracted axes determines the loops and their members, and the body of every loop is
then ordered for a small peak. A step contracts one more axis of an array that is live at the peak,
alone or together with all axes that the same loop can contract, and gives up the axes that
contradict it. The best such step is taken. This search proves no bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...ir.tensor import Role
from ...thresholds.planner import DescentThresholds
from ..sharing.candidates import (
    Arrangement,
    FusionCandidates,
    exclusive_uses,
    instances_overlap,
    tables_of,
)
from ..sharing.dependences import LoopUse, bits_of, mask_of, sort_key

Axis = tuple[int, int]  # (position among the instances, axis)

Loop = tuple[int, frozenset[LoopUse]]  # (a bit for each statement, members)


@dataclass(frozen=True, slots=True)
class NestedLoops:
    """Loops, an order of all statements, and their memory.

    Attributes:
        chosen: contracted axes, those of highest priority first.
        loops: outer before inner.
        peak: peak in units of the weights.
        static: size of all arrays together.
        live: instances that are live at the peak, the largest first.
        held: the size of each of them.
    """

    chosen: tuple[Axis, ...]
    loops: tuple[Loop, ...]
    order: tuple[int, ...]
    peak: int
    static: int
    live: tuple[int, ...]
    held: tuple[int, ...]

    @property
    def cost(self) -> tuple[int, int]:
        """The objective: at equal peaks, a smaller sum helps the next step to lower the peak."""
        return self.peak, self.static

    @property
    def arrangement(self) -> Arrangement:
        """The loops and the order, for a solver to start from or for a plan."""
        uses = (tuple(sorted(members, key=sort_key)) for _, members in self.loops)
        return Arrangement(tuple(uses), self.order)


class Descent:
    """The local search of one program."""

    def __init__(
        self,
        candidates: FusionCandidates,
        weights: Mapping[int, int],
        extents: Mapping[str, int],
        thresholds: DescentThresholds,
    ) -> None:
        """Prepare tables."""
        self.candidates, self.thresholds = candidates, thresholds
        self.tables = {n: dict(t) for n, t in tables_of(candidates, weights, extents, {}).items()}
        self.members: dict[Axis, tuple[LoopUse, ...]] = {
            (n, axis): uses
            for n, i in enumerate(candidates.instances)
            if i.array.role is not Role.OUTPUT
            for axis, uses in i.axes
        }
        self.users = {
            n: mask_of((*candidates.instances[n].producers, *candidates.instances[n].consumers))
            for n in self.tables
        }
        self.persistent = sum(
            t[()] for n, t in self.tables.items() if candidates.instances[n].persistent
        )
        self.exclusive = exclusive_uses(candidates)
        self.group = {w: g for g in candidates.groups for w in g}
        self.grown: dict[Axis, tuple[Axis, ...]] = {}
        self.joins: dict[tuple[tuple[Loop, ...], Axis], tuple[Loop, ...] | None] = {}
        self.known: dict[frozenset[LoopUse], frozenset[LoopUse] | None] = {}

    def improve(
        self, start: NestedLoops, trials: int, at_least: int = 0, fixed: tuple[Axis, ...] = ()
    ) -> NestedLoops:
        """Lower the peak as long as one more axis, or one more loop, helps.

        It ends at peak ``at_least`` or after ``trials`` arrangements, and keeps the ``fixed`` axes.
        """
        best, ends = start, self.thresholds
        while best.peak > at_least and trials > 0:
            better = None
            ignored = int((best.peak - at_least) * ends.ignored_excess)
            for wanted in self._moves(best, fixed, ignored):
                trials -= 1
                trial = self.nested(wanted)
                if trial is not None and trial.cost < (better or best).cost:
                    better = trial
            if better is None:
                break
            little = best.peak - better.peak < best.peak * ends.little_peak
            slow = little and best.static - better.static < best.peak * ends.little_sum
            slow = slow and better.peak - at_least > better.peak * ends.close
            best = better
            if slow:
                break
        return best

    def shrink(self, start: NestedLoops) -> NestedLoops:
        """Reduce the size of all arrays together: contract every axis, largest arrays first."""
        best = start
        for axis in sorted(self.members, key=lambda a: (-self.tables[a[0]][()], a)):
            if axis in best.chosen:
                continue
            for wanted in ((*best.chosen, axis), (axis, *best.chosen)):
                trial = self.nested(wanted)
                if trial is not None and trial.static < best.static:
                    best = trial
        return best

    def _moves(
        self, now: NestedLoops, fixed: tuple[Axis, ...], least: int
    ) -> Iterator[tuple[Axis, ...]]:
        """Axes to ask for: one more of an array that is live at the peak, or all axes of a loop.

        The axes of a loop get the highest priority, so that other axes are given up, or the lowest.
        """
        free = [axis for axis in now.chosen if axis not in fixed]
        for n in (n for n, size in zip(now.live, now.held, strict=True) if size >= least):
            for axis in (a for a in self.members if a[0] == n and a not in now.chosen):
                yield (*fixed, axis, *free)
                loop = self._grown(axis)
                if len(loop) > 1:
                    yield tuple(dict.fromkeys((*fixed, *loop, *free)))
                    yield tuple(dict.fromkeys((*now.chosen, *loop)))

    def _grown(self, seed: Axis) -> tuple[Axis, ...]:
        """All axes that one loop can contract: grown from one axis, largest arrays first."""
        if seed not in self.grown:
            loop = self._closure(frozenset(self.members[seed]))
            together, left = [seed], {a for a in self.members if a != seed}
            while loop is not None:
                met = [a for a in left if not loop.isdisjoint(self.members[a])]
                if not met:
                    break
                axis = min(met, key=lambda a: (-self.tables[a[0]][()], a))
                left.remove(axis)
                more = self._closure(loop.union(self.members[axis]))
                if more is not None:
                    loop = more
                    together.append(axis)
            self.grown[seed] = tuple(together) if loop is not None else ()
        return self.grown[seed]

    def from_arrangement(self, arrangement: Arrangement) -> NestedLoops | None:
        """The axes that an arrangement contracts, as many as have a common order; None without."""
        loop = {w: n for n, members in enumerate(arrangement.loops) for w in members}
        axes = [
            a
            for a, uses in self.members.items()
            if uses[0] in loop and len({loop.get(w) for w in uses}) == 1
        ]
        axes.sort(key=lambda a: -self.tables[a[0]][()])
        every = self.nested(axes)
        if every is not None:
            return every
        best = self.nested(())
        for axis in axes:
            more = None if best is None else self.nested((*best.chosen, axis))
            best = best if more is None else more
        return best

    def nested(self, wanted: Iterable[Axis]) -> NestedLoops | None:
        """Contract the wanted axes in turn without contradictions; None without a legal order."""
        loops: tuple[Loop, ...] = ()
        chosen: list[Axis] = []
        for axis in wanted:
            step = (loops, axis)
            if step not in self.joins:
                self.joins[step] = self._joined(loops, self.members[axis])
            more = self.joins[step]
            if more is not None:
                loops = more
                chosen.append(axis)
        return self._ordered(tuple(chosen), loops)

    def _joined(
        self, loops: tuple[Loop, ...], uses: tuple[LoopUse, ...]
    ) -> tuple[Loop, ...] | None:
        """The loops when these loop uses share one; None where that is illegal."""
        own = frozenset(uses)
        if any(own <= members for _, members in loops):
            return loops
        while True:
            met = [members for _, members in loops if not members.isdisjoint(own)]
            grown = self._closure(own.union(*met))
            if grown is None:
                return None
            if grown == own:
                break
            own = grown
        nodes = mask_of(node for node, _ in own)
        rest = tuple(loop for loop in loops if loop[1].isdisjoint(own))
        for other, _ in rest:
            if other & nodes and other & nodes not in (other, nodes):
                return None
        return (*rest, (nodes, own))

    def _closure(self, start: frozenset[LoopUse]) -> frozenset[LoopUse] | None:
        """The members of the smallest loop with these loop uses; None where none is legal.

        A statement between two members that shares no array with them may use any of its indices.
        """
        if start not in self.known:
            dependences, uses = self.candidates.dependences, tuple(sorted(start, key=sort_key))
            bound = dependences.closure(uses)
            grown = None if bound is None else frozenset(bound.items())
            if bound is not None:
                more = dependences.between(bound) - bound.keys()
                if more:
                    node, group = min(more), self.group[uses[0]]
                    own = sorted((w for w in group if w[0] == node), key=self._own_first)
                    trials = (self._closure(frozenset((*bound.items(), w))) for w in own)
                    grown = next((t for t in trials if t is not None), None)
            self.known[start] = None if grown is None else self._followed(grown)
        return self.known[start]

    def _own_first(self, use: LoopUse) -> tuple[bool, int, str, str]:
        """Loop uses of a statement's own indices precede those that repeat it."""
        return (use in self.candidates.repeats, *sort_key(use))

    def _followed(self, loop: frozenset[LoopUse]) -> frozenset[LoopUse] | None:
        """The loop, and all users of the arrays that its repeated statements make; None if illegal.

        Each iteration makes these arrays anew, so that all their producers are repeated.
        """
        repeated, nodes = loop & self.candidates.repeats.keys(), {node for node, _ in loop}
        made = [(i, w) for w in repeated for i in self.candidates.instances if w[0] in i.producers]
        needed = {(node, w[1]) for i, w in made for node in i.producers}
        needed |= {self.candidates.repeats[w] for w in repeated}
        if not needed <= loop:
            return self._closure(loop | needed)
        return loop if all(nodes.issuperset(i.consumers) for i, _ in made) else None

    def _ordered(self, chosen: tuple[Axis, ...], loops: tuple[Loop, ...]) -> NestedLoops | None:
        """The loops with every body in an order of small peak."""
        outer = tuple(sorted(loops, key=lambda o: -o[0].bit_count()))
        inside = {w: n for n, (_, members) in enumerate(outer) for w in members}
        # Bytes, users and instance of the arrays of each loop.
        owned: dict[int, list[tuple[int, int, int]]] = {}
        for n, table in self.tables.items():
            instance = self.candidates.instances[n]
            if instance.persistent:
                continue
            axes, home = [], -1
            for axis, uses in instance.axes:
                at = inside.get(uses[0])
                if at is not None and all(inside.get(w) == at for w in uses):
                    axes.append(axis)
                    home = max(home, at)
            held = tuple(axes)
            # An axis of one element is never contracted.
            if held not in table:
                held = tuple(a for a in axes if any(a in key for key in table))
            owned.setdefault(home, []).append((table[held], self.users[n], n))

        def body(nodes: int, number: int) -> Item | None:
            items, free = [], nodes
            for n in range(number + 1, len(outer)):
                inner = outer[n][0]
                if inner & free == inner:
                    item = body(inner, n)
                    if item is None:
                        return None
                    items.append(item)
                    free &= ~inner
            following = self.candidates.dependences.next
            items += [Item(1 << u, following[u], 0, (u,), ()) for u in bits_of(free)]
            items.sort(key=lambda i: i.nodes & -i.nodes)
            return scheduled(items, owned.get(number, []))

        every = body((1 << len(self.candidates.graph.nodes)) - 1, -1)
        if every is None:
            return None
        if instances_overlap(self.exclusive, every.order):
            return None
        size = {n: held for arrays in owned.values() for held, _, n in arrays}
        live = tuple(sorted(every.live, key=lambda n: (-size[n], n)))
        static = sum(size.values()) + self.persistent
        held = tuple(size[n] for n in live)
        return NestedLoops(
            chosen, outer, every.order, every.peak + self.persistent, static, live, held
        )


@dataclass(frozen=True, slots=True)
class Item:
    """A statement or an inner loop of a body.

    Attributes:
        nodes: a bit for each of its statements.
        next: a bit for each statement that must run right after one of them.
        peak: peak of the arrays that are live only inside it.
        live: numbers of the arrays inside it that are live at its peak.
    """

    nodes: int
    next: int
    peak: int
    order: tuple[int, ...]
    live: tuple[int, ...]


def scheduled(items: list[Item], arrays: list[tuple[int, int, int]]) -> Item | None:
    """The body as one item, in an order with a small peak; None where its items need each other.

    ``arrays`` has the bytes, users (a bit for each) and number of each array of the body.
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
