"""Least predicted time under a limit of memory, for tiles of given extents.

The rules of shared loops are those of :mod:`.exact`; a shared loop runs over tiles, a contracted
axis counts its tile, and a statement may be repeated in a loop of its reader. Each statement has
one literal for each set of its loops, with the predicted time of all its calls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import ceil, prod
from typing import TYPE_CHECKING

from ...errors import PlanError
from ...ir.cost import extent_of
from ...ir.tensor import Tensor, element_bytes
from ...options import Machine
from ...thresholds.fusion import FusionThresholds
from ..sharing.array_sizes import least_peak
from ..sharing.candidates import Arrangement, Sharing
from ..sharing.dependences import Walk
from ..sharing.graph import step_of
from .cp_sat import interruptible_solve, search_solver
from .memory_model import FusionModel
from .time_cost import stays_near, step_picoseconds

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import LinearExprT

_LARGEST = 2**52  # the solver states bounds as floats


@dataclass(frozen=True, slots=True)
class Request:
    """What a plan is made for.

    Attributes:
        extents: of the base spaces.
        limit: bytes of what lives at one time, outputs not counted.
        machine: constants of the predicted time.
        dtype: of the program.
        thresholds: of the searches.
    """

    extents: Mapping[str, int]
    limit: int
    machine: Machine
    dtype: str
    thresholds: FusionThresholds


@dataclass(frozen=True, slots=True)
class Timed:
    """What a search found: None where nothing was; ``proven`` where nothing better exists."""

    arrangement: Arrangement | None
    proven: bool
    spent: float


def solve_time(
    found: Sharing,
    tiles: Mapping[str, int],
    request: Request,
    hint: Arrangement,
    work: float,
) -> Timed:
    """The arrangement of least predicted time within the limit.

    Args:
        found: what the program allows.
        tiles: elements of a tile, by space.
        request: limit and machine.
        hint: an arrangement to start from.
        work: deterministic seconds.

    Raises:
        PlanError: the solver refuses the model.
    """
    if least_bytes(found, tiles, request) > request.limit:
        return Timed(None, True, 0.0)
    return TimeModel(found, tiles, request, hint).least_time(work)


def least_bytes(found: Sharing, tiles: Mapping[str, int], request: Request) -> int:
    """A lower bound on the peak for these tiles."""
    return least_peak(found, weights_of(found, request), request.extents, tiles)


def weights_of(found: Sharing, request: Request) -> dict[int, int]:
    """Bytes of one element of each instance."""
    return {n: element_bytes(i.array, request.dtype) for n, i in enumerate(found.instances)}


def solve_least(
    found: Sharing, tiles: Mapping[str, int], request: Request, hint: Arrangement, work: float
) -> Timed:
    """The arrangement of least peak, whatever the limit."""
    model = TimeModel(found, tiles, request, hint, limited=False)
    best = model.solve(work)
    return Timed(best.arrangement, best.proven, model.spent)


class TimeModel(FusionModel):
    """One CP-SAT model: peak below the limit, the sum of times is minimised."""

    def __init__(
        self,
        found: Sharing,
        tiles: Mapping[str, int],
        request: Request,
        hint: Arrangement,
        *,
        limited: bool = True,
    ) -> None:
        super().__init__(
            found,
            weights_of(found, request),
            request.extents,
            hint,
            peak=True,
            ordered=True,
            tiles=tiles,
        )
        self.tile, self.request = tiles, request
        if limited:
            self.model.add(self.goal <= (request.limit // self.unit) >> self.shift)

    def least_time(self, work: float) -> Timed:
        """The least sum of the statements' times."""
        from ortools.sat.python import cp_model  # noqa: PLC0415  (planning only)

        tables = {node.id: self._times(node.id) for node in self.found.graph.nodes}
        most = sum(max(time for _, time in table) for table in tables.values())
        unit = max(1, -(-most // _LARGEST))
        total: list[LinearExprT] = []
        for node, table in tables.items():
            total += self._time(node, [(walks, time // unit) for walks, time in table])
        goal = cp_model.LinearExpr.sum(total)
        self.model.minimize(goal)
        solver = search_solver(work)
        status = interruptible_solve(solver, self.model)
        self.spent = solver.response_proto.deterministic_time
        if status in (cp_model.UNKNOWN, cp_model.INFEASIBLE):
            return Timed(None, status == cp_model.INFEASIBLE, self.spent)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            raise PlanError(
                f"the time model was refused by the solver ({solver.status_name(status)}); "
                f"use the objective peak, and please report these equations"
            )
        return Timed(self._read(solver), status == cp_model.OPTIMAL, self.spent)

    def _times(self, node: int) -> list[tuple[tuple[Walk, ...], int]]:
        """Picoseconds of a statement for each set of its walks that may be shared."""
        request, step = self.request, step_of(self.found.graph, node)
        walks = [w for group in self.found.walks for w in group if w[0] == node and w in self.near]
        table = []
        for count in range(len(walks) + 1):
            for chosen in combinations(walks, count):
                tiles = {w[1]: self._tile(w) for w in chosen if w not in self.found.repeats}
                repeats = prod(
                    ceil(extent_of(w[1].space, request.extents) / self._tile(w))
                    for w in chosen
                    if w in self.found.repeats
                )
                time = step_picoseconds(
                    step,
                    tiles,
                    repeats,
                    request.extents,
                    request.machine,
                    request.dtype,
                    self._near(node, chosen),
                )
                table.append((chosen, time))
        return table

    def _near(self, node: int, chosen: Collection[Walk]) -> list[Tensor]:
        """Arrays of a statement that stay in the cache if they shrink in its shared loops.

        Whether they do is for other literals to say: a plan's own time is counted from the plan.
        """
        request, near = self.request, list[Tensor]()
        for instance in self.found.instances:
            if node not in instance.producers and node not in instance.consumers:
                continue
            held, walks = element_bytes(instance.array, request.dtype), dict(instance.axes)
            for axis, space in enumerate(instance.array.spaces):
                own = [w for w in walks.get(axis, ()) if w in chosen]
                held *= self._tile(own[0]) if own else extent_of(space, request.extents)
            if stays_near(instance.array, held, request.machine):
                near.append(instance.array)
        return near

    def _tile(self, walk: Walk) -> int:
        space = walk[1].space
        return min(self.tile.get(space.name, 1), extent_of(space, self.request.extents))

    def _time(self, node: int, table: list[tuple[tuple[Walk, ...], int]]) -> list[LinearExprT]:
        """One literal for each set of shared walks, times its time."""
        if len(table) == 1:
            return [table[0][1]]
        literals = [self.model.new_bool_var(f"a{node},{n}") for n in range(len(table))]
        self.model.add_exactly_one(literals)
        for walk in table[-1][0]:
            active = self.model.new_bool_var(f"in{node},{walk[1]}")
            self.model.add_max_equality(active, list(self.near[walk].values()))
            for literal, (chosen, _) in zip(literals, table, strict=True):
                self.model.add_implication(literal, active if walk in chosen else ~active)
        return [c * t for c, (_, t) in zip(literals, table, strict=True)]
