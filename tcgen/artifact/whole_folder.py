"""A folder that is written completely or not at all, in place of an older one of its kind."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

from ..errors import TcgenError, UnavailableError


@dataclass(frozen=True, slots=True)
class Kind:
    """Description by which folders of a kind are told from others.

    Attributes:
        noun: name of such a folder, as in "a tcgen artifact".
        mark: name of a file that each of them has.
        knows: function of that file's bytes, true for a folder of the kind.
        written: function of a folder, whose result takes paths in it, true for files that are
            replaced. Other files stay.
        error: exception for a folder of another kind.
    """

    noun: str
    mark: str
    knows: Callable[[bytes], bool]
    written: Callable[[Path], Callable[[PurePath], bool]]
    error: type[TcgenError]


def write_folder(folder: Path, files: Iterable[tuple[str, str]], kind: Kind) -> None:
    """Write texts by path; an older folder of the kind is replaced, its other files stay.

    Raises:
        TcgenError: the folder is of another kind, and not empty (``kind.error``).
        UnavailableError: it cannot be written.
    """
    target = Path(os.path.realpath(folder))  # a link stays one
    refuse_other(target, kind)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".tcgen-") as scratch:
            fresh = Path(scratch) / "new"
            for path, text in files:
                (fresh / path).parent.mkdir(parents=True, exist_ok=True)
                (fresh / path).write_bytes(text.encode())
            _link_others(target, fresh, kind.written(target))
            _put(fresh, target, Path(scratch), kind)
    except OSError as error:
        raise UnavailableError(
            f"{kind.noun} cannot be written to {target} ({error.strerror or error}): "
            f"choose a folder you may write to"
        ) from error


def refuse_other(target: Path, kind: Kind) -> None:
    """Raise ``kind.error`` if the target is neither of the kind nor an empty folder."""
    mark = target / kind.mark
    try:
        if not any(target.iterdir()):
            return
        known = kind.knows(mark.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        # Nothing is there, or it has just been moved away; or it is a file, or has no mark.
        known = not target.exists() or mark.is_file()
    except OSError:
        known = False
    if not known:
        raise kind.error(
            f"{target} exists and is not {kind.noun}, so it is not replaced: "
            f"choose another folder or move it away"
        )


def _link_others(target: Path, fresh: Path, written: Callable[[PurePath], bool]) -> None:
    """Link files that are not part of the older folder into the new one."""
    with contextlib.suppress(FileNotFoundError):  # another process has just moved it away
        for path in sorted(target.rglob("*")):
            name = path.relative_to(target)
            plain_folder = path.is_dir() and not path.is_symlink()
            if written(name) or plain_folder or (fresh / name).exists():
                continue
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, fresh / name, follow_symlinks=False)
            except OSError:  # the file system has no links
                shutil.copy2(path, fresh / name, follow_symlinks=False)


def _put(fresh: Path, target: Path, scratch: Path, kind: Kind) -> None:
    """Move a folder to its place, and an older one to scratch; other processes may do the same."""
    for attempt in itertools.count():
        old = scratch / f"old{attempt}"
        try:
            with contextlib.suppress(FileNotFoundError):
                target.rename(old)
            fresh.rename(target)
            return
        except BaseException as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                refuse_other(target, kind)
                continue  # another process has put its folder there
            if fresh.exists() and old.exists():
                old.rename(target)
            raise
