"""The C compiler of this machine: its command, the flags that it takes, and how it is run.

Flags: -O3 (contractions are written in vectors and take less, see ``build``), the instructions of
this machine, and those of TCGEN_CFLAGS, which come last. -ffp-contract=fast allows a fused
multiply-add, unless the source asks for a rounding of each operation. -fno-math-errno and
-fno-trapping-math drop side effects that no code reads. -fcx-fortran-rules multiplies complex
numbers by the usual formula, as NumPy does. None of these flags changes how infinities and NaNs
behave, so there is no -ffast-math.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias

from ...cache_files import cache_folder, read_text, write_bytes, write_text
from ...environment import compiler_command, compiler_flags, compiler_search_paths
from ...errors import BuildError, CacheWarning, UnavailableError
from .object_cache import LOGS, PROBES, cache_problem, key_of, try_loading
from .private_folder import build_folder

Process: TypeAlias = "subprocess.Popen[str]"

REQUIRED = ("-std=c11", "-fPIC", "-shared")
OPTIONAL = (
    "-march=native",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fcx-fortran-rules",
    "-fopenmp",
)
# Passes of GCC that gain nothing in code that is written in vectors. Without them the micro-kernels
# of an element type compile in 0.58 s instead of 0.73 s, all parts of a contraction in 1.95 s
# instead of 2.29 s (GCC 12.2, one core of a Xeon).
SKIPPED = (
    "-fno-tree-vrp",
    "-fno-tree-dominator-opts",
    "-fno-tree-tail-merge",
    "-fno-code-hoisting",
    "-fno-gcse",
    "-fno-rerun-cse-after-loop",
    "-fno-crossjumping",
    "-fno-tree-pre",
    "-fno-tree-vectorize",
    "-fno-tree-slp-vectorize",
    "-fno-schedule-insns2",
)
_ANOTHER = "install gcc or clang, or set TCGEN_CC"
_WIDEST = 300  # characters of what a compiler says in the first line of a message
_PROBE = """
#ifdef _OPENMP
#include <omp.h>
int tcgen_probe(void) { return omp_get_max_threads(); }
#else
int tcgen_probe(void) { return 0; }
#endif
"""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler that was tried on this machine.

    Attributes:
        command: program and leading arguments.
        version: first line of its ``--version``.
        flags: those of OPTIONAL that it takes.
        skipped: SKIPPED if it takes all of them, else ().
        refused: those of OPTIONAL that it does not take, each with what it says.
    """

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...]
    skipped: tuple[str, ...]
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def openmp(self) -> bool:
        """True if programs can use several threads."""
        return "-fopenmp" in self.flags


def find_compiler() -> tuple[str, ...] | None:
    """Command of the C compiler: TCGEN_CC, CC, or the first of cc, gcc and clang; or None."""
    asked = compiler_command()
    command = _words("TCGEN_CC or CC", asked)
    for words in [command] if asked else [["cc"], ["gcc"], ["clang"]]:
        path = shutil.which(words[0]) if words else None
        if path is not None:
            return (path, *words[1:])
    return None


def extra_flags() -> tuple[str, ...]:
    """The flags of TCGEN_CFLAGS, such as ``-O1 -g``: they come last, so they win."""
    return tuple(_words("TCGEN_CFLAGS", compiler_flags()))


def _words(variable: str, text: str | None) -> list[str]:
    try:
        return shlex.split(text) if text else []
    except ValueError as error:
        raise BuildError(f"{variable} is {text!r}: {error}") from None


def no_compiler() -> tuple[str, str] | None:
    """Why no C compiler works here, in one line, and what to do; None if one works.

    Raises CacheWarning if warnings are errors, and the cache folder cannot be used.
    """
    try:
        if find_compiler() is None:
            return _missing(), _ANOTHER
        probe_compiler()
    except CacheWarning:
        raise  # the compiler is not to blame
    except UnavailableError as error:
        why, _, advice = str(error).rpartition(": ")
        return why, advice
    except BuildError as error:
        return str(error).splitlines()[0], _ANOTHER
    return None


def examine_cache() -> str | None:
    """Why objects cannot be kept in the cache folder and loaded from it; None if they can."""
    command, content = find_compiler(), None
    if command is not None:
        with contextlib.suppress(BuildError, UnavailableError):
            content = compile_source(command, (), _PROBE, "probe")
    return cache_problem(content)


def _missing() -> str:
    asked = compiler_command()
    tried = f"TCGEN_CC or CC asks for {asked!r}" if asked else "tried cc, gcc and clang"
    return f"no C compiler found ({tried})"


def probe_compiler() -> Compiler:
    """The compiler with the optional flags that it takes; each process tries it once.

    It warns, once, if the compiler has no OpenMP. Raises BuildError if the compiler is missing, or
    cannot compile a small function.
    """
    command = find_compiler()
    if command is None:
        raise BuildError(
            f"{_missing()}: install gcc or clang, set TCGEN_CC to one, "
            f'or compile with target="numpy"'
        )
    return _probe(command)


