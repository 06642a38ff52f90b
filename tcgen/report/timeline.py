"""Memory over the steps of a program: which arrays are held while each step runs.

Before fusion every array is whole and the steps run in the order of the formula sequence; after
fusion they run in the order of the plan's visits and a contracted axis counts one element or tile.
An array is held from its first producer to its last reader, and for the whole of a loop that it
outlives; arrays that the constant phase keeps are held to the end, results from their first
producer to the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

from ..ir.plan import ArrayPlan, FusionPlan, LoopId
from ..ir.program import FormulaSequence, Phase
from ..ir.tensor import Role, Tensor, element_bytes
from .counts import Factor, array_product, product_value, whole_product
from .nest import visits_in_loops
from .svg import drawing, element, label, number

WIDTH, HEIGHT = 860.0, 260.0
LEFT, RIGHT, TOP, BOTTOM = 78.0, 12.0, 10.0, 40.0
NAMED = 8  # arrays with a colour of their own


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
        if not uses:  # a generated input that no step reads
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
    """True for results and for arrays that the constant phase keeps."""
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
    outlived = [
        o for n in (first, last) for o in plan.visits[n].loops[len(own) : len(own) + 1]
    ]  # the outermost loops inside its home that use it
    for loop in outlived:
        first, last = min(first, inside[loop][0]), max(last, inside[loop][-1])
    return first, last


def colours(timelines: Iterable[Timeline], extents: Mapping[str, int]) -> dict[str, str]:
    """A class for each array, the same in all drawings: the largest at given extents first."""
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
    """The stacked area, drawn at given extents.

    Args:
        timeline: to draw.
        extents: of the base spaces.
        colour: a class for each array.
        title: for screen readers.
        top: bytes at the upper edge, at least 1.
    """
    count = max(1, len(timeline.steps))
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    parts = []
    for n in range(5):
        y = TOP + high * (1 - n / 4)
        parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
        parts.append(label(short_bytes(top * n // 4), LEFT - 6, y + 4, "tick y"))
    base = [0] * len(timeline.steps)
    for place, band in enumerate(timeline.bands):
        size = band.bytes(extents)
        path = band_path(band, base, size, top, count)
        for position in range(band.first, band.last + 1):
            base[position] += size
        name = element("title", _band_title(band, timeline))
        parts.append(
            element("path", name, d=path, class_=f"band {colour[band.name]}", data_band=str(place))
        )
    every = -(-count // 26)
    for position in range(0, len(timeline.steps), every):
        x = LEFT + wide * (position + 0.5) / count
        parts.append(label(f"s{timeline.steps[position]}", x, HEIGHT - BOTTOM + 16, "tick x"))
    parts.append(label("steps in order of execution", LEFT + wide / 2, HEIGHT - 6, "axis"))
    return drawing(WIDTH, HEIGHT, title, *parts, class_="timeline")


def band_path(band: Band, base: list[int], size: int, top: int, count: int) -> str:
    """The outline of a band on top of ``base``, one column a step.

    `templates/report/page.js` draws the same outline.
    """
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    upper, lower = [], []
    first = band.first
    for floor, columns in groupby(base[band.first : band.last + 1]):
        after = first + len(tuple(columns))
        x = [LEFT + wide * edge / count for edge in (first, after)]
        y = [TOP + high * (1 - level / top) for level in (floor + size, floor)]
        upper += [f"{number(x[0])} {number(y[0])}", f"{number(x[1])} {number(y[0])}"]
        lower += [f"{number(x[0])} {number(y[1])}", f"{number(x[1])} {number(y[1])}"]
        first = after
    return "M" + "L".join([*upper, *reversed(lower)]) + "Z"


def _band_title(band: Band, timeline: Timeline) -> str:
    steps = timeline.steps
    return f"{band.name}: s{steps[band.first]} to s{steps[band.last]}"


def short_bytes(count: int) -> str:
    """Bytes for the axis of a drawing, at most one digit after the point.

    Example:
        >>> short_bytes(0), short_bytes(1536), short_bytes(3 * 2**30)
        ('0 B', '1.5 KiB', '3 GiB')
    """
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if amount < 1024 or unit == "PiB":
            return f"{amount:.1f}".removesuffix(".0") + f" {unit}"
        amount /= 1024
    return f"{count} B"
