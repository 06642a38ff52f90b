"""Copies between the CPU and a GPU through two buffers of pinned memory in turn.

A GPU reads and writes pinned memory by itself, while the CPU copies the next piece to the other
buffer. CuPy pins the bytes of a whole array, rounded up to a power of two, and keeps them; here
only the two buffers are pinned, whatever the arrays are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..fork_safe_lock import Lock

Array = npt.NDArray[Any]
# Bytes of a buffer: 0.7 ms at 25 GB/s, beside an overhead of some 20 microseconds.
PIECE_BYTES = 2**24
# Bytes of the smallest array that goes through the buffers; the driver copies smaller ones at once.
MIN_BUFFERED_BYTES = 2**20


class HostCopies:
    """The two pinned buffers of the current GPU; calls may come from any thread, and take turns."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._piece_bytes = PIECE_BYTES
        self._lock = Lock()
        self._buffers: tuple[_Buffer, _Buffer] | None = None
        self._second: Any = None
        self._turn = 0

    def put(self, source: Array, target: Any) -> None:
        """Copy an array of the CPU, of any strides, to one of the GPU in C order.

        The copy is in the order of the current stream; the source may change when the call returns,
        before the copy has ended. Both have the same shape and element type.
        """
        stream = self._cupy.cuda.get_current_stream()
        with self._lock:
            for start, piece in _pieces(source, self._piece_bytes):
                buffer = self._next()
                address = buffer.fill(piece)
                (target.data + start).copy_from_host_async(address, piece.nbytes, stream)
                buffer.copied.record(stream)

    def update(self, source: Array, target: Any) -> None:
        """Copy as ``put`` does, while kernels that were queued before run.

        A second stream brings each piece to the GPU, and the current one moves it to its place.
        """
        stream = self._cupy.cuda.get_current_stream()
        with self._lock:
            if self._second is None:
                self._second = self._cupy.cuda.Stream(non_blocking=True)
            second = self._second
            for start, piece in _pieces(source, self._piece_bytes):
                buffer = self._next()
                address, count = buffer.fill(piece), piece.nbytes
                staged = buffer.staging(stream).data
                second.wait_event(buffer.moved)
                staged.copy_from_host_async(address, count, second)
                buffer.copied.record(second)
                stream.wait_event(buffer.copied)
                (target.data + start).copy_from_device_async(staged, count, stream)
                buffer.moved.record(stream)

    def get(self, source: Any) -> Array:
        """A copy on the CPU of an array in C order; it waits for the current stream."""
        stream = self._cupy.cuda.get_current_stream()
        made = np.empty(source.shape, source.dtype)
        in_flight: tuple[_Buffer, Array] | None = None
        with self._lock:
            for start, piece in _pieces(made, self._piece_bytes):
                buffer = self._next()
                address = buffer.address
                (source.data + start).copy_to_host_async(address, piece.nbytes, stream)
                buffer.copied.record(stream)
                if in_flight is not None:
                    _arrive(*in_flight)
                in_flight = buffer, piece
            if in_flight is not None:
                _arrive(*in_flight)
        return made

    def _next(self) -> _Buffer:
        """The buffer whose turn it is, once the copies from or to it have ended."""
        if self._buffers is None:
            self._buffers = (
                _Buffer(self._cupy, self._piece_bytes),
                _Buffer(self._cupy, self._piece_bytes),
            )
        self._turn = 1 - self._turn
        buffer = self._buffers[self._turn]
        buffer.copied.synchronize()
        return buffer


class _Buffer:
    """Pinned memory (at ``address``), and memory of the GPU of the same bytes.

    The event ``copied`` is behind the latest copy from or to the pinned memory, ``moved`` behind
    the latest read of the GPU's memory.
    """

    def __init__(self, cupy: Any, count: int) -> None:
        self._cupy = cupy
        pinned = cupy.cuda.pinned_memory
        self._pinned = pinned.PinnedMemoryPointer(pinned.PinnedMemory(count), 0)
        self._bytes = np.frombuffer(self._pinned, np.uint8, count)
        self._staging: Any = None
        self.address = int(self._pinned.ptr)
        self.copied = cupy.cuda.Event(disable_timing=True)
        self.moved = cupy.cuda.Event(disable_timing=True)

    def fill(self, piece: Array) -> int:
        """Copy a piece to the pinned memory; its address."""
        self.part(piece)[...] = piece
        return self.address

    def part(self, piece: Array) -> Array:
        """The pinned memory as an array like a piece."""
        return np.ndarray(piece.shape, piece.dtype, self._bytes)

    def staging(self, stream: Any) -> Any:
        """Memory of the GPU, from CuPy's pool; it is never given back.

        Work that is queued on the current stream may use that memory until it has ended.
        """
        if self._staging is None:
            self._staging = self._cupy.empty((self._bytes.size,), np.uint8)
            self.moved.record(stream)
        return self._staging


def _arrive(buffer: _Buffer, piece: Array) -> None:
    buffer.copied.synchronize()
    piece[...] = buffer.part(piece)


def _pieces(array: Array, most: int) -> Iterator[tuple[int, Array]]:
    """Pieces of an array in C order, each of a few bytes, with the byte at which it starts.

    No piece is a copy, in whatever order the elements are in memory.
    """
    if array.flags.c_contiguous:
        array = array.reshape(-1)
    yield from _divided(array, most, 0)


def _divided(array: Array, most: int, start: int) -> Iterator[tuple[int, Array]]:
    if array.size == 0:
        return
    if array.nbytes <= most:
        yield start, array
        return
    row = array.nbytes // len(array)
    step = max(1, most // row)
    for n in range(0, len(array), step):
        yield from _divided(array[n : n + step] if row <= most else array[n], most, start + n * row)
