"""Kernels on a GPU: compiled by the device, launched on its current stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ...artifact.folder import Artifact
from ...artifact.grid import (
    LARGEST_GRID,
    NARROW,
    SHARED_BYTES,
    SPILLED_BLOCKS,
    BlockCount,
    GridEntry,
)
from ...artifact.kernel_abi import NARROW_INTEGERS
from ...artifact.manifest import SOURCES, KernelEntry, Manifest
from ...errors import ExtentError
from ...records.loops import Fetch
from ..call.host_loops import PhaseBuffers, walk
from ..call.layout import CallLayout
from ..device_protocol import Function, Gpu
from ..fork_safe_lock import Once
from ..host_program import Values
from ..memory import block_bytes, scratch_bytes, scratch_name
from .cupy_device import open_device
from .library import LibraryLaunch, prepare_product

REMEMBERED_LAUNCHES = 1024  # recent launches, by kernel and layout, that each program remembers


class GpuBackend:
    """The compiled kernels of a program, and the GPU they run on.

    Kernels are queued on the current stream; only copies of results to the CPU wait for them.
    """

    threads = 1

    def __init__(self, artifact: Artifact) -> None:
        self.manifest = artifact.manifest
        self._device = Once(lambda: open_device())
        # With integers of 64 and of 32 bits; each is compiled when a launch needs it.
        self._wide = Once(lambda: self.device.module(artifact.text(SOURCES["cuda"])))
        self._narrow = Once(
            lambda: self.device.module(f"{NARROW_INTEGERS}\n{artifact.text(SOURCES['cuda'])}")
        )
        self._kernels = {k.name: k for k in artifact.manifest.kernels}
        self._prepared = lru_cache(maxsize=REMEMBERED_LAUNCHES)(self._prepare)

    @property
    def device(self) -> Gpu:
        """CuPy's current GPU; UnavailableError without CuPy, a driver or a GPU."""
        return self._device.value or self._device.get()

    def build(self) -> None:
        """Compile the source, and load the libraries for which there are products."""
        planned = dict(self.manifest.planning_extents)
        kernels = [k for k in self.manifest.kernels if k.grid is not None]
        if not all(base in planned for kernel in kernels for base in kernel.spaces):
            planned = dict.fromkeys(self.manifest.bases, 1)
        for narrow in {_is_narrow(kernel, self.manifest, planned) for kernel in kernels}:
            (self._narrow if narrow else self._wide).get()
        self.load_libraries()

    def load_libraries(self) -> list[str]:
        """Versions of the libraries for which there are products."""
        libraries = (k.library for k in self.manifest.kernels if k.library is not None)
        return [self.device.load_library(library) for library in dict.fromkeys(libraries)]

    def run(self, buffers: PhaseBuffers, fetch: Callable[[Fetch, Values], None]) -> None:
        """Queue one phase of the host program."""
        device, layout = self.device, buffers.layout
        number = device.number
        # The arguments of a launch, loop variables excepted, are resolved at the first one.
        resolved: dict[str, Callable[[Values], None]] = {}

        def launch(name: str, values: Values) -> None:
            queue = resolved.get(name)
            if queue is None:
                queue = resolved[name] = self._prepared(name, number, layout).resolved(buffers)
            queue(values)

        try:
            walk(buffers, launch, fetch)
        except Exception:
            with device.translated():
                raise

    def _prepare(self, name: str, _: int, layout: CallLayout) -> _Launch | LibraryLaunch:
        """The launch of a kernel on the GPU of a number, which is the current one."""
        kernel, extents = self._kernels[name], layout.extents
        if kernel.product is not None:
            return prepare_product(kernel, self.manifest, extents, self.device)
        narrow = _is_narrow(kernel, self.manifest, extents)
        module = (self._narrow if narrow else self._wide).get()
        integer = np.int32 if narrow else np.int64
        return _prepare(kernel, self.manifest, extents, self.device, module, integer)


