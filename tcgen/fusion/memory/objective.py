"""Objectives ``memory``, ``peak`` and ``linear``: the choice of a search, and its plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ...ir.plan import FusionPlan, Solve
from ...ir.tensor import element_bytes
from ...options import Options
from ...thresholds.planner import FusionThresholds
from ..placement.memory import once_elements, packed, peak_of, saved_elements
from ..placement.nest import Placed, arrangement_of, place_arrangement
from ..placement.plan import build_launches, build_plan, shared_axes
from ..sharing.candidates import (
    Arrangement,
    FusionCandidates,
    fusion_candidates,
    independent,
    tables_of,
    unmodelled,
    without_order,
)
from ..sharing.graph import FusionGraph
from ..sharing.statement_order import Cycle, in_order
from ..solver.loop_constraints import constraint_count
from ..solver.memory_model import FusionModel, SearchResult
from .descent import Descent, NestedLoops
from .large_programs import least_by_parts
from .tree_peak import least_tree_peak


@dataclass(slots=True)
class _Progress:
    """Results of the searches of one program so far.

    Attributes:
        weights: weight of one element, by position in ``candidates.instances``.
        seconds: deterministic seconds of all searches.
        placements: the latest one first.
        hint: the latest arrangement, from which the next search starts.
        proven: the last search was complete, so that the best placement is optimal.
    """

    candidates: FusionCandidates
    weights: Mapping[int, int]
    extents: Mapping[str, int]
    seconds: float
    thresholds: FusionThresholds
    placements: list[tuple[Placed, ...]]
    hint: Arrangement
    bound: int = 0
    proven: bool = True

    def take(self, arrangement: Arrangement | None) -> None:
        """Add the arrangement of a search, if it has one."""
        if arrangement is not None:
            self.placements.insert(0, place_arrangement(self.candidates, arrangement))
            self.hint = arrangement

    def by_parts(self) -> SearchResult:
        """Search over some of the arrays at a time: a bound, and no proof of optimality."""
        parts = least_by_parts(
            self.candidates,
            self.weights,
            self.extents,
            (self.hint,),
            self.seconds / 2,
            self.thresholds,
        )
        self.proven, self.bound = False, max(self.bound, parts.bound)
        self.take(parts.arrangement)
        return parts

    def static(self) -> SearchResult:
        """Search for the least static sum; loops without a common order are the start of a descent.

        The result has an arrangement only if that attains the sum; the other one is taken.
        """
        rounds = self.thresholds.memory.static_rounds
        least = solve_static(self.candidates, self.extents, self.seconds / 2, self.hint, rounds)
        if least.arrangement is None or least.arrangement.order:
            return least
        ones = dict.fromkeys(range(len(self.candidates.instances)), 1)
        small = self.shrunk(least.arrangement, ones)
        if small is not None and small.static <= least.bound:
            return replace(least, arrangement=small.arrangement)
        self.take(None if small is None else small.arrangement)
        return replace(least, arrangement=None, proven=False)

    def shrunk(self, start: Arrangement, weights: Mapping[int, int]) -> NestedLoops | None:
        """As many loops of an arrangement as have a common order, and those that save more."""
        descent = Descent(self.candidates, weights, self.extents, self.thresholds.descent)
        nested = descent.from_arrangement(start)
        return None if nested is None else descent.shrink(nested)

    def exactly(self, *, peak: bool) -> None:
        """Search over all arrays and the order of all statements."""
        exact = FusionModel(
            self.candidates,
            self.weights,
            self.extents,
            self.hint,
            peak=peak,
            ordered=True,
            at_least=self.bound,
        ).solve(self.seconds / 2)
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

    Under ``linear``, the memory of an array is what Eq. (10) of Allam et al. leaves to be saved.
    ``start`` is a legal placement; with ``static_is_least``, none has a smaller static sum. Of the
    options, ``objective``, ``dtype``, ``effort`` and ``thresholds`` are read.
    """
    dtype, peak, linear = options.dtype, options.objective == "peak", options.objective == "linear"
    candidates = fusion_candidates(graph, linear=linear)
    weights = {
        n: element_bytes(i.array, dtype) if peak else 1 for n, i in enumerate(candidates.instances)
    }
    thresholds = options.thresholds.planner.fusion
    seconds = (thresholds.linear_seconds if linear else thresholds.memory.seconds) * options.effort
    hint = arrangement_of(start)
    progress = _Progress(candidates, weights, dict(extents), seconds, thresholds, [start], hint)
    most = sum(table[0][1] for table in tables_of(candidates, weights, dict(extents), {}).values())

    def plan_of(placed: tuple[Placed, ...], *, once: bool = False) -> FusionPlan:
        axes = shared_axes(candidates, placed)
        if once:
            return build_launches(graph, placed, axes, extents, dtype, Solve())
        tile_bytes = thresholds.generated_tile_bytes
        return build_plan(graph, placed, axes, extents, dtype, Solve(), tile_bytes)

    def value_of(placed: tuple[Placed, ...]) -> int:
        """The objective if every generated input is produced once, where the placement has it."""
        plan = plan_of(placed, once=peak)
        return most - saved_elements(plan) if linear else least_value(plan, dtype, peak=peak)

    if peak:
        _search_peak(
            progress, options.effort, tree=not graph.restricted, static=not static_is_least
        )
    elif not static_is_least:
        _search_static(progress)
    values = [value_of(placed) for placed in progress.placements]
    value = min(values)
    plan = plan_of(progress.placements[values.index(value)])
    bound = value if progress.proven else min(progress.bound, value)
    solve = Solve(
        options.objective,
        "dag" if graph.restricted else "tree",
        "OPTIMAL" if value == bound else "FEASIBLE",
        most - value if linear else value,
        most - bound if linear else bound,
        "saved_elements" if linear else "bytes" if peak else "elements",
    )
    return replace(packed(plan, thresholds.offset_seconds) if peak else plan, solve=solve)


