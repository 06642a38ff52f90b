"""Arrays by name in .npz and HDF5 files: the inputs and outputs of ``tcgen run``."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..cache_files import whole_file
from ..distributed.stored import reading
from ..errors import ArgumentError, UnavailableError

Arrays = dict[str, "np.ndarray[Any, Any]"]


def read_arrays(path: Path) -> Arrays:
    """Arrays by name from an .npz file, or the top of an HDF5 file; otherwise an ArgumentError."""
    if is_hdf5(path):
        return _read_hdf5(path)
    try:
        with zipfile.ZipFile(path):  # numpy.load also reads other kinds of files
            pass
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except zipfile.BadZipFile as error:
        raise ArgumentError(
            f"cannot read inputs from {path}: it is not an .npz file: write it with numpy.savez"
        ) from error
    except OSError as error:
        raise ArgumentError(f"cannot read inputs from {path}: {error.strerror or error}") from error
    except (ValueError, EOFError, RuntimeError, zlib.error, struct.error) as error:
        raise ArgumentError(f"cannot read inputs from {path}: {error}") from error
    other = [name for name, value in arrays.items() if not isinstance(value, np.ndarray)]
    if other:
        raise ArgumentError(
            f"cannot read inputs from {path}: these are not arrays: {', '.join(other)}"
        )
    return arrays


def is_hdf5(path: Path) -> bool:
    """True for the endings .h5 and .hdf5."""
    return path.suffix in (".h5", ".hdf5")


def stored_names(path: Path) -> list[str]:
    """Names of the arrays at the top of an HDF5 file."""
    with _opened(path) as found:
        return [*found]


def _read_hdf5(path: Path) -> Arrays:
    # Arrays are in the byte order of the machine, whatever that of the file is.
    with _opened(path) as found:
        return {
            n: data[...].astype(data.dtype.newbyteorder("="), copy=False)
            for n, data in found.items()
        }


@contextmanager
def _opened(path: Path) -> Iterator[dict[str, Any]]:
    """The data sets at the top of an HDF5 file, by name."""
    try:
        import h5py  # noqa: PLC0415  (optional)
    except ImportError:
        raise UnavailableError(f"{path} needs h5py: pip install h5py") from None
    with reading(path), h5py.File(path, "r") as file:
        found = {n: data for n, data in file.items() if isinstance(data, h5py.Dataset)}
        empty = ", ".join(name for name, data in found.items() if data.shape is None)
        if empty:
            raise ArgumentError(f"{path}: {empty} has no shape and holds no elements (h5py.Empty)")
        yield found


class _Stream:
    """A device or a pipe: an archive is written to it without going back."""

    def __init__(self, file: BinaryIO) -> None:
        self.write, self.flush = file.write, file.flush
        self.read = file.read  # NumPy takes objects with a method read for files


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write arrays to an .npz file of exactly this name; an error leaves no part of a file."""
    try:
        with whole_file(path) as file:
            plain = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            np.savez(file if plain else _Stream(file), **dict[str, Any](arrays))
    except OSError as error:
        raise UnavailableError(f"cannot write {path}: {error.strerror}") from error
