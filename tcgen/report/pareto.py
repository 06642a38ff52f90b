"""The time-memory trade-off as a drawing."""

from __future__ import annotations

from collections.abc import Mapping
from math import log10
from typing import Any

from .svg import drawing, element, label
from .tables import readable_bytes

WIDTH, HEIGHT = 860.0, 300.0
_APART = 16.0  # least distance of two ticks, in units of the drawing
LEFT, RIGHT, TOP, BOTTOM = 90.0, 40.0, 18.0, 62.0
_FRAME = 14.0  # between the curve and the axes, in units of the drawing


def pareto_svg(points: list[dict[str, Any]], chosen: Mapping[str, Any]) -> str:
    """The curve, both axes logarithmic, with the plan of the report as a ring.

    Args:
        points: points of the curve, from the most memory to the least.
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
