"""Compiles C sources to libraries, several at a time, or loads them from the cache.

Functions of the contraction kernel that few calls need are compiled when a call first needs them.
Generated code calls through a table of functions. For a function that is not compiled yet, a call
gets a table with a stand-in, which compiles the function and calls it. Later calls get the address
of the function.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...artifact.kernel_abi import levels_of_pieces, rounds_each
from ...environment import cache_dir
from ...errors import BuildError
from ..fork_safe_lock import Once
from .bundled_objects import NO_OBJECTS, BundledObjects
from .object_cache import cached_object, key_of, load_object
from .toolchain import (
    REQUIRED,
    Compiler,
    Process,
    compile_source,
    cpu_macros,
    end_compiler,
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

    def flags(self, compiler: Compiler, piece: str | None = None) -> tuple[str, ...]:
        """Flags of optimisation, of the machine, and of TCGEN_CFLAGS.

        They are those of the whole source, or of a ``piece`` with its own level.
        """
        skipped = () if self.level == "-O3" else compiler.skipped
        rounding = ("-ffp-contract=off",) if rounds_each(self.text) else ()
        return (
            piece or self.level,
            *skipped,
            *compiler.flags,
            *cpu_macros(),
            *extra_flags(),
            *rounding,
        )


class _Job(threading.Thread):
    """A thread that compiles a library."""

    def __init__(self, source: Source, compiler: Compiler, key: str) -> None:
        # Callers wait for a job unless Ctrl-C ends them: then the interpreter must not wait,
        # either. (Before Python 3.13, an interrupted join made a thread count as ended.)
        super().__init__(name="tcgen compiler", daemon=True)
        self._given = (source, compiler, key)
        self._library: ctypes.CDLL | None = None
        self._error: BaseException | None = None
        self._processes: list[Process] = []
        self._stopped = False

    def run(self) -> None:
        source, compiler, key = self._given
        try:
            content = compile_source(
                compiler.command,
                source.flags(compiler),
                source.text,
                key,
                self._compiling,
                [source.flags(compiler, level) for level in levels_of_pieces(source.text)],
            )
            self._library = load_object(key, content)
        except BaseException as error:  # result() raises it
            self._error = error

    def _compiling(self, process: Process) -> None:
        self._processes.append(process)
        if self._stopped:
            end_compiler(process)

    def stop(self) -> None:
        """End the compilers, and wait a moment for the thread, which removes its files."""
        self._stopped = True
        for process in list(self._processes):
            end_compiler(process)
        self.join(timeout=1)

    def result(self) -> ctypes.CDLL:
        """The library, once the thread has ended."""
        if self._library is None:
            stopped = BuildError("the compiler was stopped: try again")
            raise stopped if self._stopped or self._error is None else self._error
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
    with _begun(sources, bundled) as begun:
        for job in begun.values():
            if isinstance(job, _Job):
                job.join()
    made = {s: f.result() if isinstance(f, _Job) else f for s, f in begun.items()}
    return [made[source] for source in sources]


@contextmanager
def building(sources: Sequence[Source], bundled: BundledObjects = NO_OBJECTS) -> Iterator[None]:
    """Compile C sources in the background; an exception in the context ends the compilers.

    A later :func:`build_libraries` waits for them, and raises their errors. Raises BuildError if
    the compiler is missing.
    """
    with _begun(sources, bundled):
        yield


@contextmanager
def _begun(
    sources: Sequence[Source], bundled: BundledObjects
) -> Iterator[dict[Source, ctypes.CDLL | _Job]]:
    """The libraries of sources, or running jobs, which Ctrl-C and other exceptions end."""
    begun: dict[Source, ctypes.CDLL | _Job] = {}
    try:
        for source in dict.fromkeys(sources):
            found = bundled.load(source.text, source.level)
            if found is not None:
                begun[source] = found
                continue
            compiler = probe_compiler()
            key = _key(source, compiler)
            begun[source] = cached_object(key) or _start(source, compiler, key)
        yield begun
    except BaseException:
        for job in begun.values():
            if isinstance(job, _Job):
                job.stop()
        raise


def _start(source: Source, compiler: Compiler, key: str) -> _Job:
    """The job that compiles a source: a running one, or a new one."""
    place = (cache_dir(), key)
    job = _jobs.get(place)
    if job is None or not job.is_alive():
        job = _jobs[place] = _Job(source, compiler, key)
        job.start()
    return job


def _key(source: Source, compiler: Compiler) -> str:
    used = (*REQUIRED, *source.flags(compiler))
    return key_of((source.text, *compiler.command, compiler.version, *used, processor()))


# tc_contraction of templates/c/contract/abi.h.
_CONTRACTION = ctypes.CFUNCTYPE(
    ctypes.c_int,
    *(ctypes.c_int, ctypes.c_int),
    *(ctypes.c_void_p,) * 5,
    *(ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p),
    *(ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p),
)


def standing_in(table: Any, later: Mapping[int, Once[int]]) -> AbstractContextManager[Any]:
    """The table of functions for one call, with stand-ins for functions that are not compiled.

    ``table`` holds addresses, as an array of ctypes, and receives those of functions that were
    compiled; ``later`` has functions that may not be compiled yet, by their place in the table.
    Raises BuildError or UnavailableError at the end of the context if the call needed a function
    that cannot be compiled; its results are wrong then.
    """
    missing = {}
    for place, function in later.items():
        if function.value is None:
            missing[place] = function
        else:
            table[place] = function.value
    return _with_stand_ins(table, missing) if missing else nullcontext(table)


@contextmanager
def _with_stand_ins(table: Any, missing: Mapping[int, Once[int]]) -> Iterator[Any]:
    errors: list[BaseException] = []
    asking = threading.Lock()

    def address_of(function: Once[int]) -> int | None:
        with asking:  # threads of a loop ask at once: after a failure the others do not try again
            if errors:
                return None
            try:
                return function.get()
            except BaseException as error:
                errors.append(error)
                return None

    def stand_in(function: Once[int]) -> Any:
        def call(*given: Any) -> int:
            try:
                address = address_of(function)
                return 0 if address is None else int(_CONTRACTION(address)(*given))
            except BaseException as error:  # raised below, since it cannot pass through C
                errors.append(error)
                return 0

        return _CONTRACTION(call)

    own = type(table)(*table)
    # They must stay alive until the call ends.
    calls = {place: stand_in(function) for place, function in missing.items()}
    for place, call in calls.items():
        own[place] = ctypes.cast(call, ctypes.c_void_p).value
    yield own
    if errors:
        raise errors[0]
