"""Small peaks without a solver: one more contracted axis at a time, where the peak is.

A choice of contracted axes says which walks are one loop, and what else must be in it. Then the
body of every loop is put in an order that keeps little alive. Of the arrays that live at the peak
one is contracted further, alone or with all that the same loop can contract; whatever stands
against it is given up, and the best such change is kept. Nothing is proven here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...ir.tensor import Role
from ...thresholds.fusion import DescentThresholds
from ..sharing.array_sizes import tables_of
from ..sharing.candidates import Arrangement, Sharing, rivals
from ..sharing.dependences import Walk, bits_of, mask_of
from .body_order import Item, scheduled

Axis = tuple[int, int]  # (position among the instances, axis)

Loop = tuple[int, frozenset[Walk]]  # (a bit for each statement, walks)


@dataclass(frozen=True, slots=True)
class Nested:
    """Loops, an order of all statements, and the peak.

    Attributes:
        chosen: axes that were asked for, most wanted first.
        loops: outer before inner.
        order: of the statements.
        peak: in units of the weights.
        static: all arrays together.
        alive: instances that live at the peak, the largest first.
        held: what each of them takes.
    """

    chosen: tuple[Axis, ...]
    loops: tuple[Loop, ...]
    order: tuple[int, ...]
    peak: int
    static: int
    alive: tuple[int, ...]
    held: tuple[int, ...]

    @property
    def cost(self) -> tuple[int, int]:
        """What is made less: a smaller sum at the same peak lets the next change lower the peak."""
        return self.peak, self.static

    @property
    def arrangement(self) -> Arrangement:
        """What the solver and the plan start from."""
        walks = (tuple(sorted(w, key=_named)) for _, w in self.loops)
        return Arrangement(tuple(walks), self.order)


class Descent:
    """The search of one program."""

    def __init__(
        self,
        found: Sharing,
        weights: Mapping[int, int],
        extents: Mapping[str, int],
        thresholds: DescentThresholds,
    ) -> None:
        """Prepare tables.

        Args:
            found: what the program allows.
            weights: by position in ``found.instances``, what one element counts.
            extents: of the base spaces.
            thresholds: which arrays are contracted, and when the descent ends.
        """
        self.found, self.thresholds = found, thresholds
        self.tables = {n: dict(t) for n, t in tables_of(found, weights, extents, {}).items()}
        self.members: dict[Axis, tuple[Walk, ...]] = {
            (n, axis): walks
            for n, i in enumerate(found.instances)
            if i.array.role is not Role.OUTPUT
            for axis, walks in i.axes
        }
        self.users = {
            n: mask_of((*found.instances[n].producers, *found.instances[n].consumers))
            for n in self.tables
        }
        self.kept = sum(t[()] for n, t in self.tables.items() if found.instances[n].kept)
        self.rivals = rivals(found)
        self.group = {w: g for g in found.walks for w in g}
        self.grown: dict[Axis, tuple[Axis, ...]] = {}
        self.joins: dict[tuple[tuple[Loop, ...], Axis], tuple[Loop, ...] | None] = {}
        self.known: dict[frozenset[Walk], frozenset[Walk] | None] = {}

    def improve(
        self, start: Nested, tries: int, at_least: int = 0, kept: tuple[Axis, ...] = ()
    ) -> Nested:
        """Less and less peak, as long as one more axis helps, or one more loop.

        Args:
            start: where to begin.
            tries: most arrangements to look at.
            at_least: a peak that is low enough.
            kept: axes that are never given up.
        """
        best, ends = start, self.thresholds
        while best.peak > at_least and tries > 0:
            better = None
            ignored = int((best.peak - at_least) * ends.ignored_excess)
            for wanted in self._moves(best, kept, ignored):
                tries -= 1
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

    def shrink(self, start: Nested) -> Nested:
        """Less of all arrays together: every axis that is whole is tried, largest arrays first."""
        best = start
        for axis in sorted(self.members, key=lambda a: (-self.tables[a[0]][()], a)):
            if axis in best.chosen:
                continue
            for wanted in ((*best.chosen, axis), (axis, *best.chosen)):
                trial = self.nested(wanted)
                if trial is not None and trial.static < best.static:
                    best = trial
        return best

    def _moves(self, now: Nested, kept: tuple[Axis, ...], least: int) -> Iterator[tuple[Axis, ...]]:
        """Axes to ask for: one more of an array that lives at the peak, or all of a loop.

        A loop that contracts many arrays comes first of all, so that others are given up, or last.
        """
        free = [axis for axis in now.chosen if axis not in kept]
        for n in (n for n, size in zip(now.alive, now.held, strict=True) if size >= least):
            for axis in (a for a in self.members if a[0] == n and a not in now.chosen):
                yield (*kept, axis, *free)
                loop = self._grown(axis)
                if len(loop) > 1:
                    yield tuple(dict.fromkeys((*kept, *loop, *free)))
                    yield tuple(dict.fromkeys((*now.chosen, *loop)))

    def _grown(self, seed: Axis) -> tuple[Axis, ...]:
        """All axes that one loop can contract together: from one outwards, largest arrays first."""
        if seed not in self.grown:
            loop = self._forced(frozenset(self.members[seed]))
            found, left = [seed], {a for a in self.members if a != seed}
            while loop is not None:
                met = [a for a in left if not loop.isdisjoint(self.members[a])]
                if not met:
                    break
                axis = min(met, key=lambda a: (-self.tables[a[0]][()], a))
                left.remove(axis)
                more = self._forced(loop.union(self.members[axis]))
                if more is not None:
                    loop = more
                    found.append(axis)
            self.grown[seed] = tuple(found) if loop is not None else ()
        return self.grown[seed]

    def of(self, arrangement: Arrangement) -> Nested | None:
        """The axes that an arrangement contracts, as far as there is an order in which they are."""
        loop = {w: n for n, members in enumerate(arrangement.loops) for w in members}
        axes = [
            a
            for a, walks in self.members.items()
            if walks[0] in loop and len({loop.get(w) for w in walks}) == 1
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

    def nested(self, wanted: Iterable[Axis]) -> Nested | None:
        """As many of the wanted axes as go together; None where the first ones have no order."""
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

    def _joined(self, loops: tuple[Loop, ...], walks: tuple[Walk, ...]) -> tuple[Loop, ...] | None:
        """The loops when these walks are one; None where that cannot be."""
        own = frozenset(walks)
        if any(own <= members for _, members in loops):
            return loops
        while True:
            met = [members for _, members in loops if not members.isdisjoint(own)]
            grown = self._forced(own.union(*met))
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

    def _forced(self, start: frozenset[Walk]) -> frozenset[Walk] | None:
        """Members of a loop that holds these walks: what must run between two members is one too.

        A statement between them that shares no array with a member may walk it with any index.
        """
        if start not in self.known:
            needs, walks = self.found.needs, tuple(sorted(start, key=_named))
            bound = needs.forced(walks)
            grown = None if bound is None else frozenset(bound.items())
            if bound is not None:
                more = needs.between(bound) - bound.keys()
                if more:
                    node, group = min(more), self.group[walks[0]]
                    own = sorted((w for w in group if w[0] == node), key=_named)
                    trials = (self._forced(frozenset((*bound.items(), w))) for w in own)
                    grown = next((t for t in trials if t is not None), None)
            self.known[start] = grown
        return self.known[start]

    def _ordered(self, chosen: tuple[Axis, ...], loops: tuple[Loop, ...]) -> Nested | None:
        """Every body in an order of little peak."""
        outer = tuple(sorted(loops, key=lambda o: -o[0].bit_count()))
        inside = {w: n for n, (_, members) in enumerate(outer) for w in members}
        owned: dict[int, list[tuple[int, int, int]]] = {}  # (bytes, users, instance) by loop
        for n, table in self.tables.items():
            instance = self.found.instances[n]
            if instance.kept:
                continue
            axes, home = [], -1
            for axis, walks in instance.axes:
                at = inside.get(walks[0])
                if at is not None and all(inside.get(w) == at for w in walks):
                    axes.append(axis)
                    home = max(home, at)
            held = tuple(axes)
            if held not in table:  # an axis of one element is never contracted
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
            following = self.found.needs.next
            items += [Item(1 << u, following[u], 0, (u,), ()) for u in bits_of(free)]
            items.sort(key=lambda i: i.nodes & -i.nodes)
            return scheduled(items, owned.get(number, []))

        every = body((1 << len(self.found.graph.nodes)) - 1, -1)
        if every is None:
            return None
        place = {u: n for n, u in enumerate(every.order)}
        for (p, c), (q, d) in self.rivals:
            if place[p] < place[d] and place[q] < place[c]:
                return None
        size = {n: held for arrays in owned.values() for held, _, n in arrays}
        alive = tuple(sorted(every.alive, key=lambda n: (-size[n], n)))
        static = sum(size.values()) + self.kept
        held = tuple(size[n] for n in alive)
        return Nested(chosen, outer, every.order, every.peak + self.kept, static, alive, held)


def _named(walk: Walk) -> tuple[int, str, str]:
    return walk[0], walk[1].name, walk[1].space.name
