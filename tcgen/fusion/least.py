"""Objectives ``memory`` and ``peak``: the exact search, its plan, and the arena of the plan."""

from __future__ import annotations

from dataclasses import replace

from ..config import Options
from ..ir.plan import ArrayPlan, FusionPlan, Place, Solve
from ..ir.tensor import Role, element_bytes
from .coarse import rules
from .descent import Descent
from .exact import solve_exact, solve_static
from .graph import FusionGraph
from .grow import least_by_parts
from .memory import counted_lives, once_elements, peak_of
from .nest import Placed, arrangement_of, place_arrangement
from .offsets import Interval, pack
from .plan import build_plan, shared_axes
from .sharing import sharing
from .tree_peak import least_tree_peak

_WORK = 12.0  # deterministic seconds at effort 1
_DIRECT = 10_000  # rules: up to so many all arrays are searched over at once
_LARGEST_STATIC = 1_000_000  # rules: the same for a search without an order of the statements
_LARGEST = 50_000  # rules: beyond, a search over all arrays comes to no end in reasonable time


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

    def plan_of(placed: tuple[Placed, ...], *, once: bool = False) -> FusionPlan:
        axes = shared_axes(found, placed)
        return build_plan(graph, placed, axes, extents, dtype, Solve(), by_launch=once)

    def value_of(placed: tuple[Placed, ...]) -> int:
        """As if every generated input were produced once, where the placement has it."""
        return least_value(plan_of(placed, once=peak), dtype, peak=peak)

    proven, bound, arrangement = True, 0, None if peak else hint
    large, done = peak and rules(found) > _DIRECT, False
    if peak and not graph.restricted:
        tree = least_tree_peak(found, weights, sizes, hint, options.effort)
        if tree is not None:
            proven, bound = tree.proven, tree.bound
            if tree.arrangement is not None:
                candidates.insert(0, place_arrangement(found, tree.arrangement))
                hint, done = tree.arrangement, tree.proven or large
    if large and not done:
        parts = least_by_parts(found, weights, sizes, (hint,), work / 2)
        proven, bound = False, max(bound, parts.bound)
        done = parts.proven or rules(found) > _LARGEST
        if parts.arrangement is not None:
            candidates.insert(0, place_arrangement(found, parts.arrangement))
            hint = parts.arrangement
    elif not peak and rules(found) > _LARGEST_STATIC:
        # The solver comes to no end here. All arrays together take no less than those of one time.
        parts = least_by_parts(found, weights, sizes, (hint,), work / 2)
        proven, bound, done = False, parts.bound, True
        if parts.arrangement is not None:
            candidates.insert(0, place_arrangement(found, parts.arrangement))
            descent = Descent(found, weights, sizes)
            small = descent.of(parts.arrangement)
            if small is not None:
                candidates.insert(0, place_arrangement(found, descent.shrink(small).arrangement))
    elif not done and not static_is_least:
        # The least static sum is soon found without an order of the statements. If there is an
        # order, it is the answer for ``memory``, and for ``peak`` a good start.
        static = solve_static(found, sizes, work / 2, hint)
        proven, bound = static.proven, bound if peak else static.bound
        arrangement = static.arrangement
        if arrangement is not None:
            candidates.insert(0, place_arrangement(found, arrangement))
            hint = arrangement
    if not done and (peak or arrangement is None):
        exact = solve_exact(found, weights, sizes, work / 2, hint, peak=peak, at_least=bound)
        proven, bound = exact.proven, max(bound, exact.bound)
        if exact.arrangement is not None:
            candidates.insert(0, place_arrangement(found, exact.arrangement))
    values = [value_of(placed) for placed in candidates]
    value = min(values)
    plan = plan_of(candidates[values.index(value)])
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
