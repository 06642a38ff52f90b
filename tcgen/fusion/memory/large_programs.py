"""Least peak of large programs: arrangements from above and bounds from below, until they meet.

The few large arrays decide on the peak of a program, while most of its loops and statements belong
to small arrays. A CP-SAT model of a few arrays is small. Constraints that the loops of other arrays
might change are left out of it, and the other arrays count nothing, so that every arrangement of
the program is one of the model with at most the same peak: the model's bound holds for the program.

From above, :mod:`.descent` contracts one more axis at the peak at a time. From below, a model of
the arrays that must shrink gives a bound. Its arrangement is tried on the whole program, and the
largest of the arrays that are then live at the peak joins the next model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from ...thresholds.fusion import FusionThresholds
from ..sharing.array_sizes import least_peak
from ..sharing.candidates import Arrangement, FusionCandidates, build_candidates, unmodelled
from ..solver.loop_constraints import constraint_count
from ..solver.memory_model import FusionModel, SearchResult
from .descent import Axis, Descent, NestedLoops


def least_by_parts(
    candidates: FusionCandidates,
    weights: Mapping[int, int],
    extents: Mapping[str, int],
    starts: Iterable[Arrangement],
    seconds: float,
    thresholds: FusionThresholds,
) -> SearchResult:
    """An arrangement of small peak, and a bound on the least peak.

    Args:
        candidates: of the program.
        weights: by position in ``candidates.instances``, bytes of one element.
        extents: of the base spaces.
        starts: arrangements to improve.
        seconds: deterministic.
        thresholds: of the models of some arrays, and of the descent.

    Raises:
        PlanError: the solver refuses the model.
    """
    limits = thresholds.memory
    descent = Descent(candidates, weights, extents, thresholds.descent)
    bound = least_peak(candidates, weights, extents, {})
    best: NestedLoops | None = None
    begun: set[tuple[Axis, ...]] = set()
    for start in (Arrangement((), ()), *starts):
        first = descent.from_arrangement(start)
        if first is not None and first.chosen not in begun:
            begun.add(first.chosen)
            last = descent.improve(first, limits.first_trials, bound)
            best = last if best is None or last.cost < best.cost else best
    if best is None:  # two readers of a generated input contradict each other
        return SearchResult(None, False, bound)
    tables, close = descent.tables, best.peak * limits.close
    by_size = sorted(tables, key=lambda n: (-tables[n][()], n))
    arrays = frozenset(
        n
        for n, table in tables.items()
        if table[()] >= best.peak or (len(table) == 1 and table[()] > close)
    )
    seen, idle = best, 0.0
    while best.peak - bound > close and seconds > 0 and idle < limits.idle_seconds:
        # Arrays that are live at neither peak come last: their loops may still be an obstacle.
        joining = next((n for n in (*seen.live, *best.live, *by_size) if n not in arrays), None)
        if joining is None:
            break
        arrays |= {joining}
        part = part_of(candidates, arrays)
        if constraint_count(part) > limits.part_constraints:
            break
        result = solve_part(
            candidates,
            part,
            arrays,
            weights,
            extents,
            min(seconds, limits.part_seconds),
            best.arrangement,
            at_least=bound,
            below=best.peak,
        )
        seconds -= result.spent
        idle = 0.0 if result.bound - bound > close else idle + result.spent
        bound = max(bound, result.bound)
        if not result.proven or idle >= limits.idle_seconds:
            break
        if result.arrangement is not None:
            first = descent.from_arrangement(result.arrangement)
            if first is not None:
                # With the axes of these arrays fixed, the peak shows which array is an obstacle.
                seen = descent.improve(first, limits.part_trials, bound, first.chosen)
                last = seen
                if seen.peak < best.peak * limits.promising:
                    last = descent.improve(seen, limits.part_trials, bound)
                if best.peak - last.peak > close:
                    idle = 0.0
                best = last if last.cost < best.cost else best
    return SearchResult(best.arrangement, best.peak <= bound, min(bound, best.peak))


def part_of(candidates: FusionCandidates, arrays: Collection[int]) -> FusionCandidates:
    """The candidates if only these arrays, by position, may be contracted."""
    bare = tuple(replace(i, axes=()) for i in candidates.instances)
    tensors = {candidates.instances[n].array for n in arrays}
    return build_candidates(candidates.graph, bare, candidates.dependences, {}, tensors)


def solve_part(
    candidates: FusionCandidates,
    part: FusionCandidates,
    arrays: Collection[int],
    weights: Mapping[int, int],
    extents: Mapping[str, int],
    seconds: float,
    hint: Arrangement,
    *,
    at_least: int,
    below: int,
) -> SearchResult:
    """The least peak of some arrays, if it is below a given one.

    Args:
        candidates: of the program.
        part: the candidates of these arrays alone.
        arrays: that count, by position among the instances.
        weights: by position, bytes of one element.
        extents: of the base spaces.
        seconds: deterministic.
        hint: an arrangement to start from.
        at_least: a proven lower bound.
        below: only smaller peaks are searched for.

    Returns:
        A bound for the whole program, ``below`` if no peak is smaller. The arrangement may be
        illegal for the whole program.

    Raises:
        PlanError: the solver refuses the model.
    """
    model = FusionModel(
        part,
        weights,
        extents,
        hint,
        peak=True,
        ordered=True,
        only=arrays,
        unmodelled=unmodelled(part, candidates),
        at_least=at_least,
        below=below,
    )
    return model.solve(seconds, bound_only=True)
