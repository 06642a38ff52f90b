"""Least predicted time under a memory limit, for tiles of given extents.

Shared loops obey :mod:`.loop_constraints`. Here they run over tiles, a contracted axis counts its
tile, and a statement may be repeated in a loop of its reader. Each statement has one literal for
each set of its shared loops, weighted with the predicted time of all its calls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import ceil, prod
from typing import TYPE_CHECKING

from ...ir.tensor import Tensor, element_bytes
from ...thresholds.planner import FusionThresholds
from ...thresholds.time_model import Machine
from ..sharing.candidates import Arrangement, FusionCandidates, least_peak
from ..sharing.dependences import LoopUse
from ..sharing.graph import step_of
from .cp_sat import solve
from .memory_model import FusionModel, SearchResult
from .time_cost import Saved, stays_in_cache, step_picoseconds

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import LinearExprT

_LARGEST = 2**52  # units of time in all: CP-SAT states bounds as floats


@dataclass(frozen=True, slots=True)
class Request:
    """Conditions of a plan.

    At most ``limit`` bytes may be live at one time, outputs not counted. ``saved`` has the flops
    that each contraction saves by symmetry. The constant phase runs once in
    ``bound_calls`` calls.
    """

    extents: Mapping[str, int]
    limit: int
    machine: Machine
    dtype: str
    thresholds: FusionThresholds
    saved: Saved
    bound_calls: int


def solve_time(
    candidates: FusionCandidates,
    tiles: Mapping[str, int],
    request: Request,
    hint: Arrangement,
    seconds: float,
) -> SearchResult:
    """The arrangement of least predicted time within the memory limit."""
    if least_peak_bytes(candidates, tiles, request) > request.limit:
        return SearchResult(None, True)
    return TimeModel(candidates, tiles, request, hint).least_time(seconds)


def least_peak_bytes(
    candidates: FusionCandidates, tiles: Mapping[str, int], request: Request
) -> int:
    """A lower bound on the peak for these tiles."""
    return least_peak(candidates, weights_of(candidates, request), request.extents, tiles)


def weights_of(candidates: FusionCandidates, request: Request) -> dict[int, int]:
    """Bytes of one element of each instance."""
    return {n: element_bytes(i.array, request.dtype) for n, i in enumerate(candidates.instances)}


class TimeModel(FusionModel):
    """A model that minimises the sum of predicted times under a limit on the peak."""

    def __init__(
        self,
        candidates: FusionCandidates,
        tiles: Mapping[str, int],
        request: Request,
        hint: Arrangement,
        *,
        limited: bool = True,
    ) -> None:
        super().__init__(
            candidates,
            weights_of(candidates, request),
            request.extents,
            hint,
            peak=True,
            ordered=True,
            tiles=tiles,
        )
        self.tile, self.request = tiles, request
        if limited:
            self.model.add(self.goal <= (request.limit // self.unit) >> self.shift)

    def least_time(self, seconds: float) -> SearchResult:
        """The least sum of the statements' times."""
        from ortools.sat.python import cp_model  # noqa: PLC0415  (planning only)

        tables = {node.id: self._times(node.id) for node in self.candidates.graph.nodes}
        most = sum(max(time for _, time in table) for table in tables.values())
        unit = max(1, -(-most // _LARGEST))
        total: list[LinearExprT] = []
        for node, table in tables.items():
            total += self._time(node, [(uses, time // unit) for uses, time in table])
        goal = cp_model.LinearExpr.sum(total)
        self.model.minimize(goal)
        answer = solve(self.model, seconds)
        self.spent = answer.spent
        if answer.unknown or answer.infeasible:
            return SearchResult(None, answer.infeasible, spent=self.spent)
        if not answer.found:
            raise answer.refusal("time")
        return SearchResult(self._read(answer.solver), answer.optimal, spent=self.spent)

    def _times(self, node: int) -> list[tuple[tuple[LoopUse, ...], int]]:
        """Picoseconds of a statement for each set of its loop uses that may be shared."""
        request, step = self.request, step_of(self.candidates.graph, node)
        mine = [w for group in self.candidates.groups for w in group if w[0] == node]
        uses = [w for w in mine if w in self.partners]
        table = []
        for count in range(len(uses) + 1):
            for chosen in combinations(uses, count):
                tiles = {w[1]: self._tile(w) for w in chosen if w not in self.candidates.repeats}
                repeats = prod(
                    ceil(w[1].space.extent_in(request.extents) / self._tile(w))
                    for w in chosen
                    if w in self.candidates.repeats
                )
                time = step_picoseconds(
                    step,
                    tiles,
                    repeats,
                    request.extents,
                    request.machine,
                    request.dtype,
                    self._cached(node, chosen),
                    0 if chosen else request.saved(step, frozenset()),
                    request.bound_calls,
                )
                table.append((chosen, time))
        return table

    def _cached(self, node: int, chosen: Collection[LoopUse]) -> list[Tensor]:
        """Arrays of a statement that would stay in the cache if contracted in its shared loops.

        Other literals decide whether they are contracted. This is a guide for the solver; the time
        of a plan is computed from the plan.
        """
        request, cached = self.request, list[Tensor]()
        for instance in self.candidates.instances:
            if node not in instance.producers and node not in instance.consumers:
                continue
            held, uses = element_bytes(instance.array, request.dtype), dict(instance.axes)
            for axis, space in enumerate(instance.array.spaces):
                own = [w for w in uses.get(axis, ()) if w in chosen]
                held *= self._tile(own[0]) if own else space.extent_in(request.extents)
            if stays_in_cache(instance.array, held, request.machine):
                cached.append(instance.array)
        return cached

    def _tile(self, use: LoopUse) -> int:
        space = use[1].space
        return min(self.tile.get(space.name, 1), space.extent_in(self.request.extents))

    def _time(self, node: int, table: list[tuple[tuple[LoopUse, ...], int]]) -> list[LinearExprT]:
        """Literals for the sets of shared loop uses, each times the time of its set."""
        if len(table) == 1:
            return [table[0][1]]
        literals = [self.model.new_bool_var(f"a{node},{n}") for n in range(len(table))]
        self.model.add_exactly_one(literals)
        for use in table[-1][0]:
            active = self.model.new_bool_var(f"in{node},{use[1]}")
            self.model.add_max_equality(active, list(self.partners[use].values()))
            for literal, (chosen, _) in zip(literals, table, strict=True):
                self.model.add_implication(literal, active if use in chosen else ~active)
        return [c * t for c, (_, t) in zip(literals, table, strict=True)]