@cache
def _probe(command: tuple[str, ...]) -> Compiler:
    outcome = run_compiler([*command, "--version"])
    version = (outcome.printed.strip().splitlines() or [command[0]])[0]
    compiler = _examined(command, version)
    if not compiler.openmp:
        reason = dict(compiler.refused).get("-fopenmp", "")
        warnings.warn(
            f"{command[0]} has no OpenMP ({reason}), so programs run on one thread: install gcc, "
            f"or clang with libomp, and set TCGEN_CC to that compiler",
            RuntimeWarning,
            stacklevel=4,
        )
    return compiler


def _examined(command: tuple[str, ...], version: str) -> Compiler:
    """The compiler with the flags that it takes.

    The cache keeps the answer of a compiler that takes all of OPTIONAL. A refusal may have a cause
    that passes, such as a library that is installed later, so each process tries again.
    """
    path = cache_folder(PROBES) / f"{key_of((*command, version, *_depends_on(command)))}.json"
    known = _known_skipped(path)
    if known is not None:
        return Compiler(command, version, OPTIONAL, known, ())
    refused: dict[str, str] = {}
    skipped: tuple[str, ...] = SKIPPED
    if _refusal(command, (*OPTIONAL, *SKIPPED)) is not None:
        # Raises where nothing at all works, so that no flag is blamed for it.
        try_loading(compile_source(command, (), _PROBE, "probe"))
        if _refusal(command, OPTIONAL) is not None:
            found = ((flag, _refusal(command, (flag,))) for flag in OPTIONAL)
            refused = {flag: reason for flag, reason in found if reason is not None}
        skipped = SKIPPED if _refusal(command, SKIPPED) is None else ()
    if not refused:
        write_text(path, json.dumps({"skipped": skipped}))
    flags = tuple(flag for flag in OPTIONAL if flag not in refused)
    return Compiler(command, version, flags, skipped, tuple(refused.items()))


def _depends_on(command: tuple[str, ...]) -> tuple[str, ...]:
    """Texts that change where the answer of a compiler may change."""
    try:
        status = Path(command[0]).stat()
        program = f"{status.st_size} {status.st_mtime_ns}"
    except OSError:
        program = ""
    searched = (f"{name}={value}" for name, value in compiler_search_paths())
    return (*OPTIONAL, *SKIPPED, _PROBE, processor(), program, *searched)


