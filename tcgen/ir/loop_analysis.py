"""Analysis of level 4: buffers that statements use, layouts that fit, loops that may be parallel.

The checker, lowering and emission call these functions, so each rule is written once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from .expr import Access, Prod, accesses_of, leaves
from .loops import (
    Assign,
    BandVar,
    Buffer,
    Fetch,
    Gemm,
    Host,
    HostLoop,
    Kernel,
    Launch,
    Loop,
    Module,
    Stmt,
    Zero,
)
from .reduction import Reduction
from .tensor import Space


def statements(body: tuple[Stmt, ...]) -> Iterator[tuple[Zero | Assign | Gemm, tuple[Loop, ...]]]:
    """Statements other than loops, each with the loops around it, outermost first."""
    for stmt in body:
        if isinstance(stmt, Loop):
            for inner, around in statements(stmt.body):
                yield inner, (stmt, *around)
        else:
            yield stmt, ()


def accesses(stmt: Stmt) -> Iterator[Access]:
    """All accesses of a statement and of the statements inside it, including writes."""
    for inner, _ in statements((stmt,)):
        if not isinstance(inner, Zero):
            yield from (inner.out, *operands_of(inner))


def operands_of(stmt: Zero | Assign | Gemm) -> tuple[Access, ...]:
    """Accesses that a statement reads, besides the target that it adds to."""
    match stmt:
        case Zero():
            return ()
        case Assign():
            return accesses_of(stmt.expr)
        case Gemm():
            return stmt.a, stmt.b
        case _:
            assert_never(stmt)


def used_buffers(stmt: Stmt) -> tuple[str, ...]:
    """Names of the buffers that a statement reads or writes, each once, in order."""
    return tuple(dict.fromkeys((*zeroed_buffers(stmt), *(a.buffer for a in accesses(stmt)))))


def written_buffers(stmt: Stmt) -> tuple[str, ...]:
    """Names of the buffers that a statement writes, each once, in order."""
    inside = (s for s, _ in statements((stmt,)))
    return tuple(dict.fromkeys(s.buffer if isinstance(s, Zero) else s.out.buffer for s in inside))


def contraction_of(stmt: Stmt) -> Gemm | None:
    """A sum of products of two arrays as one of matrices in any layout; None for others.

    Each summed variable is in both factors, each other one in the target and in a factor, and none
    is twice in an operand or triangular.
    """
    if not isinstance(stmt, Assign) or not isinstance(stmt.expr, Prod) or stmt.orbit:
        return None
    factors = [x for x in stmt.expr.args if isinstance(x, Access)]
    if len(factors) != len(stmt.expr.args) or len(factors) != 2:
        return None
    out, (a, b) = stmt.out, factors
    places: dict[tuple[bool, bool, bool], list[BandVar]] = {}
    for var in stmt.band:
        counts = [[s.variable for s in x.subscripts].count(var.name) for x in (out, a, b)]
        if max(counts) > 1 or var.below is not None:
            return None
        places.setdefault((counts[0] > 0, counts[1] > 0, counts[2] > 0), []).append(var)
    kinds = ((True, True, True), (True, True, False), (True, False, True), (False, True, True))
    odd = set(places) - set(kinds) or stmt.reduction is not Reduction.SUM
    if odd or out.buffer in (a.buffer, b.buffer):
        return None
    batch, m, n, k = (tuple(places.get(kind, ())) for kind in kinds)
    return Gemm(out, a, b, batch, m, n, k, stmt.coeff, stmt.accumulate, step=stmt.step)


def gemm_obstacle(
    access: Access,
    buffer: Buffer,
    groups: tuple[tuple[BandVar, ...], tuple[BandVar, ...]],
) -> str | None:
    """The reason why the BLAS cannot use an operand (the rule is in ``Gemm``), or None."""
    if buffer.packed:
        return f"{buffer.name} is packed"
    physical = [
        (axis, access.subscripts[axis])
        for axis in buffer.order
        if access.subscripts[axis].variable is not None
    ]
    places: dict[str, list[int]] = {}
    for position, (_, subscript) in enumerate(physical):
        places.setdefault(subscript.variable or "", []).append(position)
    for group in groups:
        for position, var in enumerate(group):
            at = places.get(var.name, [])
            if len(at) != 1:
                return f"{var.name} is {len(at)} times in {access}"
            axis, subscript = physical[at[0]]
            if position == 0:
                continue
            if at[0] != places[group[position - 1].name][0] + 1:
                return f"{group[position - 1].name} and {var.name} are not adjacent in {access}"
            if var.tile is not None or var.space.bases != buffer.axes[axis].space.bases:
                return f"{var.name} runs over a part of its axis in {access}"
    fastest = physical[-1][1].variable if physical else None
    ends = [group[-1].name for group in groups if group]
    if ends and fastest not in ends:
        return f"neither group ends on the unit-stride axis of {access}"
    return None


def contraction_obstacle(
    access: Access,
    buffer: Buffer,
    groups: tuple[tuple[BandVar, ...], tuple[BandVar, ...]],
) -> str | None:
    """The reason why the generated contraction kernel cannot use an operand, or None.

    Packed axes need adjacent variables of a group, each but the first below the one before it, in
    the order of the axes in memory.
    """
    held = [s.variable for s in access.subscripts]
    for var in (*groups[0], *groups[1]):
        if held.count(var.name) != 1:
            return f"{var.name} is {held.count(var.name)} times in {access}"
    walked = [chain for group in groups for chain in chains_of(group)]
    packed = [
        (tuple(held[axis] for axis in buffer.order if axis in p.axes), p.antisymmetric)
        for p in buffer.packed
    ]
    if any(axes not in walked for axes in packed):
        return f"{buffer.name} is packed"
    if any(chain not in packed for chain in walked):
        return f"{buffer.name} is not packed, but a triangular variable runs over it"
    return None


def chains_of(group: Iterable[BandVar]) -> list[tuple[tuple[str, ...], bool]]:
    """Variables that run together over packed axes, and whether these lack their diagonals.

    The group a, i, j with j < i has ``[(("i", "j"), True)]``.
    """
    chains: list[tuple[tuple[str, ...], bool]] = []
    before: BandVar | None = None
    for var in group:
        if before is not None and var.below == before.name:
            if chains and chains[-1][0][-1] == before.name and chains[-1][1] == var.strict:
                chains[-1] = ((*chains[-1][0], var.name), var.strict)
            else:
                chains.append(((before.name, var.name), var.strict))
        elif var.below is not None:
            chains.append(((var.below, var.name), var.strict))
        before = var
    return chains


def blocks_parallel(loop: Loop, private: frozenset[str]) -> str | None:
    """The reason why the iterations of a loop cannot run in parallel, or None.

    Every buffer that is written and not private must have the loop's variable (or that of the
    tile's elements) on one and the same axis at every access. Scalars that are only added to may
    count as private if threads reduce partial sums.
    """
    own = (v for s, _ in statements(loop.body) for v in band_of(s))
    tiles = {loop.var.name, *(v.name for v in own if v.base == loop.var.name)}
    written = [w for s in loop.body for w in written_buffers(s) if w not in private]
    for name in dict.fromkeys(written):
        if any(name in zeroed_buffers(s) for s in loop.body):
            return f"all of {name} is zeroed in each iteration"
        uses = [a for s in loop.body for a in accesses(s) if a.buffer == name]
        axes = [
            {k for k, s in enumerate(a.subscripts) if s.variable in tiles and s.base is None}
            for a in uses
        ]
        if not set.intersection(*axes):
            return f"{name} does not have {loop.var.name} on one and the same axis at every access"
        spaces = {s.offset for a in uses for s in a.subscripts if s.variable in tiles}
        if len(spaces) > 1:
            return f"{name} is accessed by {loop.var.name} at different offsets"
    return None


def vector_obstacle(loop: Loop, kernel: Kernel, buffers: Mapping[str, Buffer]) -> str | None:
    """The reason why the vector unit cannot run iterations of a loop at once, or None.

    Each iteration has registers of its own, if they are used in no other loop.
    """
    if any(not isinstance(s, Assign) or s.band for s in loop.body):
        return "it has other statements than assignments of single elements"
    if loop.var.tile or loop.var.below:
        return "it runs over tiles, or up to another variable"
    sums = summed_in(loop)
    if any(buffers[name].dtype == "complex128" for name in sums):
        return "compilers have no sums of vectors of complex numbers"
    used = [name for s in loop.body for name in used_buffers(s)]
    everywhere = [name for s, _ in statements(kernel.body) for name in used_buffers(s)]
    own = (n for n in used if everywhere.count(n) == used.count(n))
    registers = frozenset(n for n in own if buffers[n].place == "register")
    return blocks_parallel(loop, registers.union(sums))


def summed_in(loop: Loop) -> dict[str, Assign]:
    """Elements that a loop over single elements only adds to, or combines otherwise.

    By buffer, with the only statement that does.
    """
    found: dict[str, Assign] = {}
    for stmt in loop.body:
        if isinstance(stmt, Assign) and stmt.accumulate and loop.var.name not in stmt.out.variables:
            found[stmt.out.buffer] = stmt
    used = [name for s in loop.body for name in used_buffers(s)]
    read = {x.buffer for s in found.values() for x in accesses_of(s.expr)}
    return {n: s for n, s in found.items() if used.count(n) == 1 and n not in read}


def parallel_chain(loop: Loop) -> Iterator[Loop]:
    """Perfectly nested parallel loops, from ``loop`` on."""
    stmt: Stmt = loop
    while isinstance(stmt, Loop) and stmt.parallel:
        yield stmt
        if len(stmt.body) != 1:
            return
        stmt = stmt.body[0]


def summed_numbers(loop: Loop, buffers: Mapping[str, Buffer]) -> frozenset[str]:
    """Scalars that a loop adds to and does not read otherwise."""
    added, used = set[str](), set[str]()
    for stmt, _ in statements(loop.body):
        match stmt:
            case Assign(out, expr, accumulate=True, reduction=Reduction.SUM):
                added.add(out.buffer)
                used.update(x.buffer for x in accesses_of(expr))
            case _:
                used.update(used_buffers(stmt))
    return frozenset(name for name in added - used if not buffers[name].axes)


def added_to(loop: Loop, buffers: Mapping[str, Buffer]) -> tuple[str, ...]:
    """Arrays that a loop adds to and does not read or overwrite, nor zero."""
    added: dict[str, None] = {}
    used = set[str]()
    for stmt, _ in statements((loop,)):
        if isinstance(stmt, Assign) and stmt.accumulate and stmt.reduction is Reduction.SUM:
            added[stmt.out.buffer] = None
            used.update(x.buffer for x in accesses_of(stmt.expr))
        else:
            used.update(used_buffers(stmt))
    return tuple(n for n in added if n not in used and buffers[n].place in ("caller", "arena"))


def private_to(loop: Loop, kernel: Kernel, buffers: Mapping[str, Buffer]) -> frozenset[str]:
    """Registers and private buffers that no statement of the kernel uses outside ``loop``."""
    outside = {name for s in kernel.body if s is not loop for name in used_buffers(s)}
    return frozenset(
        name
        for s in loop.body
        for name in used_buffers(s)
        if buffers[name].place in ("private", "register") and name not in outside
    )


@dataclass(frozen=True, slots=True)
class Positions:
    """Positions of statements and fetches in the text of a module, counted from 0.

    By its name a buffer has in ``uses`` all positions that use it, and in ``fetches`` those of the
    fetches into it, in order. A kernel and each of the ``loops``, of the host or in a kernel, have
    their first position and the one after their last. ``constant`` counts the positions of the
    constant phase.
    """

    uses: Mapping[str, tuple[int, ...]]
    fetches: Mapping[str, tuple[int, ...]]
    kernels: Mapping[str, tuple[int, int]]
    loops: tuple[tuple[int, int], ...]
    constant: int


def positions(module: Module) -> Positions:
    """Number the statements and fetches; loops have no number of their own."""
    bodies = {k.name: k.body for k in module.kernels}
    uses: dict[str, list[int]] = {}
    fetches: dict[str, list[int]] = {}
    kernels: dict[str, tuple[int, int]] = {}
    loops: list[tuple[int, int]] = []
    count = 0

    def walk(items: tuple[Host | Stmt, ...]) -> None:
        nonlocal count
        for item in items:
            match item:
                case HostLoop(_, body) | Loop(_, body):
                    first = count
                    walk(body)
                    loops.append((first, count))
                case Launch(kernel):
                    first = count
                    walk(bodies[kernel])
                    kernels[kernel] = (first, count)
                case Fetch(name):
                    uses.setdefault(name, []).append(count)
                    fetches.setdefault(name, []).append(count)
                    count += 1
                case _:
                    for name in used_buffers(item):
                        uses.setdefault(name, []).append(count)
                    count += 1

    walk(module.host_constant)
    constant = count
    walk(module.host_volatile)
    return Positions(
        {name: tuple(at) for name, at in uses.items()},
        {name: tuple(at) for name, at in fetches.items()},
        kernels,
        tuple(loops),
        constant,
    )


def zeroed_buffers(stmt: Stmt) -> tuple[str, ...]:
    """Names of the buffers that a statement sets to zero as a whole."""
    return tuple(s.buffer for s, _ in statements((stmt,)) if isinstance(s, Zero))


def band_of(stmt: Zero | Assign | Gemm) -> tuple[BandVar, ...]:
    """Own variables of a statement, outermost first."""
    match stmt:
        case Zero():
            return ()
        case Assign():
            return stmt.band
        case Gemm():
            return (*stmt.batch, *stmt.m, *stmt.n, *stmt.k)
        case _:
            assert_never(stmt)


def walked_in_step(stmt: Assign, buffers: Mapping[str, Buffer]) -> frozenset[str]:
    """Buffers whose element n is read or written together with element n of the target.

    Empty if other accesses of the statement depend on the point, or points are summed or bounded.
    """
    order = stmt.out.variables
    operands = tuple(leaves(stmt.expr))
    plain = all(v.base is None and v.below is None for v in stmt.band)
    if not plain or stmt.orbit or not all(isinstance(x, Access) for x in operands):
        return frozenset()
    walking = {x for x in accesses(stmt) if x.variables}
    fixed = {x.buffer for x in accesses(stmt) if not x.variables}
    names = frozenset(x.buffer for x in walking)
    if {v.name for v in stmt.band} != set(order) or names & fixed:
        return frozenset()
    spaces = {v.name: v.space for v in stmt.band}
    in_step = {_in_memory_order(x, buffers[x.buffer], spaces) for x in walking}
    return names if len(in_step) == 1 and None not in in_step else frozenset()


def _in_memory_order(
    access: Access, buffer: Buffer, spaces: Mapping[str, Space]
) -> tuple[str, ...] | None:
    """Variables of a buffer from the slowest to the fastest, if they walk all of its elements."""
    found = []
    for axis in buffer.order:
        subscript, own = access.subscripts[axis], buffer.axes[axis]
        name = subscript.variable
        if name is None or own.length is not None or own.space != spaces.get(name):
            return None
        found.append(name)
    repeated = len(set(found)) < len(found)
    return None if buffer.packed or repeated else tuple(found)


def is_total(stmt: Assign) -> bool:
    """True for a statement of an epilogue that adds all of its points to one scalar."""
    return not any(v.name in stmt.out.variables for v in stmt.band)


def is_total_target(access: Access, epilogue: tuple[Assign, ...]) -> bool:
    """True if an epilogue adds to this scalar."""
    return any(is_total(s) and s.out == access for s in epilogue)
