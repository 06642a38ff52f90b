"""Running kernels on a GPU: arrays go there where they are not there yet, launches follow.

Everything is queued on the device's current stream; only results for the CPU are waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ...artifact.arena import Layout
from ...artifact.folder import Artifact
from ...artifact.grid import LARGEST_GRID, SHARED_BYTES, SPILLED_BLOCKS, GridEntry
from ...artifact.manifest import (
    BufferEntry,
    FetchEntry,
    HostEntry,
    KernelEntry,
    Manifest,
    TensorEntry,
)
from ...artifact.sizes import stored_shape
from ...errors import ArgumentError, ExtentError, ReadOnlyError, ShapeError
from ..arguments import Source, check_dtype, describe
from ..call.kept import Kept
from ..call.results import check_out, check_overlap
from ..device_protocol import CompiledModule, Device, Function
from ..host_program import Values, fetch_tile, walk
from ..memory.footprint import MemoryUse
from ..memory.gpu_usage import block_bytes, scratch_bytes, scratch_name
from ..memory.usage import check_limit
from .cupy_device import open_device, view

Array = npt.NDArray[Any]


class GpuBackend:
    """The compiled kernels of a program, and the device they run on.

    Raises:
        UnavailableError: no CuPy, no driver or no GPU.
        BuildError: the source cannot be compiled.
    """

    threads = 1

    def __init__(self, artifact: Artifact) -> None:
        self.manifest = manifest = artifact.manifest
        self.device: Device = open_device()
        self._module: CompiledModule = self.device.module(artifact.text("kernels.cu"))
        self._kernels = {k.name: k for k in manifest.kernels}
        self._launches: dict[tuple[str, tuple[int, ...]], _Launch] = {}

    def settle(self, sources: Mapping[str, Source]) -> dict[str, Source]:
        """Inputs with every whole array on the device, in C order; generated ones stay as is."""
        whole = {t.name for t in self.manifest.tensors if t.role == "input"}

        def there(name: str, array: Any) -> Any:
            device = self.device
            if not device.holds(array):
                return device.put(array)
            _check_here(name, array, device)
            return device.contiguous(array)

        return {n: there(n, a) if n in whole else a for n, a in sources.items()}

    def hold(self, constants: Mapping[str, Source]) -> tuple[dict[str, Source], int]:
        """Constants on the device for calls on any stream, and the bytes that were copied."""
        settled = self.settle(constants)
        self.device.wait()
        copies = (a for n, a in settled.items() if self.device.holds(a) and a is not constants[n])
        return settled, sum(a.nbytes for a in copies)

    def call(
        self,
        use: MemoryUse,
        sources: Mapping[str, Source],
        extents: Mapping[str, int],
        out: dict[str, Any] | None,
        kept: Kept | None,
        *,
        on_device: bool,
    ) -> tuple[dict[str, Any], int]:
        """One call: its results, and the bytes that it allocated on the device beyond the inputs.

        Args:
            use: layout of the arenas.
            sources: all inputs as the caller passed them.
            extents: of the base spaces.
            out: arrays for some or all results, of NumPy or of the device.
            kept: what the constant phase left, or None to run it here.
            on_device: new results stay on the device.
        """
        manifest, device = self.manifest, self.device
        copies = sum(
            a.nbytes
            for t in manifest.tensors
            if t.role == "input" and not (device.holds(a := sources[t.name]) and device.direct(a))
        )
        held = 0 if kept is None else kept.held_bytes
        needed = use.peak + copies + held
        check_limit(manifest, extents, needed)
        settled = self.settle(sources)
        results = _DeviceResults(self, dict(use.shapes), settled, out, on_device=on_device)
        callers = {**settled, **results.working}
        if kept is None:
            memory = device.empty((use.kept.total,), "uint8")
            self.phase(0, use, sources, extents, callers, memory)
        else:
            memory = kept.memory
            _check_here("what the bound constants left", memory, device)
            for name, array in kept.outputs.items():
                results.working[name][...] = array
        self.phase(1, use, sources, extents, callers, memory)
        return results.finish(out), needed - use.outputs + results.allocated

    def keep(
        self,
        use: MemoryUse,
        constants: Mapping[str, Source],
        extents: Mapping[str, int],
        outputs: tuple[TensorEntry, ...],
    ) -> tuple[Any, dict[str, Any]]:
        """Run the constant phase; its arena and results, which stay on the device.

        They are there when this returns: the calls that follow may be on other streams.
        """
        made = {
            t.name: self.device.empty(stored_shape(t, self.manifest, extents), t.dtype)
            for t in outputs
        }
        memory = self.device.empty((use.kept.total,), "uint8")
        callers = {**self.settle(constants), **made}
        self.phase(0, use, constants, extents, callers, memory)
        self.device.wait()
        return memory, made

    def phase(
        self,
        number: int,
        use: MemoryUse,
        sources: Mapping[str, Source],
        extents: Mapping[str, int],
        callers: Mapping[str, Any],
        kept: Any,
    ) -> None:
        """Queue one phase of the host program."""
        manifest = self.manifest
        host: tuple[HostEntry, ...] = (manifest.host_constant, manifest.host_volatile)[number]
        if not host:
            return
        layout = use.phases[number]
        arena = self.device.empty((layout.total,), "uint8")
        offsets = dict(layout.offsets)
        arrays: dict[str, Any] = {}
        for buffer in manifest.buffers:
            array = _array(buffer, manifest, extents, callers, ((use.kept, kept), (layout, arena)))
            if array is not None:
                arrays[buffer.name] = array

        def launch(name: str, values: Values) -> None:
            ready = self._prepared(self._kernels[name], extents)
            start = offsets.get(ready.scratch, 0)
            scratch = arena[start : start + ready.scratch_bytes]
            ready.launch(arrays, values, scratch)

        def fetch(entry: FetchEntry, values: Values) -> None:
            self._fetch(entry, arrays, sources, extents, values)

        walk(host, manifest, extents, launch, fetch)

    def _prepared(self, kernel: KernelEntry, extents: Mapping[str, int]) -> _Launch:
        """What launches of a kernel at some extents share; the latest ones are remembered."""
        key = (kernel.name, tuple(extents.get(b, 0) for b in self.manifest.bases))
        ready = self._launches.get(key)
        if ready is None:
            ready = _prepare(kernel, self.manifest, extents, self._module)
            self._launches = {**dict(list(self._launches.items())[-1023:]), key: ready}
        return ready

    def _fetch(
        self,
        entry: FetchEntry,
        arrays: Mapping[str, Any],
        sources: Mapping[str, Source],
        extents: Mapping[str, int],
        values: Values,
    ) -> None:
        """Ask the caller for a tile, and copy it to the device."""
        manifest = self.manifest
        buffer = next(b for b in manifest.buffers if b.name == entry.buffer)
        tensor = next(t for t in manifest.tensors if t.name == (buffer.tensor or buffer.name))
        ranges = []
        for space, length, variable in zip(
            buffer.spaces, buffer.lengths, entry.ranges, strict=True
        ):
            extent = manifest.extent(space, extents)
            low = 0 if variable is None else values[variable]
            high = extent if variable is None else min(low + (length or 1), extent)
            ranges.append(slice(low, high))
        target = arrays[entry.buffer]
        tile = np.zeros(target.shape, buffer.dtype)
        source = sources[tensor.name]
        if self.device.holds(source):
            source = _Slices(self.device, source)
        fetch_tile(tensor, source, tuple(ranges), tile, buffer.order)
        target[...] = self.device.put(tile)


@dataclass(frozen=True, slots=True)
class _Launch:
    """A kernel with all that extents decide.

    Attributes:
        kernel: what is launched.
        function, finish: compiled; the second pass, or None.
        grid, extent: how many blocks run it, given the extent of each space.
        blocks: at most, without splits.
        shared: bytes of dynamic shared memory of a block.
        numbers: arguments between the arrays and the host variables.
        arguments: names of the arrays.
        scratch, scratch_bytes: name of its scratch in the arena, and its bytes.
        takes_scratch: it has an argument for it.
    """

    kernel: KernelEntry
    function: Function
    finish: Function | None
    grid: GridEntry
    extent: Callable[[str], int]
    blocks: int
    shared: int
    arguments: tuple[str, ...]
    numbers: tuple[np.int64, ...]
    scratch: str
    scratch_bytes: int
    takes_scratch: bool

    def launch(self, arrays: Mapping[str, Any], values: Values, scratch: Any) -> None:
        """Queue it, and its second pass."""
        blocks = self.blocks
        if self.kernel.host:
            blocks = min(blocks, self.grid.blocks(self.extent, values))
        if blocks == 0 and not self.grid.once:
            return
        args = (
            *(arrays[name] for name in self.arguments),
            *((scratch,) if self.takes_scratch else ()),
            *self.numbers,
            *(np.int64(values[v]) for v in self.kernel.host),
        )
        block = (self.grid.threads,)
        if blocks:
            self.function((blocks * self.grid.splits,), block, args, shared_mem=self.shared)
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
        shared=own if fits else 0,
        arguments=grid.arguments,
        numbers=(*numbers, *(np.int64(extents[space]) for space in kernel.spaces)),
        scratch=scratch_name(kernel),
        scratch_bytes=scratch_bytes(kernel, manifest, extents),
        takes_scratch=grid.finish is not None or bool(kernel.private),
    )


@dataclass(frozen=True, slots=True)
class _Slices:
    """An array of the device whose slices come to the CPU."""

    device: Device
    array: Any

    def __getitem__(self, key: Any) -> Array:
        return self.device.get(self.array[key])


def _array(
    buffer: BufferEntry,
    manifest: Manifest,
    extents: Mapping[str, int],
    callers: Mapping[str, Any],
    arenas: tuple[tuple[Layout, Any], ...],
) -> Any:
    """A buffer on the device; None if it does not live here now."""
    if buffer.place == "caller":
        return callers.get(buffer.tensor or buffer.name)
    for layout, memory in arenas:
        for name, offset in layout.offsets:
            if name == buffer.name:
                shape = stored_shape(buffer, manifest, extents)
                return view(memory, offset, shape, buffer.dtype)
    return None


class _DeviceResults:
    """Results of one call on the device, and where the caller gets them.

    Attributes:
        working: array on the device for each output.
        allocated: bytes of the new arrays among them.
    """

    def __init__(
        self,
        backend: GpuBackend,
        shapes: Mapping[str, tuple[int, ...]],
        inputs: Mapping[str, Any],
        out: dict[str, Any] | None,
        *,
        on_device: bool,
    ) -> None:
        self._device = device = backend.device
        outputs = [t for t in backend.manifest.tensors if t.role == "output"]
        given = check_out(outputs, out)
        self.working: dict[str, Any] = {}
        self.allocated = 0
        self._returned: dict[str, Any] = {}
        self._on_device = on_device
        for tensor in outputs:
            shape = shapes[tensor.name]
            target = given.get(tensor.name)
            if target is not None:
                self._returned[tensor.name] = target
                _check_target(tensor, target, shape, device)
                # Kernels assume that nothing they write to is also an input or another result.
                taken = [a for a in (*inputs.values(), *self.working.values()) if device.holds(a)]
                direct = device.holds(target) and device.direct(target)
                if direct and not any(device.overlap(target, a) for a in taken):
                    self.working[tensor.name] = target
                    continue
            working = device.empty(shape, tensor.dtype)
            if target is not None and tensor.accumulate:
                working[...] = target if device.holds(target) else device.put(target)
            self.working[tensor.name] = working
            self.allocated += working.nbytes
        check_overlap({n: a for n, a in given.items() if not device.holds(a)})
        # Bounds say it of whole arrays; strided ones may lie between each other's elements.
        there = {n: a for n, a in given.items() if device.holds(a) and device.direct(a)}
        check_overlap(there, device.overlap)

    def finish(self, out: dict[str, Any] | None) -> dict[str, Any]:
        """Copy to where the caller wants the results, fill ``out``, and return them."""
        device = self._device
        returned: dict[str, Any] = {}
        for name, working in self.working.items():
            target = self._returned.get(name)
            if target is None:
                target = working if self._on_device else device.get(working)
            elif target is not working:
                target[...] = working if device.holds(target) else device.get(working)
            returned[name] = target
        if out is None:
            return returned
        out.update(returned)
        return out


def _check_here(name: str, array: Any, device: Device) -> None:
    """Kernels run on the current device and would read another one's memory at their peril."""
    where = device.elsewhere(array)
    if where is not None:
        raise ArgumentError(
            f"{name} is on {where}: call the program where its arrays are "
            f"(with cupy.cuda.Device(...):), or copy them to the current GPU"
        )


def _check_target(tensor: TensorEntry, target: Any, shape: tuple[int, ...], device: Device) -> None:
    if not isinstance(target, np.ndarray) and not device.holds(target):
        raise ArgumentError(
            f'out["{tensor.name}"] must be a NumPy or CuPy array, found {type(target).__name__}'
        )
    if device.holds(target):
        _check_here(f'out["{tensor.name}"]', target, device)
    check_dtype(tensor, np.dtype(target.dtype), target=True)
    if tuple(target.shape) != shape:
        raise ShapeError(
            f'out["{tensor.name}"] for {describe(tensor)} must have shape {shape}, '
            f"found {tuple(target.shape)}"
        )
    if isinstance(target, np.ndarray) and not target.flags.writeable:
        raise ReadOnlyError(f'out["{tensor.name}"] is read-only: pass an array to write to')
