"""The host program and its kernels, and the lives of buffers between launches.

Before: ``for p (host): (fetch G; X += ...)``.  After: ``HostLoop(p, (Fetch(G), Launch(k)))``
and a kernel ``k`` with p as its argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from ..ir.expr import Const, Equal, Infinity, Subscript, leaves
from ..ir.loop_analysis import accesses, band_of, used_buffers, written_buffers
from ..ir.loops import (
    Assign,
    Fetch,
    Gemm,
    Host,
    HostLoop,
    Kernel,
    Launch,
    Loop,
    LoopVar,
    Stmt,
    Zero,
)
from ..ir.plan import FusionPlan, LoopId
from ..ir.pretty.equations import pretty_step
from ..ir.program import Phase, Produce
from .buffers import Memory
from .names import unique
from .nest import Branch, Item, Leaf, leaves_of


def host_loops(plan: FusionPlan) -> frozenset[LoopId]:
    """Loops that run on the host: the host loops of kernel groups, and loops around a fetch."""
    declared = {loop for group in plan.groups for loop in group.host_loops}
    fetching = {
        loop
        for visit in plan.visits
        if isinstance(plan.program.steps[visit.step].op, Produce)
        for loop in visit.loops
    }
    return frozenset(declared | fetching)


def split_phases(
    plan: FusionPlan, items: tuple[Item, ...]
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Outermost items of the constant and of the volatile phase.

    An item is constant if all its steps are, and if it uses no buffer that a volatile item writes.
    The runtime stores outputs of the constant phase and copies them at each call.
    """
    volatile = [
        any(
            not leaf.constant and _phase_of(plan, leaf.position) is Phase.VOLATILE
            for leaf in leaves_of(item)
        )
        for item in items
    ]
    changed = True
    while changed:
        changed = False
        tainted = {
            name
            for item, late in zip(items, volatile, strict=True)
            if late
            for name in _buffers(item, written_buffers)
        }
        for n, item in enumerate(items):
            if not volatile[n] and any(name in tainted for name in _buffers(item, used_buffers)):
                volatile[n] = changed = True
    constant = tuple(i for i, late in zip(items, volatile, strict=True) if not late)
    return constant, tuple(i for i, late in zip(items, volatile, strict=True) if late)


@dataclass(slots=True)
class Splitter:
    """Splits items into host statements; collects the kernels in the order of their launches."""

    plan: FusionPlan
    loops: Mapping[LoopId, LoopVar]
    on_host: frozenset[LoopId]
    kernels: list[Kernel]
    taken: set[str] = field(default_factory=set)

    @property
    def groups(self) -> set[str]:
        """Names of the kernel groups of the plan."""
        return {group.name for group in self.plan.groups}

    def split(self, items: tuple[Item, ...], around: tuple[LoopVar, ...] = ()) -> tuple[Host, ...]:
        """Host statements of some items; neighbours of one kernel group are one launch."""
        host: list[Host] = []
        run: list[Item] = []

        def flush() -> None:
            if run:
                host.append(self.launch(tuple(run), around))
                run.clear()

        for item in items:
            if isinstance(item, Branch) and item.loop in self.on_host:
                flush()
                var = self.loops[item.loop]
                host.append(HostLoop(var, self.split(item.items, (*around, var))))
            elif isinstance(item, Leaf) and isinstance(item.body[0], Fetch):
                flush()
                host.append(item.body[0])
            else:
                if run and self.group_name(run[-1]) != self.group_name(item):
                    flush()
                run.append(item)
        flush()
        return tuple(host)

    def group_name(self, item: Item) -> str:
        """Name of the kernel group of an item."""
        position = next(leaves_of(item)).position
        return self.plan.group_of(position).name

    def launch(self, items: tuple[Item, ...], around: tuple[LoopVar, ...]) -> Launch:
        """Make the kernel of some items, and launch it."""
        body = tuple(stmt for item in items for stmt in self.statements(item))
        used = {name for stmt in body for name in variables_of(stmt)}
        computing = [leaf for item in items for leaf in leaves_of(item) if leaf.computes]
        name = self.group_name(items[0])
        steps = dict.fromkeys(self.plan.visits[leaf.position].step for leaf in computing)
        comment = tuple(pretty_step(self.plan.program.steps[n]) for n in steps)
        if not computing:
            zeroes = any(_zeroes(stmt) for stmt in body)
            gathers = any(leaf.constant for item in items for leaf in leaves_of(item))
            name += "_start" if zeroes else "_constants" if gathers else "_finish"
            targets = ", ".join(written for stmt in body for written in written_buffers(stmt))
            comment = (f"{'zero' if zeroes else 'gather' if gathers else 'pack'} {targets}",)
        name = unique(name, self.taken if computing else self.taken | self.groups)
        self.taken.add(name)
        host = tuple(v for v in around if v.name in used)
        self.kernels.append(Kernel(name, comment, host, body))
        return Launch(name)

    def statements(self, item: Item) -> Iterator[Stmt]:
        """The loops of an item inside a kernel."""
        if isinstance(item, Branch):
            body = tuple(stmt for inner in item.items for stmt in self.statements(inner))
            yield Loop(self.loops[item.loop], body)
        else:
            yield from (stmt for stmt in item.body if not isinstance(stmt, Fetch))


