"""The C compiler of this machine: its command, the flags that it takes, and how it is run.

Flags: -O3 (contractions are written in vectors and take less, see ``build``), and the instructions
of this machine. -ffp-contract=fast allows a fused multiply-add, unless the source asks for a
rounding of each operation. -fno-math-errno and -fno-trapping-math drop side effects that no code
reads. -fcx-fortran-rules multiplies complex numbers by the usual formula, as NumPy does. None of
these flags changes how infinities and NaNs behave, so there is no -ffast-math.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...atomic_file import keep_text
from ...environment import compiler_command
from ...errors import BuildError, UnavailableError
from .object_cache import cache_folder, key_of

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
    """

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...]
    skipped: tuple[str, ...]

    @property
    def openmp(self) -> bool:
        """True if programs can use several threads."""
        return "-fopenmp" in self.flags


def find_compiler() -> tuple[str, ...] | None:
    """Command of the C compiler: TCGEN_CC, CC, or the first of cc, gcc and clang; or None."""
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
    """The reason why no C compiler works here, in one line; None if one works."""
    try:
        if find_compiler() is None:
            return _missing()
        probe_compiler()
    except (BuildError, UnavailableError) as error:
        return str(error).splitlines()[0]
    return None


def _missing() -> str:
    asked = compiler_command()
    tried = f"TCGEN_CC or CC asks for {asked!r}" if asked else "tried cc, gcc and clang"
    return f"no C compiler found ({tried})"


def probe_compiler() -> Compiler:
    """The compiler with the optional flags that it takes; each process tries it once.

    It warns, once, if the compiler has no OpenMP.

    Raises:
        BuildError: there is no compiler, or it cannot compile a small function.
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
            f"{command[0]} has no OpenMP, so programs run on one thread: install gcc, or clang "
            f"with libomp, and set TCGEN_CC to that compiler",
            RuntimeWarning,
            stacklevel=4,
        )
    return Compiler(command, version, flags, skipped)


def _accepted(command: tuple[str, ...], version: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The flags of OPTIONAL and of SKIPPED that a compiler takes; the cache keeps the answer."""
    parts = (*command, version, *OPTIONAL, *SKIPPED, _PROBE, processor())
    path = cache_folder("compilers") / f"{key_of(parts)}.json"
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        flags, skipped = tuple(known["flags"]), tuple(known["skipped"])
        if set(flags) <= set(OPTIONAL) and skipped in ((), SKIPPED):
            return flags, skipped
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not tried yet, or damaged
    flags, skipped = OPTIONAL, SKIPPED
    if not _accepts(command, (*flags, *skipped)):
        compile_source(command, (), _PROBE, "probe")  # raises where nothing at all works
        flags = tuple(f for f in OPTIONAL if _accepts(command, (f,)))
        skipped = skipped if _accepts(command, skipped) else ()
    keep_text(path, json.dumps({"flags": flags, "skipped": skipped}))
    return flags, skipped


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for the files that the compiler reads and writes."""
    try:
        with tempfile.TemporaryDirectory(prefix="tcgen-build-") as folder:
            yield Path(folder)
    except OSError as error:
        raise UnavailableError(
            f"the compiler's temporary files cannot be written ({error.strerror or error}): "
            f"set TMPDIR to a folder with room"
        ) from error


def _accepts(command: tuple[str, ...], flags: tuple[str, ...]) -> bool:
    """True if the compiler takes the flags without a warning, and its library can be loaded."""
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
    command: tuple[str, ...], flags: tuple[str, ...], source: str, key: str
) -> bytes:
    """The bytes of the library of a source.

    Args:
        command: of the compiler.
        flags: besides REQUIRED.
        source: C11.
        key: name of the log that is written if the compiler fails.

    Raises:
        BuildError: the compiler failed.
        UnavailableError: its temporary files cannot be written.
    """
    with _scratch() as folder:
        file, library = folder / "kernels.c", folder / "kernels.so"
        file.write_text(source, encoding="utf-8")
        arguments = [*command, *REQUIRED, *flags, file.name, "-o", library.name, "-lm"]
        result = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
        if result.returncode == 0 and library.is_file():
            return library.read_bytes()
    log = f"$ {shlex.join(arguments)}\n{result.stdout}{result.stderr}"
    path = cache_folder("logs") / f"{key}.log"
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
