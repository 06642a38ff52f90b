"""A temporary file of integrals, which are read in parts."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..compiler.progress import Progress
from ..errors import UnavailableError
from ..ir.layouts import Array, pack
from ..ir.tensor import Tensor

# Most bytes of rows that are read, and kept, at once: all (pq| of one p for up to 300 orbitals.
MOST_KEPT = 128_000_000


class IntegralFile(ExitStack):
    """A temporary HDF5 file with arrays; it goes when it is closed.

    ``bytes_written`` is the room that was asked for. ``reads``, ``bytes_read`` and ``seconds``
    count what programs read. ``tell`` gets the progress of what is written. ``StoredRows`` keep
    ``kept`` bytes.
    """

    def __init__(self, tell: Progress, kept: float = MOST_KEPT) -> None:
        super().__init__()
        self._file: Any = None
        self.tell, self.kept = tell, kept
        self.bytes_written = self.bytes_read = self.reads = 0
        self.seconds = 0.0

    def create(self, name: str, shape: Sequence[int], dtype: Any) -> Any:
        """An empty dataset.

        Raises:
            UnavailableError: the folder of temporary files has too little room, or is read-only.
        """
        needed = prod(shape) * np.dtype(dtype).itemsize
        try:
            if self._file is None:
                import h5py  # noqa: PLC0415  (PySCF brings it)

                folder = self.enter_context(tempfile.TemporaryDirectory(prefix="tcgen-"))
                self._file = self.enter_context(h5py.File(Path(folder) / "integrals.h5", "w"))
            free = shutil.disk_usage(Path(self._file.filename).parent).free
            reason = f"{free:,} bytes are free" if free < needed else ""
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
        if reason:
            raise UnavailableError(
                f"cannot write {name} to {tempfile.gettempdir()} ({reason}): it needs {needed:,} "
                f"bytes there; set TMPDIR, or give more memory"
            )
        self.bytes_written += needed
        return self._file.create_dataset(name, tuple(shape), dtype)

    def remove(self, name: str) -> None:
        """Remove a dataset; arrays that are created later use its room."""
        del self._file[name]

    def write(
        self, tensor: Tensor, shape: tuple[int, ...], axis: int, blocks: Iterable[Array], dtype: str
    ) -> StoredArray:
        """An input from blocks of its dense array, in order along an axis."""
        order = tensor.stored_order
        data = self.create(tensor.name, [shape[k] for k in order], dtype)
        start = 0
        for block in blocks:
            stop = start + block.shape[axis]
            place = [slice(None)] * tensor.rank
            place[order.index(axis)] = slice(start, stop)
            data[tuple(place)] = np.asarray(pack(tensor, block))
            start = stop
        return StoredArray(self, data)

    def read(self, data: Any, selection: Any, out: Array) -> None:
        """Read a part of a dataset."""
        clock = time.perf_counter()
        data.read_direct(out, source_sel=selection)
        self.reads += 1
        self.bytes_read += out.nbytes
        self.seconds += time.perf_counter() - clock


class StoredArray:
    """An array in an ``IntegralFile``, of which tiles are read, as from a dataset of h5py."""

    def __init__(self, file: IntegralFile, data: Any) -> None:
        self._file, self._data = file, data
        self.shape, self.dtype = data.shape, data.dtype

    def __getitem__(self, key: tuple[slice, ...]) -> Array:
        out = np.empty([len(range(n)[k]) for n, k in zip(self.shape, key, strict=True)], self.dtype)
        self.read_direct(out, key)
        return out

    def read_direct(self, out: Array, source_sel: tuple[slice, ...]) -> None:
        """Read a tile into an array."""
        self._file.read(self._data, source_sel, out)


class StoredRows:
    """A matrix in an ``IntegralFile``, of which rows are read; the latest ones are kept."""

    def __init__(self, file: IntegralFile, data: Any) -> None:
        self._file, self._data = file, data
        self._numbers, self._rows = np.empty(0, int), np.empty((0, data.shape[1]), data.dtype)
        self.dtype = data.dtype

    def parts(self, numbers: Array) -> Iterator[tuple[slice, Array]]:
        """Some rows, in parts: places in ``numbers``, and the rows there."""
        most = max(1, int(self._file.kept / max(1, self._data.shape[1] * self.dtype.itemsize)))
        for start in range(0, len(numbers), most):
            place = slice(start, min(start + most, len(numbers)))
            yield place, self._read(numbers[place])

    def _read(self, numbers: Array) -> Array:
        if not np.array_equal(numbers, self._numbers):
            if len(numbers) != len(self._rows):
                self._rows = np.empty((0, self._data.shape[1]), self.dtype)
                self._rows = np.empty((len(numbers), self._data.shape[1]), self.dtype)
            # Neighbours in the file are read together.
            starts = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
            for start, stop in zip(starts, [*starts[1:], len(numbers)], strict=True):
                first, out = int(numbers[start]), self._rows[start:stop]
                self._file.read(self._data, np.s_[first : first + len(out)], out)
            self._numbers = numbers
        return self._rows
