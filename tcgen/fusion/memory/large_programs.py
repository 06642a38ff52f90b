"""Least peak of large programs: arrangements from above, bounds from below, until they meet.

From above: one more contracted axis at a time, where the peak is. From below: a search over the few
arrays that must shrink. Its arrangement is tried on the whole program; of what lives at the peak
that is left, the largest array joins those that are searched over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from ...thresholds.fusion import FusionThresholds
from ..sharing.array_sizes import least_peak
from ..sharing.candidates import Arrangement, Sharing, connected, unmodelled
from ..solver.loop_constraints import rules
from ..solver.memory_model import Found, FusionModel
from .descent import Axis, Descent, Nested


def least_by_parts(
    found: Sharing,
    weights: Mapping[int, int],
    extents: Mapping[str, int],
    starts: Iterable[Arrangement],
    work: float,
    thresholds: FusionThresholds,
) -> Found:
    """An arrangement of small peak and a bound.

    Args:
        found: what the program allows.
        weights: by position in ``found.instances``, bytes of one element.
        extents: of the base spaces.
        starts: arrangements to go on from.
        work: deterministic seconds.
        thresholds: of the searches over some of the arrays, and of the descent.

    Raises:
        PlanError: the solver refuses the model.
    """
    limits = thresholds.memory
    descent = Descent(found, weights, extents, thresholds.descent)
    bound = least_peak(found, weights, extents, {})
    best: Nested | None = None
    begun: set[tuple[Axis, ...]] = set()
    for start in (Arrangement((), ()), *starts):
        first = descent.of(start)
        if first is not None and first.chosen not in begun:
            begun.add(first.chosen)
            last = descent.improve(first, limits.first_trials, bound)
            best = last if best is None or last.cost < best.cost else best
    if best is None:  # two readers of one generated input are in each other's way
        return Found(None, False, bound)
    tables, close = descent.tables, best.peak * limits.close
    by_size = sorted(tables, key=lambda n: (-tables[n][()], n))
    arrays = frozenset(
        n
        for n, table in tables.items()
        if table[()] >= best.peak or (len(table) == 1 and table[()] > close)
    )
    seen, idle = best, 0.0
    while best.peak - bound > close and work > 0 and idle < limits.idle_seconds:
        # The other arrays come last: the bound counts them nowhere, yet they may be in the way.
        joining = next((n for n in (*seen.alive, *best.alive, *by_size) if n not in arrays), None)
        if joining is None:
            break
        arrays |= {joining}
        part = part_of(found, arrays)
        if rules(part) > limits.part_constraints:
            break
        less = solve_part(
            found,
            part,
            arrays,
            weights,
            extents,
            min(work, limits.part_seconds),
            best.arrangement,
            at_least=bound,
            below=best.peak,
        )
        work -= less.spent
        idle = 0.0 if less.bound - bound > close else idle + less.spent
        bound = max(bound, less.bound)
        if not less.proven or idle >= limits.idle_seconds:
            break
        if less.arrangement is not None:
            first = descent.of(less.arrangement)
            if first is not None:
                # What lives where these few arrays are as they should be is in their way.
                seen = descent.improve(first, limits.part_trials, bound, first.chosen)
                last = seen
                if seen.peak < best.peak * limits.promising:
                    last = descent.improve(seen, limits.part_trials, bound)
                if best.peak - last.peak > close:
                    idle = 0.0
                best = last if last.cost < best.cost else best
    return Found(best.arrangement, best.peak <= bound, min(bound, best.peak))


def part_of(found: Sharing, arrays: Collection[int]) -> Sharing:
    """What a program allows if no other arrays than these, by position, may shrink."""
    bare = tuple(replace(i, axes=()) for i in found.instances)
    tensors = {found.instances[n].array for n in arrays}
    return connected(found.graph, bare, found.needs, {}, tensors)


def solve_part(
    found: Sharing,
    part: Sharing,
    arrays: Collection[int],
    weights: Mapping[int, int],
    extents: Mapping[str, int],
    work: float,
    hint: Arrangement,
    *,
    at_least: int,
    below: int,
) -> Found:
    """Least peak of some arrays, as far as it is below a peak that is known.

    Args:
        found: what the program allows.
        part: what it allows these arrays alone.
        arrays: to count, by position among the instances.
        weights: by position, bytes of one element.
        extents: of the base spaces.
        work: deterministic seconds.
        hint: an arrangement to start from.
        at_least: a proven bound.
        below: what is sought is less than this.

    Returns:
        The bound holds for the whole program: ``below`` where nothing is below it. The arrangement
        need not be one of the program.

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
        unmodelled=unmodelled(part, found),
        at_least=at_least,
        below=below,
    )
    return model.solve(work, bound_only=True)
