"""A module bound to a GPU: one launch for each statement or nest, each with its share of work.

Reads and makes level 4. Before: kernels of several statements for the threads of a CPU. After:

- a statement outside loops is a kernel of its own, since only a launch makes all blocks wait;
- a loop stays inside a kernel where its iterations are independent, many enough to fill the GPU,
  and own little memory (fusion in the kernel: a block walks the nest, intermediates in shared
  memory); else it becomes a loop of the host (fusion by launch), and what was private to its
  body moves to the arena;
- products that add to the same elements share one tile in registers, and what is done with those
  elements alone is done there, before they are stored.

Shares are chosen under the planning extents and right for all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from ...ir.expr import Prod
from ...ir.loop_analysis import (
    Positions,
    blocks_parallel,
    launches,
    positions,
    private_to,
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
from ...ir.thread_mapping import Nest
from ..host import variables_of
from ..layout import iterations, points
from ..names import unique
from ..scratch_budget import buffer_bytes
from .launch_order import Joiner
from .liveness import in_tiles, most_held, with_lives
from .thread_mapping import share_of

THREADS = 128  # of a block that walks a nest
FILLING = 128  # independent iterations that keep a GPU busy
SMALL = 2**15  # points of one iteration that a block may walk alone
SHARED_BYTES = 46 * 1024  # of private buffers of a block, in shared memory on every GPU
MOST_BLOCKS = 1024  # of a nest; each takes further iterations in turn


def bind_gpu(module: Module, extents: Mapping[str, int], *, thrifty: bool = False) -> Module:
    """The module with a share in every kernel.

    Args:
        module: verified loops, with or without matrix products.
        extents: for which the shares are chosen.
        thrifty: launches are joined only as far as no more memory is held at one time than in the
            order of the plan, which promised it.
    """
    binder = _Binder(module, extents, {b.name: b for b in module.buffers})
    constant, volatile = (
        binder.host(items, ()) for items in (module.host_constant, module.host_volatile)
    )
    order = (*launches(constant), *launches(volatile))
    cut = replace(
        module,
        buffers=tuple(_placed(module, binder.made, order).values()),
        kernels=tuple(binder.made[name] for name in order),
        host_constant=constant,
        host_volatile=volatile,
    )
    ways = ("moving", "neighbours", "none")
    made = (in_tiles(binder.shared(_joined(cut, extents, way))) for way in ways)
    if not thrifty:
        return next(made)
    most = most_held(cut, extents)
    return next(m for m in made if most_held(m, extents) <= most)


def _joined(cut: Module, extents: Mapping[str, int], way: str) -> Module:
    """The module with launches joined, wherever they stand, or only neighbours, or none."""
    if way == "none":
        return cut
    buffers = {b.name: b for b in cut.buffers}
    passing = frozenset(n for n, b in buffers.items() if b.place == "arena" and not b.keep)
    kernels = {k.name: k for k in cut.kernels}
    joiner = Joiner(kernels, buffers, extents, passing, moving=way == "moving")
    constant, volatile = joiner.all(cut.host_constant), joiner.all(cut.host_volatile)
    order = (*launches(constant), *launches(volatile))
    after = replace(
        cut,
        kernels=tuple(joiner.kernels[name] for name in order),
        host_constant=constant,
        host_volatile=volatile,
    )
    return with_lives(cut, after, joiner.parts)


class _Binder:
    """Cuts the kernels of a module; ``made`` collects the new ones by name."""

    def __init__(
        self, module: Module, extents: Mapping[str, int], buffers: Mapping[str, Buffer]
    ) -> None:
        self.extents = extents
        self.buffers = buffers
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
        """True where blocks may walk the iterations of a loop, and that keeps a GPU busy."""
        own = private_to(loop, kernel, self.buffers)
        if blocks_parallel(loop, own) is not None:
            return False
        # A private buffer that other statements share cannot belong to a block.
        if any(
            self.buffers[n].place in ("private", "register") and n not in own
            for n in used_buffers(loop)
        ):
            return False
        if sum(buffer_bytes(self.buffers[n], self.extents) for n in own) > SHARED_BYTES:
            return False
        count = iterations(loop, self.extents)
        whole = points((loop,), self.buffers, self.extents)
        return count >= FILLING or whole <= SMALL * count

    def shared(self, module: Module) -> Module:
        """The module with a share in every kernel."""
        buffers = {b.name: b for b in module.buffers}
        kernels = tuple(self.share(kernel, buffers) for kernel in module.kernels)
        return replace(module, kernels=kernels)

    def share(self, kernel: Kernel, buffers: Mapping[str, Buffer]) -> Kernel:
        """The kernel with its share."""
        (first, *_) = kernel.body
        if not isinstance(first, Loop):
            return share_of(kernel, buffers, self.extents)
        loop = _parallel(first, private_to(first, kernel, buffers))
        return replace(kernel, body=(loop,), share=Nest(THREADS, MOST_BLOCKS))


def _parallel(loop: Loop, own: frozenset[str]) -> Loop:
    """The loop, and loops directly inside it, marked parallel as far as that is legal."""
    if blocks_parallel(loop, own) is not None:
        return loop
    body = loop.body
    if len(body) == 1 and isinstance(body[0], Loop):
        body = (_parallel(body[0], own),)
    return replace(loop, body=body, parallel=True)


def _plain(stmt: Stmt) -> Stmt:
    """The statement without what is meant for the threads and the BLAS of a CPU."""
    match stmt:
        case Loop(body=body):
            return replace(stmt, body=tuple(_plain(s) for s in body), parallel=False)
        case Zero():
            return stmt
        case Assign():
            return replace(stmt, parallel=0, block=())
        case Gemm():
            band = (*stmt.batch, *stmt.m, *stmt.n, *stmt.k)
            product = Prod((stmt.a, stmt.b))
            return Assign(stmt.out, product, stmt.coeff, stmt.accumulate, band)
        case _:
            assert_never(stmt)


def _placed(
    module: Module, made: Mapping[str, Kernel], order: tuple[str, ...]
) -> dict[str, Buffer]:
    """Buffers with their places: private ones that are no longer one nest's go to the arena.

    Statements keep their order and number, so lives stay as they were.
    """
    users: dict[str, list[Kernel]] = {}
    for name in order:
        kernel = made[name]
        for used in dict.fromkeys(n for s in kernel.body for n in used_buffers(s)):
            users.setdefault(used, []).append(kernel)
    found = positions(module)
    buffers = {}
    for buffer in module.buffers:
        mine = users.get(buffer.name, [])
        alone = len(mine) == 1 and isinstance(mine[0].body[0], Loop)
        if buffer.place in ("private", "register") and mine and not alone:
            uses = found.uses[buffer.name]
            buffer = replace(buffer, place="arena", live=_life(buffer, uses, found))
        buffers[buffer.name] = buffer
    return buffers


def _life(buffer: Buffer, uses: tuple[int, ...], found: Positions) -> tuple[int, int]:
    """The life of a buffer; a register has none yet: it may be used in all of its kernel."""
    first, last = buffer.live
    if buffer.place == "private" and first <= uses[0] and uses[-1] <= last:
        return buffer.live
    start, end = next((a, b) for a, b in found.kernels.values() if a <= uses[0] < b)
    return start, end - 1
