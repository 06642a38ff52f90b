"""A file with the state of an iteration, from which a later job continues.

It is replaced as a whole: a new file is written, closed and flushed to the disk, and takes the name
of the old one, so that a job that is killed at any moment leaves one of the two. HDF5 has its
default format, since one in the latest format may not open again after its writer was killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from ..blocks.arrays import BlockedArray
from ..errors import ArgumentError, UnavailableError
from .integral_file import flush
from .iterate import State
from .result import equal_parts

_JOB, _LISTS = "job", ("vectors", "errors")


class Checkpoint:
    """Keeps the state of an iteration in a file, after every ``every``-th evaluation.

    It is written at the end of the context too, and when Ctrl-C or SIGTERM end an evaluation.
    ``job`` describes the equations and the reference by what an error would call them; the state
    of another job is refused.
    """

    def __init__(self, path: Path, every: int, job: Mapping[str, Any]) -> None:
        self._path, self._every, self._job = path, every, job
        self._state: State | None = None
        self._written = True
        self._evaluating = False
        self._received: int | None = None
        self._handlers: dict[int, Any] = {}

    def check(self) -> None:
        """Refuse a file that is of another kind or of another job, or a folder that takes none.

        Raises:
            ArgumentError: the file does not belong to this job.
            UnavailableError: it cannot be written.
        """
        if not os.access(self._path.parent, os.W_OK):
            raise self._unwritable("no permission, or no such folder")
        if self._path.exists():
            import h5py  # noqa: PLC0415  (PySCF brings it)

            with self._reading(), h5py.File(self._path, "r") as file:
                job = json.loads(file.attrs[_JOB])
            self._refuse_others(job)

    def load(self) -> State | None:
        """The state in the file; None if the file does not exist.

        Raises:
            ArgumentError: the file is of another kind or of another job.
        """
        if not self._path.exists():
            return None
        import h5py  # noqa: PLC0415  (PySCF brings it)

        with self._reading(), h5py.File(self._path, "r") as file:
            job = json.loads(file.attrs[_JOB])
            lists = {n: [file[n][str(k)][...] for k in range(len(file[n]))] for n in _LISTS}
            state = State(
                {name: file["amplitudes"][name][...] for name in file.attrs["amplitudes"]},
                file["norms"][...].tolist(),
                overlap=file["overlap"][...],
                **lists,
            )
        self._refuse_others(job)
        self._state = state
        return state

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """A context in which errors say that the file is none of tcgen's."""
        try:
            yield
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise ArgumentError(
                f"{self._path} is not a checkpoint of tcgen: give another name, or remove it"
            ) from error

    def _refuse_others(self, job: Mapping[str, Any]) -> None:
        others = [n for n, part in self._job.items() if not equal_parts(job.get(n), part)]
        if others:
            raise ArgumentError(
                f"{self._path} is the checkpoint of another job: other {', '.join(others)}: give "
                f"another name, or remove it"
            )

    def update(self, state: State) -> None:
        """Take the state after an evaluation; each ``every``-th one is written."""
        self._state, self._written = state, False
        if self._received is not None:
            self._end()
        if len(state.norms) % self._every == 0:
            self.write()

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """The context in which a signal ends the job at once; elsewhere it waits for the next."""
        self._evaluating = True
        try:
            if self._received is not None:
                self._end()
            yield
        finally:
            self._evaluating = False

    def __enter__(self) -> Checkpoint:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._handlers[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            # After any other error, the state may be one in the middle of an update.
            if kind is None or issubclass(kind, KeyboardInterrupt | SystemExit):
                self.write()
        finally:
            for number, handler in self._handlers.items():
                signal.signal(number, handler)

    def write(self) -> None:
        """Replace the file by one with the latest state, if it has another."""
        state = self._state
        if state is None or self._written:
            return
        import h5py  # noqa: PLC0415  (PySCF brings it)

        part = self._path.with_name(f"{self._path.name}.part")
        try:
            # A job that was killed leaves this file.
            part.unlink(missing_ok=True)
            with h5py.File(part, "x") as file:
                file.attrs[_JOB] = json.dumps(self._job)
                file.attrs["amplitudes"] = list(state.amplitudes)
                for name, array in state.amplitudes.items():
                    file.create_dataset(f"amplitudes/{name}", data=array)
                file["norms"], file["overlap"] = np.array(state.norms), state.overlap
                for name in _LISTS:
                    group = file.create_group(name)
                    for number, vector in enumerate(getattr(state, name)):
                        group.create_dataset(str(number), data=vector)
            flush(part)
            part.replace(self._path)
            flush(self._path.parent)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise self._unwritable(str(error.strerror or error)) from error
        self._written = True

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        self._received = number
        if self._evaluating:
            self._end()

    def _end(self) -> None:
        if self._received == signal.SIGINT:
            raise KeyboardInterrupt
        assert self._received is not None
        raise SystemExit(128 + self._received)

    def _unwritable(self, reason: str) -> UnavailableError:
        return UnavailableError(
            f"cannot write the checkpoint {self._path} ({reason}): give the name of a file in a "
            f"folder with enough room that you may write to"
        )


def job_of(
    fingerprint: Mapping[str, Any],
    *,
    texts: Mapping[str, str],
    arrays: Mapping[str, Any],
    dtype: str,
    extents: Mapping[str, int],
) -> dict[str, Any]:
    """The description of a job, whose parts are named as in a message.

    ``texts`` are compared as a whole. ``arrays`` are the inputs that the caller passes; those that
    are functions cannot be compared.
    """
    hashed = {part: hashlib.sha256(text.encode()).hexdigest() for part, text in texts.items()}
    held = {n: a.data if isinstance(a, BlockedArray) else a for n, a in arrays.items()}
    marks = {f"input {name}": _mark(a) for name, a in held.items() if not callable(a)}
    return {**fingerprint, **hashed, **marks, "element type": dtype, "extents": dict(extents)}


def _mark(array: Any) -> list[float]:
    """Two numbers that other elements, or another order of these, change."""
    rest = np.asarray(array)
    while rest.ndim:
        # Other weights for each axis, so that antisymmetric arrays do not give zero.
        rest = rest @ np.cos(rest.ndim * np.arange(rest.shape[-1]))
    return [float(rest.real), float(rest.imag)]
