"""Files that are written whole or not at all, whatever interrupts it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to; it takes its name and the place of an older one when the block ends well.

    What is no plain file (a device, a pipe), or stands in a folder that takes no new files, is
    written to as it is.

    Raises:
        OSError: it cannot be written.
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


def keep_text(path: Path, text: str) -> None:
    """Keep a file in a cache, in one step; a folder that cannot be written costs time only."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(text.encode())
    except OSError:
        return
