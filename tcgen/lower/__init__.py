"""Lowering: a fusion plan (level 3) becomes imperfectly nested loops over buffers (level 4).

``passes`` lists the passes. They use, in this order, ``names`` (of loop variables), ``buffers``,
``nest`` (beginnings of arrays, and the grouping of visits), ``statements`` (visits on buffers),
``axis_orders``, ``layout`` and ``products`` (layouts of accesses, products of the BLAS), ``cpu``
(matrix products, loops, threads) and ``host`` (host program, kernels, lives). ``gpu`` makes
launches and thread mappings, and ``parts`` divides the volatile phase.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.loops import Module
from ..ir.plan import FusionPlan
from ..options import Options
from .buffers import arena_budget, arena_bytes, crowded
from .parts import with_parts
from .passes import PASSES, Lowering

__all__ = ["arena_bytes", "lower_plan"]


def lower_plan(
    plan: FusionPlan,
    options: Options,
    *,
    scratch: bool = True,
    thrifty: bool = True,
    arena: int | None = None,
) -> Module:
    """Lower a verified plan.

    ``passes.PASSES`` make a module of the plan. For a GPU, ``gpu.bind`` then cuts its kernels into
    launches and maps them to threads. At last ``parts`` numbers the iterations of the outermost
    loops that can run apart. The same plan and options give the same bytes of the module's text.

    If the plan promises its memory, or if there is a memory limit, copies may take only the rest:
    visits whose copies do not fit are bound again without them. ``thrifty=False`` makes copies
    without regard to the limit, or as many as fit into ``arena`` bytes together with the arrays;
    ``scratch=False`` makes none. Extents are those of the plan.

    Raises:
        PlanError: a delta relates two spaces in a way that no single equality expresses.
    """
    limit = options.memory_limit
    if not thrifty:
        options = replace(options, memory_limit=None)
    if scratch:
        module = _within_memory(plan, options, limit, arena)
    else:
        no_room = dict.fromkeys(range(len(plan.visits)), 0)
        module = _run_passes(Lowering(plan, options, no_room, limit))
    if options.target == "cuda":
        from .gpu.bind import bind_gpu  # noqa: PLC0415  (loaded where it is used)

        promised = arena_budget(plan, options, module) is not None
        module = bind_gpu(module, plan.extent_of, options.thresholds.gpu, thrifty=promised)
    return with_parts(module, plan.extent_of, options.thresholds.planner.parts)


def _within_memory(
    plan: FusionPlan, options: Options, limit: int | None, arena: int | None
) -> Module:
    """The module whose copies fit into ``arena``, or the memory that the plan promises."""
    rooms: dict[int, int] = {}
    while True:
        work = Lowering(plan, options, rooms, limit)
        module = _run_passes(work)
        budget = arena_budget(plan, options, module) if arena is None else arena
        tight = {}
        if budget is not None:
            tight = crowded(module, work.memory.scratch_of, budget, plan.extent_of)
        if not tight:
            return module
        # A visit whose copies exceed their room again, because axis orders changed, gets none.
        rooms |= {visit: 0 if visit in rooms else room for visit, room in tight.items()}


def _run_passes(work: Lowering) -> Module:
    for each in PASSES:
        each(work)
    return work.module()
