"""Compiled objects on disk, named by the hash of their source and flags and by that of their bytes.

Two processes may compile the same object, and a damaged object is noticed and compiled again. Where
the cache cannot be written, or libraries cannot be loaded from it, a process warns once and keeps
its objects in a temporary folder of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from ...cache_files import cache_folder, list_files, read_bytes, remove_files, write_bytes
from ...environment import cache_dir
from ...errors import CacheWarning, UnavailableError
from ..fork_safe_lock import Lock
from .private_folder import objects_folder

OBJECTS, PROBES, LOGS = "objects", "compilers", "logs"  # folders of the cache

_unusable_folders: dict[Path, str] = {}  # folders without objects of this process, and why
_lock = Lock()


class CacheInfo(TypedDict):
    """Folder of compiled objects, how many there are, and their bytes."""

    folder: str
    objects: int
    bytes: int


def key_of(parts: Sequence[str]) -> str:
    """Name of an object: the hash of all texts on which it depends."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def cached_object(key: str) -> ctypes.CDLL | None:
    """The library of a key if there is one that can be trusted and loaded; removes damaged ones."""
    folders = [cache_folder(OBJECTS)]
    if folders[0] in _unusable_folders:
        with contextlib.suppress(OSError):
            folders.append(objects_folder())
    for folder in folders:
        for path in _objects_of(key, folder):
            with contextlib.suppress(OSError):  # another user's, or not to be loaded from there
                if path.stem.rpartition("-")[2] == _digest(read_bytes(path)):
                    return ctypes.CDLL(os.fspath(path))
                path.unlink()
    return None


def _objects_of(key: str, folder: Path) -> list[Path]:
    try:
        names = os.listdir(folder)  # noqa: PTH208  (as cheap as it gets)
    except OSError:
        return []
    return sorted(folder / n for n in names if n.startswith(f"{key}-") and n.endswith(".so"))


def load_object(key: str, content: bytes) -> ctypes.CDLL:
    """The library of these bytes, put into the cache, or else into a folder of this process.

    It warns (CacheWarning) once for each cache folder that cannot be used; UnavailableError if the
    library can be loaded from neither folder.
    """
    cache, failed = cache_folder(OBJECTS), ""
    if cache not in _unusable_folders:
        try:
            return _load_from(cache, key, content)
        except OSError as error:
            failed = _why(error)
    try:
        library = _load_from(objects_folder(), key, content)
    except OSError as error:
        reason = failed or _unusable_folders.get(cache, "")
        raise UnavailableError(
            f"compiled objects can be kept neither in the cache folder {cache} ({reason}) nor in a "
            f"temporary folder ({_why(error)}): set TCGEN_CACHE_DIR to a folder of your own with "
            f"room, from which programs may be run"
        ) from error
    if failed:
        _give_up(cache, failed)
    return library


def cache_problem(content: bytes | None) -> str | None:
    """Why no objects can be kept in the cache folder and loaded from it; None if they can.

    The trial stores and loads the library ``content``, or only stores a file if it is None.
    """
    path = cache_folder(OBJECTS) / f"trial-{os.getpid()}.so"
    try:
        write_bytes(path, content or b"")
        if content is not None:
            ctypes.CDLL(os.fspath(path))
        path.unlink()
    except OSError as error:
        return _why(error)
    return None


def _load_from(folder: Path, key: str, content: bytes) -> ctypes.CDLL:
    path = folder / f"{key}-{_digest(content)}.so"
    write_bytes(path, content)
    try:
        return ctypes.CDLL(os.fspath(path))
    except OSError:
        if path.exists():
            raise
    write_bytes(path, content)  # another process has just cleared the cache
    return ctypes.CDLL(os.fspath(path))


def try_loading(content: bytes) -> None:
    """Load the library of a trial as :func:`load_object` loads those of programs."""
    library = load_object(f"trial-{os.getpid()}", content)
    with contextlib.suppress(OSError):
        Path(library._name).unlink()


def _give_up(folder: Path, why: str) -> None:
    with _lock:
        if folder in _unusable_folders:
            return
        _unusable_folders[folder] = why
    try:
        warnings.warn(
            f"the cache folder {folder} cannot be used ({why}): set TCGEN_CACHE_DIR to a folder of "
            f"your own with room, from which programs may be run; meanwhile Python programs keep "
            f"compiled objects in a temporary folder",
            CacheWarning,
            stacklevel=4,
        )
    except CacheWarning:  # warnings are errors, and each call raises one
        del _unusable_folders[folder]
        raise


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def cache_info() -> CacheInfo:
    """Folder and contents of the cache; UnavailableError if it cannot be read."""
    files = list_files(cache_folder(OBJECTS), ".so")
    return {
        "folder": str(cache_dir()),
        "objects": len(files),
        "bytes": sum(p.stat().st_size for p in files),
    }


def cache_clear() -> int:
    """Remove all objects, logs and answers of compilers; returns how many objects there were.

    Raises UnavailableError if the cache cannot be read or changed.
    """
    files = list_files(cache_folder(OBJECTS), ".so")
    remove_files(
        (
            *files,
            *list_files(cache_folder(LOGS), ".log"),
            *list_files(cache_folder(PROBES), ".json"),
        )
    )
    return len(files)
