"""The passes from a plan to a module: functions of one record, in the order of ``PASSES``.

The name of a pass is that of its function, and its contract is the function's docstring.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from ..ir.loops import Fetch, Host, Kernel, LoopVar, Module, Stmt
from ..ir.plan import FusionPlan, LoopId
from ..ir.program import Produce
from ..ir.tensor import Role
from ..options import Options
from .axis_orders import Time, choose_orders
from .buffers import Memory
from .cpu.bind import bind_statement, bind_symmetric
from .cpu.loops import bind_assign, bind_packing
from .cpu.packed_intermediates import pack_intermediates
from .cpu.parallel import mark_parallel
from .cpu.sliced_operands import bind_sliced, unpack_factors
from .cpu.symmetric_groups import Groupings
from .host import Splitter, host_loops, place_buffers, set_lives, split_phases
from .layout import GpuContext
from .names import loop_variables
from .nest import Item, Leaf, Start, build_nest, instance_starts, last_producers, of_step, zeroes
from .statements import Scan, Statement, make_fetch, make_scan, make_statement


@dataclass(slots=True)
class Lowering:
    """A plan on its way to a module. Each pass fills some of the fields below ``limit``.

    Attributes:
        options: compilation options, whose memory limit is that of copies.
        rooms: bytes that the scratch of some visits may take, by visit.
        limit: bytes that calls may allocate, or None.
        statements: computing visits, by position.
        scans: running reductions, by position.
        fetches: visits that produce a generated input, by position.
        leaves: bound statements of each visit, by position.
        before: copies of constants and zeroes, by (position, depth) of the item that follows.
        after: copies into packed outputs, by position of the visit before them.
        nest: outermost items of the loop nest.
        constant, volatile: host statements of the two phases.
        kernels: kernels in the order of their first launch.
    """

    plan: FusionPlan
    options: Options
    rooms: Mapping[int, int]
    limit: int | None
    loops: Mapping[LoopId, LoopVar] = field(init=False)
    memory: Memory = field(init=False)
    starts: tuple[Start, ...] = ()
    statements: dict[int, Statement] = field(default_factory=dict)
    scans: dict[int, Scan] = field(default_factory=dict)
    fetches: dict[int, Fetch] = field(default_factory=dict)
    groupings: Groupings = field(init=False)
    leaves: dict[int, Leaf] = field(default_factory=dict)
    before: dict[tuple[int, int], tuple[Leaf, ...]] = field(default_factory=dict)
    after: dict[int, tuple[Leaf, ...]] = field(default_factory=dict)
    nest: tuple[Item, ...] = ()
    constant: tuple[Host, ...] = ()
    volatile: tuple[Host, ...] = ()
    kernels: list[Kernel] = field(default_factory=list)

    @property
    def tight(self) -> bool:
        """True if memory is limited or minimised."""
        return self.plan.solve.objective == "peak" or self.options.memory_limit is not None

    @property
    def generated(self) -> bool:
        """True if the generated CPU kernel is available, which takes memory for packed blocks."""
        return self.options.target == "cpu" and not self.tight

    @property
    def symmetric(self) -> bool:
        """True if contractions may compute distinct values only, for which they take memory."""
        return self.options.target in ("cpu", "cuda") and not self.tight

    @property
    def library(self) -> bool:
        """True if a GPU's library may compute products; its products do not round to TF32."""
        on_gpu = self.options.target == "cuda"
        return on_gpu and self.options.library and not self.options.tf32

    def module(self) -> Module:
        """The module that the passes have made."""
        program = self.plan.program
        return Module(
            name=program.name,
            dtype=self.options.dtype,
            spaces=program.spaces,
            tensors=tuple(
                t
                for t in program.tensors
                if (t.is_input and t.alias is None) or t.role is Role.OUTPUT
            ),
            buffers=tuple(self.memory.buffers.values()),
            kernels=tuple(self.kernels),
            host_constant=self.constant,
            host_volatile=self.volatile,
            tight=self.tight and self.options.target != "cuda",
        )


def name_loops(work: Lowering) -> None:
    """Give every shared loop a variable with a readable name of its own."""
    work.loops = loop_variables(work.plan)


def allocate_buffers(work: Lowering) -> None:
    """Give every caller's array and every instance of an intermediate a buffer."""
    options, thresholds = work.options, work.options.thresholds.cpu
    if options.target == "cuda":
        on_gpu = options.thresholds.gpu
        least, copies = on_gpu.symmetric_flops, on_gpu.symmetric_copy_flops
        thresholds = replace(thresholds, pair_flops=least, pair_copy_flops=copies)
    triangles, mirrors = options.target in ("cpu", "cuda"), options.target == "cpu"
    work.memory = Memory(
        work.plan, options.dtype, thresholds, in_triangles=triangles, mirrors=mirrors
    )


def find_starts(work: Lowering) -> None:
    """Decide for each instance if it begins with a zero or its first producer overwrites it."""
    work.starts = instance_starts(work.plan, work.memory)


def make_statements(work: Lowering) -> None:
    """Turn each visit into a statement on buffers, or into a fetch of a generated input."""
    overwriting = {start.first for start in work.starts if start.overwrites}
    plan, memory, loops = work.plan, work.memory, work.loops
    for position, visit in enumerate(plan.visits):
        if isinstance(plan.program.steps[visit.step].op, Produce):
            work.fetches[position] = make_fetch(plan, position, memory, loops)
        else:
            adds = position not in overwriting
            made = make_statement(plan, position, memory, loops, adds)
            work.statements[position] = made
            if plan.program.steps[visit.step].running is not None:
                scan = make_scan(plan, position, memory, loops, made)
                work.scans[position], work.statements[position] = scan, scan.step


