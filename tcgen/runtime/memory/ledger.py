"""Every array that a call allocates, and the bytes it holds.

There is no other place where the runtime makes an array whose extent depends on the program's:
what :class:`Ledger` counts is what a call takes beyond its inputs.
"""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...artifact.arena import Layout
from ...environment import pool_bytes
from ...errors import MemoryLimitError
from .pool import Pool

Array = npt.NDArray[Any]
_BYTE = np.dtype(np.uint8)
_POOLED = 2**20  # bytes of an array whose memory is worth keeping


def new_array(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """An array with arbitrary elements: the one call of the runtime that asks for memory.

    Raises:
        MemoryLimitError: the system refuses as many bytes.
    """
    try:
        return np.empty(shape, dtype)
    except (MemoryError, ValueError):  # the second one of more than 2^63 bytes
        count = prod(shape) * np.dtype(dtype).itemsize
        raise MemoryLimitError(
            f"this machine has no memory for {count:,} bytes at once: run with smaller extents, or "
            f"compile with a memory limit and the objective time"
        ) from None


_pool = Pool(lambda count: new_array((count,), np.uint8), pool_bytes)


class _Described(ctypes.Structure):
    """Start of NumPy's ``PyArrayInterface``: an array as it shows itself to C."""

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


_described = ctypes.PYFUNCTYPE(ctypes.POINTER(_Described), ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def address(array: Array) -> int:
    """Address of the first element.

    NumPy's interface for C is asked: that for Python, a dictionary, takes four times as long, and a
    call asks for each of its arrays.
    """
    capsule = array.__array_struct__  # which what is read lives in
    place: int | None = _described(capsule, None).contents.data
    return place or 0  # ctypes says None of null, where foreign memory of no bytes may be


class Ledger:
    """Bytes that a call holds, now and at most.

    Args:
        held: bytes that are there already.
        reuse: large arrays start on cache lines and may take memory that earlier ones have left. A
            program that must keep to few bytes does without it: what waits for its next use counts.

    Attributes:
        now: bytes held at this moment.
        peak: most bytes held at one time.
    """

    __slots__ = ("_reuse", "now", "peak")

    def __init__(self, held: int = 0, *, reuse: bool = False) -> None:
        self.now = self.peak = held
        self._reuse = reuse

    def add(self, count: int) -> None:
        """Count bytes that stay to the end of the call."""
        self.now += count
        if self.now > self.peak:
            self.peak = self.now

    def array(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """A new array that stays to the end of the call."""
        return self._new(shape, dtype, prod(shape) * np.dtype(dtype).itemsize)

    def copy(self, array: Array) -> Array:
        """A C-contiguous copy that stays to the end of the call."""
        made = self.array(array.shape, array.dtype)
        made[...] = array
        return made

    def arena(self, layout: Layout) -> Array:
        """The memory of a layout, to the end of the call or until it is released."""
        raw = self._new((layout.total,), _BYTE, layout.total)
        if layout.total == 0:
            return raw
        start = -address(raw) % layout.alignment
        return raw[start:] if start + layout.extent <= layout.total else raw

    def _new(self, shape: tuple[int, ...], dtype: npt.DTypeLike, count: int) -> Array:
        """An array of so many bytes."""
        pooled = self._reuse and count >= _POOLED
        made = _pool.array(shape, dtype) if pooled else new_array(shape, dtype)
        self.add(count)
        return made

    def release(self, layout: Layout) -> None:
        """Count the memory of a layout no more: whoever has it lets it go."""
        self.now -= layout.total
