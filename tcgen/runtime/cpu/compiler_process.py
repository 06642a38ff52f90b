"""Runs the C compiler: a program that may be missing, may hang, and may print anything."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import BuildError

SHORTEST, LONGEST = 60.0, 1200.0  # seconds until a trial, and the compilation of a program, ends


@dataclass(frozen=True, slots=True)
class Outcome:
    """The exit code of the compiler (negative: the signal that ended it), and what it printed."""

    code: int
    printed: str
    errors: str


def run_compiler(
    arguments: Sequence[str], folder: Path | None = None, seconds: float | None = None
) -> Outcome:
    """Run the compiler in a folder. Bytes that are no UTF-8 are replaced in what it prints.

    Args:
        arguments: program and arguments.
        folder: the working directory; None for this process's.
        seconds: after which it is ended; by default SHORTEST.

    Raises:
        BuildError: it cannot be run, or has not ended in time.
    """
    allowed = SHORTEST if seconds is None else seconds
    try:
        process = subprocess.Popen(
            list(arguments),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BuildError(
            f"the C compiler {arguments[0]} cannot be run: {why}: set TCGEN_CC to another compiler"
        ) from error
    with process:
        try:
            printed, errors = process.communicate(timeout=allowed)
        except BaseException as error:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=1)  # its children may hold the pipes much longer
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise BuildError(
                f"the C compiler {arguments[0]} has not ended within {allowed:g} s: set TCGEN_CC "
                f'to another compiler, or compile with target="numpy"'
            ) from None
    return Outcome(process.returncode, _text(printed), _text(errors))


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")
