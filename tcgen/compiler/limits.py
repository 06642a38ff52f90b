"""Limits of a program: the bytes that a call may allocate, and the launches of a GPU's kernels.

A plan has the bytes of its arrays. Copies and packed blocks of contractions appear only in the
lowered module, and their places in the arena only in the manifest. With a memory limit this module
therefore plans and lowers again: it first tries smaller tiles, which leave room for operand copies,
then modules with fewer copies, and judges each by the bytes that a call would allocate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ..artifact.manifest import Manifest, constant_launches, launches
from ..emit import make_manifest
from ..errors import MemoryLimitError, PlanError
from ..fusion import plan_fusion
from ..fusion.placement.memory import (
    largest_together,
    output_bytes,
    packed,
    plan_peak,
)
from ..ir.loops import HostLoop, Module
from ..ir.plan import ArrayPlan, FusionPlan
from ..ir.program import FormulaSequence
from ..lower import arena_bytes, lower_plan
from ..options import Options
from ..records.loops import host_items
from ..runtime.memory import MemoryUse, memory_use
from ..thresholds.time_model import PICOSECONDS_PER_SECOND

_TRIES = 8  # smaller limits for the tiles
_COPIES = 4  # modules with fewer copies each
# Largest part of the predicted time that smaller tiles may cost: the error of the prediction. With
# tiles that take longer, a larger limit would need more time than a smaller one.
_SLOWER = Fraction(3, 100)
_STEP = 4  # ratio of the memory of one point of the trade-off to the limit of the next
_LIMITS = 6  # most limits below the unlimited peak, apart from the least peak
# A launch takes the host about 10 microseconds.
MOST_LAUNCHES = 100_000


def plan_within(program: FormulaSequence, options: Options) -> FusionPlan:
    """The plan of the options' objective; another one where a call of that needs too many bytes.

    Searches count dense arrays, but lowering packs some, most of them where no loop is shared. The
    plan without a limit and the unfused plan are therefore compared by the bytes of a call.
    """
    plan, limit = _with_room(program, options), options.memory_limit
    if options.objective == "none" or (limit is None and options.objective != "peak"):
        return plan
    needed = planned_use(lower_within(plan, options), options).peak
    if limit is not None and needed <= limit and options.objective != "peak":
        return plan
    for other in _without_limit(plan, options):
        use = planned_use(lower_within(other, options), options).peak
        if use < needed:
            plan, needed = other, use
        if limit is not None and needed <= limit:
            break
    return plan


def _without_limit(plan: FusionPlan, options: Options) -> Iterator[FusionPlan]:
    """The plan of objective ``time`` for no limit, and the unfused plan if no input is on disk."""
    if options.objective == "time":
        yield plan_fusion(plan.program, replace(options, memory_limit=None))
    if options.sliced:
        return
    wish = replace(options, objective="none", memory_limit=None, machine=None, pareto=False)
    unfused = plan_fusion(plan.program, wish)
    if options.objective == "peak":
        value = plan_peak(unfused)
        solve = replace(plan.solve, status="FEASIBLE", value=value)
        seconds = options.thresholds.planner.fusion.offset_seconds
        unfused = replace(packed(unfused, seconds), solve=solve)
    yield unfused


def _with_room(program: FormulaSequence, options: Options) -> FusionPlan:
    """The plan of the options' objective; with a memory limit, one that leaves room for copies.

    Objective ``time`` chooses tiles for a limit; they shrink until a call with all copies keeps it.
    If no tiles help, or only tiles that take longer, the first plan is returned: lowering then
    makes fewer copies.
    """
    plan, limit = plan_fusion(program, options), options.memory_limit
    if options.objective != "time" or limit is None:
        return plan
    from ..fusion.time.objective import planned_bytes, smaller_tiles  # noqa: PLC0415

    # If no tiles fit, this plan is the smallest.
    if planned_bytes(plan, options.dtype) > limit:
        return plan
    room, tried = limit, plan
    for _ in range(_TRIES):
        needed = planned_use(lower_plan(tried, options, thrifty=False), options).peak
        if needed <= limit:
            return tried
        room = min(room * limit // needed, room * 7 // 8)
        wish = replace(options, memory_limit=room)
        smaller = smaller_tiles(tried, wish) if tried.loops else plan_fusion(program, wish)
        if smaller is None or (smaller.solve.value or 0) > (1 + _SLOWER) * (plan.solve.value or 0):
            break
        tried = smaller
    return plan


def lower_within(plan: FusionPlan, options: Options) -> Module:
    """The module with the most copies and packed blocks within the limit and the plan's bytes.

    First all of them (objective ``time``), then on a CPU the generated kernel with the copies that
    fit, then those that fit into the largest sum of live arrays, then none: copies that fit into
    that sum need not fit between the arrays of the arena.
    """
    limit = options.memory_limit
    if options.objective == "time" and limit is not None:
        arena = None
        for _ in range(_COPIES if options.target == "cpu" else 1):
            module = lower_plan(plan, options, thrifty=False, arena=arena)
            use = planned_use(module, options)
            if use.peak <= limit:
                return module
            # Packed blocks of the kernel and gaps between arrays take the rest, of which other
            # products need less.
            held = arena_bytes(module, options.extent_of)
            arena = max(limit - (use.peak - held), held // 2)
    module = lower_plan(plan, options)
    if limit is None and plan.solve.objective != "peak":
        return module
    use = planned_use(module, options)
    over_limit = limit is not None and use.peak > limit
    promised = max(plan.arena, plan.solve.value or 0)
    if over_limit or (plan.solve.objective == "peak" and use.arenas > promised):
        return lower_plan(plan, options, scratch=False)
    return module


def whole_sliced(plan: FusionPlan, options: Options) -> tuple[ArrayPlan, ...]:
    """The sliced inputs that a plan holds whole."""

    def is_whole(array: ArrayPlan) -> bool:
        extents = [s.extent_in(plan.extent_of) for s in array.tensor.spaces]
        return not array.contracted and max(extents, default=1) > 1

    sliced = (a for a in plan.arrays if a.tensor.source in options.sliced)
    return tuple(filter(is_whole, sliced))


def refuse_excess(plan: FusionPlan, peak: int, picoseconds: int, options: Options) -> None:
    """Raise a MemoryLimitError, with advice, if calls at planning extents pass the memory limit.

    ``plan`` is the one of least bytes, ``peak``, of all that were tried.
    """
    limit = options.memory_limit
    if limit is None or peak <= limit:
        return
    largest = [f"{a.tensor.name} {a.bytes:,}" for a in largest_together(plan)[:4]]
    seconds = picoseconds / PICOSECONDS_PER_SECOND
    raise MemoryLimitError(
        f"this plan needs {peak:,} bytes, the memory limit is {limit:,}: its largest arrays "
        f"at one time are {'; '.join(largest)} bytes. Raise the limit to {peak} or more, for a "
        f"predicted time of {seconds:.2g} s, because tcgen found no smaller plan"
        f"{_proof(plan.program, options, peak)}"
    )


def _proof(program: FormulaSequence, options: Options, peak: int) -> str:
    """What is proven about the least bytes of a sequence, for a message."""
    from ..fusion.time.objective import proven_bytes  # noqa: PLC0415

    least = proven_bytes(program, options)
    # The bound holds for the given steps only; the plan may have rewritten them.
    if least > peak:
        return ""
    if least == peak:
        return " (it is proven that shared loops and repeated steps need as much)"
    return f" (proven lower bound of shared loops and repeated steps: {least:,} bytes)"


def planned_use(module: Module, options: Options) -> MemoryUse:
    """Memory of a call at planning extents, on one thread."""
    manifest = make_manifest(
        module,
        target=options.target,
        planning_extents=options.extents,
        memory_limit=options.memory_limit,
    )
    return memory_use(manifest, options.extent_of, threads=1)


def pareto_points(plan: FusionPlan, options: Options) -> list[dict[str, Any]]:
    """Plans of least predicted time for a series of memory limits, the most memory first.

    Seconds are predicted; bytes are those of arrays, without copies for matrix products. The
    planning extents are those of ``plan``; ``options`` gives ``dtype``, ``machine`` and ``effort``.

    Returns:
        ``limit_bytes`` that gives the plan (None: no limit), ``peak_bytes``, ``seconds``, ``loops``
        (shared, with their tiles) and ``repeats`` (statements computed more than once), by point.
    """
    wish = replace(options, objective="time", extents=plan.extents, memory_limit=None)
    results = output_bytes(plan.program, plan.extent_of, options.dtype)
    points = [_point(plan_fusion(plan.program, wish), None, results)]
    limit = points[0]["peak_bytes"]
    for _ in range(_LIMITS):
        limit = results + (limit - results) // _STEP
        made = plan_fusion(plan.program, replace(wish, memory_limit=limit))
        point = _point(made, limit, results)
        if point["peak_bytes"] > limit:
            # Nothing fits: the smallest peak is the last limit.
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


def pareto_plan(plan: FusionPlan, options: Options) -> dict[str, Any] | None:
    """The point of a plan beside the curve; None if its time was not predicted."""
    if plan.solve.unit != "seconds":
        return None
    peak = plan_peak(plan) + output_bytes(plan.program, plan.extent_of, options.dtype)
    return {"peak_bytes": peak, "seconds": float(plan.solve.value or 0)}


def refuse_many_launches(manifest: Manifest, options: Options) -> None:
    """Raise a PlanError, with advice, if host loops of a GPU's program launch too many kernels."""
    if manifest.target != "cuda":
        return
    phases = (
        ("a call", launches, manifest.host_volatile),
        ("its constant phase", constant_launches, manifest.host_constant),
    )
    for phase, counted, host in phases:
        count = counted(manifest, options.extent_of)
        if count > MOST_LAUNCHES:
            loops = (item.var for item in host_items(host) if isinstance(item, HostLoop))
            shown = ", ".join(dict.fromkeys(f"{v.space.name} by {v.tile or 1}" for v in loops))
            raise PlanError(
                f"this plan launches {count:,} kernels in {phase}, more than {MOST_LAUNCHES:,}: "
                f"its loops on the host are over tiles of {shown}. {_launch_advice(options)}"
            )


def _launch_advice(options: Options) -> str:
    """Advice to get larger tiles, or no tiles."""
    if options.sliced:
        return "Pass one of the sliced inputs whole, or raise the memory limit"
    if options.memory_limit is not None:
        larger = f"Raise the memory limit of {options.memory_limit:,} bytes: tiles get larger"
        return larger if options.objective == "time" else f"{larger}; or use the objective time"
    if options.objective == "time":
        return "Use the objective none, which has no loops on the host, or a GPU of more memory"
    return "Use the objective time, which chooses tiles for a GPU, or none, which has no loops"
