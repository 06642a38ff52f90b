"""Objectives ``memory`` and ``peak``: the exact search, its plan, and the arena of the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...ir.plan import FusionPlan, Solve
from ...ir.tensor import element_bytes
from ...options import Options
from ...thresholds.fusion import FusionThresholds
from ..placement.memory import once_elements, peak_of
from ..placement.nest import Placed, arrangement_of, place_arrangement
from ..placement.offsets import packed
from ..placement.plan import build_launches, build_plan, shared_axes
from ..sharing.candidates import Arrangement, Sharing, sharing
from ..sharing.graph import FusionGraph
from ..solver.loop_constraints import rules
from ..solver.memory_model import Found
from .descent import Descent
from .exact import solve_exact, solve_static
from .large_programs import least_by_parts
from .tree_peak import least_tree_peak


@dataclass(slots=True)
class _Known:
    """What the searches of one program have found so far.

    Attributes:
        found: what the program allows.
        weights: by position in ``found.instances``, what one element counts.
        extents: of the base spaces.
        work: deterministic seconds of all searches.
        thresholds: of the searches.
        placements: the latest one first.
        hint: the latest arrangement, from which the next search goes on.
        bound: proven lower bound.
        proven: the last search left nothing out, so that the least placement is the least of all.
    """

    found: Sharing
    weights: Mapping[int, int]
    extents: Mapping[str, int]
    work: float
    thresholds: FusionThresholds
    placements: list[tuple[Placed, ...]]
    hint: Arrangement
    bound: int = 0
    proven: bool = True

    def take(self, arrangement: Arrangement | None) -> None:
        """Add what a search has found, if it has."""
        if arrangement is not None:
            self.placements.insert(0, place_arrangement(self.found, arrangement))
            self.hint = arrangement

    def by_parts(self) -> Found:
        """What a search over some of the arrays at a time finds: a bound, and no proof."""
        parts = least_by_parts(
            self.found, self.weights, self.extents, (self.hint,), self.work / 2, self.thresholds
        )
        self.proven, self.bound = False, max(self.bound, parts.bound)
        self.take(parts.arrangement)
        return parts

    def static(self) -> Found:
        """What the search for the least static sum finds."""
        rounds = self.thresholds.memory.static_rounds
        return solve_static(self.found, self.extents, self.work / 2, self.hint, rounds)

    def exactly(self, *, peak: bool) -> None:
        """What the search over all arrays and the order of all statements finds."""
        exact = solve_exact(
            self.found,
            self.weights,
            self.extents,
            self.work / 2,
            self.hint,
            peak=peak,
            at_least=self.bound,
        )
        self.proven, self.bound = exact.proven, max(self.bound, exact.bound)
        self.take(exact.arrangement)


def least_memory(
    graph: FusionGraph,
    start: tuple[Placed, ...],
    extents: tuple[tuple[str, int], ...],
    options: Options,
    *,
    static_is_least: bool = False,
) -> FusionPlan:
    """The plan of least memory by the options' objective, with a proven bound.

    Args:
        graph: fusion graph of the program.
        start: a legal placement, the hint, and the answer where the search finds nothing better.
        extents: planning extents.
        options: ``objective``, ``dtype``, ``effort`` and ``thresholds`` are read.
        static_is_least: no placement has a smaller static sum than ``start``.

    Raises:
        PlanError: the solver refuses the model.
    """
    found, dtype, peak = sharing(graph), options.dtype, options.objective == "peak"
    weights = {
        n: element_bytes(i.array, dtype) if peak else 1 for n, i in enumerate(found.instances)
    }
    thresholds = options.thresholds.planner.fusion
    work, hint = thresholds.memory.seconds * options.effort, arrangement_of(start)
    known = _Known(found, weights, dict(extents), work, thresholds, [start], hint)

    def plan_of(placed: tuple[Placed, ...], *, once: bool = False) -> FusionPlan:
        axes = shared_axes(found, placed)
        if once:
            return build_launches(graph, placed, axes, extents, dtype, Solve())
        tile_bytes = thresholds.generated_tile_bytes
        return build_plan(graph, placed, axes, extents, dtype, Solve(), tile_bytes)

    def value_of(placed: tuple[Placed, ...]) -> int:
        """As if every generated input were produced once, where the placement has it."""
        return least_value(plan_of(placed, once=peak), dtype, peak=peak)

    if peak:
        _search_peak(known, options.effort, tree=not graph.restricted, static=not static_is_least)
    elif not static_is_least:
        _search_static(known)
    values = [value_of(placed) for placed in known.placements]
    value = min(values)
    plan = plan_of(known.placements[values.index(value)])
    bound = value if known.proven else min(known.bound, value)
    solve = Solve(
        options.objective,
        "dag" if graph.restricted else "tree",
        "OPTIMAL" if value == bound else "FEASIBLE",
        value,
        bound,
        "bytes" if peak else "elements",
    )
    return replace(packed(plan, thresholds.offset_seconds) if peak else plan, solve=solve)


def _search_peak(known: _Known, effort: int, *, tree: bool, static: bool) -> None:
    """Least bytes at one time: trees by prefixes, large programs by parts, the rest exactly.

    Args:
        known: is added to.
        effort: multiplies the work on trees.
        tree: the graph is one.
        static: the least static sum is still to be found; it is a good start.
    """
    found, thresholds = known.found, known.thresholds
    large = rules(found) > thresholds.memory.direct_constraints
    if tree:
        ways = least_tree_peak(
            found, known.weights, known.extents, known.hint, effort, thresholds.trees
        )
        if ways is not None:
            known.proven, known.bound = ways.proven, ways.bound
            known.take(ways.arrangement)
            if ways.arrangement is not None and (ways.proven or large):
                return
    if large:
        parts = known.by_parts()
        if parts.proven or rules(found) > thresholds.solver_constraints:
            return
    elif static:
        least = known.static()
        known.proven = least.proven
        known.take(least.arrangement)
    known.exactly(peak=True)


def _search_static(known: _Known) -> None:
    """Fewest elements in all: loops first, and an order for them where there is one."""
    if rules(known.found) > known.thresholds.memory.static_constraints:
        # The solver comes to no end here. All arrays together take no less than those of one time.
        parts = known.by_parts()
        if parts.arrangement is not None:
            descent = Descent(known.found, known.weights, known.extents, known.thresholds.descent)
            small = descent.of(parts.arrangement)
            known.take(None if small is None else descent.shrink(small).arrangement)
        return
    # The least sum is soon found without an order; if there is one, it is the answer.
    least = known.static()
    known.proven, known.bound = least.proven, least.bound
    known.take(least.arrangement)
    if least.arrangement is None:
        known.exactly(peak=False)


def least_value(plan: FusionPlan, dtype: str, *, peak: bool) -> int:
    """The objective of a plan, in exact integers."""
    elements = once_elements(plan)
    if peak:
        return peak_of(plan, {a: n * element_bytes(a.tensor, dtype) for a, n in elements.items()})
    return sum(n for a, n in elements.items() if a.tensor.is_held)
