"""The emulator as a device of the runtime: programs for a GPU run on the CPU, under watch."""

from __future__ import annotations

from typing import Any

import numpy as np
from cuda_emulator import EmulatedModule


class DeviceArray(np.ndarray[Any, Any]):
    """Stands for an array of CuPy."""


class EmulatedDevice:
    """What CuPy is to the runtime, by NumPy and the emulator."""

    def __init__(self, arch: int = 90) -> None:
        self.arch = arch
        self.put_bytes = 0
        self.got_bytes = 0

    def describe(self) -> str:
        return "emulator"

    def module(self, code: str) -> Any:
        return EmulatedModule(code, arch=self.arch)

    def holds(self, array: object) -> bool:
        return isinstance(array, DeviceArray)

    def contiguous(self, array: Any) -> Any:
        return array if array.flags.c_contiguous else self.put(array)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Values that no program may rely on."""
        array = np.empty(shape, dtype).view(DeviceArray)
        array.view(np.ndarray)[...] = 255 if dtype == "uint8" else np.nan
        return array

    def put(self, array: Any) -> Any:
        self.put_bytes += array.nbytes
        return np.array(array, order="C").view(DeviceArray)

    def get(self, array: Any) -> Any:
        self.got_bytes += array.nbytes
        return np.array(array).view(np.ndarray)

    def overlap(self, one: Any, other: Any) -> bool:
        return bool(np.may_share_memory(one, other))
