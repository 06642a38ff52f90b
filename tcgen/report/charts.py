"""Charts: memory over the steps of a program, and the trade-off of time and memory.

Before fusion every array is whole and the steps run in the order of the formula sequence; after
fusion they run in the order of the plan's visits and a contracted axis counts one element or tile.
An array is held from its first producer to its last reader, and for the whole of a loop that it
outlives. Arrays that the constant phase stores are held to the end, and so are results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, groupby
from math import log10
from typing import Any

from ..ir.plan import ArrayPlan, FusionPlan, LoopId
from ..ir.program import FormulaSequence, Phase
from ..ir.tensor import Role, Tensor, element_bytes
from .counts import Factor, array_product, product_value, whole_product
from .nest import visits_in_loops
from .svg import drawing, element, label, number
from .units import readable_bytes, short_bytes

NAMED = 8  # number of arrays with their own colour
_GAP = 14.0  # between the curve of the trade-off and its axes, in units of the drawing
_APART = 16.0  # smallest distance of two ticks, in units of the drawing


@dataclass(frozen=True, slots=True)
class Frame:
    """Size of a drawing and the margins around its axes, in units of the drawing."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float

    def place(self, along: float, up: float) -> tuple[float, float]:
        """A point of the drawing from the parts of the axes."""
        wide, high = self.width - self.left - self.right, self.height - self.top - self.bottom
        return self.left + wide * along, self.top + high * (1 - up)


TIMELINE_FRAME = Frame(860.0, 260.0, left=78.0, right=12.0, top=10.0, bottom=40.0)
_CURVE_FRAME = Frame(860.0, 300.0, left=90.0, right=40.0, top=18.0, bottom=62.0)


@dataclass(frozen=True, slots=True)
class Band:
    """An array held during steps ``first`` to ``last``, by position, inclusive."""

    name: str
    first: int
    last: int
    factors: tuple[Factor, ...]
    item: int

    def bytes(self, extents: Mapping[str, int]) -> int:
        """Bytes at given extents."""
        return product_value(list(self.factors), extents) * self.item


@dataclass(frozen=True, slots=True)
class Timeline:
    """Steps in order of execution, by id, and the arrays held while they run."""

    steps: tuple[int, ...]
    bands: tuple[Band, ...]

    def held(self, extents: Mapping[str, int]) -> tuple[int, ...]:
        """Bytes held during each step."""
        changes = [0] * (len(self.steps) + 1)
        for band in self.bands:
            count = band.bytes(extents)
            changes[band.first] += count
            changes[band.last + 1] -= count
        return tuple(accumulate(changes[:-1]))

    def peak(self, extents: Mapping[str, int]) -> int:
        """Most bytes held at one time."""
        return max(self.held(extents), default=0)

    def data(self) -> dict[str, Any]:
        """As plain data: positions and products, for a page that draws it at other extents."""
        return {
            "steps": len(self.steps),
            "bands": [[b.first, b.last, list(b.factors), b.item] for b in self.bands],
        }


def before_fusion(program: FormulaSequence, dtype: str) -> Timeline:
    """Every array whole, one step after the other."""
    bands = []
    last = len(program.steps) - 1
    for tensor in program.tensors:
        if tensor.role is Role.INPUT:
            continue
        uses = [s.id for s in (*program.producers(tensor), *program.consumers(tensor))]
        # No step reads this generated input.
        if not uses:
            continue
        end = last if _stays(program, tensor) else max(uses)
        bands.append(
            Band(
                tensor.name,
                min(uses),
                end,
                tuple(whole_product(tensor)),
                element_bytes(tensor, dtype),
            )
        )
    return Timeline(tuple(s.id for s in program.steps), tuple(bands))


def after_fusion(plan: FusionPlan, dtype: str) -> Timeline:
    """The arrays of the plan, in the order of its visits."""
    end = len(plan.visits) - 1
    bands = []
    inside = visits_in_loops(plan)
    for array in plan.arrays:
        first, last = _held(plan, array, inside)
        if _stays(plan.program, array.tensor):
            last = end
        item = element_bytes(array.tensor, dtype)
        bands.append(Band(array.tensor.name, first, last, tuple(array_product(array)), item))
    return Timeline(tuple(v.step for v in plan.visits), tuple(bands))


def _stays(program: FormulaSequence, tensor: Tensor) -> bool:
    """True for results and for arrays that the constant phase stores."""
    if tensor.role is Role.OUTPUT:
        return True
    made = [s.phase for s in program.producers(tensor)]
    read = [s.phase for s in program.consumers(tensor)]
    return all(p is Phase.CONSTANT for p in made) and Phase.VOLATILE in read


def _held(
    plan: FusionPlan, array: ArrayPlan, inside: Mapping[LoopId, list[int]]
) -> tuple[int, int]:
    """First and last visit during which an instance is held, loops that it outlives included."""
    first, last = array.live
    loops = plan.visits[first].loops
    own = loops[: loops.index(array.home) + 1] if array.home in loops else ()
    # The outermost loops inside its home that use it.
    outlived = [o for n in (first, last) for o in plan.visits[n].loops[len(own) : len(own) + 1]]
    for loop in outlived:
        first, last = min(first, inside[loop][0]), max(last, inside[loop][-1])
    return first, last


