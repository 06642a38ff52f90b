"""Devices of the runtime in tests: the emulator, and the GPU where ``-m gpu`` asks for it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support import cuda_compile
from support.cuda_emulator import EmulatedKernel, EmulatedModule
from support.ptx_engine import PtxModule
from tcgen.errors import UnavailableError
from tcgen.runtime.device_protocol import Contraction, Device, Matrix, MatrixProduct, Operand
from tcgen.runtime.gpu.cupy_device import open_device

# What runs kernels where there is no GPU: the emulator of their text, or the engine of the PTX that
# the compiler makes of them for an architecture.
ENGINES = ("text", "ptx80", "ptx90")
ENGINE = os.environ.get("TCGEN_CUDA_ENGINE", "text")
if ENGINE not in ENGINES:
    raise ValueError(f"TCGEN_CUDA_ENGINE={ENGINE} is none of {', '.join(ENGINES)}")

DEVICES = ["emulator", pytest.param("gpu", marks=pytest.mark.gpu)]


def device_named(kind: str) -> Any:
    """The device of a test; skips where it asks for a GPU and there is none."""
    if kind == "emulator":
        return EmulatedDevice() if ENGINE == "text" else PtxDevice(int(ENGINE.removeprefix("ptx")))
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


def strided(array: Any, matrix: Matrix, count: int, rows: int, columns: int) -> Any:
    """Matrices of an array in C order; an element outside of the array is an error."""
    flat = array.view(np.ndarray).reshape(-1)
    shape, steps = (count, rows, columns), (matrix.apart, matrix.row, matrix.column)
    last = matrix.offset + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    assert 0 in shape or 0 <= matrix.offset <= last < flat.size, (matrix, shape, flat.size)
    bytes_apart = tuple(step * flat.itemsize for step in steps)
    return np.lib.stride_tricks.as_strided(flat[matrix.offset :], shape, bytes_apart)


def elements(array: Any, operand: Operand, lengths: list[int]) -> Any:
    """Elements of an array in C order, by modes; one outside of the array is an error."""
    flat = array.view(np.ndarray).reshape(-1)
    pairs = zip(lengths, operand.strides, strict=True)
    last = operand.offset + sum((n - 1) * step for n, step in pairs)
    assert 0 in lengths or 0 <= operand.offset <= last < flat.size, (operand, lengths, flat.size)
    apart = tuple(step * flat.itemsize for step in operand.strides)
    return np.lib.stride_tricks.as_strided(flat[operand.offset :], lengths, apart)


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
        self.products: list[MatrixProduct] = []
        self.contractions: list[Contraction] = []

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

    def load_library(self, name: str) -> str:
        """It has cuBLAS and cuTENSOR, by NumPy."""
        return f"{name} of NumPy"

    def contract(self, contraction: Contraction, out: Any, a: Any, b: Any) -> None:
        """By NumPy, on views that stay inside the arrays."""
        self.contractions.append(contraction)
        operands = (contraction.out, contraction.a, contraction.b)
        modes = [list(operand.modes) for operand in operands]
        target, left, right = (
            elements(array, operand, [contraction.lengths[m] for m in operand.modes])
            for array, operand in zip((out, a, b), operands, strict=True)
        )
        old = target.copy() if contraction.accumulate else 0
        target[...] = old + contraction.factor * np.einsum(
            left, modes[1], right, modes[2], modes[0]
        )

    def multiply(self, product: MatrixProduct, out: Any, a: Any, b: Any) -> None:
        """By NumPy, on views that stay inside the arrays."""
        self.products.append(product)
        m, n, k = product.m, product.n, product.k
        left = strided(a, product.a, product.count, m, k)
        right = strided(b, product.b, product.count, k, n)
        target = strided(out, product.out, product.count, m, n)
        old = target.copy() if product.accumulate else 0
        target[...] = old + product.factor * np.matmul(left, right)

    def holds(self, array: object) -> bool:
        return isinstance(array, DeviceArray)

    def adopt(self, array: Any) -> None:
        """It takes no arrays of other libraries."""

    def elsewhere(self, array: Any) -> str | None:
        return getattr(array, "place", None)

    def aligned(self, array: Any) -> bool:
        return True

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


class PtxDevice(EmulatedDevice):
    """The emulator, with the PTX that the compiler makes of a text in place of the text.

    ``change``: makes other PTX of the compiler's.
    """

    def __init__(self, arch: int = 90, change: Callable[[str], str] | None = None) -> None:
        super().__init__(arch)
        self._change = change

    def describe(self) -> str:
        return f"PTX engine, sm_{self.arch}"

    def module(self, code: str) -> Any:
        made = PtxModule(code, arch=self.arch, change=self._change)
        return SimpleNamespace(get_function=lambda name: Launched(self, made, name))

    def launch(
        self,
        module: PtxModule,
        kernel: EmulatedKernel,
        grid: Any,
        block: Any,
        args: Any,
        shared: int,
    ) -> None:
        """What a launch does: tests change it."""
        kernel(grid, block, args, shared_mem=shared)


class Launched:
    """A kernel of a PtxDevice, which the device launches."""

    def __init__(self, device: PtxDevice, module: PtxModule, name: str) -> None:
        self._device, self._module, self._kernel = device, module, module.get_function(name)

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        return self._kernel.max_dynamic_shared_size_bytes

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, most: int) -> None:
        self._kernel.max_dynamic_shared_size_bytes = most

    def __call__(self, grid: Any, block: Any, args: Any, shared_mem: int = 0) -> None:
        self._device.launch(self._module, self._kernel, grid, block, args, shared_mem)


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
