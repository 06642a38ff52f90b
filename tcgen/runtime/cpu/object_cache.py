"""Compiled objects on disk: kept under the hash of what they are made of, and of their own bytes.

So two processes may make the same thing, and a damaged object is noticed and made again.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from ...environment import cache_dir
from ...errors import UnavailableError


class CacheInfo(TypedDict):
    """Folder of compiled objects, how many there are, and their bytes."""

    folder: str
    objects: int
    bytes: int


def key_of(parts: Sequence[str]) -> str:
    """Name of what is made of these texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def kept_object(key: str) -> ctypes.CDLL | None:
    """The library of a key, if the cache has it; a damaged object is removed."""
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


def put_file(target: Path, content: bytes) -> None:
    """Write a file of the cache in one step, whoever else does the same."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-") as folder:
        fresh = Path(folder) / "object"
        fresh.write_bytes(content)
        fresh.replace(target)


def load_object(path: Path) -> ctypes.CDLL | None:
    """The library, or None where the file is damaged or gone."""
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
    """Where the cache is and what it holds."""
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
