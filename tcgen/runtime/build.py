"""From C source to a loaded library: compiler, flags, and a cache of compiled objects on disk.

Flags: -O3, or less without some passes for contractions, and the machine's own instructions;
-ffp-contract=fast lets a product and a sum become one fused operation, unless the source asks for
each to be rounded; -fno-math-errno and -fno-trapping-math drop side effects that nobody reads;
-fcx-fortran-rules multiplies complex numbers by the usual formula, as NumPy does. None of them
changes how infinities and NaNs behave, so there is no -ffast-math.

An object's name holds the hash of source, compiler, flags and processor, and the hash of its own
bytes, so two processes may build the same thing, and a damaged object is noticed and built again.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypedDict

from ..config import cache_dir, compiler_command
from ..errors import BuildError, UnavailableError
from .rounding import rounds_each

REQUIRED = ("-std=c11", "-fPIC", "-shared")
OPTIONAL = (
    "-march=native",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fcx-fortran-rules",
    "-fopenmp",
)
# Passes that gain nothing where code is written in vectors, and take a sixth of the time.
SKIPPED = (
    "-fno-tree-vrp",
    "-fno-tree-dominator-opts",
    "-fno-tree-tail-merge",
    "-fno-code-hoisting",
    "-fno-gcse",
    "-fno-rerun-cse-after-loop",
    "-fno-crossjumping",
)
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
        version: its first line of ``--version``.
        flags: those of OPTIONAL that it takes.
        skipped: SKIPPED, if it takes them.
    """

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...]
    skipped: tuple[str, ...]

    @property
    def openmp(self) -> bool:
        """True where programs use several threads."""
        return "-fopenmp" in self.flags


class CacheInfo(TypedDict):
    """Folder of compiled objects, how many there are, and their bytes."""

    folder: str
    objects: int
    bytes: int


def find_compiler() -> tuple[str, ...] | None:
    """Command of the C compiler: TCGEN_CC, CC, or the first of cc, gcc, clang; None if none is."""
    asked = compiler_command()
    try:
        command = shlex.split(asked) if asked else []
    except ValueError as error:
        raise BuildError(f"TCGEN_CC or CC is {asked!r}: {error}") from None
    for words in [command] if asked else [["cc"], ["gcc"], ["clang"]]:
        path = shutil.which(words[0]) if words else None
        if path is not None:
            return (path, *words[1:])
    return None


def no_compiler() -> str | None:
    """Why no C compiler works here, in one line; None where one does."""
    try:
        if find_compiler() is None:
            return _none_found()
        probe_compiler()
    except (BuildError, UnavailableError) as error:
        return str(error).splitlines()[0]
    return None


def _none_found() -> str:
    asked = compiler_command()
    tried = f"TCGEN_CC or CC asks for {asked!r}" if asked else "tried cc, gcc and clang"
    return f"no C compiler found ({tried})"


def probe_compiler() -> Compiler:
    """The compiler, tried once in this process for each of the optional flags.

    Raises:
        BuildError: there is none, or it cannot compile an empty function.
    """
    command = find_compiler()
    if command is None:
        raise BuildError(
            f"{_none_found()}: install gcc or clang, set TCGEN_CC to one, "
            f'or compile with target="numpy"'
        )
    return _probe(command)


@cache
def _probe(command: tuple[str, ...]) -> Compiler:
    try:
        output = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, check=False
        ).stdout
    except OSError as error:
        raise BuildError(f"the C compiler {command[0]} cannot be run: {error.strerror}") from error
    version = (output.strip().splitlines() or [command[0]])[0]
    flags, skipped = _accepted(command, version)
    if "-fopenmp" not in flags:
        warnings.warn(
            f"{command[0]} has no OpenMP: programs run on one thread (install gcc, or libomp)",
            RuntimeWarning,
            stacklevel=4,
        )
    return Compiler(command, version, flags, skipped)


