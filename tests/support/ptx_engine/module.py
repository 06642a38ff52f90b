"""PtxModule: cupy.RawModule's interface, for the PTX that NVRTC or nvcc makes of a text.

Memory, races, barriers and launches are the emulator's. What runs is not the text but what the
compiler made of it, its inline PTX included.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import tempfile
import weakref
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from support.cuda_compile import compiled, compiler_version
from support.cuda_emulator import EmulatedKernel, EmulatedModule
from support.cuda_emulator import build as emulator
from support.cuda_emulator.build import KernelText, Variable

from .parse import Text, parse
from .translate import Translation, translate

HERE = Path(__file__).parent
FLAGS = (*emulator.COMMON, "-O1", "-w", "-fno-exceptions", "-ffp-contract=off", "-mfma")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


class PtxModule(EmulatedModule):
    """Kernels of a text, compiled to PTX for an architecture, and that run on the CPU.

    Args:
        code: CUDA C++ with ``extern "C" __global__`` kernels.
        arch: compute capability x 10.
        change: makes other PTX of the compiler's, as tests that plant faults do.

    Raises:
        CompileError: the text does not compile.
        PtxError: the PTX has an instruction that the engine lacks.
    """

    def __init__(
        self, code: str, *, arch: int = 90, change: Callable[[str], str] | None = None
    ) -> None:
        self.code, self.arch, self.file_name = code, arch, "kernels.ptx"
        made = ptx_of(code, arch)
        self.ptx = change(made) if change else made
        self._texts = {kernel.name: kernel for kernel in emulator.kernels_of(code)}
        self._memory = np.empty(0, np.uint8)
        self._loaded: dict[str, EmulatedKernel] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kernels, in the order of the text."""
        return tuple(self._texts)

    def line_of(self, address: int) -> int | None:
        """What the runtime takes for addresses are lines of the PTX."""
        return address

    def get_function(self, name: str) -> EmulatedKernel:
        """The kernel of that name; its PTX is translated now.

        Raises:
            KeyError: there is none.
        """
        if name not in self._loaded:
            text = self._texts[name]
            ptx = parsed(self.ptx)
            sizes = [bytes_ for _, bytes_ in ptx.function(name).parameters]
            made = translate(ptx, name, _kinds(self.code, text, sizes))
            path = library(made.code)
            loaded = ctypes.CDLL(str(path))
            kernel = EmulatedKernel(self, loaded, text, _variables(made, path, name))
            weakref.finalize(kernel, loaded.tcgen_release)
            self._loaded[name] = kernel
        return self._loaded[name]


@lru_cache(maxsize=64)
def ptx_of(code: str, arch: int) -> str:
    """The PTX of a text, kept in the cache folder."""
    options = Path(compiled.__code__.co_filename).read_text()  # the file that names them
    kept = _folder() / f"{_key(code, str(arch), compiler_version(), options)}.ptx"
    if not kept.exists():
        made = compiled(code, arch, "ptx")
        with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as file:
            file.write(made)
        Path(file.name).replace(kept)
    return kept.read_text()


@lru_cache(maxsize=16)
def parsed(ptx: str) -> Text:
    """The functions of a PTX text."""
    return parse(ptx)


def library(code: str) -> Path:
    """The library of translated code, compiled now or before."""
    runtime = _runtime()
    target = _folder() / f"{_key(code, runtime.stem)}.so"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=_folder()) as scratch:
            source, made = Path(scratch, "kernel.cpp"), Path(scratch, "kernel.so")
            source.write_text(code)
            included = (f"-I{HERE}", f"-I{emulator.HERE}")
            emulator.run(
                emulator.compiler(), *FLAGS, *included, "-c", str(source), "-o", f"{made}.o"
            )
            linked = (f"{made}.o", str(runtime), "-lm", "-o", str(made))
            emulator.run(emulator.compiler(), "-shared", "-Wl,-Bsymbolic", *linked)
            made.replace(target)
    return target


@cache
def _runtime() -> Path:
    """The emulator's runtime with what PTX needs of it, compiled once into one object."""
    sources = ("scheduler.cpp", "warp.cpp", "memory.cpp", "hooks.cpp")
    paths = [*(emulator.HERE / name for name in sources), HERE / "ptx.cpp", HERE / "traffic.cpp"]
    headers = [
        emulator.HERE / "runtime.h",
        emulator.HERE / "emulated.h",
        HERE / "ptx.h",
        HERE / "traffic.h",
    ]
    key = _key(*(path.read_text() for path in (*paths, *headers)), *FLAGS)
    target = _folder() / f"{key}.o"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=_folder()) as scratch:
            objects = []
            for path in paths:
                objects.append(str(Path(scratch, f"{path.stem}.o")))
                included = (f"-I{HERE}", f"-I{emulator.HERE}")
                command = (emulator.compiler(), *emulator.COMMON, "-O2", *included)
                emulator.run(*command, "-c", str(path), "-o", objects[-1])
            made = Path(scratch, "runtime.o")
            emulator.run(emulator.compiler(), "-r", "-nostdlib", *objects, "-o", str(made))
            made.replace(target)
    return target


@cache
def _folder() -> Path:
    folder = emulator.cache_dir() / "ptx_engine"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _kinds(code: str, kernel: KernelText, sizes: Sequence[int]) -> list[str]:
    """For each parameter of a kernel the fields of an ``emulated::Parameter``.

    PTX has sizes alone; what the bits mean stands in the text.
    """
    pattern = rf"\b{kernel.name}\s*\(([^)]*)\)\s*\{{"
    found = re.search(pattern, _COMMENT.sub("", code))
    assert found is not None
    declared = [re.findall(r"\w+|\*", p) for p in found[1].split(",") if p.strip()]
    return [_kind(words, size) for words, size in zip(declared, sizes, strict=True)]


def _kind(words: Sequence[str], size: int) -> str:
    if "*" in words:
        pointer = 1 if "const" in words[: words.index("*")] else 2
        return f"{{{size}, {pointer}, 0, 'v'}}"
    kinds = {"double": "f", "float": "f", "tc_complex": "s", "unsigned": "u", "size_t": "u"}
    kind = next((kinds[word] for word in words if word in kinds), "i")
    return f"{{{size}, 0, {size}, '{kind}'}}"


def _variables(made: Translation, path: Path, kernel: str) -> list[Variable]:
    """The shared arrays of the window and the constant ones, as the emulator names them."""
    at = emulator.symbols_of(path)
    window = at["tcgen_ptx_window"][0]
    shared = [Variable(kernel, _readable(s.name), window + s.offset, s.bytes) for s in made.shared]
    return [*shared, *(Variable(None, name, *at[name]) for name in made.constants)]


def _readable(name: str) -> str:
    """``tc_left`` of ``_ZZ15tcgen_product_0E7tc_left``."""
    match = re.match(r"_ZZ.*E(\d+)([A-Za-z_]\w*)$", name)
    return match[2] if match and int(match[1]) == len(match[2]) else name
