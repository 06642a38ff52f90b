"""Folders that cannot be used, without mounts: root may write everywhere, so calls are patched."""

from __future__ import annotations

import ctypes
import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def _refuse(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, folder: Path, error: OSError, place: str
) -> None:
    """Make a function raise where its argument ``place``, or the first one, is in a folder."""
    original = getattr(owner, name)

    def patched(*args: Any, **keywords: Any) -> Any:
        given = keywords.get(place, args[0] if args else None)
        if isinstance(given, str | Path) and Path(given).is_relative_to(folder):
            raise error
        return original(*args, **keywords)

    monkeypatch.setattr(owner, name, patched)


def unwritable(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    error = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    _refuse(monkeypatch, tempfile, "mkstemp", folder, error, "dir")
    _refuse(monkeypatch, tempfile, "mkdtemp", folder, error, "dir")
    _refuse(monkeypatch, os, "mkdir", folder, error, "path")
    _refuse(monkeypatch, os, "unlink", folder, error, "path")


def unsearchable(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    unwritable(monkeypatch, folder)
    error = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    for name in ("open", "stat", "scandir", "listdir"):
        _refuse(monkeypatch, os, name, folder, error, "path")


def full(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    _refuse(monkeypatch, tempfile, "mkstemp", folder, error, "dir")
    _refuse(monkeypatch, os, "mkdir", folder, error, "path")


def noexec(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    error = OSError("failed to map segment from shared object")
    _refuse(monkeypatch, ctypes, "CDLL", folder, error, "name")


FAULTS: dict[str, Callable[[pytest.MonkeyPatch, Path], None]] = {
    "unwritable": unwritable,
    "unsearchable": unsearchable,
    "full": full,
    "noexec": noexec,
}


def give_away(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Make a file or folder another user's."""
    if os.geteuid() == 0:
        os.chown(path, 12345, 12345, follow_symlinks=False)
    else:
        own = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: own + 1)
