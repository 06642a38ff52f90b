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


class _Lease:
    """The base of an array and of all its views; the last of them to go returns the memory."""

    __slots__ = ("__array_interface__", "_memory", "_pool")

    def __init__(self, pool: Pool, memory: Array, shape: tuple[int, ...], kind: Any) -> None:
        start: int = memory.__array_interface__["data"][0]
        self._pool, self._memory = pool, memory
        self.__array_interface__ = {
            "shape": shape,
            "typestr": kind.str,
            "data": (start + -start % ALIGNMENT, False),
            "version": 3,
        }

    def __del__(self) -> None:
        self._pool.give(self._memory)


def _rounded(count: int, most: int) -> int:
    """Bytes for an array, up to a 32nd more where the pool can retain them.

    Slices of an array by one row or column then use the same memory in turn, which is in the cache.
    """
    grain = 1 << max(0, count.bit_length() - 6)
    up = -(-count // grain) * grain
    return up if up <= most else count


class Pool:
    """Arrays that start on cache lines, in the memory of released arrays of about the same size.

    Args:
        new: makes an array of bytes.
        most: most bytes that may wait for their next use; it is asked each time.
    """

    def __init__(self, new: Callable[[int], Array], most: Callable[[], int]) -> None:
        self._new, self._most = new, most
        self._lock = Lock()
        self._returned: deque[Array] = deque()
        self._waiting: list[Array] = []  # in the order in which they were released

    def array(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """An array with arbitrary elements."""
        kind = np.dtype(dtype)
        count = _rounded(prod(shape) * kind.itemsize + ALIGNMENT, self._most())
        memory = None
        with self._lock:
            self._sort()
            for n in reversed(range(len(self._waiting))):
                if self._waiting[n].nbytes == count:
                    memory = self._waiting.pop(n)
                    break
        if memory is None:
            memory = self._new(count)
        return np.asarray(_Lease(self, memory, shape, kind))

    def give(self, memory: Array) -> None:
        """Take memory back.

        The last view of an array may go at any moment, even while this thread holds the lock. Then
        the next holder of the lock sorts the memory in.
        """
        self._returned.append(memory)
        if self._lock.acquire(blocking=False):
            try:
                self._sort()
            finally:
                self._lock.release()

    @property
    def waiting_bytes(self) -> int:
        """Bytes that wait for their next use."""
        return sum(m.nbytes for m in self._waiting)

    def _sort(self) -> None:
        """Sort returned memory in, and drop the memory that was released first beyond the limit."""
        while self._returned:
            self._waiting.append(self._returned.popleft())
        most = self._most()
        while self._waiting and self.waiting_bytes > most:
            del self._waiting[0]
