"""A pool of the memory of released arrays, for new arrays of the same size.

The system maps fresh memory page by page at the first write, which takes about as long as two
writes. A program that is called again asks for arrays of the same sizes, so the pool retains the
memory of the last call's arrays. The memory of an array returns when the array and all its views
are released: they all hold its lease. ``TCGEN_POOL`` limits the bytes that the pool retains.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...artifact.arena import ALIGNMENT
from ..fork_safe_lock import Lock

Array = npt.NDArray[Any]


class _Block:
    """Memory that arrays use in turn.

    Attributes:
        memory: bytes.
        count: of the bytes.
        start: address of the first cache line.
        released: number of the last release, of all releases of the pool.
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

    Args:
        new: makes an array of bytes.
        most: most bytes that may wait for their next use; it is asked each time.
    """

    def __init__(self, new: Callable[[int], Array], most: Callable[[], int]) -> None:
        self._new, self._most = new, most
        self._lock = Lock()
        self._returned: deque[_Block] = deque()
        self._waiting: dict[int, list[_Block]] = {}  # by bytes, in the order of release
        # At least the bytes that wait: more in a child that was forked between two steps.
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

    @property
    def waiting_bytes(self) -> int:
        """Bytes that wait for their next use."""
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
