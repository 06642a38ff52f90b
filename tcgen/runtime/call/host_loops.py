"""The loops of the host program, and the part of them that a call runs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...artifact.manifest import KernelEntry
from ...records.loops import Buffer, Fetch, Host, HostLoop, Launch
from ...records.parts import iterations
from ..device_protocol import Device
from ..host_device import address
from ..host_program import Values
from ..parts import Part
from .layout import CallLayout, Phase


def walk(
    buffers: PhaseBuffers,
    launch: Callable[[str, Values], None],
    fetch: Callable[[Fetch, Values], None],
) -> None:
    """Run the host program of a phase: its loops here, kernels and tiles by the given functions.

    The values of the loop variables that these functions are given change when they have returned.
    """
    phase = buffers.phase
    if phase.launches and buffers.part is None:
        for kernel in phase.launches:
            launch(kernel, {})
    else:
        _Walk(buffers, launch, fetch).run(phase.host)


@dataclass(slots=True, eq=False)
class _Walk:
    """One run of the host program.

    A class, since a recursive closure would hold the arrays until the next garbage collection.
    """

    buffers: PhaseBuffers
    launch: Callable[[str, Values], None]
    fetch: Callable[[Fetch, Values], None]
    values: dict[str, int] = field(default_factory=dict)
    extents: dict[str, int] = field(default_factory=dict)  # key: space of a loop

    def run(self, host: tuple[Host, ...]) -> None:
        part = self.buffers.part
        for item in host:
            if isinstance(item, Launch):
                if part is None or part.runs(item.kernel):
                    self.launch(item.kernel, self.values)
            elif isinstance(item, HostLoop):
                self._loop(item)
            else:
                self.fetch(item, self.values)

    def _loop(self, loop: HostLoop) -> None:
        part, values, var = self.buffers.part, self.values, loop.var
        if part is not None and part.entry.kernel is None and var.name == part.entry.chain[0].name:
            body, inside = self._chain(loop)
            for values_of_chain in inside:
                values.update(values_of_chain)
                self.run(body)
            return
        stop = self.extents.get(var.space.name)
        if stop is None:
            layout, name = self.buffers.layout, var.space.name
            stop = self.extents[name] = layout.manifest.extent(name, layout.extents)
        if var.below is not None:
            stop = min(stop, values[var.below] + 1)
        for n in range(0, stop, var.tile or 1):
            values[var.name] = n
            self.run(loop.body)

    def _chain(self, loop: HostLoop) -> tuple[tuple[Host, ...], Iterator[Values]]:
        """The body of the loops of a chain, and the values of their variables in the part."""
        buffers, part = self.buffers, self.buffers.part
        assert part is not None, "a chain belongs to a part"
        if not part.is_whole:
            buffers.clear(part.entry.cleared)
        body = loop.body
        for _ in part.entry.chain[1:]:
            (inner,) = body
            assert isinstance(inner, HostLoop), "the loops of a chain are inside each other"
            body = inner.body
        extents = buffers.layout.extents
        return body, iterations(part.entry.chain, extents, part.first, part.last)


@dataclass(slots=True, eq=False)
class PhaseBuffers:
    """Where each buffer of a phase is.

    ``arrays`` has inputs and results by tensor name, which kernels read and write; ``lasting`` is
    memory of the arena that outlives the phases, ``own`` that of the phase's. ``part`` runs; it is
    None for an undivided phase.
    """

    device: Device
    layout: CallLayout
    phase: Phase
    arrays: Mapping[str, Any]
    lasting: Any
    own: Any
    part: Part | None

    def clear(self, names: tuple[str, ...]) -> None:
        """Set some buffers to zero."""
        for buffer in self.layout.manifest.buffers:
            if buffer.name in names:
                self.view(buffer)[...] = 0

    def host_values(self, kernel: KernelEntry, values: Mapping[str, int]) -> tuple[int, ...]:
        """Arguments of a kernel from the host: loop variables, and the numbers of a part."""
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
