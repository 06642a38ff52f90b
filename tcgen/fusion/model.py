"""Least memory of a program, exactly: loops, their nesting and the order of the statements.

One 0-1 variable ``z`` for each pair of walks says that they are one loop. The rules:

    z[a,b] & z[b,c] => z[a,c]                      one loop is an equivalence of walks
    z[uj,v] & !z[uk,v] => j outside k at u         loops are nested or apart
    z[u,v] & !z[u,w] => (w before u <=> w before v)  a loop is an interval of the order

Objective ``memory`` is the static sum of Eq. (6), a table over what is contracted; ``peak`` is the
greatest sum over what lives at one time, a cumulative constraint in which the order of the
statements is free.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import ceil, gcd
from typing import TYPE_CHECKING

from ..errors import PlanError
from .ilp import interruptible_solve, search_solver
from .sharing import Arrangement, Instance, Sharing, Walk, pairs_of, rivals
from .tables import least_of, tables_of, touched

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import BoolVarT, CpSolver, IntVar

_LARGEST = 2**58  # sums of units stay below int64


@dataclass(frozen=True, slots=True)
class Found:
    """What the search found.

    Attributes:
        arrangement: None where the work did not suffice to find one.
        proven: no other arrangement takes less.
        bound: proven lower bound on the objective.
        spent: deterministic seconds.
    """

    arrangement: Arrangement | None
    proven: bool
    bound: int
    spent: float = 0.0


class FusionModel:
    """One CP-SAT model."""

    def __init__(
        self,
        found: Sharing,
        weights: Mapping[int, int],
        extents: Mapping[str, int],
        hint: Arrangement,
        *,
        peak: bool,
        ordered: bool,
        tiles: Mapping[str, int] | None = None,
        only: Collection[int] | None = None,
        unmodelled: Mapping[Walk, Collection[int]] | None = None,
        at_least: int = 0,
        below: int | None = None,
    ) -> None:
        """The variables and rules.

        Args:
            found: what the program allows.
            weights: by position in ``found.instances``, what one element counts.
            extents: of the base spaces.
            hint: an arrangement to start from.
            peak: count what lives at one time; else everything.
            ordered: the order of the statements is searched too.
            tiles: of each space, instead of single elements.
            only: positions of the instances that count; None: all.
            unmodelled: statements that may be in the loop of a walk by a walk that ``found`` lacks;
                what the rules say of such a statement and such a loop is left out.
            at_least: a proven bound on the objective.
            below: only what takes less than this is sought.
        """
        from ortools.sat.python import cp_model  # noqa: PLC0415  (planning only)

        self.found, self.hint = found, hint
        self.spent = 0.0
        self.model = cp_model.CpModel()
        self.unmodelled, self.below = unmodelled or {}, below
        tables = tables_of(found, weights, extents, tiles or {})
        self.tables = {n: t for n, t in tables.items() if only is None or n in only}
        self.counted = {n: found.instances[n] for n in self.tables}
        self.ordered = ordered
        self.nodes = self._relevant(peak and only is None)
        self.z: dict[tuple[Walk, Walk], BoolVarT] = {}
        self._share()
        self.pos: dict[int, IntVar] = {}
        self.before: dict[tuple[int, int], BoolVarT] = {}
        self._nest()
        if ordered:
            self._order()
        self._keep_together()
        self._follow()
        every = [size for table in self.tables.values() for _, size in table]
        self.unit = gcd(*every) if every else 1
        total = sum(max(size for _, size in t) for t in self.tables.values()) // self.unit
        self.shift = max(0, total.bit_length() - _LARGEST.bit_length())
        self.x: dict[tuple[int, int], BoolVarT] = {}
        self.memory = {n: self._memory(n, i) for n, i in self.counted.items()}
        low = 0 if self.shift else at_least // self.unit
        high = total >> self.shift
        if below is not None and not self.shift:
            high = min(high, max(low, -(-below // self.unit) - 1))
        self.goal = self.model.new_int_var(low, high, "goal")
        if peak:
            self._bound_peak(self.goal)
        else:
            self.model.add(self.goal == cp_model.LinearExpr.sum(list(self.memory.values())))
        self.least = least_of(found, self.tables, peak=peak)

    def _relevant(self, peak: bool) -> tuple[int, ...]:
        """Statements whose place in the order matters."""
        if peak:
            return tuple(n.id for n in self.found.graph.nodes)
        nodes = {node for group in self.found.walks for node, _ in group}
        for first, last in rivals(self.found):
            nodes.update((*first, *last))
        if self.ordered:
            for instance in self.counted.values():
                nodes.update((*instance.producers, *instance.consumers))
        return tuple(sorted(nodes))

    def same(self, a: Walk, b: Walk) -> BoolVarT | None:
        """The variable that says that two walks are one loop; None where they never are."""
        return self.z.get((a, b), self.z.get((b, a)))

    def _share(self) -> None:
        in_loop = {w: n for n, members in enumerate(self.hint.loops) for w in members}
        for a, b in pairs_of(self.found):
            self.z[a, b] = self.model.new_bool_var(f"z{len(self.z)}")
            hinted = a in in_loop and in_loop[a] == in_loop.get(b)
            self.model.add_hint(self.z[a, b], hinted)
        for group in self.found.walks:
            for triple in combinations(group, 3):
                for n in range(3):
                    a, b, c = triple[n], triple[n - 1], triple[n - 2]
                    one, two, both = self.same(a, b), self.same(b, c), self.same(a, c)
                    if one is not None and two is not None:
                        self.model.add_bool_or(~one, ~two, *(() if both is None else (both,)))

    def _members(self) -> dict[Walk, dict[int, list[BoolVarT]]]:
        """For each walk, the statements that may be in its loop, and what says so."""
        members: dict[Walk, dict[int, list[BoolVarT]]] = {}
        for (a, b), shared in self.z.items():
            members.setdefault(a, {}).setdefault(b[0], []).append(shared)
            members.setdefault(b, {}).setdefault(a[0], []).append(shared)
        return members

    def _order(self) -> None:
        """Positions, and for every two statements which one is first."""
        model, last = self.model, len(self.nodes) - 1
        place = {node: n for n, node in enumerate(self.hint.order)}
        for node in self.nodes:
            self.pos[node] = model.new_int_var(0, last, f"pos{node}")
        known = sorted(self.nodes, key=lambda n: place.get(n, n))
        for n, node in enumerate(known):
            model.add_hint(self.pos[node], n)
        model.add_all_different(list(self.pos.values()))
        for u, v in combinations(self.nodes, 2):
            if self.found.precedes(u, v):
                model.add(self.pos[u] < self.pos[v])
            elif self.found.precedes(v, u):
                model.add(self.pos[v] < self.pos[u])
            else:
                first = model.new_bool_var(f"b{u},{v}")
                model.add_hint(first, known.index(u) < known.index(v))
                model.add(self.pos[u] < self.pos[v]).only_enforce_if(first)
                model.add(self.pos[v] < self.pos[u]).only_enforce_if(~first)
                self.before[u, v], self.before[v, u] = first, ~first
        for (p, c), (q, d) in rivals(self.found):
            model.add_bool_or(self._before(c, q), self._before(d, p))

    def _before(self, u: int, v: int) -> BoolVarT | bool:
        """``u`` runs before ``v``."""
        return self.found.precedes(u, v) if (u, v) not in self.before else self.before[u, v]

    def _first(self, u: int, v: int) -> BoolVarT | bool | None:
        """``u`` runs before ``v``; None where that is left open."""
        if self.ordered or self.found.precedes(u, v) or self.found.precedes(v, u):
            return self._before(u, v)
        return None

    def _nest(self) -> None:
        """Two loops that meet at a statement: one that has a member more is outside."""
        walks: dict[int, list[Walk]] = {}
        for group in self.found.walks:
            for walk in group:
                walks.setdefault(walk[0], []).append(walk)
        members = self._members()
        for own in walks.values():
            for j, k in combinations(own, 2):
                inside_j, inside_k = members.get(j, {}), members.get(k, {})
                met = inside_j.keys() | inside_k.keys()
                if not met:
                    continue
                outside = self.model.new_bool_var(f"y{j[0]}")
                for v in sorted(met):
                    with_j, with_k = inside_j.get(v, ()), inside_k.get(v, ())
                    for s in with_j if v not in self.unmodelled.get(k, ()) else ():
                        self.model.add_bool_or(~s, outside, *with_k)
                    for s in with_k if v not in self.unmodelled.get(j, ()) else ():
                        self.model.add_bool_or(~s, ~outside, *with_j)

    def _keep_together(self) -> None:
        """A loop is an interval of the order."""
        members = self._members()
        for (a, b), shared in self.z.items():
            for w in self.nodes:
                if w in (a[0], b[0]) or w in self.unmodelled.get(a, ()):
                    continue
                one, two = self._first(w, a[0]), self._first(w, b[0])
                if one is None or two is None or (one is two and isinstance(one, bool)):
                    continue
                member = members[a].get(w, ())
                self.model.add_bool_or(~shared, *member, _negated(one), two)
                self.model.add_bool_or(~shared, *member, one, _negated(two))

    def _memory(self, n: int, instance: Instance) -> IntVar | int:
        """Units that an array takes: one literal for each set of axes that may be contracted."""
        table = [(axes, (size // self.unit) >> self.shift) for axes, size in self.tables[n]]
        for axis, members in instance.axes:
            one_loop = self.model.new_bool_var(f"x{n},{axis}")
            self.x[n, axis] = one_loop
            for walk in members[1:]:
                shared = self.same(members[0], walk)
                if shared is None:
                    self.model.add_bool_and(~one_loop)
                else:
                    self.model.add_implication(one_loop, shared)
        if len(table) == 1:
            return table[0][1]
        chosen = []
        for axes, _ in table:
            literal = self.model.new_bool_var(f"m{n}{axes}")
            chosen.append(literal)
            for axis in axes:
                self.model.add_implication(literal, self.x[n, axis])
        self.model.add_exactly_one(chosen)
        sizes = [size for _, size in table]
        memory = self.model.new_int_var(min(sizes), max(sizes), f"mem{n}")
        self.model.add(memory == sum(s * c for s, c in zip(sizes, chosen, strict=True)))
        return memory

    def _bound_peak(self, top: IntVar) -> None:
        """Live ranges: from the item of the first producer to the item of the last consumer."""
        model, end = self.model, len(self.nodes)
        intervals, demands = [], []
        for n, instance in self.counted.items():
            start = model.new_int_var(0, end, f"start{n}")
            stop = model.new_int_var(0, end, f"stop{n}")
            span = model.new_int_var(0, end, f"span{n}")
            intervals.append(model.new_interval_var(start, span, stop, f"live{n}"))
            demands.append(self.memory[n])
            if instance.kept:
                model.add(start == 0)
                model.add(stop == end)
                continue
            for node in (*instance.producers, *instance.consumers):
                model.add(start <= self.pos[node])
                model.add(stop >= self.pos[node] + 1)
            for (a, b), shared in self.z.items():
                for own, other in ((a, b), (b, a)):
                    if own in self.found.repeats and own[0] in instance.producers:
                        continue  # the array starts afresh in this loop
                    held = [~self.x[n, axis] for axis, walks in instance.axes if own in walks]
                    held += [~s for s in self._repeated_with(instance, own)]
                    if own[0] in instance.producers:
                        model.add(start <= self.pos[other[0]]).only_enforce_if(shared, *held)
                    if own[0] in instance.consumers:
                        model.add(stop >= self.pos[other[0]] + 1).only_enforce_if(shared, *held)
        model.add_cumulative(intervals, demands, top)
        for node in self.nodes:  # redundant: what a statement touches lives while it runs
            model.add(top >= sum(self.memory[n] for n in touched(self.found, node, self.counted)))

    def _repeated_with(self, instance: Instance, walk: Walk) -> Iterator[BoolVarT]:
        """The variables that say that a producer is repeated in the loop of a walk."""
        for repeated in self.found.repeats:
            if repeated[0] in instance.producers[:1] and repeated != walk:
                shared = self.same(repeated, walk)
                if shared is not None:
                    yield shared

    def _follow(self) -> None:
        """A repeated statement is in a loop of its reader, with all users of its array."""
        for instance in self.found.instances:
            for walk, origin in self.found.repeats.items():
                if walk[0] not in instance.producers:
                    continue
                partners = self._partners(walk)
                followed = self.same(walk, origin)
                for _, shared in partners:
                    if followed is None:
                        self.model.add_bool_and(~shared)
                        continue
                    self.model.add_implication(shared, followed)
                if followed is None:
                    continue
                for user in (*instance.producers, *instance.consumers):
                    if user not in (walk[0], origin[0]):
                        inside = [
                            s
                            for other, s in partners
                            if other[0] == user
                            and (other in self.found.repeats or user in instance.consumers)
                        ]
                        self.model.add_bool_or(~followed, *inside)

    def _partners(self, walk: Walk) -> list[tuple[Walk, BoolVarT]]:
        """Walks that may be one loop with a walk, and the variables that say so."""
        found = [(b, s) for (a, b), s in self.z.items() if a == walk]
        return found + [(a, s) for (a, b), s in self.z.items() if b == walk]

    def solve(self, work: float, *, bound_only: bool = False) -> Found:
        """Least memory first, then with what work is left the fewest shared pairs among equals.

        Args:
            work: deterministic seconds.
            bound_only: any arrangement of least memory will do. Then the solver neither relaxes nor
                probes the model, which takes most of its time where few arrays can shrink.
        """
        from ortools.sat.python import cp_model  # noqa: PLC0415

        if not self.z and not self.nodes:
            return Found(Arrangement((), ()), True, self.least)
        self.model.minimize(self.goal)
        solver = search_solver(work)
        if bound_only:
            solver.parameters.linearization_level = 0
            solver.parameters.cp_model_probing_level = 0
        status = interruptible_solve(solver, self.model)
        self.spent = solver.response_proto.deterministic_time
        if status == cp_model.UNKNOWN:
            return Found(None, False, self.least, self.spent)
        if status == cp_model.INFEASIBLE and self.below is not None:
            return Found(None, True, self.below, self.spent)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            raise PlanError(
                f"the fusion model was refused by the solver ({solver.status_name(status)}); "
                f"use the objective none, and please report these equations"
            )
        proven = status == cp_model.OPTIMAL and not self.shift
        units = solver.value(self.goal)
        if status != cp_model.OPTIMAL:  # the solver states bounds as floats
            units = max(0, ceil(solver.best_objective_bound * (1 - 2**-50) - 0.5))
        bound = max(self.least, (units << self.shift) * self.unit)
        arrangement = self._read(solver)
        if not bound_only and status == cp_model.OPTIMAL and self.z:
            self.model.add(self.goal <= solver.value(self.goal))
            self.model.clear_hints()  # type: ignore[no-untyped-call]
            for number, value in enumerate(solver.response_proto.solution):
                self.model.add_hint(self.model.get_int_var_from_proto_index(number), value)
            self.model.minimize(sum(self.z.values()))
            again = search_solver(max(0.0, work - self.spent) / 10)
            if interruptible_solve(again, self.model) in (cp_model.OPTIMAL, cp_model.FEASIBLE):
                arrangement = self._read(again)
            self.spent += again.response_proto.deterministic_time
        return Found(arrangement, proven, bound, self.spent)

    def _read(self, solver: CpSolver) -> Arrangement:
        loops: list[tuple[Walk, ...]] = []
        for group in self.found.walks:
            left = list(group)
            while left:
                first = left[0]
                shared = [(o, self.same(first, o)) for o in left[1:]]
                members = (
                    first,
                    *(o for o, s in shared if s is not None and solver.boolean_value(s)),
                )
                left = [w for w in left if w not in members]
                if len(members) > 1:
                    loops.append(members)
        order = sorted(self.pos, key=lambda n: solver.value(self.pos[n]))
        return Arrangement(tuple(loops), tuple(order))


def _negated(literal: BoolVarT | bool) -> BoolVarT | bool:
    return not literal if isinstance(literal, bool) else ~literal