def pack_symmetric_intermediates(work: Lowering) -> None:
    """Store intermediates in groups of symmetric axes if no statement becomes slower by that."""
    work.groupings = Groupings(work.plan)
    if work.symmetric:
        statements = tuple(work.statements.values())
        pack_intermediates(work.plan, work.groupings, work.memory, statements)


def order_axes(work: Lowering) -> None:
    """Give the axes of other intermediates the order that takes least time and fewest copies."""
    time: Time | None = None
    if work.options.target == "cuda":
        from .gpu.library import time_of_order  # noqa: PLC0415  (loaded for GPUs)

        thresholds = work.options.thresholds.gpu
        time = partial(time_of_order, thresholds=thresholds, library=work.library)
    choose_orders(work.memory, tuple(work.statements.values()), time)


def bind_statements(work: Lowering) -> None:
    """Bind statements as matrix products with their copies, or as element loops.

    A contraction with proven symmetries computes its distinct values only. On a GPU, other products
    are those of its library, and element loops are mapped to threads later.
    """
    bind = _bind_on_gpu if work.options.target == "cuda" else _bind_on_cpu
    bodies: dict[int, tuple[Stmt | Fetch, ...]] = {n: (f,) for n, f in work.fetches.items()}
    bodies |= {position: bind(work, s) for position, s in work.statements.items()}
    for position, scan in work.scans.items():
        bodies[position] += bind(work, scan.copy)
    work.leaves = {n: of_step(Leaf(n, body), work.plan) for n, body in bodies.items()}


def _bind_on_gpu(work: Lowering, statement: Statement) -> tuple[Stmt, ...]:
    from .gpu.library import bind_library  # noqa: PLC0415  (loaded for GPUs)
    from .gpu.tiles import groups_of  # noqa: PLC0415  (loaded for GPUs)

    memory, thresholds = work.memory, work.options.thresholds.gpu
    unpacking: tuple[Stmt, ...] = ()
    room = work.rooms.get(statement.position)
    memory.room = room
    body = _bind_symmetric(work, statement)
    if body is not None:
        return body
    context = GpuContext(memory.buffers, memory.extents, thresholds)
    if work.symmetric and groups_of(bind_assign(statement, memory), context) is None:
        body = bind_sliced(statement, memory)
        if body is not None:
            return body
        unpacking, statement = unpack_factors(statement, memory)
    if work.library:
        body = bind_library(statement, memory, room, thresholds)
        if body is not None:
            return (*unpacking, *body)
    return (*unpacking, replace(bind_assign(statement, memory), tf32=work.options.tf32))


def _bind_symmetric(work: Lowering, statement: Statement) -> tuple[Stmt, ...] | None:
    """The statements of a contraction that uses its symmetry, or None."""
    if not work.symmetric:
        return None
    copies, body = bind_symmetric(work.plan, work.groupings, statement, work.memory)
    if copies:
        leaf = Leaf(statement.position, copies, computes=False, constant=True)
        work.before[statement.position, 0] = (of_step(leaf, work.plan),)
    return body


def _bind_on_cpu(work: Lowering, statement: Statement) -> tuple[Stmt, ...]:
    memory = work.memory
    unpacking: tuple[Stmt, ...] = ()
    memory.room = work.rooms.get(statement.position)
    if work.generated:
        body = _bind_symmetric(work, statement) or bind_sliced(statement, memory)
        if body is not None:
            return body
        unpacking, statement = unpack_factors(statement, memory)
    bound = bind_statement(statement, memory, generated=work.generated)
    return (*unpacking, *bound)


def add_zeroes_and_packing(work: Lowering) -> None:
    """Zero instances before their first visit, and pack dense outputs after their last one.

    Running reductions begin before their loops.
    """
    for place, leaves in zeroes(work.starts, work.memory.buffers).items():
        steps = tuple(of_step(leaf, work.plan) for leaf in leaves)
        work.before[place] = (*work.before.get(place, ()), *steps)
    for position, scan in work.scans.items():
        leaf = of_step(Leaf(position, (scan.start,), computes=False), work.plan)
        place = position, scan.depth
        work.before[place] = (*work.before.get(place, ()), leaf)
    for array, position in last_producers(work.plan):
        if array.tensor.name in work.memory.dense:
            write = bind_packing(array.tensor.name, work.memory)
            leaf = Leaf(position, (write,), computes=False)
            work.after[position] = (of_step(leaf, work.plan),)


def group_visits(work: Lowering) -> None:
    """Group visits by their common loop prefixes into one nest."""
    work.nest = build_nest(work.plan, work.leaves, work.before, work.after)


def split_host(work: Lowering) -> None:
    """Split the nest into host loops, fetches, launches and kernels, phase by phase."""
    splitter = Splitter(work.plan, work.loops, host_loops(work.plan), work.kernels)
    phases = split_phases(work.plan, work.nest)
    work.constant, work.volatile = (splitter.split(items) for items in phases)


def place_in_memory(work: Lowering) -> None:
    """Make buffers private to threads or part of the arena, and set their liveness."""
    place_buffers(work.memory, host_loops(work.plan), work.kernels)
    set_lives(work.memory, work.kernels, work.loops, work.constant, work.volatile)


def mark_parallel_loops(work: Lowering) -> None:
    """Mark the CPU's parallel loops, whose legality depends on the places of buffers."""
    if work.options.target == "cuda":
        return
    work.kernels = [mark_parallel(k, work.memory, work.limit) for k in work.kernels]


PASSES: tuple[Callable[[Lowering], None], ...] = (
    name_loops,
    allocate_buffers,
    find_starts,
    make_statements,
    pack_symmetric_intermediates,
    order_axes,
    bind_statements,
    add_zeroes_and_packing,
    group_visits,
    split_host,
    place_in_memory,
    mark_parallel_loops,
)
