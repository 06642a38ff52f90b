"""The arrays that a call makes, and the bytes they hold.

The runtime makes every array whose extent depends on the program's through a :class:`Ledger`, so
the bytes that it counts are what a call takes beyond its inputs.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from ...artifact.arena import Layout
from ..device_protocol import Device


class Ledger:
    """Bytes that a call holds, now and at most.

    Args:
        device: makes the arrays.
        held: bytes that are there already.

    Attributes:
        now: bytes held at this moment.
        peak: most bytes held at one time.
    """

    __slots__ = ("_device", "now", "peak")

    def __init__(self, device: Device, held: int = 0) -> None:
        self._device = device
        self.now = self.peak = held

    def add(self, count: int) -> None:
        """Count bytes that stay to the end of the call."""
        self.now += count
        if self.now > self.peak:
            self.peak = self.now

    def array(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Any:
        """A new array that stays to the end of the call."""
        made = self._device.empty(shape, dtype)
        self.add(made.nbytes)
        return made

    def copy(self, array: Any) -> Any:
        """A copy on the device, in C order, that stays to the end of the call."""
        device = self._device
        made = device.contiguous(array) if device.holds(array) else device.put(array)
        self.add(array.nbytes)
        return made

    def arena(self, layout: Layout) -> Any:
        """The memory of a layout, to the end of the call or until it is released."""
        if not layout.total:
            return self._device.nothing
        made = self._device.arena(layout)
        self.add(layout.total)
        return made

    def release(self, layout: Layout) -> None:
        """Count the memory of a layout no more; its holder drops it."""
        self.now -= layout.total
