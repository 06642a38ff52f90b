"""Compiles C sources to libraries, several at a time, or loads them from the cache."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...artifact.kernel_abi import rounds_each
from ...environment import cache_dir
from ...errors import BuildError
from .bundled_objects import NO_OBJECTS, BundledObjects
from .object_cache import cached_object, key_of, load_object
from .toolchain import (
    REQUIRED,
    Compiler,
    compile_source,
    cpu_macros,
    extra_flags,
    probe_compiler,
    processor,
)


@dataclass(frozen=True, slots=True)
class Source:
    """The C11 source of one library, and its optimisation level.

    Code that is written in vectors gains nothing from ``-O3`` and from the passes that
    ``toolchain.SKIPPED`` switches off.
    """

    text: str
    level: str = "-O3"

    def flags(self, compiler: Compiler) -> tuple[str, ...]:
        """Flags of optimisation, of the machine, and of TCGEN_CFLAGS."""
        skipped = () if self.level == "-O3" else compiler.skipped
        rounding = ("-ffp-contract=off",) if rounds_each(self.text) else ()
        return (self.level, *skipped, *compiler.flags, *cpu_macros(), *extra_flags(), *rounding)


class _Job(threading.Thread):
    """A thread that compiles a library."""

    def __init__(self, source: Source, compiler: Compiler) -> None:
        # Callers wait for a job unless Ctrl-C ends them: then the interpreter must not wait,
        # either. (Before Python 3.13, an interrupted join made a thread count as ended.)
        super().__init__(name="tcgen compiler", daemon=True)
        self._given = (source, compiler)
        self._library: ctypes.CDLL | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._library = _built(*self._given)
        except BaseException as error:  # result() raises it
            self._error = error

    def result(self) -> ctypes.CDLL:
        """Wait for the library."""
        self.join()
        if self._library is None:
            raise self._error or BuildError("the compiler was stopped: try again")
        return self._library


_jobs: dict[tuple[Path, str], _Job] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_jobs.clear)  # a child has no other threads


def build_libraries(
    sources: Sequence[Source], bundled: BundledObjects = NO_OBJECTS
) -> list[ctypes.CDLL]:
    """Load the libraries of C sources from the cache, or compile all missing ones at once.

    Bundled objects are loaded without a compiler. Raises BuildError if the compiler is missing or
    failed (a file has its log), UnavailableError if no folder takes the libraries or temporary
    files.
    """
    begun: dict[Source, ctypes.CDLL | _Job] = {}
    for source in dict.fromkeys(sources):
        found = bundled.load(source.text, source.level)
        if found is not None:
            begun[source] = found
            continue
        compiler = probe_compiler()
        key = _key(source, compiler)
        begun[source] = cached_object(key) or _start(source, compiler, key)
    made = {s: f.result() if isinstance(f, _Job) else f for s, f in begun.items()}
    return [made[source] for source in sources]


def _start(source: Source, compiler: Compiler, key: str) -> _Job:
    """The job that compiles a source: a running one, or a new one."""
    place = (cache_dir(), key)
    job = _jobs.get(place)
    if job is None or not job.is_alive():
        job = _jobs[place] = _Job(source, compiler)
        job.start()
    return job


def _built(source: Source, compiler: Compiler) -> ctypes.CDLL:
    """Compile, store in the cache and load."""
    key = _key(source, compiler)
    return load_object(
        key, compile_source(compiler.command, source.flags(compiler), source.text, key)
    )


def _key(source: Source, compiler: Compiler) -> str:
    used = (*REQUIRED, *source.flags(compiler))
    return key_of((source.text, *compiler.command, compiler.version, *used, processor()))
