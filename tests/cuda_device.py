"""Devices of the runtime in tests: the emulator, and the GPU where ``-m gpu`` asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda_emulator import EmulatedModule

from tcgen.errors import UnavailableError
from tcgen.runtime.device import Device, open_device

DEVICES = ["emulator", pytest.param("gpu", marks=pytest.mark.gpu)]


def device_named(kind: str) -> Any:
    """The device of a test; skips where it asks for a GPU and there is none."""
    if kind == "emulator":
        return EmulatedDevice()
    try:
        return CountedDevice(open_device())
    except UnavailableError as error:
        pytest.skip(f"no GPU: {error}")


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


class CountedDevice:
    """A GPU, with the bytes that are copied to it and from it."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.put_bytes = 0
        self.got_bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def put(self, array: Any) -> Any:
        self.put_bytes += array.nbytes
        return self._device.put(array)

    def get(self, array: Any) -> Any:
        self.got_bytes += array.nbytes
        return self._device.get(array)
