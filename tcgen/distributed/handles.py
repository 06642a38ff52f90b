"""Handles carry values to workers: in a file, in a message, or by reference within one process.

A task receives a handle in place of a value. ``open`` returns the value on the worker.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from ..errors import UnavailableError
from ..runtime.host_device import HostDevice

_LINE = 64  # bytes of a cache line; the arrays of kernels start on one


class Handle:
    """A value that a worker can open.

    ``token`` names the value and those that workers make from it. ``moves`` is true if the value is
    sent to another process. The value is shared by ``holders`` processes, and each counts its share
    of the bytes.
    """

    def __init__(
        self, value: Any, token: str | None = None, *, moves: bool = True, holders: int = 1
    ) -> None:
        self.value, self.moves, self.holders = value, moves, holders
        self.token = token or uuid4().hex

    def open(self) -> Any:
        """The value, on the worker."""
        return self.value


class InFile(Handle):
    """A value in a file that workers map into memory, so that a node has it once."""

    @classmethod
    def write(cls, value: object, folder: Path) -> InFile:
        """Write a value to a new file in a folder.

        Raises:
            UnavailableError: the folder does not exist or has no room.
        """
        path = folder / f"{uuid4().hex}{'.npy' if isinstance(value, np.ndarray) else '.pickle'}"
        try:
            if isinstance(value, np.ndarray):
                np.save(path, value)
            else:
                path.write_bytes(pickle.dumps(value))
        except OSError as error:
            path.unlink(missing_ok=True)
            raise unwritable(folder, error) from None
        return cls(path)

    def open(self) -> Any:
        """The array, mapped and not to be written to; or the object."""
        if self.value.suffix == ".npy":
            return np.load(self.value, mmap_mode="r").view(np.ndarray)
        return pickle.loads(self.value.read_bytes())


def unwritable(folder: Path, error: OSError) -> UnavailableError:
    """The error for a folder that takes no arrays."""
    return UnavailableError(
        f"arrays for workers cannot be written to {folder} ({error.strerror or error}): "
        f"give scratch= a folder that exists and has room"
    )


class InMessage(Handle):
    """A value that travels in a message; arrays arrive on a cache line, in C order.

    Frames of a message begin anywhere. Kernels copy arrays that do not begin on an element at
    every call, so the array is copied once where it arrives.
    """

    def __sizeof__(self) -> int:
        """Bytes with the array: dask places tasks and measures the memory of workers by them."""
        return object.__sizeof__(self) + int(getattr(self.value, "nbytes", 0))

    def __reduce_ex__(self, protocol: Any) -> tuple[Callable[..., InMessage], tuple[Any, ...]]:
        value = self.value
        if isinstance(value, np.ndarray) and value.ndim and int(protocol) >= 5:
            array: Any = np.asarray(value, order="C")
            buffer = pickle.PickleBuffer(array)
            return _arrived, (buffer, value.dtype.str, value.shape, self.token)
        return InMessage, (value, self.token)


def _arrived(buffer: Any, dtype: str, shape: tuple[int, ...], token: str) -> InMessage:
    array = np.frombuffer(buffer, dtype).reshape(shape)
    if array.ctypes.data % _LINE:
        array = aligned_copy(array)
    return InMessage(array, token)


def aligned_copy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy in C order that begins on a cache line."""
    made = aligned_empty(array.shape, array.dtype)
    made[...] = array
    return made


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """An array with arbitrary elements that begins on a cache line."""
    count = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    memory = HostDevice().empty((count + _LINE,), np.uint8)
    first = -memory.ctypes.data % _LINE
    made: np.ndarray[Any, Any] = memory[first : first + count].view(dtype)
    return made.reshape(shape)
