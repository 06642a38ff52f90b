"""The fusion graph as the paper draws it: arrays, their loops, potential and chosen fusion edges.

A row of circles is one execution of a step and is named after the array that it makes; each circle
is a loop of the step. Dotted lines join loops that producer and consumer could share, solid ones
those that they do share; circles joined by solid lines are one loop of the program, in one colour.

Source: Allam et al., section 2.1 and Figure 2; rows are steps, so that an array with several
producers has several rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape

from ..ir.plan import FusionPlan, LoopId
from ..ir.pretty.equations import pretty_step
from ..ir.tensor import Index
from .nest import loop_letters, shared_visits
from .svg import drawing, element, label

MOST_ROWS = 25
COLOURS = 8  # classes c0 .. c7 of figures.css
_RADIUS, _STEP, _GAP, _ROW = 12.0, 32.0, 34.0, 96.0


@dataclass(frozen=True, slots=True)
class Circle:
    """A loop of a step: its letter, and the shared loop it is bound to, or None."""

    index: Index
    loop: LoopId | None


@dataclass(frozen=True, slots=True)
class Row:
    """One execution of a step: position in the plan, the array made, its loops, the step."""

    position: int
    name: str
    circles: tuple[Circle, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A potential fusion edge: (row, index) made, (row, index) read, the shared loop if chosen."""

    made: tuple[int, Index]
    read: tuple[int, Index]
    loop: LoopId | None


@dataclass(frozen=True, slots=True)
class Graph:
    """Rows by position; ``links`` are (producer, consumer); ``left_out`` counts rows not drawn."""

    rows: tuple[Row, ...]
    links: tuple[tuple[int, int], ...]
    lines: tuple[Line, ...]
    left_out: int


def figure_graph(plan: FusionPlan) -> Graph:
    """The fusion graph of a plan; of a large one only the steps that share a loop with another."""
    positions = list(range(len(plan.visits)))
    if len(positions) > MOST_ROWS:
        positions = list(shared_visits(plan))
    kept = set(positions)
    rows = tuple(_row(plan, p) for p in positions)
    links: list[tuple[int, int]] = []
    lines: list[Line] = []
    for reader in positions:
        step = plan.program.steps[plan.visits[reader].step]
        for ref in dict.fromkeys(step.operands):
            array = plan.instance(ref.tensor, reader)
            if array is None:
                continue
            for maker in range(array.live[0], reader):
                made = plan.program.steps[plan.visits[maker].step].out
                if made.tensor != ref.tensor or maker not in kept:
                    continue
                links.append((maker, reader))
                for a, b in zip(made.indices, ref.indices, strict=True):
                    if a.space == b.space:
                        loop = plan.visits[maker].loop_of(a)
                        chosen = loop if loop == plan.visits[reader].loop_of(b) else None
                        lines.append(Line((maker, a), (reader, b), chosen))
    return Graph(
        rows,
        tuple(dict.fromkeys(links)),
        tuple(dict.fromkeys(lines)),
        len(plan.visits) - len(positions),
    )


def graph_note(graph: Graph) -> str:
    """A note on steps that are not drawn, or an empty text."""
    if not graph.left_out:
        return ""
    if not graph.rows:
        return (
            f"No two steps share a loop in this plan, and {graph.left_out} steps are too many "
            f"to draw the fusion candidates."
        )
    return (
        f"Only the {len(graph.rows)} steps that share a loop with another step are drawn; "
        f"{graph.left_out} steps share none."
    )


def graph_svg(plan: FusionPlan) -> str | None:
    """The drawing, or None if it would be empty."""
    graph = figure_graph(plan)
    if not graph.rows:
        return None
    letters = loop_letters(plan)
    places = _places(graph)
    spots = {
        (row.position, circle.index): (_first(row, places[row.position][0]) + n * _STEP, y)
        for row in graph.rows
        for y in (places[row.position][1],)
        for n, circle in enumerate(row.circles)
    }
    width = max(x + _half(row) for row in graph.rows for x, _ in [places[row.position]]) + 8
    height = max(y for _, y in places.values()) + 40
    parts = [_line(line, spots) for line in sorted(graph.lines, key=lambda n: n.loop is not None)]
    parts += [_row_svg(row, places[row.position], spots, letters) for row in graph.rows]
    used = dict.fromkeys(c.loop for row in graph.rows for c in row.circles if c.loop)
    x = 14.0
    for loop in used:
        name = f"{letters[loop]} in {loop.space.name}" + (f" by {loop.tile}" if loop.tile else "")
        parts.append(element("circle", cx=x, cy=height, r=6, class_=f"loop {_colour(loop)}"))
        parts.append(label(name, x + 11, height + 4, "key"))
        x += 40 + 7 * len(name)
    title = f"Fusion graph of {plan.program.name}: {len(graph.rows)} steps, {len(used)} fused loops"
    return drawing(max(width, x), height + 20, title, *parts, class_="graph")


