"""Temporary folders of this process, and the removal of those that killed processes left.

A process holds a lock on each of its folders, which the system releases when the process ends,
however it ends. A folder without a lock is therefore nobody's, unless it is one of version 0.1,
which locks none: folders younger than an hour stay.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from ..fork_safe_lock import Lock

if sys.platform != "win32":  # it has no such locks: nothing is swept there
    import fcntl

BUILD, OBJECTS = "tcgen-build-", "tcgen-objects-"  # beginnings of the names of folders
_SWEPT_AFTER = 3600  # seconds since the last file was made in a folder


@contextlib.contextmanager
def build_folder() -> Iterator[Path]:
    """A folder for files of the compiler while the block runs; OSError if it cannot be made."""
    path = _made(BUILD)
    try:
        yield path
    finally:
        _remove(path)


def objects_folder() -> Path:
    """A folder for libraries, which this process removes at its end; OSError if there is none."""
    with _Process.lock:
        if _Process.objects is None:
            _Process.objects = _made(OBJECTS) / "objects"
        return _Process.objects


class _Process:
    """Folders of this process, each with the open file of its lock; a forked child has its own."""

    lock = Lock()
    folders: ClassVar[dict[Path, int | None]] = {}
    objects: Path | None = None
    swept = False

    @classmethod
    def forked(cls) -> None:
        """Called in the child: a copy of a lock would keep it after the parent has ended."""
        for lock in cls.folders.values():
            if lock is not None:
                os.close(lock)
        cls.folders, cls.objects = {}, None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Process.forked)


@atexit.register
def _remove_all() -> None:
    """At the end of the process; Ctrl-C leaves a thread that compiles in the middle of it."""
    for path in list(_Process.folders):
        _remove(path)


def _made(prefix: str) -> Path:
    if not _Process.swept:
        _Process.swept = True
        sweep()
    path, lock = _locked(prefix)
    _Process.folders[path] = lock
    return path


def _locked(prefix: str) -> tuple[Path, int | None]:
    """A new folder of this user only, and the open file that holds its lock."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix))
        if sys.platform == "win32":
            return path, None
        lock = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.stat()
            return path, lock
        except (BlockingIOError, FileNotFoundError):
            os.close(lock)  # another process has just swept it
        except OSError:
            return path, lock  # a file system without locks: such a folder is not swept either


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    lock = _Process.folders.pop(path, None)
    if lock is not None:
        os.close(lock)


def sweep() -> None:
    """Remove the folders of this user's processes that are gone."""
    if sys.platform == "win32":
        return
    try:
        entries = list(os.scandir(tempfile.gettempdir()))
    except OSError:
        return
    for entry in entries:
        if not entry.name.startswith((BUILD, OBJECTS)):
            continue
        with contextlib.suppress(OSError):
            lock = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                status = os.fstat(lock)
                old = time.time() - status.st_mtime > _SWEPT_AFTER
                if old and status.st_uid == os.geteuid() and stat.S_ISDIR(status.st_mode):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if it is in use
                    shutil.rmtree(entry.path, ignore_errors=True)
            finally:
                os.close(lock)
