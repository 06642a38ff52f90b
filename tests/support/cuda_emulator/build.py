"""From the text of a .cu to a library for this machine, kept in the cache of compiled objects.

The text is compiled as it is but for two things that C++ cannot say: ``extern __shared__ T name[]``
becomes a macro, and a line for each kernel is appended, through which Python calls it.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from tcgen.environment import cache_dir

HERE = Path(__file__).parent
RUNTIME = ("scheduler.cpp", "warp.cpp", "memory.cpp", "hooks.cpp")
COMMON = (
    "-std=c++17",
    "-g1",
    "-fPIC",
    "-fvisibility=hidden",
    "-U_FORTIFY_SOURCE",
    "-D_FORTIFY_SOURCE=0",
)
# -O1 merges nothing that would hide an access; what could move a load to a path that does not
# execute it is switched off. Red zones need arrays in the order of the text.
KERNEL = (
    "-O1",
    "-fsanitize=thread,bounds-strict,alignment,signed-integer-overflow,integer-divide-by-zero,shift",
    "--param=tsan-instrument-func-entry-exit=0",
    "-fno-exceptions",
    "-fno-toplevel-reorder",
    "-fno-optimize-sibling-calls",
    "-fno-tree-loop-im",
    "-fno-tree-pre",
    "-fno-code-hoisting",
    "-fno-if-conversion",
    "-fno-ssa-phiopt",
    "-ffp-contract=off",
    "-fno-gnu-unique",
    "-Wno-attributes",
)
_DYNAMIC = re.compile(r"\bextern\s+__shared__\s+([^;\[\]]*?)\s*\b(\w+)\s*\[\s*\]\s*;")
_KERNEL = re.compile(
    r"__global__\s+(?:void\s+)?"
    r"(?:__launch_bounds__\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*)?"
    r"(?:void\s+)?(\w+)\s*\(([^)]*)\)\s*\{"
)
_LOCAL_STATIC = re.compile(
    r"(\w+) (\w+) [dDbBuVvW] _ZZ(?!N8emulated)(\d+)?(\w*?)E(\d+)([A-Za-z]\w*)"
)
_CONSTANT = re.compile(r"(\w+) (\w+) [dDbB] (?:_ZL(\d+))?([A-Za-z]\w*)")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KernelText:
    """What the text says of a kernel and its compiled signature does not."""

    name: str
    bounds: str  # the first argument of __launch_bounds__, "0" without one
    parameters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A static __shared__ array, the red zone before one, or a __constant__ array.

    Attributes:
        function: that declares it; None for a __constant__ array.
        address: from the start of the library.
    """

    function: str | None
    name: str
    address: int
    bytes: int

    @property
    def red_zone(self) -> bool:
        """True for bytes that nobody may touch."""
        return self.name.startswith("tcgen_red_zone_")


@dataclass(frozen=True, slots=True)
class Library:
    """A compiled text: where it is, its kernels, its shared and constant arrays."""

    path: Path
    kernels: tuple[KernelText, ...]
    variables: tuple[Variable, ...]


def kernels_of(code: str) -> tuple[KernelText, ...]:
    """Kernels of a text, in its order.

    Example:
        >>> kernels_of('extern "C" __global__ void __launch_bounds__(32) f(int n, double *x) { }')
        (KernelText(name='f', bounds='32', parameters=('n', 'x')),)
    """
    found = []
    for match in _KERNEL.finditer(_COMMENT.sub("", code)):
        bounds, name, parameters = match.groups()
        names = tuple(p.split()[-1].lstrip("*&") for p in parameters.split(",") if p.strip())
        found.append(KernelText(name, (bounds or "0").split(",")[0].strip(), names))
    return tuple(found)


def emulation_text(code: str, kernels: Sequence[KernelText]) -> str:
    """The text that is compiled; its lines keep their numbers."""

    def dynamic(match: re.Match[str]) -> str:
        kind, name = match.groups()
        lines = "\n" * match.group(0).count("\n")
        return f"TCGEN_DYNAMIC_SHARED({name}, {' '.join(kind.split())});{lines}"

    entries = "".join(f"TCGEN_KERNEL({k.name}, {k.bounds})\n" for k in kernels)
    return f"{_DYNAMIC.sub(dynamic, code)}\n{entries}"