def _row(plan: FusionPlan, position: int) -> Row:
    visit = plan.visits[position]
    step = plan.program.steps[visit.step]
    circles = [Circle(i, visit.loop_of(i)) for i in step.indices]
    circles += [Circle(Index(o.space.name, o.space), o) for o in visit.redundant]
    return Row(position, step.out.tensor.name, tuple(circles), pretty_step(step))


def _name_width(row: Row) -> float:
    return 8.2 * len(row.name) + 10


def _half(row: Row) -> float:
    """Half the width of a row with its name, which is left of the circles."""
    return (len(row.circles) * _STEP + _name_width(row)) / 2


def _first(row: Row, centre: float) -> float:
    """Centre of the first circle of a row."""
    return centre - _half(row) + _name_width(row) + _STEP / 2


def _places(graph: Graph) -> dict[int, tuple[float, float]]:
    """Centres of the rows, names included: consumers above their producers.

    The first consumer of a row is its parent; subtrees take disjoint intervals.
    """
    by_position: Mapping[int, Row] = {r.position: r for r in graph.rows}
    parent: dict[int, int] = {}
    depth = {r.position: 0 for r in graph.rows}
    for maker, reader in sorted(graph.links, key=lambda k: (-k[1], k[0])):
        parent[maker] = reader  # the last one set is the earliest reader
        depth[maker] = max(depth[maker], depth[reader] + 1)
    children: dict[int, list[int]] = {}
    for row in graph.rows:
        if row.position in parent:
            children.setdefault(parent[row.position], []).append(row.position)
    centre: dict[int, float] = {}

    def lay(position: int, left: float) -> float:
        """Place a row and what is below it from ``left``; returns where the next may start."""
        half = _half(by_position[position])
        right = left
        for child in children.get(position, ()):
            right = lay(child, right)
        below = [centre[c] for c in children.get(position, ())]
        centre[position] = max((below[0] + below[-1]) / 2 if below else 0.0, left + half)
        return max(right, centre[position] + half + _GAP)

    left = 14.0
    for row in graph.rows:
        if row.position not in parent:
            left = lay(row.position, left)
    return {p: (centre[p], 26 + _ROW * depth[p]) for p in centre}


def _colour(loop: LoopId) -> str:
    return f"c{loop.id % COLOURS}"


def _line(line: Line, spots: Mapping[tuple[int, Index], tuple[float, float]]) -> str:
    (x1, y1), (x2, y2) = spots[line.made], spots[line.read]
    y1, y2 = y1 - _RADIUS, y2 + _RADIUS
    middle = (y1 + y2) / 2
    path = f"M{x1:.1f} {y1:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"
    kind = "potential" if line.loop is None else f"chosen {_colour(line.loop)}"
    return element("path", d=path, class_=kind)


def _row_svg(
    row: Row,
    place: tuple[float, float],
    spots: Mapping[tuple[int, Index], tuple[float, float]],
    letters: Mapping[LoopId, str],
) -> str:
    x, y = place
    left = _first(row, x) - _STEP / 2
    parts = [element("title", escape(row.text))]
    if row.circles:
        wide = len(row.circles) * _STEP
        parts.append(element("rect", x=left, y=y - 17, width=wide, height=34, rx=17, class_="row"))
    for circle in row.circles:
        cx, cy = spots[row.position, circle.index]
        kind = "local" if circle.loop is None else f"loop {_colour(circle.loop)}"
        name = circle.index.name if circle.loop is None else letters[circle.loop]
        parts.append(element("circle", cx=cx, cy=cy, r=_RADIUS, class_=kind))
        parts.append(label(name, cx, cy + 4, "letter" if circle.loop is None else "letter on"))
    parts.append(label(row.name, left - 6, y + 5, "name"))
    return element("g", *parts)
