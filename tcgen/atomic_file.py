"""Files of the user that are written completely or not at all, whatever interrupts the writer."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes its name, and replaces an older one, when the block ends.

    A path that is not a plain file (a device, a pipe), or whose folder takes no new files, is
    written to directly.

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
