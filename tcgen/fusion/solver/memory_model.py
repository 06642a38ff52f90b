"""Least memory of a program, exactly: loops, their nesting and the order of the statements.

On top of :mod:`.loop_constraints`, objective ``memory`` is the static sum of Eq. (6) of Allam et
al., in which each array has a table of sizes over its contracted axes. Objective ``peak`` is the
greatest sum of arrays that are live at one time, a cumulative constraint in which the order of the
statements is free.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil, gcd
from typing import TYPE_CHECKING

from ..sharing.candidates import (
    Arrangement,
    FusionCandidates,
    exclusive_uses,
    least_of,
    tables_of,
    touched,
)
from ..sharing.dependences import Instance, LoopUse
from .cp_sat import solve
from .loop_constraints import LoopConstraints

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import BoolVarT, CpSolver, IntVar

_LARGEST = 2**58  # units in all: CP-SAT adds them in int64


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search, which took ``spent`` deterministic seconds.

    The arrangement is None if none was reached in time. ``proven`` says that no other one is better
    or, without an arrangement, that none exists; ``bound`` is a proven lower bound on the memory.
    """

    arrangement: Arrangement | None
    proven: bool
    bound: int = 0
    spent: float = 0.0


class FusionModel(LoopConstraints):
    """A model that minimises the static sum or the peak."""

    def __init__(
        self,
        candidates: FusionCandidates,
        weights: Mapping[int, int],
        extents: Mapping[str, int],
        hint: Arrangement,
        *,
        peak: bool,
        ordered: bool,
        tiles: Mapping[str, int] | None = None,
        only: Collection[int] | None = None,
        unmodelled: Mapping[LoopUse, Collection[int]] | None = None,
        at_least: int = 0,
        below: int | None = None,
    ) -> None:
        """Build the variables and constraints.

        The objective counts arrays that are live at one time (``peak``), or all arrays. ``weights``
        has the weight of one element, and ``only`` the arrays that count (None: all), by position
        in ``candidates.instances``. With ``ordered``, the order of the statements is searched too.
        ``tiles`` has the elements of a tile by space; a contracted axis of another space counts 1.

        ``unmodelled`` has statements that may be in the loop of a loop use by a use that
        ``candidates`` lacks; constraints on such a statement and loop are left out. ``at_least`` is
        a proven lower bound; only arrangements of less memory than ``below`` are searched for.
        """
        from ortools.sat.python import cp_model  # noqa: PLC0415  (planning only)

        self.spent, self.below = 0.0, below
        tables = tables_of(candidates, weights, extents, tiles or {})
        self.tables = {n: t for n, t in tables.items() if only is None or n in only}
        self.counted = {n: candidates.instances[n] for n in self.tables}
        nodes = self._relevant(candidates, peak=peak and only is None, ordered=ordered)
        super().__init__(candidates, hint, nodes, ordered=ordered, unmodelled=unmodelled or {})
        every = [size for table in self.tables.values() for _, size in table]
        self.unit = gcd(*every) or 1
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
        self.lowest = least_of(candidates, self.tables, peak=peak)

    def _relevant(
        self, candidates: FusionCandidates, *, peak: bool, ordered: bool
    ) -> tuple[int, ...]:
        """Statements whose place in the order matters."""
        if peak:
            return tuple(n.id for n in candidates.graph.nodes)
        nodes = {node for group in candidates.groups for node, _ in group}
        for first, last in exclusive_uses(candidates):
            nodes.update((*first, *last))
        if ordered:
            for instance in self.counted.values():
                nodes.update((*instance.producers, *instance.consumers))
        return tuple(sorted(nodes))

    def _memory(self, n: int, instance: Instance) -> IntVar | int:
        """Units of an array's size, with one literal for each set of contracted axes.

        The linearised size is a sum over the axes, and needs no such literals.
        """
        table = [(axes, (size // self.unit) >> self.shift) for axes, size in self.tables[n]]
        for axis, members in instance.axes:
            one_loop = self.model.new_bool_var(f"x{n},{axis}")
            self.x[n, axis] = one_loop
            for use in members[1:]:
                shared = self.same(members[0], use)
                if shared is None:
                    self.model.add_bool_and(~one_loop)
                else:
                    self.model.add_implication(one_loop, shared)
        if len(table) == 1:
            return table[0][1]
        if self.candidates.linear:
            size = dict(self.tables[n])
            left = {a: size[()] - size[a,] for a, _ in instance.axes if (a,) in size}
            units = {a: (saved // self.unit) >> self.shift for a, saved in left.items()}
            memory = self.model.new_int_var(0, sum(units.values()), f"mem{n}")
            self.model.add(memory == sum(u * ~self.x[n, a] for a, u in units.items()))
            return memory
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
        """Live ranges, from the item of the first producer to the item of the last user."""
        model, end = self.model, len(self.nodes)
        intervals, demands = [], []
        for n, instance in self.counted.items():
            start = model.new_int_var(0, end, f"start{n}")
            stop = model.new_int_var(0, end, f"stop{n}")
            span = model.new_int_var(0, end, f"span{n}")
            intervals.append(model.new_interval_var(start, span, stop, f"live{n}"))
            demands.append(self.memory[n])
            if instance.persistent:
                model.add(start == 0)
                model.add(stop == end)
                continue
            for node in (*instance.producers, *instance.consumers):
                model.add(start <= self.pos[node])
                model.add(stop >= self.pos[node] + 1)
            users = dict.fromkeys((*instance.producers, *instance.consumers))
            for own in (use for node in users for use in self.uses.get(node, ())):
                if own in self.candidates.repeats and own[0] in instance.producers:
                    # Each iteration computes the array anew.
                    continue
                held = [~self.x[n, axis] for axis, uses in instance.axes if own in uses]
                held += [~s for s in self._repeated_with(instance, own)]
                for (other, _), shared in self.partners.get(own, {}).items():
                    if own[0] in instance.producers:
                        model.add(start <= self.pos[other]).only_enforce_if(shared, *held)
                    if own[0] in (instance.consumers or instance.producers):
                        model.add(stop >= self.pos[other] + 1).only_enforce_if(shared, *held)
        model.add_cumulative(intervals, demands, top)
        # Redundant, for propagation: arrays that a statement touches are live.
        for node in self.nodes:
            model.add(
                top >= sum(self.memory[n] for n in touched(self.candidates, node, self.counted))
            )

    def _repeated_with(self, instance: Instance, use: LoopUse) -> Iterator[BoolVarT]:
        """The variables that say that a producer is repeated in the loop of this use."""
        for repeated in self.candidates.repeats:
            if repeated[0] in instance.producers[:1] and repeated != use:
                shared = self.same(repeated, use)
                if shared is not None:
                    yield shared

    def solve(self, seconds: float, *, bound_only: bool = False) -> SearchResult:
        """The arrangement of least memory, and among equals one of the fewest shared pairs."""
        best = self.least(seconds, bound_only=bound_only)
        if bound_only or not best.proven:
            return best
        self.keep_memory()
        fewer = self.fewest((seconds - self.spent) / 10)
        return replace(best, arrangement=fewer or best.arrangement, spent=self.spent)

    def least(self, seconds: float, *, bound_only: bool = False) -> SearchResult:
        """The arrangement of least memory."""
        if not self.z and not self.nodes:
            return SearchResult(Arrangement((), ()), True, self.lowest)
        self.model.minimize(self.goal)
        answer = solve(self.model, seconds, bound_only=bound_only)
        self.spent += answer.spent
        if answer.unknown:
            return SearchResult(None, False, self.lowest, self.spent)
        if answer.infeasible and self.below is not None:
            return SearchResult(None, True, self.below, self.spent)
        if not answer.found:
            raise answer.refusal("fusion")
        units = self.reached = answer.solver.value(self.goal)
        # CP-SAT states bounds as floats.
        if not answer.optimal:
            units = max(0, ceil(answer.solver.best_objective_bound * (1 - 2**-50) - 0.5))
        bound = max(self.lowest, (units << self.shift) * self.unit)
        proven = answer.optimal and not self.shift
        return SearchResult(self._read(answer.solver), proven, bound, self.spent)

    def keep_memory(self) -> None:
        """Forbid more memory than the last result has."""
        if self.z:
            self.model.add(self.goal <= self.reached)

    def fewest(self, seconds: float) -> Arrangement | None:
        """The arrangement of the fewest shared pairs; None if the seconds do not suffice."""
        if not self.z:
            return Arrangement((), ())
        self.model.minimize(sum(self.z.values()))
        answer = solve(self.model, seconds)
        self.spent += answer.spent
        return self._read(answer.solver) if answer.found else None

    def _read(self, solver: CpSolver) -> Arrangement:
        """The arrangement of a solution, from which the next search starts."""
        self.model.clear_hints()  # type: ignore[no-untyped-call]
        for number, value in enumerate(solver.response_proto.solution):
            self.model.add_hint(self.model.get_int_var_from_proto_index(number), value)
        loops: list[tuple[LoopUse, ...]] = []
        for group in self.candidates.groups:
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