@dataclass(frozen=True, slots=True)
class _Launch:
    """A kernel with everything that depends on the extents.

    ``finish`` is the second pass, or None. ``count`` and ``most`` count its blocks and those of a
    launch, without splits; ``shared_bytes`` is dynamic shared memory of a block. ``numbers`` are
    the arguments between the arrays and the host variables, and ``integer`` the type of all that
    are numbers. ``scratch`` names its scratch in the arena, for which it has an argument if
    ``takes_scratch``.
    """

    kernel: KernelEntry
    function: Function
    finish: Function | None
    grid: GridEntry
    count: BlockCount
    most: int
    shared_bytes: int
    numbers: tuple[Any, ...]
    scratch: str
    scratch_bytes: int
    takes_scratch: bool
    integer: type[np.signedinteger[Any]]

    def resolved(self, buffers: PhaseBuffers) -> Callable[[Values], None]:
        """A function that queues the kernel, and its second pass, at values of the host variables.

        The function holds the arrays of the buffers.
        """
        args: tuple[Any, ...] = tuple([buffers.named(name) for name in self.grid.arguments])
        if self.takes_scratch:
            start = buffers.phase.offsets.get(self.scratch, 0)
            args = (*args, buffers.own[start : start + self.scratch_bytes])
        args = (*args, *self.numbers)
        if self.kernel.host:
            return partial(self._queue, buffers, args)
        if buffers.part is not None:  # the same for all launches of a phase
            # The end of the whole phase is beyond all parts, and beyond integers of 32 bits.
            most = int(np.iinfo(self.integer).max)
            part = buffers.host_values(self.kernel, {})
            args = (*args, *(self.integer(min(n, most)) for n in part))
        return self._fixed(args)

    def _fixed(self, args: tuple[Any, ...]) -> Callable[[Values], None]:
        grid, block = (self.most * self.grid.splits,), (self.grid.threads,)
        ends = (1 if self.grid.once else self.most,)
        function, finish, shared, most = self.function, self.finish, self.shared_bytes, self.most

        def queue(_: Values) -> None:
            if most:
                function(grid, block, args, shared_mem=shared)
            if finish is not None and ends[0]:
                finish(ends, block, args)

        return queue

    def _queue(self, buffers: PhaseBuffers, args: tuple[Any, ...], values: Values) -> None:
        blocks = min(self.most, self.count(values))
        if blocks == 0 and not self.grid.once:
            return
        args += tuple(map(self.integer, buffers.host_values(self.kernel, values)))
        block = (self.grid.threads,)
        if blocks:
            self.function((blocks * self.grid.splits,), block, args, shared_mem=self.shared_bytes)
        if self.finish is not None:
            self.finish((1 if self.grid.once else blocks,), block, args)


def _is_narrow(kernel: KernelEntry, manifest: Manifest, extents: Mapping[str, int]) -> bool:
    """True if integers of 32 bits hold all that a kernel counts at some extents."""
    assert kernel.grid is not None, f"kernel {kernel.name} has no grid"
    largest = kernel.grid.largest(partial(manifest.extent, extents=extents))
    return max(largest, scratch_bytes(kernel, manifest, extents)) < NARROW


def _prepare(
    kernel: KernelEntry,
    manifest: Manifest,
    extents: Mapping[str, int],
    device: Gpu,
    module: Any,
    integer: type[np.signedinteger[Any]],
) -> _Launch:
    grid = kernel.grid
    assert grid is not None, f"kernel {kernel.name} has no grid"
    count = grid.at(partial(manifest.extent, extents=extents))
    blocks = count({})
    own = block_bytes(kernel, manifest, extents)
    fits = own <= SHARED_BYTES
    most_shared = grid.shared_bytes + (SHARED_BYTES if kernel.private else 0)
    if blocks * grid.splits > LARGEST_GRID:
        here = ", ".join(f"{space}={extents.get(space, 0)}" for space in manifest.bases)
        raise ExtentError(
            f"kernel {kernel.name} takes {blocks * grid.splits:,} blocks at {here}, a GPU runs "
            f"{LARGEST_GRID:,} at most: compile for extents close to these, which chooses others"
        )
    numbers = [int(fits)] if kernel.private else []
    numbers += [extents[space] for space in kernel.spaces]
    return _Launch(
        kernel=kernel,
        function=device.function(module, kernel.symbol, most_shared),
        finish=None if grid.finish is None else device.function(module, grid.finish, 0),
        grid=grid,
        count=count,
        most=blocks if fits else min(blocks, SPILLED_BLOCKS),
        shared_bytes=grid.shared_bytes + (own if fits else 0),
        numbers=tuple(map(integer, numbers)),
        scratch=scratch_name(kernel),
        scratch_bytes=scratch_bytes(kernel, manifest, extents),
        takes_scratch=grid.finish is not None or bool(kernel.private),
        integer=integer,
    )
