"""Memory of one call: the caller's arrays and the arenas, by buffer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arena import Layout
from ..manifest import BufferEntry, Manifest
from .allocation import address
from .footprint import stored_shape
from .memory import packs

Array = npt.NDArray[Any]


class Store:
    """Where each buffer is.

    Attributes:
        manifest: of the program.
        extents: of the base spaces.
        callers: arrays of the caller by tensor name, C-contiguous in stored order.
        arenas: layouts with the memory they describe.
    """

    def __init__(
        self,
        manifest: Manifest,
        extents: Mapping[str, int],
        callers: Mapping[str, Array],
        arenas: tuple[tuple[Layout, Array], ...],
    ) -> None:
        self.manifest = manifest
        self.extents = extents
        self.callers = callers
        self.arenas = arenas

    def view(self, buffer: BufferEntry) -> Array | None:
        """A buffer as an array in stored order; None if it does not live here now."""
        if buffer.place == "caller":
            return self.callers.get(buffer.tensor or buffer.name)
        shape = stored_shape(buffer, self.manifest, self.extents)
        for layout, memory in self.arenas:
            for name, offset in layout.offsets:
                if name == buffer.name:
                    return np.ndarray(shape, buffer.dtype, memory, offset)
        return None

    def views(self) -> dict[str, Array]:
        """All buffers that live here now, by name."""
        found = ((b.name, self.view(b)) for b in self.manifest.buffers if _has_address(b))
        return {name: array for name, array in found if array is not None}

    def addresses(self) -> list[int | None]:
        """Addresses in the order of the generated code's table; None for what is not here."""
        offsets = {
            name: address(memory) + offset
            for layout, memory in self.arenas
            for name, offset in layout.offsets
        }
        places: list[int | None] = []
        for buffer in self.manifest.buffers:
            if buffer.place == "caller":
                array = self.callers.get(buffer.tensor or buffer.name)
                places.append(None if array is None else address(array))
            elif buffer.place != "register":
                places.append(offsets.get(buffer.name))
        kernels = (k for k in self.manifest.kernels if k.contractions)
        return places + [offsets.get(packs(k)) for k in kernels]


def _has_address(buffer: BufferEntry) -> bool:
    return buffer.place != "register"