@lru_cache(maxsize=256)
def build(code: str, file_name: str, arch: int, defines: tuple[str, ...]) -> Library:
    """The library of a text, compiled now or before.

    Raises:
        RuntimeError: no g++, or the text is no C++; the message has the compiler's.
    """
    runtime = _runtime()
    defined = tuple(f"-D{d}" for d in ("TCGEN_EMULATE", f"__CUDA_ARCH__={arch * 10}", *defines))
    # CUDA's own words are no macros here, so they are still to be seen.
    kernels = kernels_of(run(compiler(), "-E", "-P", *defined, "-x", "c++", "-", text=code))
    text = emulation_text(code, kernels)
    flags = (*COMMON, *KERNEL, *defined)
    target = _folder() / f"{_key(text, file_name, runtime.stem, *flags)}.so"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=_folder()) as scratch:
            source, made = Path(scratch, file_name), Path(scratch, "kernels.so")
            source.write_text(text)
            included = ("-include", str(HERE / "device.h"), "-x", "c++", "-c", str(source))
            run(compiler(), *flags, *included, "-o", f"{made}.o")
            linked = (f"{made}.o", str(runtime), "-lm")
            run(compiler(), "-shared", "-Wl,-Bsymbolic", *linked, "-o", str(made))
            made.replace(target)
    return Library(target, kernels, variables_of(target))


def variables_of(library: Path) -> tuple[Variable, ...]:
    """Shared arrays (the writable static variables of functions) and constant ones (the others)."""
    found = []
    for line in run("nm", "-S", "--defined-only", str(library)).splitlines():
        if match := _LOCAL_STATIC.fullmatch(line):
            address, size, length, rest, name_length, name = match.groups()
            function = rest[: int(length)] if length else ""
            name = name[: int(name_length)]
        elif match := _CONSTANT.fullmatch(line):
            address, size, length, name = match.groups()
            function, name = None, name[: int(length)] if length else name
        else:
            continue
        found.append(Variable(function, name, int(address, 16), int(size, 16)))
    return tuple(sorted(found, key=lambda variable: variable.address))


def symbols_of(library: Path) -> dict[str, tuple[int, int]]:
    """Address from the start of the library, and bytes, of each of its variables."""
    found = {}
    for line in run("nm", "-S", "--defined-only", str(library)).splitlines():
        if len(words := line.split()) == 4 and words[2] in "dDbBrRvV":
            found[words[3]] = (int(words[0], 16), int(words[1], 16))
    return found


def source_line(library: Path, address: int, file_name: str) -> int | None:
    """Line of the text that holds an instruction of the library, given its return address."""
    shown = run("addr2line", "-i", "-e", str(library), hex(address - 1))
    for place in shown.splitlines():
        file, _, line = place.split(" ")[0].rpartition(":")
        if Path(file).name == file_name and line.isdecimal():
            return int(line)
    return None


@cache
def _runtime() -> Path:
    """The emulator itself, compiled once into one object."""
    sources = [HERE / name for name in (*RUNTIME, "runtime.h", "emulated.h", "device.h")]
    flags = (*COMMON, "-O2")
    key = _key(*(path.read_text() for path in sources), *flags)
    target = _folder() / f"{key}.o"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=_folder()) as scratch:
            objects = []
            for name in RUNTIME:
                objects.append(str(Path(scratch, name).with_suffix(".o")))
                run(compiler(), *flags, "-c", str(HERE / name), "-o", objects[-1])
            made = Path(scratch, "runtime.o")
            run(compiler(), "-r", "-nostdlib", *objects, "-o", str(made))
            made.replace(target)
    return target


@cache
def _folder() -> Path:
    folder = cache_dir() / "cuda_emulator"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@cache
def _compiler_version(command: str) -> str:
    return run(command, "--version").splitlines()[0]


def compiler() -> str:
    """The command of the C++ compiler."""
    return os.environ.get("CXX", "g++")


def _key(*parts: str) -> str:
    whole = "\0".join((*parts, _compiler_version(compiler())))
    return hashlib.sha256(whole.encode()).hexdigest()[:24]


def run(*command: str, text: str | None = None) -> str:
    """What a program prints.

    Raises:
        RuntimeError: it is missing or fails; the message has its own.
    """
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise RuntimeError(f"the CUDA emulator needs {command[0]}") from error
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed\n{done.stderr[-4000:]}")
    return done.stdout
