"""Compiled objects on disk, named by the hash of their source and flags and by that of their bytes.

Two processes may compile the same object, and a damaged object is noticed and compiled again.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from ...atomic_file import put_file
from ...environment import cache_dir
from ...errors import UnavailableError


class CacheInfo(TypedDict):
    """Folder of compiled objects, how many there are, and their bytes."""

    folder: str
    objects: int
    bytes: int


def key_of(parts: Sequence[str]) -> str:
    """Name of an object: the hash of all texts on which it depends."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def cached_object(key: str) -> ctypes.CDLL | None:
    """The library of a key if the cache has it; removes a damaged object."""
    for path in sorted(cache_folder().glob(f"{key}-*.so")):
        library = load_object(path)
        if library is not None:
            return library
        with contextlib.suppress(OSError):  # in a folder that cannot be written, for example
            path.unlink(missing_ok=True)
    return None


def store_object(key: str, content: bytes) -> Path:
    """Put an object into the cache."""
    target = cache_folder() / f"{key}-{_digest(content)}.so"
    try:
        put_file(target, content)
    except OSError as error:
        raise UnavailableError(
            f"the cache folder {target.parent} cannot be written ({error.strerror}): "
            f"set TCGEN_CACHE_DIR to a folder you may write to"
        ) from error
    return target


def load_object(path: Path) -> ctypes.CDLL | None:
    """The library; None if the file is damaged or missing."""
    try:
        if path.stem.rpartition("-")[2] != _digest(path.read_bytes()):
            return None
        return ctypes.CDLL(os.fspath(path))
    except OSError:
        return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def cache_folder(name: str = "objects") -> Path:
    """A folder of the cache."""
    return cache_dir() / name


def cache_info() -> CacheInfo:
    """Folder and contents of the cache."""
    files = [p for p in cache_folder().glob("*.so") if p.is_file()]
    return {
        "folder": str(cache_dir()),
        "objects": len(files),
        "bytes": sum(p.stat().st_size for p in files),
    }


def cache_clear() -> int:
    """Remove all compiled objects and logs; returns how many objects there were."""
    files = list(cache_folder().glob("*.so"))
    for path in (*files, *cache_folder("logs").glob("*.log")):
        path.unlink(missing_ok=True)
    return len(files)
