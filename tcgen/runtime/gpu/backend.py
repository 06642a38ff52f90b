"""Kernels on a GPU: compiled by the device, launched on its current stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...artifact.folder import Artifact
from ...artifact.grid import LARGEST_GRID, SHARED_BYTES, SPILLED_BLOCKS, GridEntry
from ...artifact.manifest import SOURCES, FetchEntry, KernelEntry, Manifest
from ...errors import ExtentError
from ..call.buffers import PhaseBuffers
from ..call.host_loops import walk
from ..device_protocol import CompiledModule, Function, Gpu
from ..fork_safe_lock import Once
from ..host_program import Values
from ..memory.gpu_usage import block_bytes, scratch_bytes, scratch_name
from .cupy_device import open_device
from .library import LibraryLaunch, prepare_product

REMEMBERED_LAUNCHES = 1024  # recent launches, by kernel and extents, that each program remembers


class GpuBackend:
    """The compiled kernels of a program, and the GPU they run on.

    Kernels are queued on the current stream; only copies of results to the CPU wait for them.
    """

    threads = 1

    def __init__(self, artifact: Artifact) -> None:
        self.manifest = artifact.manifest
        self._device = Once(lambda: open_device())
        self._module = Once(lambda: self.device.module(artifact.text(SOURCES["cuda"])))
        self._kernels = {k.name: k for k in artifact.manifest.kernels}
        self._launches: dict[tuple[str, tuple[int, ...]], _Launch | LibraryLaunch] = {}

    @property
    def device(self) -> Gpu:
        """CuPy's current GPU.

        Raises:
            UnavailableError: no CuPy, no driver or no GPU.
        """
        return self._device.get()

    def build(self) -> None:
        """Compile the source, and load the library if there are products for it."""
        self._module.get()
        if any(k.product is not None for k in self.manifest.kernels):
            self.device.load_library()

    def run(self, buffers: PhaseBuffers, fetch: Callable[[FetchEntry, Values], None]) -> None:
        """Queue one phase of the host program."""
        arrays, extents, arena = buffers.views(), buffers.layout.extents, buffers.own
        offsets = dict(buffers.phase.arena.offsets)

        def launch(name: str, values: Values) -> None:
            ready = self._prepared(self._kernels[name], extents)
            if isinstance(ready, LibraryLaunch):
                ready.launch(arrays, values)
                return
            start = offsets.get(ready.scratch, 0)
            given = buffers.host_values(ready.kernel, values)
            ready.launch(arrays, values, given, arena[start : start + ready.scratch_bytes])

        walk(buffers, launch, fetch)

    def _prepared(self, kernel: KernelEntry, extents: Mapping[str, int]) -> _Launch | LibraryLaunch:
        """The launch of a kernel at some extents; recent ones are remembered."""
        key = (kernel.name, tuple(extents[b] for b in self.manifest.bases))
        ready = self._launches.get(key)
        if ready is None:
            if kernel.product is None:
                ready = _prepare(kernel, self.manifest, extents, self._module.get())
            else:
                ready = prepare_product(kernel, self.manifest, extents, self.device)
            recent = list(self._launches.items())[1 - REMEMBERED_LAUNCHES :]
            self._launches = {**dict(recent), key: ready}
        return ready


@dataclass(frozen=True, slots=True)
class _Launch:
    """A kernel with everything that depends on the extents.

    Attributes:
        kernel: its entry in the manifest.
        function, finish: the compiled kernel; its second pass, or None.
        grid, extent: they count its blocks; extent of each space.
        blocks: most blocks of a launch, without splits.
        shared_bytes: of dynamic shared memory of a block.
        numbers: arguments between the arrays and the host variables.
        arguments: names of the arrays.
        scratch, scratch_bytes: name of its scratch in the arena, and its bytes.
        takes_scratch: it has an argument for the scratch.
    """

    kernel: KernelEntry
    function: Function
    finish: Function | None
    grid: GridEntry
    extent: Callable[[str], int]
    blocks: int
    shared_bytes: int
    arguments: tuple[str, ...]
    numbers: tuple[np.int64, ...]
    scratch: str
    scratch_bytes: int
    takes_scratch: bool

    def launch(
        self, arrays: Mapping[str, Any], values: Values, given: tuple[int, ...], scratch: Any
    ) -> None:
        """Queue the kernel, and its second pass; it takes ``given`` behind the extents."""
        blocks = self.blocks
        if self.kernel.host:
            blocks = min(blocks, self.grid.blocks(self.extent, values))
        if blocks == 0 and not self.grid.once:
            return
        args = (
            *(arrays[name] for name in self.arguments),
            *((scratch,) if self.takes_scratch else ()),
            *self.numbers,
            *map(np.int64, given),
        )
        block = (self.grid.threads,)
        if blocks:
            self.function((blocks * self.grid.splits,), block, args, shared_mem=self.shared_bytes)
        if self.finish is not None:
            self.finish((1 if self.grid.once else blocks,), block, args)


def _prepare(
    kernel: KernelEntry, manifest: Manifest, extents: Mapping[str, int], module: CompiledModule
) -> _Launch:
    grid = kernel.grid
    assert grid is not None, f"kernel {kernel.name} has no grid"
    extent = partial(manifest.extent, extents=extents)
    blocks = grid.blocks(extent)
    own = block_bytes(kernel, manifest, extents)
    fits = own <= SHARED_BYTES
    if blocks * grid.splits > LARGEST_GRID:
        here = ", ".join(f"{space}={extents.get(space, 0)}" for space in manifest.bases)
        raise ExtentError(
            f"kernel {kernel.name} takes {blocks * grid.splits:,} blocks at {here}, a GPU runs "
            f"{LARGEST_GRID:,} at most: compile for extents close to these, which chooses others"
        )
    numbers = [np.int64(fits)] if kernel.private else []
    return _Launch(
        kernel=kernel,
        function=module.get_function(kernel.symbol),
        finish=None if grid.finish is None else module.get_function(grid.finish),
        grid=grid,
        extent=extent,
        blocks=blocks if fits else min(blocks, SPILLED_BLOCKS),
        shared_bytes=own if fits else 0,
        arguments=grid.arguments,
        numbers=(*numbers, *(np.int64(extents[space]) for space in kernel.spaces)),
        scratch=scratch_name(kernel),
        scratch_bytes=scratch_bytes(kernel, manifest, extents),
        takes_scratch=grid.finish is not None or bool(kernel.private),
    )
