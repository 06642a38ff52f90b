"""The fusion graph of a plan as text: its edges, what excludes a fusion, and what is saved.

An edge is an array between the steps that write it and those that read it; an index may be fused
where each of them walks that axis whole, by one index. Chosen loops exclude a fusion if its loop
would overlap with one of them, neither being inside the other (Allam et al., Theorem 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..ir.cost import saving
from ..ir.plan import ArrayPlan, FusionPlan, LoopId
from ..ir.tensor import Index, Role
from ..runtime.report import fusion_text, nest_form_text
from .counts import array_product, product_value, whole_product
from .fusion_graph import MOST_ROWS
from .nest import visits_in_loops
from .numbers import letters_of

Walk = tuple[int, Index]  # (position of a visit, index of its step)


@dataclass(frozen=True, slots=True)
class _Edge:
    """An array, the positions of its producers and consumers, and the walks of each axis."""

    array: ArrayPlan
    makers: list[int]
    readers: list[int]
    axes: dict[int, list[Walk]]


def fusion_lines(plan: FusionPlan, report: Mapping[str, Any]) -> list[str]:
    """Edges, legality, linearised and exact size at the report's extents.

    Of a program of more than ``MOST_ROWS`` steps only the arrays that shrink are listed.
    """
    extents: Mapping[str, int] = report["extents"]
    edges = [edge for array in plan.arrays if (edge := _edge(plan, array)).axes]
    shown = [e for e in edges if e.array.contracted or len(plan.visits) <= MOST_ROWS]
    inside = {loop: set(visits) for loop, visits in visits_in_loops(plan).items()}
    letters = letters_of(plan.program)
    rows = [_row(plan, e, letters[e.array.tensor], inside, extents) for e in shown]
    widths = [max((len(row[n]) for row in rows), default=0) for n in range(3)]
    lines = [f"objective {fusion_text(report)}"]
    lines += [f"nest of {nest_form_text(n)}" for n in report["fusion"].get("nests", [])]
    for *columns, indices in rows:
        padded = [f"{text:<{w}}" for text, w in zip(columns, widths, strict=True)]
        lines.append("  ".join((*padded, indices)))
    if len(shown) < len(edges):
        lines.append(f"{len(edges) - len(shown)} more arrays, which stay whole")
    if not plan.loops:
        legal = "no two steps share a loop"
    elif plan.solve.model == "tree":
        legal = "by Theorem 1: every two loops are nested or apart"
    else:
        legal = "by the rules of graphs: one loop at all uses of an axis, nested or apart, in order"
    saved = sum(_saved(e, axis, extents) for e in edges for axis, _ in e.array.contracted)
    most = sum(saving(e.array.tensor, axis, extents) for e in edges for axis in e.axes)
    memory = report["memory"]
    return [
        *lines,
        f"legality    {legal}",
        f"linearised  {saved:,} elements saved by Eq. (10), of {most:,} over all edges",
        f"exact       {memory['intermediates_static_bytes']:,} bytes, "
        f"of {memory['intermediates_unfused_bytes']:,} unfused",
    ]


def _edge(plan: FusionPlan, array: ArrayPlan) -> _Edge:
    """The edge of an array; axes only where a loop could contract them."""
    steps, makers = plan.program.steps, plan.makers(array)
    refs = [(n, steps[plan.visits[n].step].out) for n in makers]
    readers = []
    for n in range(array.live[0], array.live[1] + 1):
        reads = [r for r in steps[plan.visits[n].step].operands if r.tensor == array.tensor]
        refs += [(n, r) for r in reads]
        readers += [n] * bool(reads)
    phases = {steps[plan.visits[n].step].phase for n, _ in refs}
    axes: dict[int, list[Walk]] = {}
    # A generated input is fetched in the phase of its reader.
    together = len(phases) == 1 or array.tensor.role is Role.GENERATED
    if array.tensor.role is not Role.OUTPUT and readers and together:
        for axis, space in enumerate(array.tensor.spaces):
            walks = list(dict.fromkeys((n, r.indices[axis]) for n, r in refs))
            once = len({n for n, _ in walks}) == len(walks)
            if array.loop_of(axis) or (once and all(i.space == space for _, i in walks)):
                axes[axis] = walks
    return _Edge(array, makers, readers, axes)


def _row(
    plan: FusionPlan,
    edge: _Edge,
    letters: tuple[str, ...],
    inside: Mapping[LoopId, set[int]],
    extents: Mapping[str, int],
) -> tuple[str, str, str, str]:
    """Array, steps, size, and its indices: contracted, not, and excluded."""
    tensor, fused, free, excluded = edge.array.tensor, list[str](), list[str](), list[str]()
    for axis, walks in edge.axes.items():
        loop = edge.array.loop_of(axis)
        if loop is not None:
            tile = f" by {loop.tile}" if loop.tile else ""
            fused.append(f"{letters[axis]}{tile} ({_saved(edge, axis, extents):,})")
        elif by := excluding(plan, walks, inside):
            more = f" and {len(by) - 2} more" if len(by) > 2 else ""
            named = ", ".join(map(str, by[:2]))
            excluded.append(f"{letters[axis]} is excluded by {named}{more}")
        else:
            free.append(letters[axis])
    steps = (
        ", ".join(dict.fromkeys(f"s{plan.visits[n].step}" for n in positions))
        for positions in (edge.makers, edge.readers)
    )
    whole, held = (
        product_value(p, extents) for p in (whole_product(tensor), array_product(edge.array))
    )
    texts = [f"contracted {', '.join(fused)}"] if fused else []
    texts += [f"not contracted {', '.join(free)}"] if free else []
    texts += excluded
    return (
        f"{tensor.name}[{','.join(letters)}]",
        " -> ".join(steps),
        f"{whole:,} -> {held:,}" if held < whole else f"{whole:,}",
        "; ".join(texts),
    )


def _saved(edge: _Edge, axis: int, extents: Mapping[str, int]) -> int:
    loop = edge.array.loop_of(axis)
    return saving(edge.array.tensor, axis, extents, (loop and loop.tile) or 1)


def excluding(
    plan: FusionPlan, walks: list[Walk], inside: Mapping[LoopId, set[int]]
) -> list[LoopId]:
    """Chosen loops that exclude one loop over these walks: it would overlap with them."""
    bound = {loop for n, i in walks if (loop := plan.visits[n].loop_of(i))}
    chain = {n for n, _ in walks}.union(*(inside[loop] for loop in bound))
    by = []
    for loop, visits in inside.items():
        if loop in bound:
            others = (inside[o] for o in bound if o != loop)
            twice = any(n in visits and plan.visits[n].loop_of(i) != loop for n, i in walks)
            if twice or any(visits & other for other in others):
                by.append(loop)
        elif visits & chain and not visits <= chain and not chain <= visits:
            by.append(loop)
    return by