def colours(timelines: Iterable[Timeline], extents: Mapping[str, int]) -> dict[str, str]:
    """The class of each array in all drawings; the largest arrays come first."""
    most: dict[str, int] = {}
    for band in (band for timeline in timelines for band in timeline.bands):
        most[band.name] = max(most.get(band.name, 0), band.bytes(extents))
    ranked = sorted(most, key=lambda name: -most[name])
    return {name: f"c{n}" if n < NAMED else "other" for n, name in enumerate(ranked)}


def timeline_svg(
    timeline: Timeline,
    extents: Mapping[str, int],
    colour: Mapping[str, str],
    *,
    title: str,
    top: int,
) -> str:
    """The stacked area at given extents, with the class of each array in ``colour``.

    ``top`` is the number of bytes at the upper edge, at least 1; screen readers read the title.
    """
    count = max(1, len(timeline.steps))
    frame = TIMELINE_FRAME
    parts = []
    for n in range(5):
        x, y = frame.place(0, n / 4)
        parts.append(element("line", x1=x, x2=frame.place(1, 0)[0], y1=y, y2=y, class_="grid"))
        parts.append(label(short_bytes(top * n // 4), x - 6, y + 4, "tick y"))
    base = [0] * len(timeline.steps)
    for place, band in enumerate(timeline.bands):
        size = band.bytes(extents)
        path = _band_path(band, base, size, top, count)
        for position in range(band.first, band.last + 1):
            base[position] += size
        name = element("title", _band_title(band, timeline))
        parts.append(
            element("path", name, d=path, class_=f"band {colour[band.name]}", data_band=str(place))
        )
    floor = frame.height - frame.bottom
    for position in range(0, len(timeline.steps), -(-count // 26)):
        x, _ = frame.place((position + 0.5) / count, 0)
        parts.append(label(f"s{timeline.steps[position]}", x, floor + 16, "tick x"))
    middle, _ = frame.place(0.5, 0)
    parts.append(label("steps in order of execution", middle, frame.height - 6, "axis"))
    return drawing(frame.width, frame.height, title, *parts, class_="timeline")


def _band_path(band: Band, base: list[int], size: int, top: int, count: int) -> str:
    """The outline of a band on top of ``base``, one column a step.

    `templates/report/page.js` draws the same outline at other extents.
    """
    upper: list[str] = []
    lower: list[str] = []
    first = band.first
    for floor, columns in groupby(base[band.first : band.last + 1]):
        after = first + len(tuple(columns))
        for edge in (first, after):
            for level, line in ((floor + size, upper), (floor, lower)):
                x, y = TIMELINE_FRAME.place(edge / count, level / top)
                line.append(f"{number(x)} {number(y)}")
        first = after
    return "M" + "L".join([*upper, *reversed(lower)]) + "Z"


def _band_title(band: Band, timeline: Timeline) -> str:
    steps = timeline.steps
    return f"{band.name}: s{steps[band.first]} to s{steps[band.last]}"


def pareto_svg(points: list[dict[str, Any]], chosen: Mapping[str, Any] | None) -> str:
    """The curve, both axes logarithmic, with the chosen plan as a ring if its time is predicted."""
    drawn = [p for p in points if p["seconds"]]
    chosen = chosen if chosen and chosen["seconds"] else None
    places = [*drawn, chosen] if chosen else drawn
    if not places:
        return ""
    frame = _CURVE_FRAME
    xs, ys = [log10(max(1, p["peak_bytes"])) for p in places], [log10(p["seconds"]) for p in places]

    def place(point: Mapping[str, Any]) -> tuple[float, float]:
        along = (log10(max(1, point["peak_bytes"])) - min(xs)) / max(max(xs) - min(xs), 0.1)
        up = (log10(point["seconds"]) - min(ys)) / max(max(ys) - min(ys), 0.1)
        return frame.place(along, up)

    line = " ".join("{:.1f},{:.1f}".format(*place(p)) for p in drawn)
    left, floor = frame.left - _GAP, frame.height - frame.bottom + _GAP
    axes = f"{left},{frame.top - _GAP} {left},{floor} {frame.width},{floor}"
    parts = [
        element("polyline", points=axes, class_="grid", fill="none"),
        element("polyline", points=line, class_="chosen c0", fill="none"),
    ]
    last_x, last_y = frame.width + 4 * _APART, frame.height + 2 * _APART
    # From right to left and upwards, without ticks that would overlap.
    for point in drawn:
        x, y = place(point)
        parts.append(element("circle", cx=x, cy=y, r=4.0, class_="loop c0"))
        if last_x - x > 4 * _APART:
            parts.append(label(readable_bytes(point["peak_bytes"]), x, floor + 18, "tick x"))
            last_x = x
        if last_y - y > _APART:
            parts.append(label(f"{point['seconds']:.3g} s", left - 6, y + 4, "tick y"))
            last_y = y
    if chosen:
        x, y = place(chosen)
        parts.append(element("circle", cx=x, cy=y, r=8.0, class_="chosen c1"))
    parts.append(label("peak of the arrays", frame.width / 2, frame.height - 8, "axis"))
    title = "Predicted time against peak memory"
    return drawing(frame.width, frame.height, title, *parts)
