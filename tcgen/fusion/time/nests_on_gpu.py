"""Nests of a plan for a GPU: which are kernels, and the tiles of those that the host walks.

The objectives other than ``time`` share loops over single elements. On a GPU such a nest is a good
kernel where a single thread computes a point of it:

    for i, j: (t = f[i,j]; y[i,j] = t*t)            a thread for each i, j; t in a register

A matrix product needs whole tiles, and so does an array of which a nest holds a row. The loops of
such a nest run on the host, over tiles, and each of its statements is a launch:

    for a, b: (W = sum(P) B[P,a] B[P,b]; ...)       for tiles A, B: (launch W; launch ...)

Where tiles of all its arrays fit a thread block, such a nest may be one kernel too
(:mod:`.block_nests`); the one that is predicted to be faster is taken, and a note says which.

Tiles take time and memory: ``memory`` and ``peak`` hold the least with tiles that cost little time,
the other objectives take the least time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import groupby, takewhile
from math import prod

from ...ir.expr import Call
from ...ir.plan import FusionPlan, LoopId, NestForm
from ...ir.program import Contract, Map, Produce, Step
from ...options import Options
from ...thresholds.time_model import PICOSECONDS_PER_SECOND
from ..kernels.objective import traffic
from ..placement.memory import output_bytes, packed, plan_peak, saved_elements, static_elements
from ..placement.plan import regrouped
from ..solver.time_cost import nothing_saved, visit_picoseconds
from ..solver.time_model import Request
from .block_nests import BlockNest, block_nest
from .refine_tiles import fastest, smallest, with_tiles

_UNLIMITED = 2**63 - 1


def nests_on_gpu(plan: FusionPlan, options: Options) -> FusionPlan:
    """The plan whose nests are kernels of single threads, or loops of the host over tiles.

    The plan shares loops over single elements. Of the options, ``objective``, ``memory_limit``,
    ``dtype``, ``machine`` and ``thresholds`` are read.
    """
    thresholds = options.thresholds.gpu
    kept = frozenset(
        loop
        for nest in _nests(plan)
        if _is_for_threads(plan, nest, thresholds.few_elements, thresholds.long_sum)
        for position in nest
        for loop in plan.visits[position].loops
    )
    moved = [loop for loop in plan.loops if loop not in kept]
    if not moved:
        return plan
    limit = _UNLIMITED
    if options.memory_limit is not None:
        limit = options.memory_limit - output_bytes(plan.program, plan.extent_of, options.dtype)
    fusion = options.thresholds.planner.fusion
    request = _request(options, plan, limit)
    fetched = fusion.generated_tile_bytes
    if options.objective in ("memory", "peak"):
        tiles = smallest(plan, request, kept, fetched, peak=options.objective == "peak")
    else:
        tiles = fastest(plan, request, kept, fetched)
    tiled = with_tiles(plan, tiles, options.dtype)
    forms = []
    for nest in _nests(plan):
        around = {loop for n in nest for loop in plan.visits[n].loops}
        if around & kept:
            continue
        whole = _picoseconds(tiled, nest, request)
        found = block_nest(plan, nest, request, thresholds)
        # A nest in one kernel takes less memory as well.
        little = (
            Fraction(0)
            if options.objective in ("none", "linear", "kernels")
            else (fusion.time.worthwhile)
        )
        chosen = found is not None and found.picoseconds <= (1 + little) * whole
        if found is not None and chosen:
            tiles |= found.tiles
            kept |= around
        forms.append(_form(nest, found, whole, kernel=chosen))
    plan = replace(plan, solve=replace(plan.solve, nests=tuple(forms)))
    tiled = with_tiles(plan, tiles, options.dtype)
    return _valued(regrouped(tiled, _kept_with(tiled, plan, kept)), plan, options, request)


def _request(options: Options, plan: FusionPlan, limit: int) -> Request:
    fusion, constants = options.thresholds.planner.fusion, options.constants
    calls = options.calls
    return Request(plan.extent_of, limit, constants, options.dtype, fusion, nothing_saved, calls)


def nests_in_kernels(best: FusionPlan, linear: FusionPlan, options: Options) -> FusionPlan:
    """The best plan of the objective ``time``, or nests of another one if these are faster.

    ``linear`` shares the loops that the objective ``linear`` does. Without a memory limit, nests
    save more than the error of the prediction.
    """
    limit = options.memory_limit
    if not linear.loops or best.solve.unit != "seconds":
        return best
    time = _seconds(best, _request(options, best, _UNLIMITED))
    found = nests_on_gpu(replace(linear, solve=best.solve), options)
    fits = (
        limit is None
        or plan_peak(found) + output_bytes(found.program, found.extent_of, options.dtype) <= limit
    )
    gain = options.thresholds.planner.fusion.time.worthwhile if limit is None else 0
    faster = found.solve.value is not None and found.solve.value < (1 - gain) * time
    in_kernels = any(nest.kernel for nest in found.solve.nests)
    if not (fits and faster and in_kernels):
        return best
    return packed(found, options.thresholds.planner.fusion.offset_seconds)


def _seconds(plan: FusionPlan, request: Request) -> Fraction:
    """Predicted time of a plan whose nests have forms: ``solve.nests`` are in order."""
    inside = {n for nest in plan.solve.nests for n in nest.visits}
    others = tuple(n for n in range(len(plan.visits)) if n not in inside)
    rest = Fraction(_picoseconds(plan, others, request), PICOSECONDS_PER_SECOND)
    return rest + sum(nest.seconds for nest in plan.solve.nests)


def _picoseconds(plan: FusionPlan, nest: tuple[int, ...], request: Request) -> int:
    """Predicted time of some visits, each a launch in loops of the host."""
    machine, dtype, calls = request.machine, request.dtype, request.bound_calls
    launched = (n for n in nest if not _is_launched_with_another(plan, n, nest))
    return sum(visit_picoseconds(plan, n, machine, dtype, nothing_saved, calls) for n in launched)


def _form(nest: tuple[int, ...], found: BlockNest | None, host: int, *, kernel: bool) -> NestForm:
    """The form of a nest, with its predicted times."""
    inside = None if found is None else Fraction(found.picoseconds, PICOSECONDS_PER_SECOND)
    outside = Fraction(host, PICOSECONDS_PER_SECOND)
    if kernel and inside is not None:
        return NestForm(nest, True, inside, outside)
    return NestForm(nest, False, outside, inside)


def _kept_with(tiled: FusionPlan, plan: FusionPlan, kept: frozenset[LoopId]) -> frozenset[LoopId]:
    """Loops of the tiled plan that are not those of the host."""
    inside = {
        position
        for position, visit in enumerate(plan.visits)
        if any(loop in kept for loop in visit.loops)
    }
    return frozenset(loop for n in inside for loop in tiled.visits[n].loops)


def _valued(
    plan: FusionPlan, untiled: FusionPlan, options: Options, request: Request
) -> FusionPlan:
    """The plan with offsets where it promises a peak, and with its value."""
    solve = plan.solve
    match options.objective:
        case "peak":
            plan = packed(plan, options.thresholds.planner.fusion.offset_seconds)
            value = plan_peak(plan)
        case "memory":
            value = static_elements(plan)
        case "none":
            return replace(plan, solve=replace(solve, value=static_elements(plan)))
        case "time":
            return replace(
                plan, solve=replace(solve, status="FEASIBLE", value=_seconds(plan, request))
            )
        case "linear":
            value = saved_elements(untiled, plan)
        case _:
            value = traffic(plan, options.dtype)
    bound = solve.bound
    if bound is not None and options.objective != "linear":
        bound = min(value, int(bound))
    status = "OPTIMAL" if value == bound else "FEASIBLE"
    return replace(plan, solve=replace(solve, value=value, bound=bound, status=status))


def _nests(plan: FusionPlan) -> Iterator[tuple[int, ...]]:
    """Positions of the visits of each outermost loop."""
    looped = [n for n, visit in enumerate(plan.visits) if visit.loops]
    for _, members in groupby(looped, key=lambda n: plan.visits[n].loops[0]):
        yield tuple(members)


def _is_for_threads(plan: FusionPlan, nest: tuple[int, ...], many: int, short: int) -> bool:
    """Whether single threads compute the points of a nest, and are enough or soon finished.

    From ``many`` threads on, a GPU is busy; fewer may add up at most ``short`` points each.
    """
    steps = {n: plan.program.steps[plan.visits[n].step] for n in nest}
    loops = {loop for n in nest for loop in plan.visits[n].loops}
    own = [a for a in plan.arrays if a.home in loops]
    if (
        any(isinstance(s.op, Produce) or _is_product(s) for s in steps.values())
        or any(len(a.contracted) < a.tensor.rank for a in own)
        or any(loop.tile is not None or loop.order_after is not None for loop in loops)
    ):
        return False
    private = {n for a in own for n in plan.makers(a)}
    written = {steps[n].out.tensor for n in nest if n not in private}
    around = _common(plan, nest)
    accesses = [
        {loop: axis for axis, i in enumerate(ref.indices) if (loop := plan.visits[n].loop_of(i))}
        for n in nest
        for ref in (steps[n].out, *steps[n].operands)
        if ref.tensor in written
    ]
    # A point has its own elements of all arrays that it writes.
    apart = [
        o
        for o in around
        if all(o in axes for axes in accesses) and len({axes[o] for axes in accesses}) == 1
    ]
    around = tuple(takewhile(lambda o: o in apart, around))
    serial = 1
    for n in nest:
        inner = [i for i in steps[n].indices if plan.visits[n].loop_of(i) not in around]
        if n not in private and any(i in steps[n].out.indices for i in inner):
            # The thread would write a row.
            return False
        serial = max(serial, prod(i.space.extent_in(plan.extent_of) for i in inner))
    points = prod(loop.space.extent_in(plan.extent_of) for loop in around)
    return bool(around) and (points >= many or serial <= short)


def _is_launched_with_another(plan: FusionPlan, position: int, nest: tuple[int, ...]) -> bool:
    """Whether another launch computes a statement as well, so that it takes no time.

    That is a complex conjugate, which its readers take, or a statement that uses only the elements
    of a product before it: they are in registers.
    """
    step = plan.program.steps[plan.visits[position].step]
    if _is_product(step):
        return False
    if (
        isinstance(step.op, Map)
        and isinstance(call := step.op.expr, Call)
        and call.function == "conj"
    ):
        return True
    others = (plan.program.steps[plan.visits[n].step] for n in nest if n < position)
    products = {other.out.tensor for other in others if _is_product(other)}
    read = {ref for ref in step.operands if ref.tensor in products}
    return len(read) == 1 and all(set(ref.indices) == set(step.indices) for ref in read)


def _common(plan: FusionPlan, nest: tuple[int, ...]) -> tuple[LoopId, ...]:
    """Outermost loops of all visits of a nest."""
    columns = zip(*(plan.visits[n].loops for n in nest), strict=False)
    return tuple(column[0] for column in takewhile(lambda c: len(set(c)) == 1, columns))


def _is_product(step: Step) -> bool:
    """Whether a step is a matrix product, with rows, columns and a sum."""
    if not isinstance(step.op, Contract):
        return False
    a, b = set(step.op.a.indices), set(step.op.b.indices)
    return bool(a - b and b - a and a & b & set(step.sums))
