"""The time-memory trade-off: plans of least predicted time for a series of memory limits.

Makes a plan for each limit, from the unfused peak down to the least one, and keeps the
Pareto-optimal points. Seconds are predicted; bytes are those of arrays, without copies for matrix
products.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import log10
from typing import Any

from ..fusion import plan_fusion
from ..fusion.placement.memory import output_bytes, plan_peak
from ..ir.plan import FusionPlan
from ..options import Options
from .svg import drawing, element, label
from .tables import readable_bytes

_STEP = 4  # ratio of the memory of one plan to the limit of the next
_LIMITS = 6  # most limits below the peak without one, the least peak not counted
WIDTH, HEIGHT = 860.0, 300.0
_APART = 16.0  # least distance of two ticks, in units of the drawing
LEFT, RIGHT, TOP, BOTTOM = 90.0, 40.0, 18.0, 62.0
_FRAME = 14.0  # between the curve and the axes, in units of the drawing


def pareto_points(plan: FusionPlan, options: Options) -> list[dict[str, Any]]:
    """Points of the curve, from the most memory to the least.

    Args:
        plan: of the program, at its planning extents.
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
    kept: list[dict[str, Any]] = []
    for point in sorted(points, key=lambda p: (p["peak_bytes"], p["seconds"])):
        if not kept or point["seconds"] < kept[-1]["seconds"]:
            kept.append(point)
    return kept[::-1]


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


def pareto_svg(points: list[dict[str, Any]], chosen: Mapping[str, Any]) -> str:
    """The curve, both axes logarithmic, with the plan of the report as a ring.

    Args:
        points: of :func:`pareto_points`.
        chosen: ``peak_bytes`` and ``seconds`` of the plan; ``seconds`` is None if not predicted.
    """
    xs = [max(1, p["peak_bytes"]) for p in (*points, chosen)]
    ys = [p["seconds"] for p in (*points, chosen) if p["seconds"]]
    if not ys:
        return ""
    low_x, span_x = log10(min(xs)), max(log10(max(xs) / min(xs)), 0.1)
    low_y, span_y = log10(min(ys)), max(log10(max(ys) / min(ys)), 0.1)

    def place(point: Mapping[str, Any]) -> tuple[float, float]:
        along = (log10(max(1, point["peak_bytes"])) - low_x) / span_x
        up = (log10(point["seconds"]) - low_y) / span_y
        return LEFT + along * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    drawn = [p for p in points if p["seconds"]]
    line = " ".join("{:.1f},{:.1f}".format(*place(p)) for p in drawn)
    left, floor = LEFT - _FRAME, HEIGHT - BOTTOM + _FRAME
    parts = [
        element("polyline", points=f"{left},{TOP - _FRAME} {left},{floor} {WIDTH},{floor}",
                class_="grid", fill="none"),
    ]  # fmt: skip
    parts += [element("polyline", points=line, class_="chosen c0", fill="none")]
    last_x, last_y = WIDTH + 4 * _APART, HEIGHT + 2 * _APART
    for point in drawn:  # from right to left and upwards; ticks that would overlap are omitted
        x, y = place(point)
        parts.append(element("circle", cx=x, cy=y, r=4.0, class_="loop c0"))
        if last_x - x > 4 * _APART:
            parts.append(label(readable_bytes(point["peak_bytes"]), x, floor + 18, "tick x"))
            last_x = x
        if last_y - y > _APART:
            parts.append(label(f"{point['seconds']:.3g} s", left - 6, y + 4, "tick y"))
            last_y = y
    if chosen["seconds"]:
        x, y = place(chosen)
        parts.append(element("circle", cx=x, cy=y, r=8.0, class_="chosen c1"))
    parts.append(label("peak of the arrays", WIDTH / 2, HEIGHT - 8, "axis"))
    return drawing(WIDTH, HEIGHT, "Predicted time against peak memory", *parts)
