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

from ...thresholds.planner import FusionThresholds, MemoryThresholds
from ..sharing.candidates import (
    Arrangement,
    FusionCandidates,
    build_candidates,
    least_peak,
    unmodelled,
)
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
    """An arrangement of small peak, and a bound on the least peak."""
    limits = thresholds.memory
    descent = Descent(candidates, weights, extents, thresholds.descent)
    bound = least_peak(candidates, weights, extents, {})
    best = _best_descent(descent, starts, limits.first_trials, bound)
    if best is None:
        return SearchResult(None, False, bound)
    gap = _Gap(candidates, weights, extents, limits, descent, seconds, best, bound)
    while gap.is_open and gap.add_array():
        part = part_of(candidates, gap.arrays)
        if constraint_count(part) > limits.part_constraints:
            break
        result = gap.raise_bound(part)
        if not result.proven or gap.idle >= limits.idle_seconds:
            break
        if result.arrangement is not None:
            gap.lower_peak(result.arrangement)
    best = gap.best
    return SearchResult(best.arrangement, best.peak <= gap.bound, min(gap.bound, best.peak))


def _best_descent(
    descent: Descent, starts: Iterable[Arrangement], trials: int, bound: int
) -> NestedLoops | None:
    """Best of several descents; None if two readers of a generated input contradict each other."""
    best: NestedLoops | None = None
    begun: set[tuple[Axis, ...]] = set()
    for start in (Arrangement((), ()), *starts):
        first = descent.from_arrangement(start)
        if first is not None and first.chosen not in begun:
            begun.add(first.chosen)
            last = descent.improve(first, trials, bound)
            best = last if best is None or last.cost < best.cost else best
    return best


class _Gap:
    """The gap between the best peak and the proven bound, which models of some arrays close.

    Attributes:
        close: a gap, or progress, of so many bytes does not count.
        arrays: positions of the arrays of the next model; the largest ones at first.
        latest: the latest arrangement by a model, whose peak shows the obstacles.
        seconds: deterministic seconds that are left.
        idle: deterministic seconds without progress.
    """

    def __init__(
        self,
        candidates: FusionCandidates,
        weights: Mapping[int, int],
        extents: Mapping[str, int],
        limits: MemoryThresholds,
        descent: Descent,
        seconds: float,
        best: NestedLoops,
        bound: int,
    ) -> None:
        self.candidates, self.weights, self.extents = candidates, weights, extents
        self.limits, self.descent = limits, descent
        self.seconds, self.idle = seconds, 0.0
        self.best = self.latest = best
        self.bound, self.close = bound, best.peak * limits.close
        sizes = {n: (table[()], len(table)) for n, table in descent.tables.items()}
        self._by_size = sorted(sizes, key=lambda n: (-sizes[n][0], n))
        self.arrays = frozenset(
            n
            for n, (size, choices) in sizes.items()
            if size >= best.peak or (choices == 1 and size > self.close)
        )

    @property
    def is_open(self) -> bool:
        """True if the gap counts, and there is time to close it."""
        wide = self.best.peak - self.bound > self.close
        return wide and self.seconds > 0 and self.idle < self.limits.idle_seconds

    def add_array(self) -> bool:
        """Add the largest array of a peak to the next model; False if none is left.

        Arrays that are live at neither peak come last: their loops may still be an obstacle.
        """
        order = (*self.latest.live, *self.best.live, *self._by_size)
        joining = next((n for n in order if n not in self.arrays), None)
        if joining is not None:
            self.arrays |= {joining}
        return joining is not None

    def raise_bound(self, part: FusionCandidates) -> SearchResult:
        """Solve the model of the arrays, whose bound holds for the program."""
        result = solve_part(
            self.candidates,
            part,
            self.arrays,
            self.weights,
            self.extents,
            min(self.seconds, self.limits.part_seconds),
            self.best.arrangement,
            at_least=self.bound,
            below=self.best.peak,
        )
        self.seconds -= result.spent
        progress = result.bound - self.bound > self.close
        self.idle = 0.0 if progress else self.idle + result.spent
        self.bound = max(self.bound, result.bound)
        return result

    def lower_peak(self, arrangement: Arrangement) -> None:
        """Descend from the arrangement of a model, first with the axes of its arrays fixed."""
        first = self.descent.from_arrangement(arrangement)
        if first is None:
            return
        trials = self.limits.part_trials
        self.latest = last = self.descent.improve(first, trials, self.bound, first.chosen)
        if last.peak < self.best.peak * self.limits.promising:
            last = self.descent.improve(last, trials, self.bound)
        if self.best.peak - last.peak > self.close:
            self.idle = 0.0
        self.best = last if last.cost < self.best.cost else self.best


def part_of(candidates: FusionCandidates, arrays: Collection[int]) -> FusionCandidates:
    """The candidates if only these arrays, by position, may be contracted."""
    bare = tuple(replace(i, axes=()) for i in candidates.instances)
    tensors = {candidates.instances[n].array for n in arrays}
    linear = candidates.linear
    return build_candidates(
        candidates.graph, bare, candidates.dependences, {}, tensors, linear=linear
    )


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
    """The least peak of some arrays, if it is below a given one, as a bound for the whole program.

    The bound is ``below`` if no peak is smaller. The arrangement may be illegal for the program.
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
