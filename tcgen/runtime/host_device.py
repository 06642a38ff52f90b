"""The memory of the CPU as a device: NumPy arrays, new or in the memory of released ones.

The system maps fresh memory page by page at the first write, which takes about as long as two
writes. A program that is called again asks for arrays of the same sizes, so a pool retains the
memory of the last call's arrays. The memory of an array returns when the array and all its views
are released: they all hold its lease. ``TCGEN_POOL`` limits the bytes that the pool retains.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..environment import pool_bytes
from ..errors import MemoryLimitError
from ..records.arena import ALIGNMENT, Layout
from .fork_safe_lock import Lock

Array = npt.NDArray[Any]
_BYTE = np.dtype(np.uint8)
# Bytes of the smallest array whose memory the pool retains.
MIN_POOLED_BYTES = 2**19


def new_array(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """An array with arbitrary elements; only this function of the runtime asks for memory.

    Raises MemoryLimitError if the system refuses as many bytes.
    """
    try:
        return np.empty(shape, dtype)
    except (MemoryError, ValueError):  # NumPy raises ValueError for more than 2^63 bytes
        count = prod(shape) * np.dtype(dtype).itemsize
        raise MemoryLimitError(
            f"this machine has no memory for {count:,} bytes at once: run with smaller extents, or "
            f"compile with a memory limit and the objective time"
        ) from None


class _Block:
    """Memory that arrays use in turn.

    It has ``count`` bytes; ``start`` is the address of its first cache line, and ``released`` the
    number of its last release among all of the pool.
    """

    __slots__ = ("count", "memory", "released", "start")

    def __init__(self, memory: Array) -> None:
        self.memory, self.count, self.released = memory, memory.nbytes, 0
        start: int = memory.__array_interface__["data"][0]
        self.start = start + -start % ALIGNMENT


class _Lease:
    """The base of an array and of all its views; the last of them to go returns the memory."""

    __slots__ = ("__array_interface__", "_block", "_pool")

    def __init__(self, pool: Pool, block: _Block, shape: tuple[int, ...], kind: Any) -> None:
        self._pool, self._block = pool, block
        self.__array_interface__ = {
            "shape": shape,
            "typestr": kind.str,
            "data": (block.start, False),
            "version": 3,
        }

    def __del__(self) -> None:
        self._pool.give(self._block)


def _rounded(count: int) -> int:
    """Bytes for an array that the pool can retain, up to a 32nd more.

    Slices of an array by one row or column then use the same memory in turn, which is in the cache.
    """
    grain = 1 << max(0, count.bit_length() - 6)
    return -(-count // grain) * grain


class Pool:
    """Arrays that start on cache lines, in the memory of released arrays of about the same size.

    ``new`` makes an array of bytes; ``most`` returns the most bytes that the pool retains.
    """

    def __init__(self, new: Callable[[int], Array], most: Callable[[], int]) -> None:
        self._new, self._most = new, most
        self._lock = Lock()
        self._returned: deque[_Block] = deque()
        self._waiting: dict[int, list[_Block]] = {}  # key: bytes; in the order of release
        # Upper bound of the retained bytes; exact unless the process was forked between two steps.
        self._bytes = 0
        self._releases = 0

    def array(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """An array with arbitrary elements."""
        kind = np.dtype(dtype)
        count = prod(shape) * kind.itemsize + ALIGNMENT
        rounded = _rounded(count)
        block = None
        with self._lock:
            self._sort()
            waiting = self._waiting.get(rounded)
            if waiting:
                block = waiting.pop()
                self._bytes -= rounded
        if block is None:
            block = _Block(self._new(rounded if rounded <= self._most() else count))
        return np.asarray(_Lease(self, block, shape, kind))

    def give(self, block: _Block) -> None:
        """Take memory back.

        The last view of an array may go at any moment, even while this thread holds the lock. Then
        the next holder of the lock sorts the memory in.
        """
        self._returned.append(block)
        if self._lock.acquire(blocking=False):
            try:
                self._sort()
            finally:
                self._lock.release()

    def release(self) -> None:
        """Return all memory that the pool retains to the system."""
        with self._lock:
            self._sort()
            self._waiting.clear()
            self._bytes = 0

    @property
    def waiting_bytes(self) -> int:
        """Bytes that the pool retains."""
        return sum(count * len(blocks) for count, blocks in self._waiting.items())

    def _sort(self) -> None:
        """Sort returned memory in, and drop the memory that was released first beyond the limit."""
        while self._returned:
            block = self._returned.popleft()
            self._releases += 1
            block.released = self._releases
            self._bytes += block.count
            self._waiting.setdefault(block.count, []).append(block)
        most = self._most()
        if self._bytes > most:
            self._bytes = self.waiting_bytes
            while self._bytes > most:
                self._drop_first()

    def _drop_first(self) -> None:
        """Drop the memory that was released first."""
        count = min(
            (count for count, blocks in self._waiting.items() if blocks),
            key=lambda count: self._waiting[count][0].released,
        )
        del self._waiting[count][0]
        self._bytes -= count
        if not self._waiting[count]:
            del self._waiting[count]


_pool = Pool(lambda count: new_array((count,), np.uint8), pool_bytes)
release_memory = _pool.release


class HostDevice:
    """The memory of the CPU.

    With ``reuse``, arrays of MIN_POOLED_BYTES or more start on cache lines and may take memory that
    earlier ones have released. Programs with a memory limit do not use it, since the memory of the
    pool would count.
    """

    on_cpu = True
    array_kind = "NumPy array"
    direct_kind = "in C order"

    def __init__(self, *, reuse: bool = False) -> None:
        self._reuse = reuse
        self.nothing = new_array((0,), _BYTE)

    def holds(self, array: object) -> bool:
        """True for a NumPy array."""
        return isinstance(array, np.ndarray)

    def adopt(self, array: Any) -> None:
        """The CPU has no memory of a GPU."""

    def elsewhere(self, array: Any) -> str | None:  # noqa: ARG002  (of the protocol)
        """None: there is one CPU."""
        return None

    def aligned(self, array: Array) -> bool:
        """NumPy knows."""
        return array.flags.aligned

    def direct(self, array: Array) -> bool:
        """In C order and aligned."""
        flags = array.flags
        return flags.c_contiguous and flags.aligned

    def contiguous(self, array: Array) -> Array:
        """The array, or an aligned copy in C order."""
        if self.direct(array):
            return array
        made = self.empty(array.shape, array.dtype)
        made[...] = array
        return made

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """From the pool if it is large, else from NumPy."""
        if self._reuse and prod(shape) * np.dtype(dtype).itemsize >= MIN_POOLED_BYTES:
            return _pool.array(shape, dtype)
        return new_array(shape, dtype)

    def arena(self, layout: Layout) -> Array:
        """From the first address that has the alignment of the layout."""
        raw = self.empty((layout.total,), _BYTE)
        start = -address(raw) % layout.alignment
        return raw[start:] if start + layout.extent <= layout.total else raw

    def inside(self, memory: Any, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """A view of the memory."""
        return np.ndarray(shape, dtype, memory, offset)

    def put(self, array: Array) -> Array:
        """The array itself."""
        return array

    def get(self, array: Array) -> Array:
        """The array itself."""
        return array

    def overlap(self, one: Array, other: Array) -> bool:
        """Compares the bounds of their memory."""
        return np.may_share_memory(one, other)

    def wait(self) -> None:
        """Kernels of the CPU have ended when they return."""

    def update(self, target: Array, array: Array) -> None:
        """Copy at once."""
        target[...] = array

    def begin(self) -> None:
        """The CPU takes every call."""


class _ArrayInterface(ctypes.Structure):
    """Start of NumPy's ``PyArrayInterface``, through which an array describes itself to C."""

    _fields_ = (
        ("two", ctypes.c_int),
        ("rank", ctypes.c_int),
        ("kind", ctypes.c_char),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
    )


_interface_of = ctypes.PYFUNCTYPE(
    ctypes.POINTER(_ArrayInterface), ctypes.py_object, ctypes.c_char_p
)(("PyCapsule_GetPointer", ctypes.pythonapi))


def address(array: Array) -> int:
    """Address of the first element.

    It is read from NumPy's interface for C: the one for Python, a dictionary, takes four times as
    long, for each array of a call.
    """
    capsule = array.__array_struct__  # it owns the structure that is read
    data: int | None = _interface_of(capsule, None).contents.data
    return data or 0  # ctypes gives None for null, where foreign memory of no bytes may be
