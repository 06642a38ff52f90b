"""A GPU through CuPy: its arrays, copies to and from them, and compiled kernels.

Tests put an emulator in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from math import prod
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from ...artifact.kernel_abi import rounds_each
from ...errors import (
    ArgumentError,
    BuildError,
    ExtentError,
    MemoryLimitError,
    UnavailableError,
    pip_install,
)
from ...hardware import CUBLAS, CUTENSOR, SECTOR_BYTES
from ...records.arena import Layout
from ...thresholds.time_model import COPIED_SHARE, GPUS, Machine
from ..device_protocol import Array, Contraction, Function, MatrixProduct
from .cuda_libraries import Cublas, Cutensor
from .host_copies import MIN_BUFFERED_BYTES, HostCopies

_ADVICE = (
    f"install a driver and CuPy ({pip_install('cuda13')}, or cuda12 for an older driver), "
    'or compile with target="cpu"'
)


class CupyDevice:
    """The current device of CuPy: its stream, its memory pool, its cache of compiled kernels."""

    on_cpu = False
    array_kind = "NumPy or CuPy array"
    direct_kind = "as CuPy arrays in C order"

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._array = cupy.ndarray
        self._get_device = cupy.cuda.runtime.getDevice
        self._translated = _Translated(cupy)
        self._copies: dict[int, HostCopies] = {}  # key: number of the GPU
        self._nothing: dict[int, Any] = {}  # key: number of the GPU
        self._libraries: dict[str, Any] = {}

    @property
    def library(self) -> Any:
        """CuPy."""
        return self._cupy

    def describe(self) -> str:
        """Name, architecture, memory, and the versions of CuPy and NVRTC."""
        facts = self.properties()
        name = facts["name"].decode()
        arch, memory = f"sm_{facts['major']}{facts['minor']}", facts["totalGlobalMem"] / 2**30
        nvrtc = ".".join(str(part) for part in self._cupy.cuda.nvrtc.getVersion())
        return f"{name}, {arch}, {memory:.0f} GiB, CuPy {self._cupy.__version__}, NVRTC {nvrtc}"

    @property
    def number(self) -> int:
        """Of CuPy's current GPU."""
        return int(self._get_device())

    def properties(self) -> Mapping[str, Any]:
        """Properties of the current device by the names of the CUDA runtime."""
        runtime = self._cupy.cuda.runtime
        facts: Mapping[str, Any] = runtime.getDeviceProperties(runtime.getDevice())
        return facts

    def module(self, code: str) -> Any:
        """Compile with NVRTC; CuPy keeps the result on disk by source and architecture.

        Raises BuildError if NVRTC refuses the source, with its log, or cannot be loaded.
        """
        try:
            rounding = ("--fmad=false",) if rounds_each(code) else ()
            module = self._cupy.RawModule(code=code, options=("--std=c++17", *rounding))
            module.compile()
        except self._cupy.cuda.compiler.CompileException as error:
            self._check_architecture(error)
            raise BuildError(f"NVRTC failed to compile the kernels: {error}") from error
        except (RuntimeError, ImportError, OSError) as error:  # NVRTC's library or the driver fails
            self._check_architecture(error)
            raise BuildError(
                f"the kernels cannot be compiled here ({error}): NVRTC and the driver must be of "
                f"the CUDA that CuPy was made for: {_ADVICE}"
            ) from error
        return module

    def _check_architecture(self, error: BaseException) -> None:
        """Raise BuildError if NVRTC has no code for this GPU: it drops old ones, and new ones come.

        CuPy compiles for the newest architecture that NVRTC knows, whose code the GPU refuses
        unless both are of one generation.
        """
        try:
            facts = self.properties()
            known = sorted(map(int, self._cupy.cuda.nvrtc.getSupportedArchs()))
        except Exception:
            # What failed is the driver, or NVRTC is missing.
            return
        arch = 10 * int(facts["major"]) + int(facts["minor"])
        if arch in known or any(arch // 10 == k // 10 and arch > k for k in known):
            return
        version = ".".join(map(str, self._cupy.cuda.nvrtc.getVersion()))
        raise BuildError(
            f"NVRTC {version} has no code for this GPU, which is sm_{arch}: it knows "
            f"{', '.join(f'sm_{k}' for k in known)}. Install CuPy and NVRTC of "
            f"{'an older' if arch < known[0] else 'a newer'} CUDA"
        ) from error

    def function(self, module: Any, name: str, shared_bytes: int) -> Function:
        """Request more than 48 KiB from the driver, once for each kernel and GPU."""
        kernel = module.get_function(name)
        made: Function = kernel
        if not shared_bytes:
            return made
        facts = self._cupy.cuda.runtime.getDeviceProperties(self.number)
        most = int(facts["sharedMemPerBlockOptin"]) - int(kernel.shared_size_bytes)
        if shared_bytes > most:
            raise ExtentError(
                f"kernel {name} takes {shared_bytes:,} bytes of shared memory in each block, and "
                f"this GPU has {most:,}: compile for this GPU, on which a plan takes less"
            )
        kernel.max_dynamic_shared_size_bytes = shared_bytes
        return made

    def load_library(self, name: str) -> str:
        """Load cuBLAS or cuTENSOR; UnavailableError if it is missing."""
        return f"{name} {self._library(name).version}"

    def _library(self, name: str) -> Any:
        if name not in self._libraries:
            self._libraries[name] = (Cutensor if name == CUTENSOR else Cublas)(self._cupy)
        return self._libraries[name]

    def multiply(self, product: MatrixProduct, out: Any, a: Any, b: Any) -> None:
        """By cuBLAS."""
        self._library(CUBLAS).multiply(product, out, a, b)

    def contract(self, contraction: Contraction, out: Any, a: Any, b: Any) -> None:
        """By cuTENSOR."""
        self._library(CUTENSOR).contract(contraction, out, a, b)

    def holds(self, array: object) -> bool:
        """True for a CuPy array."""
        return isinstance(array, self._array)

    def adopt(self, array: Any) -> Any:
        """By DLPack, else by the interface of CUDA arrays."""
        if hasattr(array, "__dlpack__"):
            return self._cupy.from_dlpack(array)
        return self._cupy.asarray(array)

    def elsewhere(self, array: Any) -> str | None:
        """Compares the array's device with the current one."""
        held, current = array.device.id, self._get_device()
        return None if held == current else f"GPU {held}, but the current one is GPU {current}"

    def aligned(self, array: Any) -> bool:
        """CuPy lets a view of other types begin anywhere: ``x[1:].view("complex128")``."""
        return bool(array.data.ptr % array.dtype.itemsize == 0)

    def direct(self, array: Any) -> bool:
        """In C order and aligned."""
        return bool(array.flags.c_contiguous and array.data.ptr % array.dtype.itemsize == 0)

    def contiguous(self, array: Any) -> Any:
        """The array, or a copy from CuPy's memory pool."""
        if self.direct(array):
            return array
        with self._translated:
            return array.copy(order="C")

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Any:
        """From CuPy's memory pool."""
        try:
            return self._cupy.empty(shape, dtype)
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            needed = prod(shape) * np.dtype(dtype).itemsize
            raise _no_room(needed, error, self.free_bytes()) from error
        except Exception as error:
            self._translated.check(error)
            raise

    def free_bytes(self) -> int:
        """Bytes of the current GPU that nothing uses, those in CuPy's pool included."""
        free, _ = self._cupy.cuda.runtime.memGetInfo()
        return int(free) + int(self._cupy.get_default_memory_pool().free_bytes())

    def arena(self, layout: Layout) -> Any:
        """From CuPy's memory pool, whose arrays start at multiples of 512 bytes."""
        return self.empty((layout.total,), "uint8")

    @property
    def nothing(self) -> Any:
        """The same one for all calls on a GPU."""
        number = self.number
        if number not in self._nothing:
            self._nothing = {**self._nothing, number: self._cupy.empty((0,), np.uint8)}
        return self._nothing[number]

    def inside(self, memory: Any, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """An array over the memory; making it takes less than a slice and two views."""
        return self._cupy.ndarray(shape, dtype, memory.data + offset)

    def put(self, array: Array) -> Any:
        """Copy to the device; no more than two small buffers of the CPU's memory are pinned."""
        made = self.empty(array.shape, array.dtype)
        with self._translated:
            if array.nbytes < MIN_BUFFERED_BYTES:
                made.set(array)
            else:
                self._host_copies().put(array, made)
        return made

    def update(self, target: Any, array: Array) -> None:
        """By the second stream, beside the kernels that are queued."""
        with self._translated:
            self._host_copies().update(array, target)

    def get(self, array: Any) -> Array:
        """Copy to the CPU; waits for the kernels of the current stream."""
        with self._translated:
            if array.nbytes >= MIN_BUFFERED_BYTES:
                return self._host_copies().get(self._cupy.ascontiguousarray(array))
            copied: Array = self._cupy.asnumpy(array)
            return copied

    def _host_copies(self) -> HostCopies:
        number = self.number
        if number not in self._copies:
            self._copies = {**self._copies, number: HostCopies(self._cupy)}
        return self._copies[number]

    def einsum(self, *operands: Any, **options: Any) -> Any:
        """``cupy.einsum``."""
        with self._translated:
            return self._cupy.einsum(*operands, **options)

    def overlap(self, one: Any, other: Any) -> bool:
        """Compares the bounds of their memory.

        ``cupy.may_share_memory`` is False for arrays of two allocations, and so also for two slices
        of one array that came from another library.
        """
        (low, high), (other_low, other_high) = _bounds(one), _bounds(other)
        return low < other_high and other_low < high

    def wait(self) -> None:
        """Wait for CuPy's current stream."""
        with self._translated:
            self._cupy.cuda.get_current_stream().synchronize()

    def begin(self) -> None:
        """A graph would keep the addresses of arrays that go back to CuPy's pool after the call."""
        cuda = self._cupy.cuda
        try:
            capturing = cuda.runtime.streamIsCapturing(cuda.get_current_stream().ptr)
        except Exception as error:
            self._translated.check(error)
            raise
        if capturing:
            raise ArgumentError(
                "the current stream is capturing a CUDA graph, which would keep memory that a call "
                "gives back: call programs outside of begin_capture and end_capture"
            )

    def translated(self) -> AbstractContextManager[None]:
        """Errors of CuPy's driver and runtime are raised as those of tcgen."""
        return self._translated


class _Translated:
    """A context that raises errors of the driver as errors of tcgen; it has no state."""

    __slots__ = ("_no_memory", "_of_driver")

    def __init__(self, cupy: Any) -> None:
        cuda = cupy.cuda
        self._no_memory: type[Exception] = cuda.memory.OutOfMemoryError
        self._of_driver: tuple[type[Exception], ...] = (
            cuda.driver.CUDADriverError,
            cuda.runtime.CUDARuntimeError,
        )

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self.check(error)

    def check(self, error: BaseException) -> None:
        """Raise the error of tcgen for one of the driver."""
        if isinstance(error, self._no_memory):
            raise _no_room(None, error) from error
        if isinstance(error, self._of_driver):
            raise UnavailableError(
                f"the GPU failed ({error}), in this work or in earlier work, of which CUDA may "
                f"report later: start a new process, since this one's GPU may be lost; run it "
                f"under compute-sanitizer to see which kernel fails"
            ) from error


def _no_room(count: int | None, error: BaseException, free: int | None = None) -> MemoryLimitError:
    more = "more memory" if count is None else f"memory for {count:,} bytes more"
    more += "" if free is None else f", {free:,} are free"
    return MemoryLimitError(
        f"this GPU has no {more} ({error}): run with smaller extents, free arrays and CuPy's pool, "
        f"or compile with a memory limit and the objective time"
    )


def _bounds(array: Any) -> tuple[int, int]:
    """First byte of an array, and the byte after its last; 0 and 0 if it has no elements."""
    if 0 in array.shape:
        return 0, 0
    start = int(array.data.ptr)
    steps = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    low = start + sum(s for s in steps if s < 0)
    return low, start + sum(s for s in steps if s > 0) + array.dtype.itemsize


def open_device() -> CupyDevice:
    """The GPU of this process; UnavailableError if CuPy, a device, a driver or NVRTC is missing."""
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


_FLOPS_PER_FMA = 2
# Multiply-adds of double precision in a clock of one multiprocessor, by compute capability.
_FMAS = {(6, 0): 32, (7, 0): 32, (8, 0): 32, (9, 0): 64, (10, 0): 64}
_OTHER_FMAS = 2  # graphics GPUs
_TENSOR_CORES = (8, 0)  # first capability whose tensor cores double the rate, where FMAs are many


def device_machine() -> Machine | None:
    """Constants of the current GPU of CuPy; None without a GPU or CuPy."""
    try:
        device = open_device()
    except UnavailableError:
        return None
    return machine_of(device.properties())


def machine_of(facts: Mapping[str, Any]) -> Machine:
    """Constants from ``facts``, the result of ``cupy.cuda.runtime.getDeviceProperties``.

    Rates of a GPU in :data:`tcgen.thresholds.time_model.GPUS` are the ones there; those of others
    follow from clocks.
    """
    own = {
        "cache": int(facts["l2CacheSize"]),
        "multiprocessors": int(facts["multiProcessorCount"]),
        "shared": int(facts["sharedMemPerBlockOptin"]),
    }
    words = facts["name"].decode().lower().replace("-", " ").split()
    known = next((GPUS[word] for word in words if word in GPUS), None)
    if known is not None:
        return replace(known, **own)
    capability = (int(facts["major"]), int(facts["minor"]))
    fmas = _FMAS.get(capability, _OTHER_FMAS)
    fma = own["multiprocessors"] * fmas * _FLOPS_PER_FMA * int(facts["clockRate"]) * 1000
    tensor = capability >= _TENSOR_CORES and fmas > _OTHER_FMAS
    part, whole = COPIED_SHARE
    moved = 2 * int(facts["memoryClockRate"]) * 1000 * int(facts["memoryBusWidth"]) // 8
    usual = GPUS["h100"]
    return Machine(
        flops=max(1, 2 * fma if tensor else fma),
        bandwidth=max(1, moved * part // whole),
        call=usual.call,
        line=SECTOR_BYTES,
        fma=max(1, fma),
        **own,
    )
