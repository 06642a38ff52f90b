"""A GPU through CuPy: its arrays, copies to and from them, and compiled kernels.

Tests put an emulator in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...artifact.arena import Layout
from ...artifact.kernel_abi import rounds_each
from ...errors import BuildError, MemoryLimitError, UnavailableError
from ..device_protocol import Array, CompiledModule, Gpu, MatrixProduct
from .cublas import Cublas

_ADVICE = (
    "install a driver and CuPy (pip install 'tcgen-chem[cuda13]', or cuda12 for an older driver), "
    'or compile with target="cpu"'
)


class CupyDevice:
    """The current device of CuPy: its stream, its memory pool, its cache of compiled kernels."""

    on_cpu = False
    array_kind = "NumPy or CuPy array"
    direct_kind = "as CuPy arrays in C order"

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._cublas: Cublas | None = None

    def describe(self) -> str:
        """Name, architecture, memory, and the versions of CuPy and NVRTC."""
        number = self._cupy.cuda.runtime.getDevice()
        facts = self._cupy.cuda.runtime.getDeviceProperties(number)
        name = facts["name"].decode()
        arch, memory = f"sm_{facts['major']}{facts['minor']}", facts["totalGlobalMem"] / 2**30
        nvrtc = ".".join(str(part) for part in self._cupy.cuda.nvrtc.getVersion())
        return f"{name}, {arch}, {memory:.0f} GiB, CuPy {self._cupy.__version__}, NVRTC {nvrtc}"

    def module(self, code: str) -> CompiledModule:
        """Compile with NVRTC; CuPy keeps the result on disk by source and architecture.

        Raises:
            BuildError: NVRTC refuses the source, with its log, or cannot be loaded.
        """
        try:
            rounding = ("--fmad=false",) if rounds_each(code) else ()
            module = self._cupy.RawModule(code=code, options=("--std=c++17", *rounding))
            module.compile()
        except self._cupy.cuda.compiler.CompileException as error:
            raise BuildError(f"NVRTC failed to compile the kernels: {error}") from error
        except (RuntimeError, ImportError, OSError) as error:  # of its library, or of the driver
            raise BuildError(
                f"the kernels cannot be compiled here ({error}): NVRTC and the driver must be of "
                f"the CUDA that CuPy was made for: {_ADVICE}"
            ) from error
        compiled: CompiledModule = module
        return compiled

    def load_library(self) -> None:
        """Load cuBLAS.

        Raises:
            UnavailableError: it is missing.
        """
        if self._cublas is None:
            self._cublas = Cublas(self._cupy)

    def multiply(self, product: MatrixProduct, out: Any, a: Any, b: Any) -> None:
        """By cuBLAS."""
        self.load_library()
        assert self._cublas is not None
        self._cublas.multiply(product, out, a, b)

    def holds(self, array: object) -> bool:
        """True for a CuPy array."""
        return isinstance(array, self._cupy.ndarray)

    def elsewhere(self, array: Any) -> str | None:
        """Compares the array's device with the current one."""
        held, current = int(array.device.id), int(self._cupy.cuda.runtime.getDevice())
        return None if held == current else f"GPU {held}, but the current one is GPU {current}"

    def direct(self, array: Any) -> bool:
        """CuPy lets a view of other types begin anywhere: ``x[1:].view("complex128")``."""
        return bool(array.flags.c_contiguous) and array.data.ptr % array.dtype.itemsize == 0

    def contiguous(self, array: Any) -> Any:
        """The array, or a copy from CuPy's memory pool."""
        with self._room(array.nbytes):
            return array if self.direct(array) else array.copy(order="C")

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Any:
        """From CuPy's memory pool."""
        with self._room(prod(shape) * np.dtype(dtype).itemsize):
            return self._cupy.empty(shape, dtype)

    def arena(self, layout: Layout) -> Any:
        """From CuPy's memory pool, whose arrays start at multiples of 512 bytes."""
        return self.empty((layout.total,), "uint8")

    def put(self, array: Array) -> Any:
        """Copy to the device."""
        with self._room(array.nbytes):
            return self._cupy.asarray(array, order="C")

    def get(self, array: Any) -> Array:
        """Copy to the CPU; waits for the kernels of the current stream."""
        copied: Array = self._cupy.asnumpy(array)
        return copied

    def overlap(self, one: Any, other: Any) -> bool:
        """Compares the bounds of their memory.

        ``cupy.may_share_memory`` is False for arrays of two allocations, and so also for two slices
        of one array that came from another library.
        """
        (low, high), (other_low, other_high) = _bounds(one), _bounds(other)
        return low < other_high and other_low < high

    def wait(self) -> None:
        """Wait for CuPy's current stream."""
        self._cupy.cuda.get_current_stream().synchronize()

    @contextmanager
    def _room(self, count: int) -> Iterator[None]:
        """Raise CuPy's error of too little memory as a MemoryLimitError."""
        try:
            yield
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            raise MemoryLimitError(
                f"this GPU has no memory for {count:,} bytes more ({error}): run with smaller "
                f"extents, free arrays and CuPy's pool, or compile with a memory limit and the "
                f"objective time"
            ) from error


def _bounds(array: Any) -> tuple[int, int]:
    """First byte of an array, and the byte after its last; 0 and 0 if it has no elements."""
    if 0 in array.shape:
        return 0, 0
    start = int(array.data.ptr)
    steps = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    low = start + sum(s for s in steps if s < 0)
    return low, start + sum(s for s in steps if s > 0) + array.dtype.itemsize


def open_device() -> Gpu:
    """The GPU of this process.

    Raises:
        UnavailableError: CuPy is missing, or it finds no device, no driver or no NVRTC.
    """
    try:
        import cupy  # noqa: PLC0415  (only where a program for a GPU runs)
    except ImportError as error:
        raise UnavailableError(
            f"target cuda cannot run here, CuPy cannot be imported ({error}): {_ADVICE}"
        ) from error
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise UnavailableError(
            f"target cuda cannot run here, CuPy finds no driver ({error}): {_ADVICE}"
        ) from error
    if count == 0:
        raise UnavailableError(f"target cuda cannot run here, CuPy finds no GPU: {_ADVICE}")
    try:
        cupy.cuda.nvrtc.getVersion()
    except (RuntimeError, ImportError, OSError) as error:  # a RuntimeError of CuPy 14
        why = " ".join(str(error).split())
        raise UnavailableError(
            f"target cuda cannot run here, CuPy finds no NVRTC to compile with ({why}): {_ADVICE}"
        ) from error
    return CupyDevice(cupy)
