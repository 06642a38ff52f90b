"""Memory of one phase of a call: the caller's arrays and the arenas, by buffer."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ...artifact.manifest import BufferEntry
from ...artifact.sizes import stored_shape
from ..memory.ledger import address
from .layout import Phase, Setting

Array = npt.NDArray[Any]


class Store:
    """Where each buffer is.

    Attributes:
        setting: of the call.
        phase: one of its phases.
        callers: arrays of the caller by tensor name, C-contiguous in stored order.
        kept: memory of the arena that outlives the phases.
        own: memory of the phase's arena.
    """

    __slots__ = ("callers", "kept", "own", "phase", "setting")

    def __init__(
        self, setting: Setting, phase: Phase, callers: Mapping[str, Array], kept: Array, own: Array
    ) -> None:
        self.setting = setting
        self.phase = phase
        self.callers = callers
        self.kept = kept
        self.own = own

    def view(self, buffer: BufferEntry) -> Array | None:
        """A buffer as an array in stored order; None if it does not live here now."""
        if buffer.place == "caller":
            return self.callers.get(buffer.tensor or buffer.name)
        shape = stored_shape(buffer, self.setting.manifest, self.setting.extents)
        for layout, memory in ((self.setting.use.kept, self.kept), (self.phase.arena, self.own)):
            for name, offset in layout.offsets:
                if name == buffer.name:
                    return np.ndarray(shape, buffer.dtype, memory, offset)
        return None

    def views(self) -> dict[str, Array]:
        """All buffers that live here now, by name."""
        buffers = (b for b in self.setting.manifest.buffers if b.place != "register")
        found = ((b.name, self.view(b)) for b in buffers)
        return {name: array for name, array in found if array is not None}

    def table(self) -> ctypes.Array[ctypes.c_void_p]:
        """Addresses as the generated code takes them; null for what is not here."""
        phase = self.phase
        table = phase.table()
        for place, name in phase.callers:
            array = self.callers.get(name)
            if array is not None:
                table[place] = address(array)
        for memory, entries in ((self.kept, phase.kept), (self.own, phase.own)):
            if entries:
                start = address(memory)
                for place, offset in entries:
                    table[place] = start + offset
        return table
