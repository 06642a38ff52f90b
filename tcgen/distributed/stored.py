"""Arrays by reference: a data set of an HDF5 file, a zarr array, a ``.npy`` file.

A reference is a path and a name, a few bytes that travel to a worker; the worker reads the elements
of its tasks. All workers must see the file under the same path.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, UnavailableError

Array = npt.NDArray[Any]
Rectangle = tuple[slice, ...]  # one slice for each axis of an array, with both ends


@dataclass(frozen=True, slots=True)
class Stored:
    """An array in a file, read where it is needed: what :func:`stored` returns.

    Attributes:
        path: absolute path of the file, or of the folder of a zarr store.
        name: name of the data set; "" for a file that is one array.
        shape: shape of the whole array.
        dtype: name of its element type, in the byte order of the machine.
    """

    path: str
    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array in memory."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def read(self, rectangle: Rectangle) -> Array:
        """The elements of a rectangle, in C order.

        Raises:
            ArgumentError: the file or the data set is no longer there, or is damaged.
        """
        with self.opened() as read:
            return read(rectangle)

    @contextmanager
    def opened(self) -> Iterator[Callable[[Rectangle], Array]]:
        """A function that reads rectangles, while the file stays open.

        Raises:
            ArgumentError: the file or the data set is no longer there.
        """
        data, file = _open(self.path, self.name)

        def read(rectangle: Rectangle) -> Array:
            with reading(self.path):
                return np.asarray(data[rectangle], self.dtype, order="C")

        try:
            yield read
        finally:
            if file is not None:
                file.close()

    def __getitem__(self, rectangle: Any) -> Array:
        """The elements of a slice: programs that read an input in tiles ask for them."""
        given = rectangle if isinstance(rectangle, tuple) else (rectangle,)
        return self.read(given)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The whole array, for NumPy and :func:`tcgen.einsum`."""
        return self[...].astype(self.dtype if dtype is None else dtype, copy=False)


def stored(path: str | Path, name: str = "") -> Stored:
    """A reference to an array in a file, for ``tcgen.distribute(program, ...).bind(...)``.

    The array stays on disk. Each worker reads the part of it that its tasks need.

    Args:
        path: an HDF5 file (.h5, .hdf5), a folder of a zarr store (.zarr), or a .npy file.
        name: name of the data set in the file.

    Raises:
        ArgumentError: the file does not exist, is of another kind, is damaged or open for writing,
            or has no such data set.
        UnavailableError: h5py or zarr is not installed.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> np.save(f"{folder.name}/x.npy", np.zeros((3, 4)))
        >>> stored(f"{folder.name}/x.npy").shape
        (3, 4)
        >>> folder.cleanup()
    """
    where = Path(path).absolute()
    data, file = _open(str(where), name)
    try:
        if data.shape is None:  # h5py.Empty
            raise ArgumentError(
                f"{path}: data set {name!r} has no shape and holds no elements: write an array"
            )
        with reading(path):  # a damaged type
            dtype = np.dtype(data.dtype).name
        return Stored(str(where), name, tuple(map(int, data.shape)), dtype)
    finally:
        if file is not None:
            file.close()


def by_reference(value: object) -> object:
    """A reference to an array of h5py or zarr that lies in a file; other values as they are."""
    library = type(value).__module__.partition(".")[0]
    given: Any = value
    if library == "h5py" and hasattr(given, "file"):
        return stored(given.file.filename, given.name)
    if library == "zarr" and hasattr(given, "shape"):
        root = getattr(given.store, "root", None) or getattr(given.store, "path", None)
        if root is None or not Path(str(root)).is_dir():
            raise ArgumentError(
                f"the zarr array {given.name or given!r} is in a {type(given.store).__name__}, "
                f"which workers cannot open: save it in a folder, or pass its elements, array[...]"
            )
        return stored(str(root), str(given.path))
    return value


def _open(path: str, name: str) -> tuple[Any, Any]:
    """An object that slices like an array, and the file to close afterwards or None."""
    where = Path(path)
    if not where.exists():
        raise ArgumentError(
            f"{path}: no such file on this machine: give a path that all workers can see"
        )
    if where.is_dir():
        library = _library("zarr", path)
        with reading(path):
            return _member(library.open(store=path, mode="r"), name, path), None
    if where.suffix == ".npy":
        with reading(path):
            return np.load(path, mmap_mode="r"), None
    library = _library("h5py", path)
    with reading(path):
        file = library.File(path, "r")
        try:
            return _member(file, name, path), file
        except BaseException:
            file.close()
            raise


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Errors of h5py, zarr and NumPy about a file as an ArgumentError with its name.

    HDF5 raises OSError, RuntimeError, KeyError or ValueError for a damaged file, by the place of
    the damage.
    """
    try:
        yield
    except BlockingIOError:
        raise ArgumentError(
            f"{path} is open for writing elsewhere, and HDF5 locks it: close it there, or open it "
            f'there with mode "r"'
        ) from None
    except ArgumentError:
        raise
    except (OSError, EOFError, KeyError, RuntimeError, ValueError) as error:
        raise ArgumentError(
            f"{path} is damaged, or is not an HDF5 file, a .npy file or a folder of zarr "
            f"({error}): write the arrays with h5py, numpy.save or zarr"
        ) from None


def _member(group: Any, name: str, path: str) -> Any:
    if hasattr(group, "shape") and name.strip("/") == "":
        return group
    found = group.get(name) if name and hasattr(group, "get") else None
    if found is None or not hasattr(found, "shape"):
        names = sorted(n for n, _ in group.items()) if hasattr(group, "items") else []
        listed = ", ".join(names[:30]) + (", ..." if len(names) > 30 else "") or "none"
        raise ArgumentError(
            f"{path} has no data set {name!r}: it has {listed}; name one of them, or write "
            f"the array into the file"
        )
    return found


def _library(name: str, path: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise UnavailableError(f"{path} needs {name}: pip install {name}") from None
