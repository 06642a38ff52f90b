"""Questions about statements of level 4: what they use, how it lies, what may run at once.

The checker, lowering and emission all ask here, so that each rule is written once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from .expr import Access, leaves
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


def accesses(stmt: Stmt) -> Iterator[Access]:
    """Every access of a statement and of what it encloses, the written ones included."""
    match stmt:
        case Loop(_, body):
            for inner in body:
                yield from accesses(inner)
        case Zero():
            return
        case Assign(out, expr):
            yield out
            yield from (leaf for leaf in leaves(expr) if isinstance(leaf, Access))
        case Gemm(out, a, b):
            yield from (out, a, b)
        case _:
            assert_never(stmt)


def used_buffers(stmt: Stmt) -> tuple[str, ...]:
    """Names of the buffers that a statement reads or writes, each once, in order."""
    return tuple(dict.fromkeys((*zeroed_buffers(stmt), *(a.buffer for a in accesses(stmt)))))


def written_buffers(stmt: Stmt) -> tuple[str, ...]:
    """Names of the buffers that a statement writes, each once, in order."""
    match stmt:
        case Loop(_, body):
            return tuple(dict.fromkeys(name for s in body for name in written_buffers(s)))
        case Zero(buffer):
            return (buffer,)
        case Assign(out) | Gemm(out):
            return (out.buffer,)
        case _:
            assert_never(stmt)


def gemm_obstacle(
    access: Access,
    buffer: Buffer,
    groups: tuple[tuple[BandVar, ...], tuple[BandVar, ...]],
) -> str | None:
    """Why an operand cannot be handed to a matrix product as it lies in memory, or None.

    See :class:`~tcgen.ir.loops.Gemm` for the rule.
    """
    if buffer.packed:
        return f"{buffer.name} is packed"
    lies = [
        (axis, access.subscripts[axis])
        for axis in buffer.order
        if access.subscripts[axis].variable is not None
    ]
    places: dict[str, list[int]] = {}
    for position, (_, subscript) in enumerate(lies):
        places.setdefault(subscript.variable or "", []).append(position)
    for group in groups:
        for position, var in enumerate(group):
            found = places.get(var.name, [])
            if len(found) != 1:
                return f"{var.name} stands {len(found)} times in {access}"
            axis, subscript = lies[found[0]]
            if position == 0:
                continue
            if found[0] != places[group[position - 1].name][0] + 1:
                return f"{group[position - 1].name} and {var.name} are no neighbours in {access}"
            if var.tile is not None or var.space.bases != buffer.axes[axis].space.bases:
                return f"{var.name} walks a part of its axis in {access}"
    fastest = lies[-1][1].variable if lies else None
    ends = [group[-1].name for group in groups if group]
    if ends and fastest not in ends:
        return f"neither group ends on the fastest axis of {access}"
    return None


def contraction_obstacle(
    access: Access,
    buffer: Buffer,
    groups: tuple[tuple[BandVar, ...], tuple[BandVar, ...]],
) -> str | None:
    """Why the generated contraction kernel cannot use an operand as it lies in memory, or None.

    A packed pair must be walked as one: by a variable and, next in its group, one below it.
    """
    held = [s.variable for s in access.subscripts]
    for var in (*groups[0], *groups[1]):
        if held.count(var.name) != 1:
            return f"{var.name} stands {held.count(var.name)} times in {access}"
    walked = [
        {row.name, column.name}
        for group in groups
        for row, column in itertools.pairwise(group)
        if column.below == row.name
    ]
    triangles = sum(var.below is not None for group in groups for var in group)
    packed = [{held[p.first], held[p.first + 1]} for p in buffer.packed]
    if any(p.antisymmetric for p in buffer.packed) or any(p not in walked for p in packed):
        return f"{buffer.name} is packed"
    if triangles > len(packed):
        return f"{buffer.name} is not packed, but walked over a triangle"
    return None


def blocks_parallel(loop: Loop, apart: frozenset[str]) -> str | None:
    """Why the iterations of a loop cannot run at once, or None.

    Everything that is written and not apart must be walked, at every access, by the loop's variable
    (or its tile's elements) on one and the same axis.

    Args:
        loop: in question.
        apart: buffers that are private to its body; where threads add up parts of them, also
            numbers that are only added to.
    """
    tiles = {loop.var.name, *_tile_elements(loop.body, loop.var.name)}
    written = [w for s in loop.body for w in written_buffers(s) if w not in apart]
    for name in dict.fromkeys(written):
        if any(name in zeroed_buffers(s) for s in loop.body):
            return f"all of {name} is zeroed in each iteration"
        found = [a for s in loop.body for a in accesses(s) if a.buffer == name]
        axes = [
            {k for k, s in enumerate(a.subscripts) if s.variable in tiles and s.base is None}
            for a in found
        ]
        if not set.intersection(*axes):
            return f"{name} is not walked by {loop.var.name} on one axis at every access"
        spaces = {s.offset for a in found for s in a.subscripts if s.variable in tiles}
        if len(spaces) > 1:
            return f"{name} is walked by {loop.var.name} at different offsets"
    return None


def parallel_chain(loop: Loop) -> Iterator[Loop]:
    """Parallel loops that stand directly inside each other, from ``loop`` on."""
    found: Stmt = loop
    while isinstance(found, Loop) and found.parallel:
        yield found
        if len(found.body) != 1:
            return
        found = found.body[0]


def summed_numbers(loop: Loop, buffers: Mapping[str, Buffer]) -> frozenset[str]:
    """Numbers that a loop adds to and uses for nothing else."""
    added, used = set[str](), set[str]()

    def walk(body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            match stmt:
                case Loop():
                    walk(stmt.body)
                case Assign(out, expr, accumulate=True):
                    added.add(out.buffer)
                    used.update(x.buffer for x in leaves(expr) if isinstance(x, Access))
                case _:
                    used.update(used_buffers(stmt))

    walk(loop.body)
    return frozenset(name for name in added - used if not buffers[name].axes)


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
    """Where statements and fetches stand in the text of a module, counted from 0.

    Attributes:
        uses: of each buffer, all its positions in order.
        kernels: first position of each kernel and the position behind its last one.
        constant: number of positions in the constant phase.
    """

    uses: Mapping[str, tuple[int, ...]]
    kernels: Mapping[str, tuple[int, int]]
    constant: int


def positions(module: Module) -> Positions:
    """Number the statements and fetches: each statement that is no loop takes one position."""
    bodies = {k.name: k.body for k in module.kernels}
    uses: dict[str, list[int]] = {}
    kernels: dict[str, tuple[int, int]] = {}
    count = 0

    def walk(items: tuple[Host | Stmt, ...]) -> None:
        nonlocal count
        for item in items:
            match item:
                case HostLoop(_, body) | Loop(_, body):
                    walk(body)
                case Launch(kernel):
                    first = count
                    walk(bodies[kernel])
                    kernels[kernel] = (first, count)
                case _:
                    names = (item.buffer,) if isinstance(item, Fetch) else used_buffers(item)
                    for name in names:
                        uses.setdefault(name, []).append(count)
                    count += 1

    walk(module.host_constant)
    constant = count
    walk(module.host_volatile)
    return Positions({name: tuple(found) for name, found in uses.items()}, kernels, constant)


def launches(host: tuple[Host, ...]) -> Iterator[str]:
    """Kernels that a host program launches, in the order of its text."""
    for item in host:
        match item:
            case HostLoop(_, body):
                yield from launches(body)
            case Launch(kernel):
                yield kernel
            case Fetch():
                continue
            case _:
                assert_never(item)


def zeroed_buffers(stmt: Stmt) -> tuple[str, ...]:
    """Names of the buffers that are zeroed as a whole."""
    match stmt:
        case Loop(_, body):
            return tuple(name for s in body for name in zeroed_buffers(s))
        case Zero(buffer):
            return (buffer,)
        case Assign() | Gemm():
            return ()
        case _:
            assert_never(stmt)


def _tile_elements(body: tuple[Stmt, ...], base: str) -> Iterator[str]:
    for stmt in body:
        match stmt:
            case Loop(_, inner):
                yield from _tile_elements(inner, base)
            case Zero():
                continue
            case Assign() | Gemm():
                yield from (v.name for v in band_of(stmt) if v.base == base)
            case _:
                assert_never(stmt)


def band_of(stmt: Assign | Gemm) -> tuple[BandVar, ...]:
    """Own variables of a statement, outermost first."""
    match stmt:
        case Assign():
            return stmt.band
        case Gemm():
            return (*stmt.batch, *stmt.m, *stmt.n, *stmt.k)
        case _:
            assert_never(stmt)


def is_total(stmt: Assign) -> bool:
    """True for a statement of an epilogue that adds all of its points to one number."""
    return not any(v.name in stmt.out.variables for v in stmt.band)


def is_total_target(access: Access, epilogue: tuple[Assign, ...]) -> bool:
    """True where an epilogue adds up to this number."""
    return any(is_total(s) and s.out == access for s in epilogue)
