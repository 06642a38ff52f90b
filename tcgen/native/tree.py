"""The files of a library, and the folder that holds them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

from .._version import __version__
from ..artifact.kernel_abi import TILES, library, rounds_each
from ..artifact.manifest import SOURCES
from ..artifact.whole_folder import Kind
from ..errors import ArgumentError
from ..resources import template_text
from ..runtime.cpu.toolchain import OPTIONAL, SKIPPED
from .c_header import header
from .c_source import calls_source, kernels_source, names_header, products, runtime_files
from .cpp_header import cpp_header
from .fortran_module import fortran_module
from .guide import guide
from .processors import identifier
from .sources import NativeProgram

_MARK = "# The library "
_OWN = ("CMakeLists.txt", "README.md", "cmake", "fortran", "include", "src")
# Flags of programs in Python but two: CMake finds OpenMP, and each kind of processor has its own.
_FLAGS = tuple(f for f in OPTIONAL if f not in ("-march=native", "-fopenmp"))


def library_files(
    name: str, programs: Sequence[NativeProgram], prefix: str, archs: Sequence[str]
) -> dict[str, str]:
    """Text of each file of a library, by path."""
    kernels = products(programs)
    c_header = header(name, programs, prefix)
    files = {
        f"include/{name}.h": c_header,
        f"include/{name}.hpp": cpp_header(name, programs),
        **{f"src/{path}": text for path, text in kernels.items()},
        **{f"src/{p.name}_kernels.c": kernels_source(p) for p in programs},
        **{f"src/{path}": text for path, text in runtime_files().items()},
        "src/names.h": names_header(prefix),
        "README.md": guide(name, programs, prefix, archs),
        "CMakeLists.txt": _cmake(name, programs, archs, list(kernels)),
        f"cmake/{name}Config.cmake.in": template_text("native/Config.cmake.in"),
        f"cmake/{name}.pc.in": template_text("native/library.pc.in"),
    }
    build = zlib.crc32("".join(files[path] for path in sorted(files)).encode()) & 0x7FFFFFFF
    files[f"src/{name}.c"] = calls_source(name, programs, prefix, archs, build)
    files[f"fortran/{name}.f90"] = fortran_module(name, programs, prefix, build)
    return dict(sorted(files.items()))


def _cmake(
    name: str, programs: Sequence[NativeProgram], archs: Sequence[str], kernels: Sequence[str]
) -> str:
    """``CMakeLists.txt``: the names of this library, then what all libraries have."""
    tiles = {p for p in kernels if any(p == library(t, p.split("_")[-1][:-2]) for t in TILES)}
    rounding = [p.name for p in programs if rounds_each(p.artifact.text(SOURCES["cpu"]))]
    values = {
        "lib": name,
        "archs": ";".join(archs),
        "ids": ";".join(map(identifier, archs)),
        "kernels": ";".join(f"src/{p.name}_kernels.c" for p in programs),
        "rounding": ";".join(f"src/{p}_kernels.c" for p in rounding),
        "callers": ";".join(f"src/{p}" for p in kernels if p not in tiles),
        "tiles": ";".join(f"src/{p}" for p in kernels if p in tiles),
        "flags": ";".join(_FLAGS),
        "skipped": ";".join(SKIPPED),
    }
    lines = [
        f"{_MARK}{name}. Written by tcgen {__version__}. SPDX-License-Identifier: Apache-2.0",
        "cmake_minimum_required(VERSION 3.20)",
        f"project({name} VERSION {__version__.split('+')[0]} LANGUAGES C)",
        *(f'set({key} "{value}")' for key, value in values.items()),
        template_text("native/CMakeLists.txt"),
    ]
    return "\n".join(lines)


def _is_cmake(content: bytes) -> bool:
    return content.startswith(_MARK.encode())


def _written(_: Path) -> Callable[[PurePath], bool]:
    """Whether a path is that of a library's file, or in its folders of sources."""
    return lambda name: name.parts[0] in _OWN


LIBRARY = Kind("a library of tcgen", "CMakeLists.txt", _is_cmake, _written, ArgumentError)
