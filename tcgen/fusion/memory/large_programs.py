"""Least peak of large programs: arrangements from above, bounds from below, until they meet.

From above: one more contracted axis at a time, where the peak is. From below: a search over the few
arrays that must shrink. Its arrangement is tried on the whole program; of what lives at the peak
that is left, the largest array joins those that are searched over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..sharing.array_sizes import least_peak
from ..sharing.candidates import Arrangement, Sharing
from ..solver.loop_constraints import rules
from ..solver.memory_model import Found
from .coarse import part_of, solve_part
from .descent import Axis, Descent, Nested

_WORK = 3.0  # deterministic seconds of one search over some of the arrays, at most
_TRIES = 3000  # arrangements that the first descent looks at, at most
_TRIES_EACH = 60  # the same after each search
_PROMISING = 1.1  # times the least peak so far: arrangements that are gone on with
_CLOSE = 0.01  # a peak is close to its bound where the gap is this part of it
_IDLE = 0.35  # deterministic seconds without a bound that is raised or a peak lowered by so much
_LARGEST_PART = 400_000  # of ``rules``


def least_by_parts(
    found: Sharing,
    weights: Mapping[int, int],
    extents: Mapping[str, int],
    starts: Iterable[Arrangement],
    work: float,
) -> Found:
    """An arrangement of small peak and a bound.

    Args:
        found: what the program allows.
        weights: by position in ``found.instances``, bytes of one element.
        extents: of the base spaces.
        starts: arrangements to go on from.
        work: deterministic seconds.

    Raises:
        PlanError: the solver refuses the model.
    """
    descent = Descent(found, weights, extents)
    bound = least_peak(found, weights, extents, {})
    best: Nested | None = None
    begun: set[tuple[Axis, ...]] = set()
    for start in (Arrangement((), ()), *starts):
        first = descent.of(start)
        if first is not None and first.chosen not in begun:
            begun.add(first.chosen)
            last = descent.improve(first, _TRIES, bound)
            best = last if best is None or last.cost < best.cost else best
    if best is None:  # two readers of one generated input are in each other's way
        return Found(None, False, bound)
    tables, close = descent.tables, best.peak * _CLOSE
    by_size = sorted(tables, key=lambda n: (-tables[n][()], n))
    arrays = frozenset(
        n
        for n, table in tables.items()
        if table[()] >= best.peak or (len(table) == 1 and table[()] > close)
    )
    seen, idle = best, 0.0
    while best.peak - bound > close and work > 0 and idle < _IDLE:
        # The other arrays come last: the bound counts them nowhere, yet they may be in the way.
        joining = next((n for n in (*seen.alive, *best.alive, *by_size) if n not in arrays), None)
        if joining is None:
            break
        arrays |= {joining}
        part = part_of(found, arrays)
        if rules(part) > _LARGEST_PART:
            break
        less = solve_part(
            found,
            part,
            arrays,
            weights,
            extents,
            min(work, _WORK),
            best.arrangement,
            at_least=bound,
            below=best.peak,
        )
        work -= less.spent
        idle = 0.0 if less.bound - bound > close else idle + less.spent
        bound = max(bound, less.bound)
        if not less.proven or idle >= _IDLE:
            break
        if less.arrangement is not None:
            first = descent.of(less.arrangement)
            if first is not None:
                # What lives where these few arrays are as they should be is in their way.
                seen = descent.improve(first, _TRIES_EACH, bound, first.chosen)
                last = seen
                if seen.peak < best.peak * _PROMISING:
                    last = descent.improve(seen, _TRIES_EACH, bound)
                if best.peak - last.peak > close:
                    idle = 0.0
                best = last if last.cost < best.cost else best
    return Found(best.arrangement, best.peak <= bound, min(bound, best.peak))
