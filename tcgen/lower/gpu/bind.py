"""A module bound to a GPU: one launch for each statement or nest, each with its thread mapping.

Reads and makes level 4. Before: kernels of several statements for the threads of a CPU. After:

- a statement outside of loops is a kernel of its own, since all thread blocks are synchronised
  only between launches;
- a nest over single elements stays inside a kernel (fusion in the kernel: each thread computes
  whole points, intermediates are in registers);
- another loop does if its iterations are independent, many enough to fill the GPU, and own little
  memory (thread blocks divide the iterations, intermediates are in shared memory); else it becomes
  a loop of the host (fusion by launch), and private buffers of its body move to the arena;
- a product without a scheme is a launch of the library (:mod:`~tcgen.lower.gpu.library`);
- complex conjugates are taken where they are read, and not stored;
- products that add to the same elements use one tile in registers, and later statements that use
  only these elements are its epilogue, before the elements are stored.

Thread mappings are chosen under the planning extents and are right for all extents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import assert_never

from ...hardware import PRIVATE_SHARED_BYTES
from ...ir.loop_analysis import (
    Positions,
    added_to,
    blocks_parallel,
    parallel_chain,
    positions,
    private_to,
    statements,
    used_buffers,
)
from ...ir.loops import (
    Assign,
    Buffer,
    Fetch,
    Gemm,
    Host,
    HostLoop,
    Kernel,
    Launch,
    Loop,
    LoopVar,
    Module,
    Stmt,
    Zero,
)
from ...ir.thread_mapping import Library, Nest, ThreadNest
from ...records.loops import buffer_bytes, launched
from ...thresholds.gpu import GpuThresholds
from ..host import variables_of
from ..layout import GpuContext
from ..names import unique
from .conjugates import with_conjugates
from .fuse_launches import as_assign
from .launch_order import LaunchFuser
from .liveness import most_held, with_lives, without_tile_targets
from .thread_mapping import mapping_of, pointwise
from .tiles import tiles_of_block

_THREADS = 128  # threads of a block of a nest


def bind_gpu(
    module: Module,
    extents: Mapping[str, int],
    thresholds: GpuThresholds = GpuThresholds(),
    *,
    thrifty: bool = False,
) -> Module:
    """The module, with or without matrix products, with a thread mapping in every kernel.

    ``thrifty``: launches are fused only as far as no more memory is live at one time than in the
    order of the plan, which promised it.
    """
    binder = _Binder(module, extents, thresholds)
    constant, volatile = (
        binder.host(items, ()) for items in (module.host_constant, module.host_volatile)
    )
    order = (*launched(constant), *launched(volatile))
    cut = replace(
        module,
        buffers=tuple(_placed(module, binder.made, order).values()),
        kernels=tuple(binder.made[name] for name in order),
        host_constant=constant,
        host_volatile=volatile,
    )
    most = most_held(cut, extents)
    conjugated = with_conjugates(cut)
    if thrifty and most_held(conjugated, extents) > most:
        conjugated = cut
    candidates = (
        without_tile_targets(binder.mapped(fused))
        for fused in (
            _fused(conjugated, extents, thresholds, moving=True),
            _fused(conjugated, extents, thresholds, moving=False),
            conjugated,
        )
    )
    if not thrifty:
        return next(candidates)
    return next(m for m in candidates if most_held(m, extents) <= most)


def _fused(
    cut: Module, extents: Mapping[str, int], thresholds: GpuThresholds, *, moving: bool
) -> Module:
    """The module with fused launches; ``moving``: launches may be reordered for that."""
    buffers = {b.name: b for b in cut.buffers}
    context = GpuContext(buffers, extents, thresholds)
    inlinable = frozenset(n for n, b in buffers.items() if b.place == "arena" and not b.keep)
    kernels = {k.name: k for k in cut.kernels}
    fuser = LaunchFuser(kernels, context, inlinable, moving=moving)
    constant, volatile = fuser.all(cut.host_constant), fuser.all(cut.host_volatile)
    order = (*launched(constant), *launched(volatile))
    after = replace(
        cut,
        kernels=tuple(fuser.kernels[name] for name in order),
        host_constant=constant,
        host_volatile=volatile,
    )
    return with_lives(cut, after, fuser.parts)


class _Binder:
    """Cuts the kernels of a module; ``made`` collects the new ones by name."""

    def __init__(
        self, module: Module, extents: Mapping[str, int], thresholds: GpuThresholds
    ) -> None:
        self.context = GpuContext({b.name: b for b in module.buffers}, extents, thresholds)
        self.kernels = {k.name: k for k in module.kernels}
        self.made: dict[str, Kernel] = {}

    def host(self, items: tuple[Host, ...], around: tuple[LoopVar, ...]) -> tuple[Host, ...]:
        """Host statements with every launch replaced by those of its pieces."""
        result: list[Host] = []
        for item in items:
            match item:
                case HostLoop(var, body):
                    result.append(HostLoop(var, self.host(body, (*around, var))))
                case Launch(name):
                    kernel = self.kernels[name]
                    result += [self.cut(stmt, kernel, around) for stmt in kernel.body]
                case Fetch():
                    result.append(item)
                case _:
                    assert_never(item)
        return tuple(result)

    def cut(self, stmt: Stmt, kernel: Kernel, around: tuple[LoopVar, ...]) -> Host:
        """A statement as a launch, or as a host loop of launches."""
        if isinstance(stmt, Loop) and not self.fits_block(stmt, kernel):
            inner = tuple(self.cut(s, kernel, (*around, stmt.var)) for s in stmt.body)
            return HostLoop(stmt.var, inner)
        plain = _plain(stmt)
        used = set(variables_of(plain))
        name = unique(kernel.name, self.made)
        own = Kernel(name, kernel.comment, tuple(v for v in around if v.name in used), (plain,))
        self.made[name] = own
        return Launch(name)

    def fits_block(self, loop: Loop, kernel: Kernel) -> bool:
        """True if thread blocks may divide the iterations of a loop, and these keep a GPU busy."""
        buffers, extents = self.context.buffers, self.context.extents
        own = private_to(loop, kernel, buffers)
        summed = _summed_by_blocks(loop, own, self.context)
        if blocks_parallel(loop, own.union(summed)) is not None or _calls_library(loop):
            return False
        # A private buffer that other statements also use cannot belong to a block.
        shared = (n for n in used_buffers(loop) if n not in own)
        if any(buffers[n].place in ("private", "register") for n in shared):
            return False
        if sum(buffer_bytes(buffers[n], extents) for n in own) > PRIVATE_SHARED_BYTES:
            return False
        if not summed and pointwise(loop, own, self.context):
            return True
        nest = _parallel(loop, own.union(summed))
        together = (inner.var for inner in parallel_chain(nest))
        count, thresholds = prod(map(self.context.iterations, together)), self.context.thresholds
        busy = count >= thresholds.nest_iterations
        return busy or self.context.points((loop,)) <= thresholds.block_points * count

    def mapped(self, module: Module) -> Module:
        """The module with a thread mapping in every kernel."""
        buffers = {b.name: b for b in module.buffers}
        context = replace(self.context, buffers=buffers)
        kernels = tuple(_mapped(kernel, context) for kernel in module.kernels)
        for kernel in kernels:
            if isinstance(kernel.mapping, ThreadNest):
                for name in dict.fromkeys(n for s in kernel.body for n in used_buffers(s)):
                    if buffers[name].place == "private":
                        buffers[name] = replace(buffers[name], place="register")
        return replace(module, buffers=tuple(buffers.values()), kernels=kernels)


def _mapped(kernel: Kernel, context: GpuContext) -> Kernel:
    """The kernel with its thread mapping."""
    (first, *_) = kernel.body
    if isinstance(first, Gemm):
        return replace(kernel, mapping=Library())
    if not isinstance(first, Loop):
        return mapping_of(kernel, context)
    own = private_to(first, kernel, context.buffers)
    summed = _summed_by_blocks(first, own, context)
    loop = _parallel(first, own.union(summed))
    if not summed and pointwise(loop, own, context):
        return replace(kernel, body=(loop,), mapping=ThreadNest(_THREADS))
    products = tuple(
        tiles_of_block(stmt, _THREADS, context) if isinstance(stmt, Assign) else None
        for stmt, _ in statements((loop,))
    )
    mapping = Nest(_THREADS, context.thresholds.nest_blocks, products, summed)
    return replace(kernel, body=(loop,), mapping=mapping)


def _summed_by_blocks(loop: Loop, own: frozenset[str], context: GpuContext) -> tuple[str, ...]:
    """Small arrays of which each block adds up a copy, since iterations add to the same elements.

    None if the iterations are independent without, or are not with such copies.
    """
    if blocks_parallel(loop, own) is None:
        return ()
    buffers = context.buffers
    small = tuple(
        name
        for name in added_to(loop, buffers)
        if buffer_bytes(buffers[name], context.extents) <= context.thresholds.summed_bytes
    )
    if blocks_parallel(loop, own.union(small)) is not None:
        return ()
    return tuple(
        name for name in small if blocks_parallel(loop, own | (set(small) - {name})) is not None
    )


def _parallel(loop: Loop, own: frozenset[str]) -> Loop:
    """The loop, and loops directly inside it, marked parallel as far as that is legal."""
    if blocks_parallel(loop, own) is not None:
        return loop
    body = loop.body
    if len(body) == 1 and isinstance(body[0], Loop):
        body = (_parallel(body[0], own),)
    return replace(loop, body=body, parallel=True)


def _calls_library(stmt: Stmt) -> bool:
    """True if a library computes one of the statements of a loop: only the host can call it."""
    return any(isinstance(s, Gemm) and s.scheme is None for s, _ in statements((stmt,)))


def _plain(stmt: Stmt) -> Stmt:
    """The statement without its parallel loops, blocks, and packing for a CPU."""
    match stmt:
        case Loop(body=body):
            return replace(stmt, body=tuple(_plain(s) for s in body), parallel=False)
        case Zero():
            return stmt
        case Assign():
            return replace(stmt, parallel=0, block=())
        case Gemm(scheme=None):
            return replace(stmt, parallel=False)
        case Gemm():
            return as_assign(stmt)
        case _:
            assert_never(stmt)


def _placed(
    module: Module, made: Mapping[str, Kernel], order: tuple[str, ...]
) -> dict[str, Buffer]:
    """Buffers with their places: private ones of more than one nest move to the arena.

    Statements keep their order and number, so lives do not change.
    """
    users: dict[str, list[Kernel]] = {}
    for name in order:
        kernel = made[name]
        for used in dict.fromkeys(n for s in kernel.body for n in used_buffers(s)):
            users.setdefault(used, []).append(kernel)
    where = positions(module)
    buffers = {}
    for buffer in module.buffers:
        mine = users.get(buffer.name, [])
        alone = len(mine) == 1 and isinstance(mine[0].body[0], Loop)
        if buffer.place in ("private", "register") and mine and not alone:
            uses = where.uses[buffer.name]
            buffer = replace(buffer, place="arena", live=_life(buffer, uses, where))
        buffers[buffer.name] = buffer
    return buffers


def _life(buffer: Buffer, uses: tuple[int, ...], where: Positions) -> tuple[int, int]:
    """The life of a buffer; a register has none yet, so it lives over all of its kernel."""
    first, last = buffer.live
    if buffer.place == "private" and first <= uses[0] and uses[-1] <= last:
        return buffer.live
    start, end = next((a, b) for a, b in where.kernels.values() if a <= uses[0] < b)
    return start, end - 1
