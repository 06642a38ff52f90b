"""Objectives ``memory`` and ``peak``: the exact search, its plan, and the arena of the plan."""

from __future__ import annotations

from dataclasses import replace

from ..config import Options
from ..ir.plan import ArrayPlan, FusionPlan, Place, Solve
from ..ir.tensor import Role, element_bytes
from .exact import solve_exact, solve_static
from .graph import FusionGraph
from .memory import counted_lives, once_elements, peak_of
from .nest import Placed, arrangement_of, in_order, place_arrangement
from .offsets import Interval, pack
from .plan import build_plan, shared_axes
from .sharing import sharing

_WORK = 12.0  # deterministic seconds at effort 1


def least_memory(
    graph: FusionGraph,
    start: tuple[Placed, ...],
    extents: tuple[tuple[str, int], ...],
    options: Options,
    *,
    static_is_least: bool = False,
) -> FusionPlan:
    """The plan of least memory by the options' objective, with a proven bound.

    Args:
        graph: fusion graph of the program.
        start: a legal placement, the hint, and the answer where the search finds nothing better.
        extents: planning extents.
        options: ``objective``, ``dtype`` and ``effort`` are read.
        static_is_least: no placement has a smaller static sum than ``start``.

    Raises:
        PlanError: the solver refuses the model.
    """
    found, dtype, peak = sharing(graph), options.dtype, options.objective == "peak"
    weights = {
        n: element_bytes(i.array, dtype) if peak else 1 for n, i in enumerate(found.instances)
    }
    work, sizes = _WORK * options.effort, dict(extents)
    candidates, hint = [start], arrangement_of(start)
    # The least static sum is soon found without an order of the statements. If there is an order,
    # it is the answer for ``memory``, and for ``peak`` a good start.
    proven, bound, arrangement = True, 0, None if peak else hint
    if not static_is_least:
        loops, proven, bound = solve_static(found, sizes, work / 2, hint)
        arrangement = in_order(found, loops)
        if arrangement is not None:
            candidates.insert(0, place_arrangement(found, arrangement))
            hint = arrangement
    if peak or arrangement is None:
        best = solve_exact(found, weights, sizes, work / 2, hint, peak=peak)
        proven, bound = best.proven, best.bound
        if best.arrangement is not None:
            candidates.insert(0, place_arrangement(found, best.arrangement))
    plans: list[tuple[int, int, FusionPlan]] = []
    for placed in candidates:
        axes = shared_axes(found, placed)
        plan = build_plan(graph, placed, axes, extents, dtype, Solve())
        plans.append((least_value(plan, dtype, peak=peak), len(plans), plan))
    value, _, plan = min(plans, key=lambda p: p[:2])
    bound = value if proven else min(bound, value)
    solve = Solve(
        options.objective,
        "dag" if graph.restricted else "tree",
        "OPTIMAL" if value == bound else "FEASIBLE",
        value,
        bound,
        "bytes" if peak else "elements",
    )
    return replace(packed(plan) if peak else plan, solve=solve)


def least_value(plan: FusionPlan, dtype: str, *, peak: bool) -> int:
    """The objective of a plan, in exact integers."""
    elements = once_elements(plan)
    if peak:
        return peak_of(plan, {a: n * element_bytes(a.tensor, dtype) for a, n in elements.items()})
    return sum(n for a, n in elements.items() if a.tensor.role is not Role.OUTPUT)


def packed(plan: FusionPlan) -> FusionPlan:
    """The plan with an offset for every array of the arena."""
    lives = [(a, life) for a, life in counted_lives(plan) if a.place is Place.ARENA]
    layout = pack(tuple(Interval(a.bytes, *life) for a, life in lives))
    offsets: dict[ArrayPlan, int] = {
        a: offset for (a, _), offset in zip(lives, layout.offsets, strict=True)
    }
    arrays = tuple(replace(a, offset=offsets.get(a)) for a in plan.arrays)
    return replace(plan, arrays=arrays, arena=layout.total)