def _accepted(command: tuple[str, ...], version: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those of OPTIONAL and of SKIPPED that a compiler takes; each version of it is tried once."""
    parts = (*command, version, *OPTIONAL, *SKIPPED, _PROBE, processor())
    path = _folder("compilers") / f"{_hash(parts)}.json"
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        flags, skipped = tuple(known["flags"]), tuple(known["skipped"])
        if set(flags) <= set(OPTIONAL) and skipped in ((), SKIPPED):
            return flags, skipped
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not tried yet, or damaged
    flags, skipped = OPTIONAL, SKIPPED
    if not _accepts(command, (*flags, *skipped)):
        _compile(command, (), _PROBE, "probe")  # raises where nothing at all works
        flags = tuple(f for f in OPTIONAL if _accepts(command, (f,)))
        skipped = skipped if _accepts(command, skipped) else ()
    with contextlib.suppress(OSError):
        _put(path, json.dumps({"flags": flags, "skipped": skipped}).encode())
    return flags, skipped


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for what the compiler reads and writes."""
    try:
        with tempfile.TemporaryDirectory(prefix="tcgen-build-") as folder:
            yield Path(folder)
    except OSError as error:
        raise UnavailableError(
            f"the compiler's temporary files cannot be written ({error.strerror or error}): "
            f"set TMPDIR to a folder with room"
        ) from error


def _accepts(command: tuple[str, ...], flags: tuple[str, ...]) -> bool:
    """True where the compiler takes the flags, quietly, and its library can be loaded."""
    with _scratch() as folder:
        source, library = folder / "probe.c", folder / "probe.so"
        source.write_text(_PROBE)
        result = subprocess.run(
            [*command, *REQUIRED, "-Werror", *flags, str(source), "-o", str(library), "-lm"],
            capture_output=True,
            check=False,
        )
        if result.returncode != 0:
            return False
        try:
            ctypes.CDLL(str(library))
        except OSError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Source:
    """What becomes one library.

    Attributes:
        text: C11.
        level: of optimisation. What is written in vectors gains nothing beyond ``-O2``, nor from
            SKIPPED.
    """

    text: str
    level: str = "-O3"

    def flags(self, compiler: Compiler) -> tuple[str, ...]:
        """Of optimisation and of the machine."""
        skipped = () if self.level == "-O3" else compiler.skipped
        apart = ("-ffp-contract=off",) if rounds_each(self.text) else ()
        return (self.level, *skipped, *compiler.flags, *apart)


class _Job(threading.Thread):
    """A library that is being compiled."""

    def __init__(self, source: Source, compiler: Compiler) -> None:
        super().__init__(name="tcgen compiler")
        self._given = (source, compiler)
        self._library: ctypes.CDLL | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._library = _built(*self._given)
        except BaseException as error:  # raised again where the library is asked for
            self._error = error

    def result(self) -> ctypes.CDLL:
        """The library, when it is there."""
        self.join()
        if self._library is None:
            raise self._error or BuildError("the compiler was stopped: try again")
        return self._library


_jobs: dict[tuple[Path, str], _Job] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_jobs.clear)  # threads stay with the parent


def build_libraries(sources: Sequence[Source]) -> list[ctypes.CDLL]:
    """Compile C sources, all at once, or take the objects from the cache, and load them.

    Raises:
        BuildError: no compiler, or it failed; the log is kept in a file.
        UnavailableError: the cache folder cannot be written.
    """
    compiler = probe_compiler()
    found: dict[Source, ctypes.CDLL | _Job] = {}
    for source in dict.fromkeys(sources):
        key = _key(source, compiler)
        found[source] = _kept(key) or _start(source, compiler, key)
    made = {s: f.result() if isinstance(f, _Job) else f for s, f in found.items()}
    return [made[source] for source in sources]


def _start(source: Source, compiler: Compiler, key: str) -> _Job:
    """The job that compiles a source: one that is under way, or a new one."""
    place = (_folder(), key)
    job = _jobs.get(place)
    if job is None or not job.is_alive():
        job = _jobs[place] = _Job(source, compiler)
        job.start()
    return job


