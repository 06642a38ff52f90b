"""Fusion: from a formula sequence to a fusion plan, with shared loops and contracted arrays.

``sharing`` finds which statements may share a loop. ``solver`` has CP-SAT models of all these
choices, and ``placement`` makes the plan of one choice. The objectives search: ``linear`` on trees,
``memory`` for the objectives ``memory`` and ``peak``, and ``linear`` on graphs, ``time`` within a
memory limit, and ``kernels`` for element-wise steps. Names of sizes are those of
:class:`tcgen.thresholds.planner.FusionThresholds`:

=========  ================================  ===================================================
objective  programs                          searches, in this order
=========  ================================  ===================================================
none       all                               none
linear     trees                             CP-SAT for each tree of the graph (``linear``)
linear     others                            as ``memory``, with the linearised sum
memory     trees up to ``trees.prefixes``    dynamic programming (``memory.tree_prefixes``)
memory     up to ``static_constraints``      ``linear``; CP-SAT for loops, then for their order
                                             (``memory.objective``); loops without one: descent,
                                             and CP-SAT of both up to ``direct_constraints``
memory     larger ones                       ``linear``; CP-SAT of some arrays and descent
                                             (``memory.large_programs``, ``memory.descent``)
peak       trees                             ``memory.tree_prefixes``, or ``linear``; dynamic
                                             programming up to ``trees.steps``
                                             (``memory.tree_peak``), then as other programs
peak       up to ``direct_constraints``      ``linear``; CP-SAT for the static sum, then for the
                                             peak (``solver.memory_model``)
peak       larger ones                       ``linear``; CP-SAT of some arrays and descent; CP-SAT
                                             of all up to ``solver_constraints``
time       all                               triangular nests (``time.triangular_nests``)
time       unfused plan fits, up to          CP-SAT for each choice of tiles
           ``few_statements``                (``solver.time_model``), ``time.refine_tiles``
time       unfused plan does not fit         the same up to ``solver_constraints``; descent above
                                             ``few_statements``; both again with repeated, then
                                             with recomputed statements (``time.objective``)
kernels    up to ``partition_blocks``        shortest path (``kernels.partition``)
kernels    larger ones                       merges of blocks (``kernels.merging``)
=========  ================================  ===================================================
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import ExtentError, PlanError
from ..ir.plan import FusionPlan, Solve
from ..ir.pretty.equations import pretty_step
from ..ir.program import FormulaSequence, Produce
from ..options import Options
from .placement.memory import static_elements
from .placement.nest import place_nodes
from .placement.plan import build_plan, fused_axes
from .sharing.graph import Variable, fusion_graph

__all__ = ["plan_fusion"]


def plan_fusion(program: FormulaSequence, options: Options) -> FusionPlan:
    """The fusion plan of a program under the options' planning extents.

    - ``none`` shares no loop,
    - ``linear`` fuses the loops that save most elements by Eq. (10) of Allam et al.,
    - ``memory`` minimises the elements of all arrays by Eq. (6), on any program,
    - ``peak`` minimises the bytes that are live at one time, on any program,
    - ``time`` minimises the predicted time within the memory limit, with loops over tiles,
    - ``kernels`` puts element-wise steps into common kernels so that few bytes pass memory.

    Generated inputs that share no loop are held tile by tile. For a GPU, loops around matrix
    products run on the host, over tiles, or in one kernel (:mod:`.time.nests_on_gpu`).

    Of the options, ``objective``, ``extents`` of all base spaces (or defaults in the spaces),
    ``dtype``, ``target``, ``effort`` and ``thresholds`` are read; for ``time``, and for the target
    ``cuda``, also ``memory_limit`` and ``machine``; for ``time``, also ``sliced``.

    Raises:
        ExtentError: a base space has no planning extent.
        PlanError: a running reduction is to run on a GPU, or with another objective.
        VerifyError: the solver refuses the model.

    Example:
        >>> from tcgen.ir.program import Contract, Step
        >>> from tcgen.ir.tensor import Index, Ref, Role, Space, Tensor
        >>> o, v = Space("o"), Space("v")
        >>> i, a = Index("i", o), Index("a", v)
        >>> f, t = Tensor("f", (o, v), Role.INPUT), Tensor("t", (o, v), Role.INPUT)
        >>> e = Tensor("e", (), Role.OUTPUT)
        >>> step = Step(0, Ref(e), Contract(Ref(f, (i, a)), Ref(t, (i, a))), sums=(i, a))
        >>> program = FormulaSequence("energy", (o, v), (f, t, e), (step,))
        >>> plan = plan_fusion(program, Options(extents=(("o", 2), ("v", 3))))
        >>> plan.groups[0].kind.value, plan.arena
        ('library', 0)
    """
    running = next((s for s in program.steps if s.running is not None), None)
    if running and (options.target == "cuda" or options.objective not in ("none", "kernels")):
        raise PlanError(
            f"{pretty_step(running)} takes its values in order: compile it for the target cpu or "
            f"numpy, with the objective kernels or none"
        )
    plan = _plan_of_objective(program, options)
    if options.target != "cuda":
        return plan
    from .time.nests_on_gpu import nests_in_kernels, nests_on_gpu  # noqa: PLC0415

    if options.objective == "time":
        few = options.thresholds.planner.fusion.time.few_statements
        fetches = any(isinstance(s.op, Produce) for s in program.steps)
        if not 1 < len(program.steps) <= few or options.sliced or fetches:
            return plan
        linear = replace(options, objective="linear")
        return nests_in_kernels(plan, _plan_of_objective(program, linear), options)
    return nests_on_gpu(plan, options) if plan.loops else plan


def _plan_of_objective(program: FormulaSequence, options: Options) -> FusionPlan:
    extents = _extents(program, options)
    graph = fusion_graph(program)
    thresholds = options.thresholds.planner.fusion
    model = "dag" if graph.restricted else "tree"

    def fuse(fused: tuple[Variable, ...], solve: Solve) -> FusionPlan:
        placed = place_nodes(graph, fused)
        axes = fused_axes(graph, fused)
        return build_plan(
            graph, placed, axes, extents, options.dtype, solve, thresholds.generated_tile_bytes
        )

    # Each objective imports its own modules.
    if options.objective == "kernels":
        from .kernels.objective import least_traffic  # noqa: PLC0415

        return least_traffic(graph, extents, options)
    if options.objective == "time":
        from .time.objective import least_time  # noqa: PLC0415

        return least_time(graph, fuse((), Solve("time", model)), extents, options)
    if options.objective == "none":
        plan = fuse((), Solve("none", model))
        return replace(plan, solve=replace(plan.solve, value=static_elements(plan)))
    from .linear import solve_linear  # noqa: PLC0415
    from .memory.objective import least_memory, least_value  # noqa: PLC0415
    from .memory.tree_prefixes import least_static  # noqa: PLC0415

    if options.objective in ("memory", "peak"):
        # The least static sum of a tree needs no search, unless there are too many loops.
        least = least_static(graph, dict(extents), thresholds.trees.prefixes)
        if least is not None and options.objective == "memory":
            plan = fuse(least, Solve())
            value = least_value(plan, options.dtype, peak=False)
            return replace(plan, solve=Solve("memory", model, "OPTIMAL", value, value, "elements"))
        if least is not None:
            start = place_nodes(graph, least)
            return least_memory(graph, start, extents, options, static_is_least=True)
    solution = solve_linear(graph, dict(extents), thresholds.linear_seconds * options.effort)
    if options.objective == "linear" and not graph.restricted:
        status = "OPTIMAL" if solution.value == solution.bound else "FEASIBLE"
        solve = Solve("linear", model, status, solution.value, solution.bound, "saved_elements")
        return fuse(solution.fused, solve)
    start = place_nodes(graph, solution.fused)
    return least_memory(graph, start, extents, options)


def _extents(program: FormulaSequence, options: Options) -> tuple[tuple[str, int], ...]:
    """Planning extents of the program's base spaces."""
    extents: dict[str, int] = {}
    for base in (b for space in program.spaces for b in space.bases):
        extent = options.extent_of.get(base.name, base.extent)
        if extent is None:
            raise ExtentError(
                f"space {base.name} has no planning extent: give one, for example "
                f"-e {base.name}=10 or extents={{'{base.name}': 10}}"
            )
        extents[base.name] = extent
    return tuple(sorted(extents.items()))