def _known_skipped(path: Path) -> tuple[str, ...] | None:
    """The passes that can be skipped, from the cache; None if it does not know the compiler."""
    try:
        skipped = tuple(json.loads(read_text(path))["skipped"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None  # not tried yet, or damaged
    return skipped if skipped in ((), SKIPPED) else None


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for the files that the compiler reads and writes."""
    try:
        with build_folder() as folder:
            yield folder
    except OSError as error:
        raise _no_room(error.strerror or str(error)) from error


def _no_room(reason: str) -> UnavailableError:
    return UnavailableError(
        f"the compiler's temporary files cannot be written ({reason}): "
        f"set TMPDIR to a folder with room"
    )


def _refusal(command: tuple[str, ...], flags: tuple[str, ...]) -> str | None:
    """Why the compiler does not take the flags; None if it takes them without a warning.

    Libraries are loaded from where those of programs are, since from a folder for temporary files
    they may not be. Raises BuildError if the compiler cannot be run or has not ended in time,
    UnavailableError if its temporary files cannot be written.
    """
    with _scratch() as folder:
        source, library = folder / "probe.c", folder / "probe.so"
        source.write_text(_PROBE, encoding="utf-8")
        outcome = run_compiler(
            [*command, *REQUIRED, "-Werror", *flags, source.name, "-o", library.name, "-lm"], folder
        )
        if outcome.code != 0 or not library.is_file():
            _check_room(outcome)
            return _reason(outcome)
        content = library.read_bytes()
    try:
        try_loading(content)
    except CacheWarning:
        raise
    except UnavailableError as error:
        return str(error.__cause__ or error)
    return None


def _reason(outcome: Outcome) -> str:
    """What a compiler that failed says: its first line with an error, else its first line."""
    lines = [line.strip() for line in f"{outcome.errors}\n{outcome.printed}".splitlines()]
    lines = [line for line in lines if line] or [f"exit code {outcome.code}, nothing printed"]
    return next((line for line in lines if "error" in line.lower()), lines[0])[:_WIDEST]


def _check_room(outcome: Outcome) -> None:
    """Raise UnavailableError, naming the disk, if a compiler failed since disk or quota is full."""
    for number in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        if os.strerror(number) in outcome.errors:
            raise _no_room(os.strerror(number))


@cache
def cpu_macros() -> tuple[str, ...]:
    """Flags that tell the contraction kernel which x86 processor this is, as CPUID names it.

    Empty where the system does not say: then the kernel takes its generic numbers.
    """
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ()
    fields = dict(re.findall(r"^(vendor_id|cpu family|model)\s*: (\S+)$", text, re.MULTILINE))
    vendor = {"GenuineIntel": 1, "AuthenticAMD": 2}.get(fields.get("vendor_id", ""))
    if vendor is None or not {"cpu family", "model"} <= fields.keys():
        return ()
    numbers = (vendor, fields["cpu family"], fields["model"])
    names = ("VENDOR", "FAMILY", "MODEL")
    return tuple(f"-DTC_CPU_{name}={n}" for name, n in zip(names, numbers, strict=True))


@cache
def processor() -> str:
    """Text that differs between machines for which -march=native means different instructions."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    wanted = ("flags", "Features", "model name")
    lines = sorted({line for line in text.splitlines() if line.startswith(wanted)})
    return "\n".join((platform.machine(), platform.processor(), *lines))


def compile_source(
    command: tuple[str, ...],
    flags: tuple[str, ...],
    source: str,
    key: str,
    started: Callable[[Process], None] = lambda _: None,
    pieces: Sequence[tuple[str, ...]] = (),
) -> bytes:
    """The bytes of the library of a C11 source, compiled with ``flags`` besides REQUIRED.

    ``pieces`` are the flags of the pieces of the source: each core compiles one at a time, and
    ``flags`` link them. ``started`` is called with each process of the compiler. Raises BuildError
    if one fails, whose log has the name ``key``, and UnavailableError if its temporary files cannot
    be written.
    """
    with _scratch() as folder:
        file, library = folder / "kernels.c", folder / "kernels.so"
        file.write_text(source, encoding="utf-8")
        start = [*command, *REQUIRED]
        parts = [
            [*start, *own, f"-DTC_PIECE={n}", "-c", file.name, "-o", f"{n}.o"]
            for n, own in enumerate(pieces)
        ]
        compiled = [f"{n}.o" for n in range(len(pieces))] or [file.name]
        last = [*start, *flags, *compiled, "-o", library.name, "-lm"]
        run = partial(run_compiler, folder=folder, seconds=LONGEST, started=started)
        outcomes = zip(parts, _run_all(run, parts), strict=True)
        failed = next((one for one in outcomes if one[1].code != 0), None)
        arguments, outcome = failed or (last, run(last))
        if outcome.code == 0 and library.is_file():
            return library.read_bytes()
        _check_room(outcome)
    log = f"$ {shlex.join(arguments)}\n{outcome.printed}{outcome.errors}"
    path = cache_folder(LOGS) / f"{key}.log"
    try:
        write_bytes(path, f"{log}\n\n{source}".encode())
        where = f"full log and source: {path}"
    except OSError:
        where = f"the log could not be written to {path}; full log:\n{log}"
    first = "\n".join(log.splitlines()[:8])
    raise BuildError(
        f"the C compiler {command[0]} failed with exit code {outcome.code}: {_reason(outcome)}\n"
        f"{first}\n{where}\n"
        f'set TCGEN_CC to another compiler, or compile with target="numpy"'
    )


def _run_all(run: Callable[[list[str]], Outcome], commands: Sequence[list[str]]) -> list[Outcome]:
    """The outcomes of commands, of which as many run at once as there are cores."""
    if not commands:
        return []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(run, commands))


SHORTEST, LONGEST = 60.0, 1200.0  # seconds until a trial, and the compilation of a program, ends


@dataclass(frozen=True, slots=True)
class Outcome:
    """The exit code of the compiler (negative: the signal that ended it), and what it printed."""

    code: int
    printed: str
    errors: str


def run_compiler(
    arguments: Sequence[str],
    folder: Path | None = None,
    seconds: float | None = None,
    started: Callable[[Process], None] | None = None,
) -> Outcome:
    """Run the compiler in a folder. Bytes that are not UTF-8 are replaced in its output.

    The folder defaults to the working directory of this process, and ``seconds``, after which the
    compiler is ended, to SHORTEST. Raises BuildError if it cannot be run, or has not ended in time.
    """
    allowed = SHORTEST if seconds is None else seconds
    try:
        process = subprocess.Popen(
            list(arguments),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            process_group=0,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BuildError(
            f"the C compiler {arguments[0]} cannot be run: {why}: set TCGEN_CC to another compiler"
        ) from error
    with process:
        try:
            if started is not None:
                started(process)
            printed, errors = process.communicate(timeout=allowed)
        except BaseException as error:
            end_compiler(process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=1)  # its children may hold the pipes much longer
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise BuildError(
                f"the C compiler {arguments[0]} has not ended within {allowed:g} s: set TCGEN_CC "
                f'to another compiler, or compile with target="numpy"'
            ) from None
    return Outcome(process.returncode, printed, errors)


def end_compiler(process: Process) -> None:
    """Kill a compiler and the programs that it started; nothing if it has ended."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
