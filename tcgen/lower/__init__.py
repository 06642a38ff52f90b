"""Lowering: a fusion plan (level 3) becomes imperfectly nested loops over buffers (level 4).

In the order in which they work: ``names`` (of loop variables), ``buffers``, ``nest`` (how each
array begins, and the grouping of visits), ``statements`` (visits on buffers), ``axis_orders``,
``layout`` (of accesses, for the binding), ``cpu`` (matrix products, loops, threads),
``product_copies`` (of operands of the BLAS), ``host`` (host program, kernels, lives),
``scratch_budget``, ``gpu`` (launches, thread mappings), and ``parts``.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ..ir.halved_products import Exchange, exchange_of
from ..ir.loops import Module, Stmt
from ..ir.plan import FusionPlan
from ..ir.program import Produce
from ..ir.tensor import Role
from ..options import Options
from ..thresholds import CpuThresholds
from .axis_orders import Time, choose_orders
from .buffers import Memory
from .cpu.bind import bind_statement
from .cpu.grouped_products import bind_groups
from .cpu.loops import bind_assign, bind_packing
from .cpu.packed_intermediates import pack_intermediates
from .cpu.parallel import mark_parallel
from .cpu.sliced_operands import bind_sliced, unpack_factors
from .cpu.symmetric_groups import Groupings, is_constant
from .cpu.symmetric_pairs import bind_half
from .host import Splitter, host_loops, place_buffers, set_lives, split_phases
from .names import loop_variables
from .nest import Leaf, build_nest, instance_starts, last_producers, of_step, zero_leaves
from .parts import with_parts
from .scratch_budget import arena_budget, crowded
from .statements import Statement, make_fetch, make_statement

__all__ = ["lower_plan"]

K = TypeVar("K", bound=Hashable)


def lower_plan(
    plan: FusionPlan, options: Options, *, scratch: bool = True, thrifty: bool = True
) -> Module:
    """Lower a verified plan.

    Stages:
        names: every shared loop gets a variable.
        buffers: every instance of an array gets a buffer.
        starts: an instance begins with a zero, or its first producer overwrites it.
        statements: each visit becomes a statement on buffers, or a fetch.
        packed intermediates: those that all statements walk in groups are stored so.
        axis orders: the axes of other intermediates get the order with the fewest copies.
        binding: statements become matrix products with their copies, or element loops; of a
            contraction with a proven exchange symmetry one of each pair of indices is computed.
            For a GPU statements become element loops without copies, or products of its library.
        nest: visits are grouped by common loop prefixes; zeroes and packing are added.
        host split: host loops, fetches and launches, of the constant and the volatile phase.
        places and lives: private or arena memory, first and last position.
        parallel loops: last, since legality depends on places. For a GPU, kernels are cut into
            launches, and each gets its thread mapping.
        parts: iterations of the outermost loops are numbered where they can run apart.

    If the plan promises its memory, or if there is a memory limit, copies may take only the rest:
    visits whose copies do not fit are bound again without them.

    Args:
        plan: a legal plan.
        options: ``dtype``, ``target``, ``memory_limit`` and ``thresholds`` are used; extents are
            those of the plan.
        scratch: False makes no copies at all.
        thrifty: False makes copies as if there were no memory limit.

    Returns:
        The module; its text has the same bytes for the same plan and options.

    Raises:
        PlanError: a delta relates two spaces in a way that no single equality expresses.
    """
    limit = options.memory_limit
    if not thrifty:
        options = replace(options, memory_limit=None)
    if scratch:
        module = _lower_in_rooms(plan, options, limit)
    else:
        module, _ = _lower(plan, options, dict.fromkeys(range(len(plan.visits)), 0), limit)
    if options.target == "cuda":
        from .gpu.bind import bind_gpu  # noqa: PLC0415  (loaded where it is used)

        promised = arena_budget(plan, options, module) is not None
        module = bind_gpu(module, plan.extent_of, options.thresholds.gpu, thrifty=promised)
    return with_parts(module, plan.extent_of, options.thresholds.planner.parts)


def _lower_in_rooms(plan: FusionPlan, options: Options, limit: int | None) -> Module:
    """The module whose copies fit the memory that the plan promises."""
    rooms: dict[int, int] = {}
    while True:
        module, memory = _lower(plan, options, rooms, limit)
        budget = arena_budget(plan, options, module)
        tight = {}
        if budget is not None:
            tight = crowded(module, memory.scratch_of, budget, plan.extent_of)
        if not tight:
            return module
        # A visit whose copies exceed their room again, because axis orders changed, gets none.
        rooms |= {visit: 0 if visit in rooms else room for visit, room in tight.items()}


def _lower(
    plan: FusionPlan, options: Options, rooms: Mapping[int, int], limit: int | None
) -> tuple[Module, Memory]:
    """One attempt.

    Args:
        plan: to lower.
        options: with the memory limit for copies.
        rooms: bytes that the scratch of some visits may take.
        limit: bytes that calls may allocate, or None.
    """
    extents, thresholds = plan.extent_of, options.thresholds.cpu
    on_gpu = options.target == "cuda"
    tight = plan.solve.objective == "peak" or options.memory_limit is not None
    # A plan that promises its memory has none to spare for packed blocks.
    generated = options.target == "cpu" and not tight and not rooms
    loops = loop_variables(plan)
    memory = Memory(plan, options.dtype, in_triangles=options.target == "cpu")
    starts = instance_starts(plan, memory)
    overwriting = {start.first for start in starts if start.overwrites}

    fetches, statements = {}, {}
    for position, visit in enumerate(plan.visits):
        if isinstance(plan.program.steps[visit.step].op, Produce):
            fetches[position] = make_fetch(plan, position, memory, loops)
        else:
            accumulate = position not in overwriting
            statements[position] = make_statement(plan, position, memory, loops, accumulate)
    time: Time | None = None
    library = options.library and not options.tf32  # whose products round nothing to TF32
    if on_gpu and library:
        from .gpu.library import contraction_time  # noqa: PLC0415  (loaded for GPUs)

        time = partial(contraction_time, extents=extents, thresholds=options.thresholds.gpu)
    groupings = Groupings(plan, thresholds)
    if generated:
        pack_intermediates(plan, groupings, memory, tuple(statements.values()))
    choose_orders(memory, tuple(statements.values()), extents, thresholds, time)

    leaves = {n: Leaf(n, (fetch,)) for n, fetch in fetches.items()}
    gathered: dict[tuple[int, int], tuple[Leaf, ...]] = {}
    for position, statement in statements.items():
        room = rooms.get(position)
        body: tuple[Stmt, ...] | None = None
        if on_gpu:
            from .gpu.library import bind_library  # noqa: PLC0415  (loaded for GPUs)

            gpu = options.thresholds.gpu
            if library:
                body = bind_library(statement, memory, extents, room, gpu)
            if body is None:
                body = (replace(bind_assign(statement, memory.buffers), tf32=options.tf32),)
        elif generated:
            copies, body = bind_symmetric(plan, groupings, statement, memory, thresholds)
            if copies:
                gathered[position, 0] = (Leaf(position, copies, computes=False, constant=True),)
        if body is None and generated:
            body = bind_sliced(statement, memory, extents, thresholds)
        if body is None:
            unpacking: tuple[Stmt, ...] = ()
            if generated:
                unpacking, statement = unpack_factors(statement, memory, extents, thresholds)
            bound = bind_statement(
                statement, memory, extents, room, thresholds, generated=generated
            )
            body = (*unpacking, *bound)
        leaves[position] = Leaf(position, body)
    packing: dict[int, tuple[Leaf, ...]] = {}
    for array, position in last_producers(plan):
        if array.tensor.name in memory.dense:
            write = bind_packing(array.tensor.name, memory)
            packing[position] = (Leaf(position, (write,), computes=False),)
    leaves = {n: of_step(leaf, plan) for n, leaf in leaves.items()}
    zeroes = zero_leaves(starts, memory.buffers)
    before = {
        place: (*gathered.get(place, ()), *zeroes.get(place, ()))
        for place in sorted({*gathered, *zeroes})
    }
    nest = build_nest(plan, leaves, _of_steps(before, plan), _of_steps(packing, plan))

    on_host = host_loops(plan)
    splitter = Splitter(plan, loops, on_host, [])
    constant, volatile = (splitter.split(items) for items in split_phases(plan, nest))
    place_buffers(memory, on_host, splitter.kernels)
    set_lives(memory, splitter.kernels, loops, constant, volatile)
    kernels = splitter.kernels
    if not on_gpu:
        kernels = [mark_parallel(k, memory.buffers, extents, limit, thresholds) for k in kernels]
    module = Module(
        name=plan.program.name,
        dtype=options.dtype,
        spaces=plan.program.spaces,
        tensors=tuple(
            t
            for t in plan.program.tensors
            if (t.is_input and t.alias is None) or t.role is Role.OUTPUT
        ),
        buffers=tuple(memory.buffers.values()),
        kernels=tuple(kernels),
        host_constant=constant,
        host_volatile=volatile,
        tight=tight and not on_gpu,
    )
    return module, memory


def _exchange(plan: FusionPlan, position: int, thresholds: CpuThresholds) -> Exchange | None:
    """The exchange that halves a visit which shares no loop."""
    visit = plan.visits[position]
    if visit.loops:
        return None
    step = plan.program.steps[visit.step]
    return exchange_of(plan.program, step, plan.extent_of, thresholds)


def bind_symmetric(
    plan: FusionPlan,
    groupings: Groupings,
    statement: Statement,
    memory: Memory,
    thresholds: CpuThresholds,
) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...] | None]:
    """Copies of constants, and a contraction that computes what symmetry leaves; None for none."""
    extents = plan.extent_of
    grouping = groupings.of(statement, memory.buffers)
    exchange = _exchange(plan, statement.position, thresholds)
    if grouping is not None and (exchange is None or grouping.saved >= exchange.saved):
        product = bind_groups(statement, grouping, memory, extents, thresholds)
        if product is not None:
            return product.constant, product.body
    if exchange is None:
        return (), None
    step = plan.program.steps[plan.visits[statement.position].step]
    constant = {
        x.buffer
        for x, ref in zip(statement.factors, step.operands, strict=True)
        if is_constant(plan.program, step, ref.tensor)
    }
    half = bind_half(statement, exchange, memory, extents, thresholds, constant)
    return ((), None) if half is None else (half.constant, half.body)


def _of_steps(leaves: Mapping[K, tuple[Leaf, ...]], plan: FusionPlan) -> dict[K, tuple[Leaf, ...]]:
    """The leaves at each place, with the steps of their statements."""
    return {place: tuple(of_step(leaf, plan) for leaf in held) for place, held in leaves.items()}