def _search_peak(progress: _Progress, effort: int, *, tree: bool, static: bool) -> None:
    """Fewest bytes at one time: trees by prefixes, large programs by parts, others exactly.

    ``effort`` multiplies the steps on trees. With ``static``, the least static sum is not known
    yet; its loops are a good start.
    """
    candidates, thresholds = progress.candidates, progress.thresholds
    large = constraint_count(candidates) > thresholds.memory.direct_constraints
    if tree:
        tree_peak = least_tree_peak(
            candidates, progress.weights, progress.extents, progress.hint, effort, thresholds.trees
        )
        if tree_peak is not None:
            progress.proven, progress.bound = tree_peak.proven, tree_peak.bound
            progress.take(tree_peak.arrangement)
            if tree_peak.arrangement is not None and (tree_peak.proven or large):
                return
    if large:
        parts = progress.by_parts()
        if parts.proven or constraint_count(candidates) > thresholds.solver_constraints:
            return
    elif static:
        least = progress.static()
        progress.proven = least.proven
        progress.take(least.arrangement)
    progress.exactly(peak=True)


def _search_static(progress: _Progress) -> None:
    """Fewest elements in all: first loops, then an order for them."""
    if progress.candidates.linear:
        # Single axes count, so that a choice of one after the other is good, and quick.
        small = progress.shrunk(progress.hint, progress.weights)
        if small is not None:
            progress.placements.append(place_arrangement(progress.candidates, small.arrangement))
    if constraint_count(progress.candidates) > progress.thresholds.memory.static_constraints:
        # Too large for the solver. The sum of all arrays is at least the peak.
        parts = progress.by_parts()
        if parts.arrangement is not None:
            small = progress.shrunk(parts.arrangement, progress.weights)
            progress.take(None if small is None else small.arrangement)
        return
    # Without an order the least sum is quick to find; if its loops have one, it is optimal.
    least = progress.static()
    progress.proven, progress.bound = least.proven, least.bound
    progress.take(least.arrangement)
    few = constraint_count(progress.candidates) <= progress.thresholds.memory.direct_constraints
    if least.arrangement is None and (few or len(progress.placements) == 1):
        progress.exactly(peak=False)


def least_value(plan: FusionPlan, dtype: str, *, peak: bool) -> int:
    """The objective of a plan, in exact integers."""
    elements = once_elements(plan)
    if peak:
        return peak_of(plan, {a: n * element_bytes(a.tensor, dtype) for a, n in elements.items()})
    return sum(n for a, n in elements.items() if a.tensor.is_held)


def solve_static(
    candidates: FusionCandidates,
    extents: Mapping[str, int],
    seconds: float,
    hint: Arrangement,
    rounds: int,
) -> SearchResult:
    """The arrangement of least static sum, in elements: first loops, then an order for them.

    Parts that have no statement in common are solved one by one. Loops without a common order are
    forbidden, and the model is solved again. The arrangement has no order where loops of several
    parts contradict each other, or where loop uses that the models lack may resolve that; the
    result has no arrangement where the search gives up.
    """
    models = [
        FusionModel(
            part,
            dict.fromkeys(range(len(part.instances)), 1),
            extents,
            hint,
            peak=False,
            ordered=False,
            unmodelled=unmodelled(part, candidates),
        )
        for part in independent(without_order(candidates))
    ]
    best: list[SearchResult] = []
    for model in models:
        best.append(model.least(seconds))
        seconds = max(0.0, seconds - model.spent)
    answers = [b.arrangement for b in best]

    def arranged(
        solve_again: Callable[[FusionModel, int], Arrangement | None],
    ) -> Arrangement | None:
        """The answers in one order; ``solve_again`` renews the answer of a model."""
        for _ in range(rounds):
            if None in answers:
                break
            order = in_order(
                candidates, tuple(loop for a in answers if a is not None for loop in a.loops)
            )
            if isinstance(order, Arrangement):
                return order
            changed = _exclude(models, order)
            if not changed:
                break
            for number in changed:
                answers[number] = solve_again(models[number], number)
        return None

    def least(model: FusionModel, number: int) -> Arrangement | None:
        best[number] = model.least(seconds)
        return best[number].arrangement

    arrangement = arranged(least)
    if arrangement is not None and all(b.proven for b in best):
        for number, model in enumerate(models):
            model.keep_memory()
            answers[number] = model.fewest(seconds / 10) or answers[number]
        arrangement = arranged(lambda model, _: model.fewest(seconds / 10)) or arrangement
    if arrangement is None and None not in answers:
        loops = tuple(loop for a in answers if a is not None for loop in a.loops)
        arrangement = Arrangement(loops, ())
    return SearchResult(arrangement, all(b.proven for b in best), sum(b.bound for b in best))


def _exclude(models: list[FusionModel], cycles: tuple[Cycle, ...]) -> list[int]:
    """Forbid each cycle whose loops belong to one model; the numbers of these models."""
    changed: dict[int, None] = {}
    for cycle in cycles:
        loops = [link.use for link in cycle if link.loop]
        for number, model in enumerate(models):
            if all(use in model.partners for use in loops) and model.exclude(cycle):
                changed[number] = None
    return sorted(changed)
