"""Files that are written completely or not at all: those of the user, and those of the cache.

The cache holds libraries, plans and measured times. A library runs in this process, and C is
generated from a plan, so a user who can write to another user's cache can run code as that user.
Files and folders of the cache are therefore private to the user, and are read only if they belong
to the user or to root and nobody else may write to them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .environment import cache_dir
from .errors import UnavailableError

OTHERS = stat.S_IWGRP | stat.S_IWOTH  # bits of a mode that let other users write


def cache_folder(name: str) -> Path:
    """A folder of the cache by the kind of its files."""
    return cache_dir() / name


def read_bytes(path: Path) -> bytes:
    """The content of a file of the cache.

    Raises OSError if it is missing or cannot be read, PermissionError if another user could have
    written it.
    """
    _check_folders(path.parent)
    # A link would lead out of the folder; a pipe would be waited for.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as file:
        _check_own(os.fstat(file.fileno()), path)
        return file.read()


def read_text(path: Path) -> str:
    """The text of a file of the cache; raises as :func:`read_bytes`, or UnicodeDecodeError."""
    return read_bytes(path).decode()


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file of the cache in one step; other processes may write the same file.

    Raises OSError if it cannot be written, PermissionError if other users may write to its folder.
    """
    path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    _check_folders(path.parent)
    number, name = tempfile.mkstemp(dir=path.parent, prefix=".tcgen-")  # private to the user
    fresh = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        fresh.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise


def write_text(path: Path, text: str) -> None:
    """Write a file of the cache; failure is ignored, since the cache only saves time."""
    with contextlib.suppress(OSError):
        write_bytes(path, text.encode())


def list_files(folder: Path, suffix: str) -> tuple[Path, ...]:
    """Files of a folder of the cache whose names end so; UnavailableError if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            found = [e.name for e in entries if e.name.endswith(suffix) and e.is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise _unusable("read", folder, error) from error
    return tuple(folder / name for name in sorted(found))


def remove_files(paths: Iterable[Path]) -> None:
    """Remove files of the cache; UnavailableError if one cannot be removed."""
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise _unusable("changed", path.parent, error) from error


def _unusable(how: str, folder: Path, error: OSError) -> UnavailableError:
    return UnavailableError(
        f"the cache folder {folder} cannot be {how} ({error.strerror or error}): "
        f"set TCGEN_CACHE_DIR to a folder of your own"
    )


def _check_folders(folder: Path) -> None:
    """Check a folder of the cache, and the cache itself: its owner could replace the folder."""
    for path in (folder, folder.parent):
        status = path.stat()
        shared_safely = path != folder and status.st_mode & stat.S_ISVTX  # the mode of /tmp
        _check_own(status, path, OTHERS if not shared_safely else 0)


def _check_own(status: os.stat_result, path: Path, forbidden: int = OTHERS) -> None:
    """Raise PermissionError if another user could have written a file or folder.

    Systems without users' numbers protect the home folder in ways of their own.
    """
    if not hasattr(os, "geteuid"):
        return
    why = ""
    if status.st_uid not in (0, os.geteuid()):
        why = "it belongs to another user"
    elif status.st_mode & forbidden:
        why = f"other users may write to it: chmod go-w {path}"
    elif not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        why = "it is not a file"
    if why:
        raise PermissionError(errno.EPERM, why, str(path))


def save_text(path: Path, text: str) -> None:
    """Write a file of the user, whole or not at all; UnavailableError if it cannot be written."""
    try:
        with whole_file(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise UnavailableError(f"cannot write {path}: {error.strerror}") from error


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to; it replaces the file of that name when the block ends.

    A path that is not a plain file (a device, a pipe), or whose folder takes no new files, is
    written to directly. Raises OSError if it cannot be written.
    """
    target = Path(os.path.realpath(path))  # a link stays one
    if target.exists() and not (target.is_file() and os.access(target.parent, os.W_OK)):
        with target.open("wb") as file:
            yield file
        return
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".tcgen-") as folder:
        fresh = Path(folder) / "new"
        with fresh.open("wb") as file:
            yield file
        fresh.replace(target)
