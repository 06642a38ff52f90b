"""Memory that large arrays have left, kept for the next arrays of as many bytes.

Fresh memory comes from the system page by page at the first write, which takes about as long as
writing it twice. A program that is called again asks for the same arrays again, so what the last
call's arrays leave is kept. An array's memory returns here when neither it nor any view of it is
left: they all hold its lease. ``TCGEN_POOL`` says how many bytes are kept at most.
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
    """Owner of an array's memory as NumPy sees it: the base of the array and of all its views."""

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


class Pool:
    """Arrays that start on cache lines, in memory that earlier ones have left.

    Args:
        new: makes an array of bytes.
        most: bytes that may wait for their next use; asked each time.
    """

    def __init__(self, new: Callable[[int], Array], most: Callable[[], int]) -> None:
        self._new, self._most = new, most
        self._lock = Lock()
        self._returned: deque[Array] = deque()
        self._kept: list[Array] = []  # what was left last stands last

    def array(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """An array with arbitrary elements."""
        kind = np.dtype(dtype)
        count = prod(shape) * kind.itemsize + ALIGNMENT
        memory = None
        with self._lock:
            self._sort()
            for n in reversed(range(len(self._kept))):
                if self._kept[n].nbytes == count:
                    memory = self._kept.pop(n)
                    break
        if memory is None:
            memory = self._new(count)
        return np.asarray(_Lease(self, memory, shape, kind))

    def give(self, memory: Array) -> None:
        """Take memory back.

        The last view of an array may go at any moment, even while this thread holds the lock: what
        cannot be sorted now is left to the next one that holds it.
        """
        self._returned.append(memory)
        if self._lock.acquire(blocking=False):
            try:
                self._sort()
            finally:
                self._lock.release()

    @property
    def kept_bytes(self) -> int:
        """Bytes that wait for their next use."""
        return sum(m.nbytes for m in self._kept)

    def _sort(self) -> None:
        """Keep what has come back, within the bound; what was left longest ago goes first."""
        while self._returned:
            self._kept.append(self._returned.popleft())
        most = self._most()
        while self._kept and self.kept_bytes > most:
            del self._kept[0]
