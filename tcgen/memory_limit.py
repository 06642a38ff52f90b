"""Programs that keep a memory limit: tiles that leave room for copies, modules with fewer copies.

A plan knows the bytes of its arrays; copies and packed blocks of contractions are known only when
it is lowered, and where they lie among the arrays only by the manifest, by which a call allocates.
So plans and modules are tried, and judged by what a call would allocate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .config import Options
from .emit import make_manifest
from .errors import MemoryLimitError
from .fusion import plan_fusion, smaller_tiles
from .ir.loops import Module
from .ir.plan import FusionPlan
from .ir.program import Program
from .lower import lower_plan
from .runtime.memory import MemoryUse, memory_use

_TRIES = 8  # of smaller tiles, because copies take a part of the limit


def plan_within(program: Program, options: Options) -> FusionPlan:
    """The plan of the options' objective, with a limit one whose products have room for copies.

    Objective ``time`` chooses tiles for a limit; they shrink until a call with all copies keeps it.
    Where no tiles help, the first plan: lowering does with fewer copies.
    """
    plan, limit = plan_fusion(program, options), options.memory_limit
    if options.objective != "time" or limit is None:
        return plan
    room, tried = limit, plan
    for _ in range(_TRIES):
        needed = _use(lower_plan(tried, replace(options, memory_limit=None)), options).peak
        if needed <= limit:
            return tried
        room = min(room * limit // needed, room * 7 // 8)
        wish = replace(options, memory_limit=room)
        smaller = smaller_tiles(tried, wish) if tried.loops else plan_fusion(program, wish)
        if smaller is None:
            break
        tried = smaller
    return plan


def lower_within(plan: FusionPlan, options: Options) -> Module:
    """The module with the most copies and packed blocks that keep the limit and the plan's promise.

    All of them where they fit (``time``), else those that fit into what lives at one time, else
    none: copies that fit into that need not fit between the arrays of the arena.
    """
    limit = options.memory_limit
    if options.objective == "time" and limit is not None:
        module = lower_plan(plan, replace(options, memory_limit=None))
        if _use(module, options).peak <= limit:
            return module
    module = lower_plan(plan, options)
    if limit is None and plan.solve.objective != "peak":
        return module
    use = _use(module, options)
    over_limit = limit is not None and use.peak > limit
    promised = max(plan.arena, plan.solve.value or 0)
    if over_limit or (plan.solve.objective == "peak" and use.arenas > promised):
        return lower_plan(plan, options, scratch=False)
    return module


def refuse_excess(report: dict[str, Any], plan: FusionPlan, options: Options) -> None:
    """Refuse a plan whose calls, by its JSON report, need more than the limit.

    Raises:
        MemoryLimitError: with what is needed, by which arrays, and what needs less.
    """
    peak, limit = report["memory"]["peak_bytes"], options.memory_limit
    if limit is None or peak <= limit:
        return
    rows = sorted(report["arrays"], key=lambda a: -a["bytes"])
    largest = [f"{a['name']} {a['bytes']:,}" for a in rows if a["kind"] != "input"][:4]
    raise MemoryLimitError(
        f"this plan needs {peak:,} bytes, the memory limit is {limit:,}: its largest arrays "
        f"are {'; '.join(largest)} bytes. Raise the limit to {peak} or more, "
        f"{_advice(plan, options, peak)}"
    )


def _advice(plan: FusionPlan, options: Options, peak: int) -> str:
    if options.objective == "time":
        return "since no plan that tcgen finds needs less"
    if options.objective != "peak":
        wish = replace(options, objective="peak")
        least = plan_fusion(plan.program, wish)
        needed = _use(lower_plan(least, wish, scratch=False), options).peak
        if needed < peak:
            return (
                "try the objective time, which plans for the limit, or use the objective peak, "
                f"which fuses loops and needs {needed:,} bytes"
            )
    return (
        "or try the objective time, which plans for the limit and may compute parts anew; "
        "no fusion alone that tcgen finds needs less"
    )


def _use(module: Module, options: Options) -> MemoryUse:
    """What a call at planning extents allocates, on one thread."""
    manifest = make_manifest(
        module,
        target=options.target,
        planning_extents=options.extents,
        memory_limit=options.memory_limit,
    )
    return memory_use(manifest, options.extent_of, threads=1)
