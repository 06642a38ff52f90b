"""The time-memory trade-off: plans of least predicted time for a series of memory limits.

Seconds are predicted; bytes are those of arrays, without copies for matrix products.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..fusion import plan_fusion
from ..fusion.placement.memory import output_bytes, plan_peak
from ..ir.plan import FusionPlan
from ..options import Options

_STEP = 4  # ratio of the memory of one plan to the limit of the next
_LIMITS = 6  # most limits below the unlimited peak, apart from the least peak


def pareto_points(plan: FusionPlan, options: Options) -> list[dict[str, Any]]:
    """Points of the curve, from the most memory to the least.

    Args:
        plan: a plan of the program, which has its planning extents.
        options: ``dtype``, ``machine`` and ``effort`` are read.

    Returns:
        ``limit_bytes`` that gives the plan (None: no limit), ``peak_bytes``, ``seconds``, ``loops``
        (shared, with their tiles) and ``repeats`` (statements computed more than once), by point.

    Raises:
        PlanError: the solver refuses the model.
    """
    wish = replace(options, objective="time", extents=plan.extents, memory_limit=None)
    results = output_bytes(plan.program, plan.extent_of, options.dtype)
    points = [_point(plan_fusion(plan.program, wish), None, results)]
    limit = points[0]["peak_bytes"]
    for _ in range(_LIMITS):
        limit = results + (limit - results) // _STEP
        made = plan_fusion(plan.program, replace(wish, memory_limit=limit))
        point = _point(made, limit, results)
        if point["peak_bytes"] > limit:  # no plan fits: its peak is the last limit
            limit = point["peak_bytes"]
            made = plan_fusion(plan.program, replace(wish, memory_limit=limit))
            points.append(_point(made, limit, results))
            break
        points.append(point)
        limit = point["peak_bytes"]
    return _pareto_optimal(points)


def _pareto_optimal(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Points that no other beats in time and memory, most memory first; equal points once."""
    optimal: list[dict[str, Any]] = []
    for point in sorted(points, key=lambda p: (p["peak_bytes"], p["seconds"])):
        if not optimal or point["seconds"] < optimal[-1]["seconds"]:
            optimal.append(point)
    return optimal[::-1]


def _point(plan: FusionPlan, limit: int | None, results: int) -> dict[str, Any]:
    steps = [v.step for v in plan.visits]
    peak = plan_peak(plan) + results
    return {
        "limit_bytes": limit,
        "peak_bytes": peak,
        "seconds": float(plan.solve.value or 0),
        "loops": [str(loop).partition("#")[0] for loop in plan.loops],
        "repeats": len(
            {s for s in steps if steps.count(s) > 1} | {v.step for v in plan.visits if v.redundant}
        ),
    }
