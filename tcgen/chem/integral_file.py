"""Files of integrals, which are read in parts.

A temporary file has what does not fit into memory. Integrals over all pairs of orbitals may be in a
file with a name, from which later jobs read them. That file is complete when it gets its name, so
that a job that is killed leaves none, and jobs at the same time do not meet.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..compiler.progress import Progress
from ..errors import ArgumentError, UnavailableError
from ..ir.layouts import Array, pack
from ..ir.tensor import Tensor
from .result import equal_parts

# Most bytes of rows that are read, and kept, at once: all (pq| of one p for up to 300 orbitals.
MOST_KEPT = 128_000_000
# Largest difference of numbers that describe the same orbitals, in atomic units: energies from
# integrals over other ones would differ by about as much.
_SAME = 1e-8
_PAIRS, _JOB = "pairs", "job"
_MORE = "set TMPDIR, or give more memory"


class NamedFile:
    """The name of a file of integrals over all pairs of orbitals, and the job that they belong to.

    ``job`` describes a reference by what an error would call it.
    """

    def __init__(self, path: Path, job: Mapping[str, Any]) -> None:
        self.path, self.job = path, job

    def check(self) -> None:
        """Refuse a file of another kind or job, or a folder that takes none.

        Raises:
            ArgumentError: the file has no integrals, or those of another job.
            UnavailableError: the file cannot be written.
        """
        if not self.path.exists():
            if not os.access(self.path.parent, os.W_OK):
                raise UnavailableError(
                    f"cannot write {self.path} (no permission, or no such folder): give the name "
                    f"of a file in a folder that you may write to"
                )
            return
        import h5py  # noqa: PLC0415  (PySCF brings it)

        try:
            with h5py.File(self.path, "r") as file:
                job, _ = json.loads(file.attrs[_JOB]), file[_PAIRS]
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise ArgumentError(
                f"{self.path} is not a file of integrals of tcgen: give another name, or remove it"
            ) from error
        same = {n: equal_parts(job.get(n), part, _SAME) for n, part in self.job.items()}
        if others := [name for name, equal in same.items() if not equal]:
            raise ArgumentError(
                f"{self.path} has the integrals of another job: other {', '.join(others)}: give "
                f"another name, or remove it; a mean field that is run again must give the same "
                f"orbitals to {_SAME:.0e}"
            )


class IntegralFile(ExitStack):
    """HDF5 files with arrays: a temporary one, which goes when it is closed, and a ``named`` one.

    ``bytes_written`` is the room that was asked for. ``reads``, ``bytes_read`` and ``seconds``
    count what is read. ``tell`` gets the progress of what is written. ``StoredRows`` keep ``kept``
    bytes.
    """

    def __init__(
        self, tell: Progress, kept: float = MOST_KEPT, named: NamedFile | None = None
    ) -> None:
        super().__init__()
        self._file: Any = None
        self._new: Any = None  # the named one while it is written, under another name
        self.tell, self.kept, self.named = tell, kept, named
        self.bytes_written = self.bytes_read = self.reads = 0
        self.seconds = 0.0

    def reserve(self, half: float, pairs: float) -> None:
        """Refuse a transform whose bytes, half-transformed and whole, find no room.

        Raises:
            UnavailableError: the folder of one of the files has too little room, or is read-only.
        """
        if self.named is None:
            half, pairs = half + pairs, 0.0
        if half:
            self._room(self._temporary(), "integrals", half)
        if pairs:
            self._room(self._being_named(), "integrals", pairs)

    def create(self, name: str, shape: Sequence[int], dtype: Any) -> Any:
        """An empty dataset in the temporary file.

        Raises:
            UnavailableError: the folder of temporary files has too little room, or is read-only.
        """
        return self._created(self._temporary(), name, shape, dtype)

    def create_pairs(self, numbers: tuple[int, int], shape: Sequence[int], dtype: Any) -> Any:
        """An empty dataset for the integrals over pairs of two sets, in the named file if any.

        Raises:
            UnavailableError: its folder has too little room, or is read-only.
        """
        file = self._temporary() if self.named is None else self._being_named()
        return self._created(file, f"{_PAIRS}/{numbers[0]}-{numbers[1]}", shape, dtype)

    def _temporary(self) -> Any:
        if self._file is None:
            import h5py  # noqa: PLC0415  (PySCF brings it)

            try:
                folder = self.enter_context(tempfile.TemporaryDirectory(prefix="tcgen-"))
                self._file = self.enter_context(h5py.File(Path(folder) / "integrals.h5", "w"))
            except OSError as error:
                raise _unwritable(tempfile.gettempdir(), error, _MORE) from error
        return self._file

    def _being_named(self) -> Any:
        if self._new is None:
            import h5py  # noqa: PLC0415  (PySCF brings it)

            assert self.named is not None
            part = self.named.path.with_name(f"{self.named.path.name}.{os.getpid()}.part")
            try:
                part.unlink(missing_ok=True)
                self.callback(part.unlink, missing_ok=True)
                self._new = self.enter_context(h5py.File(part, "x"))
            except OSError as error:
                raise _unwritable(self.named.path, error, "give another name") from error
        return self._new

    def _created(self, file: Any, name: str, shape: Sequence[int], dtype: Any) -> Any:
        needed = prod(shape) * np.dtype(dtype).itemsize
        self._room(file, name, needed)
        self.bytes_written += needed
        return file.create_dataset(name, tuple(shape), dtype)

    def _room(self, file: Any, name: str, needed: float) -> None:
        """Refuse to write so many bytes where there is less room."""
        folder = Path(file.filename).parent
        free = shutil.disk_usage(folder).free
        if free < needed:
            advice = _MORE if file is self._file else "give another name, or make room"
            raise UnavailableError(
                f"cannot write {name} to {folder} ({free:,} bytes are free): it needs "
                f"{needed:,.0f} bytes there; {advice}"
            )

    def pairs(self) -> dict[tuple[int, int], StoredRows]:
        """The integrals over pairs by sets that were created, or that the named file has.

        A new named file gets its name here. {} if there are none.
        """
        if self.named is not None:
            path = self.named.path
            if self._new is not None:
                self._new.attrs[_JOB] = json.dumps(self.named.job)
                part = Path(self._new.filename)
                self._new.close()
                flush(part)
                part.replace(path)
                with suppress(OSError):
                    flush(path.parent)
            elif not path.exists():
                return {}
            import h5py  # noqa: PLC0415  (PySCF brings it)

            self._new, file = None, self.enter_context(h5py.File(path, "r"))
        else:
            file = self._file
        if file is None or _PAIRS not in file:
            return {}
        found = {}
        for name, data in file[_PAIRS].items():
            one, _, two = name.partition("-")
            found[int(one), int(two)] = StoredRows(self, data)
        return found

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


def _unwritable(path: Path | str, error: OSError, advice: str) -> UnavailableError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    return UnavailableError(f"cannot write {path} ({reason}): {advice}")


def progress_of(tell: Progress, work: str, count: int) -> Callable[[int], None]:
    """A function that shows how many of ``count`` columns are done, and the seconds left."""
    clock = time.perf_counter()

    def show(done: int) -> None:
        seconds = time.perf_counter() - clock
        left = f", {seconds * (count / done - 1):.0f} s left" if seconds > 1 else ""
        tell(f"making integrals, {done / count:.0%} of the {work}{left}")

    return show


def flush(path: Path) -> None:
    """Wait until the file or folder is on the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
