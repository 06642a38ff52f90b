"""The memory of one phase of a call: the caller's arrays and the arenas, by buffer."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from ...artifact.manifest import KernelEntry
from ...records.loops import Buffer
from ..device_protocol import Device
from ..host_device import address
from ..parts import Part
from .layout import CallLayout, Phase


class PhaseBuffers:
    """Where each buffer of a phase is.

    Attributes:
        device: has the memory.
        layout: of the call.
        phase: one of its phases.
        arrays: inputs and results by tensor name, which kernels read and write.
        lasting: memory of the arena that outlives the phases.
        own: memory of the phase's arena.
        part: of the phase that runs; None for a phase that is not divided.
    """

    __slots__ = ("arrays", "device", "lasting", "layout", "own", "part", "phase")

    def __init__(
        self,
        device: Device,
        layout: CallLayout,
        phase: Phase,
        arrays: Mapping[str, Any],
        lasting: Any,
        own: Any,
        part: Part | None,
    ) -> None:
        self.device = device
        self.layout = layout
        self.phase = phase
        self.arrays = arrays
        self.lasting = lasting
        self.own = own
        self.part = part

    def clear(self, names: tuple[str, ...]) -> None:
        """Set some buffers to zero."""
        for buffer in self.layout.manifest.buffers:
            if buffer.name in names:
                self.view(buffer)[...] = 0

    def host_values(self, kernel: KernelEntry, values: Mapping[str, int]) -> tuple[int, ...]:
        """What a kernel takes from the host: variables of its loops, and the numbers of a part."""
        given = tuple([values[variable] for variable in kernel.host])
        part = self.part
        if part is None or part.entry.kernel != kernel.name:
            return given
        return (*given, part.first, part.last)

    def view(self, buffer: Buffer) -> Any:
        """A buffer as an array in stored order; None if it has no memory in this phase."""
        if buffer.place == "caller":
            return self.arrays.get(buffer.source)
        place = self.phase.arrays.get(buffer.name)
        if place is None:
            return None
        memory = self.lasting if place.lasting else self.own
        return self.device.inside(memory, place.offset, place.shape, place.dtype)

    def named(self, name: str) -> Any:
        """A buffer by its name, as for ``view``."""
        buffer = self.layout.buffers[name]
        if buffer.place == "caller":
            return self.arrays.get(buffer.source)
        return self.view(buffer)

    def views(self) -> dict[str, Any]:
        """All buffers that have memory in this phase, by name."""
        buffers = (b for b in self.layout.manifest.buffers if b.place != "register")
        views = ((b.name, self.view(b)) for b in buffers)
        return {name: array for name, array in views if array is not None}

    def table(self) -> ctypes.Array[ctypes.c_void_p]:
        """Addresses as generated C takes them; null for buffers without memory in this phase."""
        phase = self.phase
        table = phase.table()
        for place, name in phase.callers:
            array = self.arrays.get(name)
            if array is not None:
                table[place] = address(array)
        for memory, entries in ((self.lasting, phase.lasting), (self.own, phase.own)):
            if entries:
                start = address(memory)
                for place, offset in entries:
                    table[place] = start + offset
        return table
