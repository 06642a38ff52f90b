"""The phases of a call of a program, on any backend.

The constant phase (0) computes results of constant inputs only; the volatile phase (1)
computes the rest. A bound program runs phase 0 once and keeps its :class:`ConstantState`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...errors import ArgumentError
from ...records.loops import Fetch, stored_shape
from ...records.tensors import Tensor, element_type
from ..arguments import Source, check_here
from ..device_protocol import Device
from ..host_program import Values, fetch_tile
from ..memory import Ledger
from ..parts import Part
from .host_loops import PhaseBuffers
from .layout import CallLayout

Array = npt.NDArray[Any]


class Backend(Protocol):
    """Compiles the kernels of a program when they are first needed, and runs them."""

    @property
    def device(self) -> Device:
        """The memory in which kernels run; UnavailableError if it lacks a GPU, driver or CuPy."""

    @property
    def threads(self) -> int:
        """Threads of the CPU that a call uses; BuildError if the compiler is missing or failed."""

    def build(self) -> None:
        """Compile now all that calls would compile; raises as ``device`` and ``threads`` do."""

    def run(self, buffers: PhaseBuffers, fetch: Callable[[Fetch, Values], None]) -> None:
        """Run the phase whose arrays on the device are given.

        ``fetch`` fills the buffer of a generated input with one tile.
        """


@dataclass(frozen=True, slots=True)
class ConstantState:
    """The state that the constant phase of a bound program leaves for its calls, on the device.

    ``memory`` is that of the arena that outlives the phase, and ``outputs`` are results of
    constants only; ``copied_bytes`` is the number of bytes of constants that were copied.
    """

    memory: Any
    outputs: Mapping[str, Any]
    copied_bytes: int

    @property
    def bytes_beside_arena(self) -> int:
        """Bytes of the results and of the copied constants."""
        results: int = sum(a.nbytes for a in self.outputs.values())
        return self.copied_bytes + results


def run_phases(
    backend: Backend,
    layout: CallLayout,
    sources: Mapping[str, Source],
    arrays: Mapping[str, Any],
    state: ConstantState | None,
    ledger: Ledger,
    part: tuple[int, int] | None,
) -> None:
    """Run the volatile phase of a call, after the constant one unless its state is given.

    ``sources`` are inputs as the caller passed them, ``arrays`` those on the device that kernels
    read and write, by tensor name. ``part`` has the numbers of the parts of the volatile phase that
    run, at least one; None runs all. The part with number 0 has the results of the constant phase.

    Raises ArgumentError if the state is on another GPU than the current one.
    """
    begins = part is None or part[0] == 0
    if state is None:
        lasting = ledger.arena(layout.use.lasting)
        if layout.phases[0].host:
            _run(backend, layout, 0, sources, arrays, lasting, ledger)
        for tensor in () if begins else layout.manifest.constant_outputs:
            arrays[tensor.name][...] = 0
    else:
        lasting = state.memory
        check_here("the state of the bound constants", lasting, backend.device)
        ledger.add(layout.use.lasting.total)
        for name, array in state.outputs.items() if begins else ():
            arrays[name][...] = array
    whole = layout.phases[1].whole
    chosen = whole if whole is None or part is None else Part(whole.entry, *part)
    _run(backend, layout, 1, sources, arrays, lasting, ledger, chosen)


def compute_state(
    backend: Backend,
    layout: CallLayout,
    constants: Mapping[str, Source],
    results: tuple[Tensor, ...],
    copied_bytes: int,
) -> ConstantState:
    """Run the constant phase of a bound program, which computes ``results``.

    The layout is at the extents of the phase; others may be 0. ``constants`` has all constant
    inputs, where kernels read them; ``copied_bytes`` of them were copied. Raises ArgumentError if a
    constant is on another GPU than the current one.
    """
    device = backend.device
    for name, array in constants.items():
        if device.holds(array):
            check_here(name, array, device)
    ledger = Ledger(device, copied_bytes)
    outputs = {
        t.name: ledger.array(
            stored_shape(t, layout.extents), element_type(t, layout.manifest.dtype)
        )
        for t in results
    }
    lasting = ledger.arena(layout.use.lasting)
    _run(backend, layout, 0, constants, {**constants, **outputs}, lasting, ledger)
    device.wait()  # later calls may be on other streams
    return ConstantState(lasting, outputs, copied_bytes)


def _run(
    backend: Backend,
    layout: CallLayout,
    number: int,
    sources: Mapping[str, Source],
    arrays: Mapping[str, Any],
    lasting: Any,
    ledger: Ledger,
    part: Part | None = None,
) -> None:
    """Run the constant phase (0) or the volatile one (1) in the arena ``lasting`` and its own."""
    phase = layout.phases[number]
    if not phase.host:
        return
    arena = ledger.arena(phase.arena)
    buffers = PhaseBuffers(backend.device, layout, phase, arrays, lasting, arena, part)

    def fetch(entry: Fetch, values: Values) -> None:
        _fetch(backend.device, buffers, sources, entry, values)

    backend.run(buffers, fetch)
    ledger.release(phase.arena)


def _fetch(
    device: Device,
    buffers: PhaseBuffers,
    sources: Mapping[str, Source],
    entry: Fetch,
    values: Values,
) -> None:
    """Ask the caller for a tile; on the CPU it is written where kernels read it, else copied."""
    manifest, extents = buffers.layout.manifest, buffers.layout.extents
    buffer = next(b for b in manifest.buffers if b.name == entry.buffer)
    tensor = next(t for t in manifest.tensors if t.name == (buffer.source))
    target = buffers.view(buffer)
    if target is None:
        raise ArgumentError(f"buffer {buffer.name} has no memory in this phase")
    ranges = []
    for axis, variable in zip(buffer.axes, entry.ranges, strict=True):
        extent = manifest.extent(axis.space.name, extents)
        low = 0 if variable is None else values[variable.name]
        high = extent if variable is None else min(low + (axis.length or 1), extent)
        ranges.append(slice(low, high))
    source = sources[tensor.name]
    if device.holds(source):
        source = _Slices(device, source)
    tile = target if device.on_cpu else np.zeros(target.shape, buffer.dtype)
    fetch_tile(tensor, source, tuple(ranges), tile, buffer.order)
    if tile is not target:
        device.update(target, tile)


@dataclass(frozen=True, slots=True)
class _Slices:
    """An array of the device whose slices come to the CPU."""

    device: Device
    array: Any

    def __getitem__(self, key: Any) -> Array:
        return self.device.get(self.array[key])
