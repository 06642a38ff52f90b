"""CUDA C++ compiled for a device that need not be there: does it compile, and into what.

NVRTC (the wheel nvidia-cuda-nvrtc, no driver needed) or else nvcc. Both let ptxas say how many
registers and how much memory each kernel takes, in the same words.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tcgen.artifact.kernel_abi import rounds_each
from tcgen.environment import cache_dir

MISSING = "no nvrtc: pip install nvidia-cuda-nvrtc, or put nvcc on the path"
_OPTIONS = ("-std=c++17", "--ptxas-options=-v")
_KERNEL = re.compile(
    r"Compiling entry function '(?P<name>\w+)' for 'sm_\d+'.*?"
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, "
    r"(?P<loads>\d+) bytes spill loads\s*"
    r"ptxas info\s*: Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
    re.DOTALL,
)


class CompileError(Exception):
    """The text does not compile; the message is the compiler's."""


@dataclass(frozen=True, slots=True)
class KernelUse:
    """What a compiled kernel takes, for each thread and for each block.

    Attributes:
        name: of the kernel.
        registers: of 32 bits, for each thread.
        stack: bytes of local memory for each thread, spills included.
        spills: bytes of spill stores and loads in the code.
        shared: bytes of static shared memory for each block.
    """

    name: str
    registers: int
    stack: int
    spills: int
    shared: int


@cache
def nvrtc_library() -> Path | None:
    """NVRTC's library: TCGEN_NVRTC, or of the wheel in a folder of sys.path; None without it."""
    if chosen := os.environ.get("TCGEN_NVRTC"):
        return Path(chosen)
    for folder in sys.path:
        found = sorted(Path(folder, "nvidia").glob("*/lib/libnvrtc.so.*"))
        if found:
            return found[-1]
    return None


def can_compile() -> bool:
    """True if this machine has NVRTC or nvcc."""
    return nvrtc_library() is not None or shutil.which("nvcc") is not None


def compile_cuda(code: str, arch: int) -> tuple[KernelUse, ...]:
    """What the kernels of a text take when compiled for sm_<arch>.

    Raises:
        CompileError: the text does not compile.
    """
    library = nvrtc_library()
    key = "\0".join((code, str(arch), compiler_version(), *_OPTIONS))
    kept = cache_dir() / "cuda_compile" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.log"
    if kept.exists():
        return kernel_uses(kept.read_text())
    made = _by_nvrtc(library, code, arch, "cubin") if library else _by_nvcc(code, arch, "cubin")
    log = made[1]
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=kept.parent, delete=False) as made:
        made.write(log)
    Path(made.name).replace(kept)
    return kernel_uses(log)


def kernel_uses(log: str) -> tuple[KernelUse, ...]:
    """Kernels in what ``ptxas -v`` says, by name."""
    found = []
    for match in _KERNEL.finditer(log):
        shared = re.search(r"(\d+) bytes smem", match["rest"])
        found.append(
            KernelUse(
                match["name"],
                int(match["registers"]),
                int(match["stack"]),
                int(match["stores"]) + int(match["loads"]),
                int(shared.group(1)) if shared else 0,
            )
        )
    return tuple(sorted(found, key=lambda use: use.name))


def compiled(code: str, arch: int, form: str) -> bytes:
    """A text compiled as CuPy does for a device: ``"ptx"`` or ``"cubin"`` for sm_<arch>.

    Raises:
        CompileError: the text does not compile.
    """
    library = nvrtc_library()
    options = ("-ftz=true", *(("--fmad=false",) if rounds_each(code) else ()))
    if library is None:
        return _by_nvcc(code, arch, form, options)[0]
    return _by_nvrtc(library, code, arch, form, options)[0]


def compile_by_nvcc(code: str, arch: int) -> str:
    """What ptxas says of a text that nvcc compiles for sm_<arch>."""
    return _by_nvcc(code, arch, "cubin")[1]


def _by_nvrtc(
    path: Path, code: str, arch: int, form: str, more: tuple[str, ...] = ()
) -> tuple[bytes, str]:
    """What NVRTC makes of a text, and its log."""
    library = ctypes.CDLL(str(path))
    program = ctypes.c_void_p()
    text = code.encode()
    if library.nvrtcCreateProgram(ctypes.byref(program), text, b"kernels.cu", 0, None, None):
        raise CompileError("nvrtcCreateProgram failed")
    options = (f"--gpu-architecture=sm_{arch}", *_OPTIONS, *more)
    passed = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = library.nvrtcCompileProgram(program, len(options), passed)
    log = _of_nvrtc(library, "ProgramLog", program).decode()
    name = {"ptx": "PTX", "cubin": "CUBIN"}[form]
    made = b"" if failed else _of_nvrtc(library, name, program)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    if failed:
        raise CompileError(log)
    return made, log


def _of_nvrtc(library: ctypes.CDLL, name: str, program: ctypes.c_void_p) -> bytes:
    """One of the results of a program, without the zero that ends a text."""
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{name}Size")(program, ctypes.byref(size))
    held = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{name}")(program, held)
    return held.value if name != "CUBIN" else held.raw


def _by_nvcc(code: str, arch: int, form: str, more: tuple[str, ...] = ()) -> tuple[bytes, str]:
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "kernels.cu"), Path(folder, "made")
        source.write_text(code)
        options = (f"-arch=sm_{arch}", *_OPTIONS, *more, f"-{form}")
        done = subprocess.run(
            ["nvcc", *options, "-o", str(made), str(source)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise CompileError(done.stderr)
        return made.read_bytes(), done.stderr


def compiler_version() -> str:
    """The compiler that is used, and its version."""
    library = nvrtc_library()
    return _nvrtc_version(library) if library else _nvcc_version()


@cache
def _nvrtc_version(path: Path) -> str:
    major, minor = ctypes.c_int(), ctypes.c_int()
    ctypes.CDLL(str(path)).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"NVRTC {major.value}.{minor.value}"


@cache
def _nvcc_version() -> str:
    return subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout
