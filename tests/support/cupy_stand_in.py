"""A stand-in for CuPy whose GPU is the memory of the CPU, and whose streams run when waited for.

What is queued on a stream runs in its order; streams take turns at random, as events allow. So work
that forgets to wait for another stream meets memory that is not yet written, or was overwritten.
Memory goes back to a pool when its last array is gone, and who gets it next may write to it in the
order of the stream on which it was made: there it is poisoned, when it is made and when it is
freed. Kernels run under the emulator, or in the engine of PTX. There may be several GPUs: a launch
and a function take arrays of the current one alone, and a stream is used on its own.
"""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from support.cuda_device import ENGINE
from support.cuda_emulator import EmulatedModule
from support.cupy_dispatch import DispatchedArray, plain
from support.ptx_engine import PtxModule

POISON = 255  # of each byte of memory without values: numbers are not a number


class OutOfMemoryError(MemoryError):
    """CuPy's is a MemoryError, too."""


class CUDADriverError(RuntimeError):
    """Of a launch."""


class CUDARuntimeError(RuntimeError):
    """Of a wait or of an allocation."""


class NvrtcError(Exception):
    """Of a compilation."""


class Device:
    """A context in which a GPU is the current one.

    Attributes:
        count: GPUs that there are.
        current: number of the current one.
        faults: error of the next wait on a GPU, by number.
        free: bytes of memory that are free on each.
    """

    count = 1
    current = 0
    faults: ClassVar[dict[int, Exception]] = {}
    free = 2**40

    def __init__(self, number: int | None = None) -> None:
        self.id = self.number = Device.current if number is None else number

    def __enter__(self) -> Device:
        self.before, Device.current = Device.current, self.number
        return self

    def __exit__(self, *_: object) -> None:
        Device.current = self.before


class Event:
    """A place in a stream's queue."""

    def __init__(self, **_: object) -> None:
        self.recorded = self.reached = 0

    def record(self, stream: Stream | None = None) -> None:
        stream = stream or Stream.current
        self.recorded += 1
        number = self.recorded

        def reach() -> None:
            self.reached = max(self.reached, number)

        stream.add(reach)

    def synchronize(self) -> None:
        Stream.run(lambda: self.reached >= self.recorded)


class _CurrentStream(type):
    """The current stream of the current GPU, as an attribute of the class."""

    currents: ClassVar[dict[int, Stream]] = {}

    @property
    def current(cls) -> Stream:
        if Device.current not in cls.currents:
            cls.currents[Device.current] = Stream()
        return cls.currents[Device.current]

    @current.setter
    def current(cls, stream: Stream) -> None:
        assert stream.device == Device.current, "a stream of another GPU"
        cls.currents[Device.current] = stream


class Stream(metaclass=_CurrentStream):
    """A queue of work.

    Attributes:
        capturing: it makes a graph.
        device: number of its GPU.
        handle: of the driver; that of the legacy default stream is 0.
    """

    made: list[Stream]
    order = random.Random(0)
    fault: Exception | None = None  # of the next wait

    def __init__(self, *, non_blocking: bool = False) -> None:
        self.capturing = False
        self.device = Device.current
        self.queue: list[tuple[Callable[[], bool], Callable[[], None]]] = []
        self.ptr = len(Stream.made)
        Stream.made.append(self)

    def add(self, work: Callable[[], None], ready: Callable[[], bool] = lambda: True) -> None:
        self.queue.append((ready, work))

    def wait_event(self, event: Event) -> None:
        number = event.recorded
        self.add(lambda: None, lambda: event.reached >= number)

    def synchronize(self) -> None:
        if Stream.fault is not None:
            raise Stream.fault
        if self.device in Device.faults:
            raise Device.faults[self.device]
        Stream.run(lambda: not self.queue)

    def __enter__(self) -> Stream:
        self.before, Stream.current = Stream.current, self
        return self

    def __exit__(self, *_: object) -> None:
        Stream.current = self.before

    @classmethod
    def run(cls, until: Callable[[], bool]) -> None:
        while not until():
            ready = [s for s in cls.made if s.queue and s.queue[0][0]()]
            assert ready, "streams wait for each other"
            cls.order.choice(ready).queue.pop(0)[1]()

    @classmethod
    def reset(cls) -> None:
        cls.made, cls.fault = [], None
        Device.count, Device.current, Device.free = 1, 0, 2**40
        Device.faults.clear()
        cls.currents.clear()
        cls.currents[0] = Stream()


Stream.reset()


class Lease:
    """Memory of the pool, for as long as there is an array in it.

    Attributes:
        memory: bytes; work that is queued holds them, and not the lease.
    """

    def __init__(self, count: int) -> None:
        self.memory = np.full(count, POISON, np.uint8)
        self.device = Device.current
        self._stream = Stream.current
        self._poison()  # earlier work of the stream may still use the memory

    def __del__(self) -> None:
        if not sys.is_finalizing():  # then the module's names are gone
            self._poison()

    def _poison(self) -> None:
        self._stream.add(partial(self.memory.fill, POISON))


class Pointer:
    """An address in the memory of an array."""

    def __init__(self, lease: Lease, ptr: int) -> None:
        self.lease, self.ptr = lease, ptr

    def __add__(self, count: int) -> Pointer:
        return Pointer(self.lease, self.ptr + count)

    def copy_from_host_async(self, address: int, count: int, stream: Stream) -> None:
        stream.add(partial(move, self.ptr, address, count, self.lease.memory))

    def copy_to_host_async(self, address: int, count: int, stream: Stream) -> None:
        stream.add(partial(move, address, self.ptr, count, self.lease.memory))

    def copy_from_device_async(self, other: Pointer, count: int, stream: Stream) -> None:
        """Also from another GPU."""
        assert self.lease.device == stream.device
        held = (self.lease.memory, other.lease.memory)
        stream.add(partial(move, self.ptr, other.ptr, count, held))


def move(to: int, start: int, count: int, _: object) -> None:
    """Copy bytes of memory that the last argument holds."""
    ctypes.memmove(to, start, count)


class Array(DispatchedArray):
    """An array of the GPU; what changes it is queued on the current stream."""

    lease: Lease | None = None  # None for memory of another library

    def __new__(
        cls, shape: Any, dtype: Any = float, memptr: Pointer | None = None, **_: object
    ) -> Any:
        count = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
        lease = Lease(count) if memptr is None else memptr.lease
        offset = 0 if memptr is None else memptr.ptr - lease.memory.ctypes.data
        made = super().__new__(cls, shape, dtype, lease.memory, offset)
        made.lease = lease
        return made

    def __array_finalize__(self, other: Any) -> None:
        self.lease = getattr(other, "lease", None)

    @property
    def plain(self) -> Any:
        """The elements for work that is queued, which does not keep the memory from the pool."""
        if self.lease is None:
            return self.view(np.ndarray)
        offset = self.__array_interface__["data"][0] - self.lease.memory.ctypes.data
        return np.ndarray(self.shape, self.dtype, self.lease.memory, offset, self.strides)

    @property
    def data(self) -> Any:
        lease: Any = self.lease or SimpleNamespace(memory=self.view(np.ndarray))
        return Pointer(lease, self.__array_interface__["data"][0])

    @property
    def device(self) -> Any:
        return SimpleNamespace(id=0 if self.lease is None else self.lease.device)

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.__array_interface__

    def __dlpack_device__(self) -> Any:
        return (2, 0)

    def __setitem__(self, key: Any, value: Any) -> None:
        assert isinstance(value, Array) or np.isscalar(value), "CuPy takes no array of NumPy"
        check_devices(self, value)
        given = value.plain if isinstance(value, Array) else value
        Stream.current.add(partial(np.ndarray.__setitem__, self.plain, key, given))

    @staticmethod
    def synchronize(*values: Any) -> None:
        check_devices(*values)
        Stream.current.synchronize()

    @staticmethod
    def made(array: Any) -> Any:
        result = empty(array.shape, array.dtype)
        result.set(array)
        return result

    def copy(self, order: Any = "C") -> Any:
        made = empty(self.shape, self.dtype)
        if order == "K" and self.flags.f_contiguous:
            made = empty(self.shape[::-1], self.dtype).T
        made[...] = self
        return made

    def get(self) -> Any:
        Stream.current.synchronize()
        return np.array(self.view(np.ndarray))

    def set(self, array: Any) -> None:
        """The driver takes pageable memory before it returns."""
        taken = np.array(array)
        assert taken.dtype == self.dtype
        Stream.current.add(partial(np.ndarray.__setitem__, self.plain, ..., taken))


def check_devices(*values: Any) -> None:
    """Arrays are on the current GPU."""
    for value in values:
        if isinstance(value, Array):
            assert value.device.id == Device.current, "an array of another GPU"


def empty(shape: Any, dtype: Any = float) -> Any:
    return Array(shape, dtype)


def asarray(array: Any, dtype: Any = None) -> Any:
    if isinstance(array, Array):
        return array if dtype in (None, array.dtype) else array.astype(dtype)
    array = np.asarray(array, dtype)
    made = empty(np.shape(array), np.asarray(array).dtype)
    made.set(np.asarray(array))
    return made


class Kernel:
    """A kernel that is queued on the current stream."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self.shared_size_bytes = kernel.shared_size_bytes

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name == "max_dynamic_shared_size_bytes":
            self._kernel.max_dynamic_shared_size_bytes = value

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0) -> None:
        check_devices(*args)
        given = tuple(a.plain if isinstance(a, Array) else a for a in args)
        Stream.current.add(partial(self._kernel, grid, block, given, shared_mem=shared_mem))


class RawModule:
    """A text for the emulator, or for the engine of PTX."""

    def __init__(self, code: str, options: tuple[str, ...]) -> None:
        assert "--std=c++17" in options
        text = ENGINE == "text"
        self._module: Any = EmulatedModule(code) if text else PtxModule(code, arch=int(ENGINE[3:]))

    def compile(self) -> None:
        """It was compiled when it was made."""

    def get_function(self, name: str) -> Kernel:
        return Kernel(self._module.get_function(name))


class PinnedMemory:
    """Memory of the CPU; the bytes of all that are pinned are counted."""

    pinned = 0

    def __init__(self, count: int) -> None:
        PinnedMemory.pinned += count
        self.bytes = (ctypes.c_char * count)()

    def __del__(self) -> None:
        PinnedMemory.pinned -= len(self.bytes)


def pinned_pointer(memory: PinnedMemory, offset: int) -> Any:
    """An object with the buffer of the memory, and its address ``ptr``."""
    assert offset == 0
    made = memory.bytes
    made_address = ctypes.addressof(made)

    class WithAddress(type(made)):  # type: ignore[misc]
        ptr = made_address

    found = WithAddress.from_buffer(made)
    found.memory = memory
    return found


def einsum(*operands: Any, **options: Any) -> Any:
    """CuPy's, at once."""
    Stream.current.synchronize()
    plain = [o.view(np.ndarray) if isinstance(o, Array) else o for o in operands]
    made = np.asarray(np.einsum(*plain, **options))
    result = empty(made.shape, made.dtype)
    result.set(made)
    return result


def from_dlpack(array: Any) -> Any:
    """Asks the array for its elements in the order of the current stream."""
    given = array.__dlpack__(stream=Stream.current.ptr)
    owner = np.asarray(given)
    made = owner.view(Array)
    assert np.shares_memory(plain(made), owner)
    return made


PROPERTIES = {
    "name": b"NVIDIA H200",
    "major": 9,
    "minor": 0,
    "totalGlobalMem": 2**37,
    "sharedMemPerBlockOptin": 232448,
    "l2CacheSize": 50 * 2**20,
    "multiProcessorCount": 132,
}

cuda = SimpleNamespace(
    Device=Device,
    Event=Event,
    Stream=Stream,
    get_current_stream=lambda: Stream.current,
    get_elapsed_time=lambda *_: 1.0,
    compiler=SimpleNamespace(CompileException=NvrtcError),
    driver=SimpleNamespace(CUDADriverError=CUDADriverError),
    memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    nvrtc=SimpleNamespace(getVersion=lambda: (13, 0)),
    pinned_memory=SimpleNamespace(PinnedMemory=PinnedMemory, PinnedMemoryPointer=pinned_pointer),
    runtime=SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        getDevice=lambda: Device.current,
        getDeviceCount=lambda: Device.count,
        memGetInfo=lambda: (Device.free, 2**40),
        getDeviceProperties=lambda _: PROPERTIES,
        streamIsCapturing=lambda ptr: Stream.made[ptr].capturing,
    ),
)

module = SimpleNamespace(
    RawModule=RawModule,
    arange=lambda *args, **options: asarray(np.arange(*args, **options)),
    asarray=asarray,
    ascontiguousarray=lambda a: a if a.flags.c_contiguous else a.copy(),
    asnumpy=lambda a: a.get(),
    cuda=cuda,
    einsum=einsum,
    empty=empty,
    from_dlpack=from_dlpack,
    full=lambda shape, value: asarray(np.full(shape, value)),
    get_default_memory_pool=lambda: SimpleNamespace(
        free_bytes=lambda: 0, free_all_blocks=lambda: None
    ),
    ndarray=Array,
    ones=lambda shape: asarray(np.ones(shape)),
    __version__="stand-in",
)


class Library:
    """The module with NumPy's other functions, which leave its arrays to it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(module, name, None) or getattr(np, name)

    def fuse(self, _: Any) -> Any:
        """CuPy's fusion refuses everything."""

        def refuses(*_: Any) -> Any:
            raise TypeError("not fusible")

        return refuses