def _zeroes(stmt: Stmt) -> bool:
    """True for a zeroed buffer, or a zeroed output that is part of a larger array."""
    return isinstance(stmt, Zero) or (
        isinstance(stmt, Assign) and isinstance(stmt.expr, Const | Infinity)
    )


def place_buffers(memory: Memory, on_host: frozenset[LoopId], kernels: list[Kernel]) -> None:
    """Contracted arrays and scratch that live in a loop of a kernel become private to its threads.

    Buffers that live between launches, or for the whole of one, are in the arena; so is a register
    that is not local to a loop of one kernel, but for the value that a running reduction carries.
    """
    launched = Counter(
        name for k in kernels for name in dict.fromkeys(u for s in k.body for u in used_buffers(s))
    )
    for name, buffer in memory.buffers.items():
        home = memory.homes[name]
        inside = home is not None and home not in on_host and launched[name] == 1
        if buffer.place == "arena" and inside:
            memory.buffers[name] = replace(buffer, place="private")
        elif buffer.place == "register" and not (inside or name in memory.scratch_of):
            memory.buffers[name] = replace(buffer, place="arena")


def set_lives(
    memory: Memory,
    kernels: list[Kernel],
    loops: Mapping[LoopId, LoopVar],
    constant: tuple[Host, ...],
    volatile: tuple[Host, ...],
) -> None:
    """Set the first and last position of every buffer; a buffer outlives loops around its home."""
    bodies = {k.name: k.body for k in kernels}
    lives: dict[str, tuple[int, int]] = {}
    position = 0

    def use(name: str, first: int, last: int) -> None:
        old = lives.get(name, (first, last))
        lives[name] = (min(old[0], first), max(old[1], last))

    def walk(items: tuple[Host | Stmt, ...]) -> tuple[dict[str, None], set[str]]:
        """Number the statements; return the used buffers and the loops' variables."""
        nonlocal position
        used: dict[str, None] = {}
        inside: set[str] = set()
        for item in items:
            match item:
                case HostLoop(var, body) | Loop(var, body):
                    first = position
                    held, within = walk(body)
                    within.add(var.name)
                    for name in held:
                        home = memory.homes[name]
                        if home is None or loops[home].name not in within:
                            use(name, first, position - 1)
                    used.update(held)
                    inside |= within
                case Launch(kernel):
                    held, within = walk(bodies[kernel])
                    used.update(held)
                    inside |= within
                case _:
                    names = (item.buffer,) if isinstance(item, Fetch) else used_buffers(item)
                    for name in names:
                        use(name, position, position)
                        used[name] = None
                    position += 1
        return used, inside

    in_both = walk(constant)[0].keys() & walk(volatile)[0].keys()
    for name, buffer in memory.buffers.items():
        keep = buffer.place == "arena" and name in in_both
        memory.buffers[name] = replace(buffer, live=lives.get(name, (0, 0)), keep=keep)


def _phase_of(plan: FusionPlan, position: int) -> Phase:
    """Phase of a visit; a generated input is fetched in the phase of its first reader."""
    steps = plan.program.steps
    step = steps[plan.visits[position].step]
    array = plan.instance(step.out.tensor, position) if isinstance(step.op, Produce) else None
    if array is None:
        return step.phase
    users = (steps[v.step] for v in plan.visits[position + 1 : array.live[1] + 1])
    readers = (s for s in users if array.tensor in (r.tensor for r in s.operands))
    return next((s.phase for s in readers), step.phase)


def _buffers(item: Item, of: Callable[[Stmt], Iterable[str]]) -> Iterator[str]:
    """The buffers ``of`` all statements of an item, and those of its fetches."""
    for leaf in leaves_of(item):
        for stmt in leaf.body:
            yield from (stmt.buffer,) if isinstance(stmt, Fetch) else of(stmt)


def variables_of(stmt: Stmt) -> Iterator[str]:
    """Every variable that a statement names, including its own."""
    for access in accesses(stmt):
        yield from _named(access.subscripts)
    match stmt:
        case Loop(var, body):
            yield from (name for name in (var.below,) if name)
            for inner in body:
                yield from variables_of(inner)
        case Zero():
            return
        case Assign():
            for leaf in leaves(stmt.expr):
                if isinstance(leaf, Equal):
                    yield from _named((leaf.left, leaf.right))
            yield from (name for chain in stmt.orbit for name in chain)
            yield from (v.base for v in stmt.band if v.base)
        case Gemm():
            yield from (v.base for v in band_of(stmt) if v.base)
        case _:
            assert_never(stmt)


def _named(subscripts: tuple[Subscript, ...]) -> Iterator[str]:
    for subscript in subscripts:
        yield from (name for name in (subscript.variable, subscript.base) if name)