def _kept(key: str) -> ctypes.CDLL | None:
    """The library of a key, if the cache has it; a damaged object is removed."""
    for path in sorted(_folder().glob(f"{key}-*.so")):
        library = _load(path)
        if library is not None:
            return library
        with contextlib.suppress(OSError):  # in a folder that cannot be written, for example
            path.unlink(missing_ok=True)
    return None


def _built(source: Source, compiler: Compiler) -> ctypes.CDLL:
    """Compile, keep and load."""
    key = _key(source, compiler)
    path = _store(key, _compile(compiler.command, source.flags(compiler), source.text, key))
    library = _load(path)
    if library is None:
        raise BuildError(f"the object {path} was compiled but cannot be loaded: clear the cache")
    return library


def _key(source: Source, compiler: Compiler) -> str:
    used = (*REQUIRED, *source.flags(compiler))
    return _hash((source.text, *compiler.command, compiler.version, *used, processor()))


def _hash(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@cache
def processor() -> str:
    """What tells apart machines for which -march=native means different instructions."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    wanted = ("flags", "Features", "model name")
    lines = sorted({line for line in text.splitlines() if line.startswith(wanted)})
    return "\n".join((platform.machine(), platform.processor(), *lines))


def _compile(command: tuple[str, ...], flags: tuple[str, ...], source: str, key: str) -> bytes:
    with _scratch() as folder:
        file, library = folder / "kernels.c", folder / "kernels.so"
        file.write_text(source, encoding="utf-8")
        arguments = [*command, *REQUIRED, *flags, file.name, "-o", library.name, "-lm"]
        result = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
        if result.returncode == 0 and library.is_file():
            return library.read_bytes()
    log = f"$ {shlex.join(arguments)}\n{result.stdout}{result.stderr}"
    path = _folder("logs") / f"{key}.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(log + "\n\n" + source, encoding="utf-8")
        where = f"full log and source: {path}"
    except OSError:
        where = f"the log could not be written to {path}; full log:\n{log}"
    first = "\n".join(log.splitlines()[:8])
    raise BuildError(
        f"the C compiler {command[0]} failed with exit code {result.returncode}\n{first}\n{where}\n"
        f'set TCGEN_CC to another compiler, or compile with target="numpy"'
    )


def _store(key: str, content: bytes) -> Path:
    """Put an object into the cache."""
    target = _folder() / f"{key}-{_digest(content)}.so"
    try:
        _put(target, content)
    except OSError as error:
        raise UnavailableError(
            f"the cache folder {target.parent} cannot be written ({error.strerror}): "
            f"set TCGEN_CACHE_DIR to a folder you may write to"
        ) from error
    return target


def _put(target: Path, content: bytes) -> None:
    """Write a file of the cache in one step, whoever else does the same."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-") as folder:
        fresh = Path(folder) / "object"
        fresh.write_bytes(content)
        fresh.replace(target)


def _load(path: Path) -> ctypes.CDLL | None:
    """The library, or None where the file is damaged or gone."""
    try:
        if path.stem.rpartition("-")[2] != _digest(path.read_bytes()):
            return None
        return ctypes.CDLL(os.fspath(path))
    except OSError:
        return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _folder(name: str = "objects") -> Path:
    return cache_dir() / name


def cache_info() -> CacheInfo:
    """Where the cache is and what it holds."""
    files = [p for p in _folder().glob("*.so") if p.is_file()]
    return {
        "folder": str(cache_dir()),
        "objects": len(files),
        "bytes": sum(p.stat().st_size for p in files),
    }


def cache_clear() -> int:
    """Remove all compiled objects and logs; returns how many objects there were."""
    files = list(_folder().glob("*.so"))
    for path in (*files, *_folder("logs").glob("*.log")):
        path.unlink(missing_ok=True)
    return len(files)
