"""Devices of the runtime in tests: the emulator, and the GPU where ``-m gpu`` asks for it."""

from __future__ import annotations

import hashlib
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest

from support import cuda_compile
from support.cuda_emulator import EmulatedModule
from tcgen.errors import UnavailableError
from tcgen.runtime.device_protocol import Device
from tcgen.runtime.gpu.cupy_device import open_device

DEVICES = ["emulator", pytest.param("gpu", marks=pytest.mark.gpu)]


def device_named(kind: str) -> Any:
    """The device of a test; skips where it asks for a GPU and there is none."""
    if kind == "emulator":
        return EmulatedDevice()
    try:
        return CountedDevice(open_device())
    except UnavailableError as error:
        pytest.skip(f"no GPU: {error}")


class Compiling:
    """Which texts are compiled for devices as well, when the emulator takes them.

    ``one_in``: a sample of that kind, chosen by the text alone; 1 is all of them, which ``-m slow``
    and ``--compile-cuda=all`` ask for.
    """

    one_in = 32
    architectures = (80, 90)

    @classmethod
    def take(cls, code: str) -> None:
        """Compile a text for all architectures, if it is in the sample and there is a compiler."""
        number = int(hashlib.sha256(code.encode()).hexdigest()[:8], 16)
        if number % cls.one_in == 0 and cuda_compile.can_compile():
            for arch in cls.architectures:
                cuda_compile.compile_cuda(code, arch)


class DeviceArray(np.ndarray[Any, Any]):
    """Stands for an array of CuPy. ``place``: of one on another GPU than the current one."""

    place: str | None = None


class EmulatedDevice:
    """What CuPy is to the runtime, by NumPy and the emulator.

    ``compiles``: its texts are meant for devices, and a sample of them is compiled for some.
    """

    compiles = True
    on_cpu = False
    number = 0
    array_kind = "NumPy or CuPy array"
    direct_kind = "as CuPy arrays in C order"

    def __init__(self, arch: int = 90) -> None:
        self.arch = arch
        self.put_bytes = 0
        self.got_bytes = 0
        self.waits = 0

    def describe(self) -> str:
        return "emulator"

    def module(self, code: str) -> Any:
        if self.compiles:
            Compiling.take(code)
        return EmulatedModule(code, arch=self.arch)

    def function(self, module: Any, name: str, shared_bytes: int) -> Any:
        kernel = module.get_function(name)
        if shared_bytes:
            kernel.max_dynamic_shared_size_bytes = shared_bytes
        return kernel

    def holds(self, array: object) -> bool:
        return isinstance(array, DeviceArray)

    def adopt(self, array: Any) -> None:
        """It takes no arrays of other libraries."""

    def elsewhere(self, array: Any) -> str | None:
        return getattr(array, "place", None)

    def direct(self, array: Any) -> bool:
        return bool(array.flags.c_contiguous)

    def contiguous(self, array: Any) -> Any:
        return array if array.flags.c_contiguous else self.put(array)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Values that no program may rely on."""
        array = np.empty(shape, dtype).view(DeviceArray)
        array.view(np.ndarray)[...] = 255 if dtype == "uint8" else np.nan
        return array

    def arena(self, layout: Any) -> Any:
        return self.empty((layout.total,), "uint8")

    @property
    def nothing(self) -> Any:
        return self.empty((0,), "uint8")

    def inside(self, memory: Any, offset: int, shape: tuple[int, ...], dtype: Any) -> Any:
        return DeviceArray(shape, dtype, memory, offset)

    def put(self, array: Any) -> Any:
        self.put_bytes += array.nbytes
        return np.array(array, order="C").view(DeviceArray)

    def get(self, array: Any) -> Any:
        self.got_bytes += array.nbytes
        return np.array(array).view(np.ndarray)

    def update(self, target: Any, array: Any) -> None:
        target[...] = self.put(array)

    def begin(self) -> None:
        """No stream of it captures."""

    def translated(self) -> AbstractContextManager[None]:
        return nullcontext()

    def overlap(self, one: Any, other: Any) -> bool:
        return bool(np.may_share_memory(one, other))

    def wait(self) -> None:
        self.waits += 1


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

    def update(self, target: Any, array: Any) -> None:
        self.put_bytes += array.nbytes
        self._device.update(target, array)

    def get(self, array: Any) -> Any:
        self.got_bytes += array.nbytes
        return self._device.get(array)
