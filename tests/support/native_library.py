"""Libraries for C as tests build them, and their programs called through ctypes."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcgen.artifact.manifest import array_bytes
from tcgen.artifact.whole_folder import write_folder
from tcgen.compiler.driver import compile_system
from tcgen.ir.system import System
from tcgen.native.fortran_order import in_fortran_order
from tcgen.native.sources import NativeProgram, named
from tcgen.native.tree import LIBRARY, library_files
from tcgen.options import Options
from tcgen.records.loops import stored_shape
from tcgen.records.tensors import Role
from tcgen.runtime.cpu.blas import blas_pointers, blas_threads
from tcgen.runtime.program import Program

NAME, PREFIX = "lib", "lib_"
GRANTED = 16  # bytes: alignment of memory that a caller passes

SMALL = """
space o = 4
space v = 6
index i j k : o
index a b c : v
input t[o,v], g[v,v] packed (0,1) constant, w[o,o] constant symmetric (0,1), scale = 2
output y, z, s accumulate, c

u[a,b] = g[a,c]*g[c,b]
z[i,a] = scale*t[i,b]*u[b,a]
y = z[i,a]*t[i,a]
s[i,j] = t[i,a]*t[j,a]
c[i,j] = w[i,k]*w[k,j]
"""
"""A state, a result of constants alone, a default, packed pairs, and a result that is added to."""

needs_cmake = pytest.mark.skipif(
    shutil.which("cmake") is None, reason="cmake is not installed: libraries are not built"
)
needs_fortran = pytest.mark.skipif(
    shutil.which("gfortran") is None, reason="gfortran is not installed"
)

_POINTER = ctypes.c_void_p
_INT64 = ctypes.c_int64
FILL = ctypes.CFUNCTYPE(
    ctypes.c_int, _POINTER, ctypes.POINTER(_INT64), ctypes.POINTER(_INT64), _POINTER
)


class Source(ctypes.Structure):
    _fields_ = (("fill", FILL), ("context", _POINTER))


class Options_(ctypes.Structure):  # noqa: N801  (tcgen_options)
    _fields_ = (
        *((name, ctypes.c_int) for name in ("threads", "check", "part", "blas_serial")),
        *(("first", _INT64), ("last", _INT64)),
        *((name, _POINTER) for name in ("blas", "stop", "plan")),
    )


def run(*command: object, folder: Path | None = None) -> str:
    """Run a command that must succeed; what it printed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def built(source: Path, *settings: str, name: str = NAME, install: bool = False) -> Path:
    """Build a library beside its source; the folder of the build, or where it is installed."""
    build, prefix = (
        source.with_name(f"{source.name}-build"),
        source.with_name(f"{source.name}-inst"),
    )
    # Kernels in Python have the same flags, so that bits can be compared.
    last = f"-D{name}_CFLAGS={os.environ.get('TCGEN_CFLAGS', '')}"
    run("cmake", "-S", source, "-B", build, f"-DCMAKE_INSTALL_PREFIX={prefix}", last, *settings)
    run("cmake", "--build", build, "-j2")
    if install:
        run("cmake", "--install", build)
    return prefix if install else build


def compiled(system: System, options: Options, *, fortran_order: bool = False) -> Any:
    """The artifact and the equations of a program of a library."""
    result = compile_system(in_fortran_order(system) if fortran_order else system, options)
    return result.artifact, result.system


class Called:
    """A program of a built library, and the same program in Python."""

    def __init__(self, library: ctypes.CDLL, program: NativeProgram) -> None:
        self.program, self.manifest = program, program.manifest
        self.python = Program(program.artifact)
        self.library = library
        x = program.symbol
        self._functions = {
            name.removeprefix(x): getattr(library, name)
            for name in (f"{x}{end}" for end in self._ends())
        }
        for name in ("_workspace_bytes", "_parts", "_plan_bytes", "_state_bytes"):
            if name in self._functions:
                self._functions[name].restype = _INT64
        self.message = getattr(library, f"{program.prefix}message")
        self.message.restype = ctypes.c_char_p
        self.keep: list[Any] = []

    def _ends(self) -> list[str]:
        bound = ["_state_bytes", "_bind", "_call"] if self.program.binds else []
        return ["", "_workspace_bytes", "_parts", "_plan", "_plan_bytes", *bound]

    def text(self) -> str:
        """The latest message."""
        return str(self.message().decode())

    def extents(self, extents: Mapping[str, int]) -> Any:
        bases = self.manifest.bases
        return (_INT64 * max(1, len(bases)))(*(extents[b] for b in bases))

    def workspace_bytes(self, extents: Mapping[str, int], threads: int = 1) -> int:
        return int(self._functions["_workspace_bytes"](self.extents(extents), threads))

    def parts(self, extents: Mapping[str, int]) -> int:
        return int(self._functions["_parts"](self.extents(extents)))

    def inputs(self, arrays: Mapping[str, Any]) -> Any:
        """The struct of inputs; it keeps the arrays alive as long as this object."""
        fields, values = [], []
        for t in self.program.inputs:
            array = arrays.get(t.name)
            generated = t.role is Role.GENERATED
            fields.append((self.program.words[t.name], Source if generated else _POINTER))
            if array is None:
                values.append(None)
            elif generated:
                fill = array if isinstance(array, FILL) else self._source(t, np.asarray(array))
                values.append(Source(fill, None))
            else:
                array = np.ascontiguousarray(array)
                values.append(array.ctypes.data)
            self.keep.append((array, values[-1]))
        kind = type(
            "Inputs", (ctypes.Structure,), {"_fields_": fields or [("none", ctypes.c_char)]}
        )
        return kind(*values)

    def _source(self, tensor: Any, array: Any) -> Any:
        """A callback that copies tiles of an array in stored order."""
        order = self.program.tile_order(tensor)
        logical = array.transpose(np.argsort(tensor.stored_order)).transpose(order)

        def fill(_context: Any, first: Any, count: Any, tile: int) -> int:
            shape = tuple(count[n] for n in range(logical.ndim))
            room = (ctypes.c_char * (int(np.prod(shape)) * array.itemsize)).from_address(tile)
            where = tuple(slice(first[n], first[n] + count[n]) for n in range(logical.ndim))
            np.frombuffer(room, array.dtype).reshape(shape)[...] = logical[where]
            return 0

        made = FILL(fill)
        self.keep.append(made)
        return made

    def outputs(self, extents: Mapping[str, int], starts: Mapping[str, Any]) -> Any:
        """Arrays for results, not set, and their struct."""
        arrays = {}
        for t in self.program.outputs:
            shape = stored_shape(t, extents)
            start = starts.get(t.name)
            array = np.full(shape, np.nan, self.program.dtype(t)) if start is None else start.copy()
            arrays[t.name] = array
        fields = [(self.program.words[name], _POINTER) for name in arrays]
        kind = type("Outputs", (ctypes.Structure,), {"_fields_": fields})
        return arrays, kind(*(a.ctypes.data for a in arrays.values()))

    def memory(self, count: int) -> Any:
        """Memory of so many bytes, aligned as documented and no better, and its address."""
        room = np.full(count + 128, 0xA5, np.uint8)
        start = room.ctypes.data
        at = start + (GRANTED - start) % 64 + (64 if start % 64 == GRANTED else 0)
        self.keep.append(room)
        return at

    def options(self, **values: Any) -> Options_:
        """Options with the BLAS of SciPy, other ``blas`` pointers, or None for the linked BLAS."""
        made = Options_()
        pointers = values.pop("blas", blas_pointers())
        if pointers is not None:
            table = (_POINTER * len(pointers))(*pointers)
            self.keep.append(table)
            made.blas = ctypes.addressof(table)
            made.blas_serial = int(blas_threads().controlled)
        for name, value in values.items():
            setattr(made, name, value)
        return made

    def call(
        self,
        extents: Mapping[str, int],
        arrays: Mapping[str, Any],
        starts: Mapping[str, Any] | None = None,
        *,
        bound: bool = False,
        fewer: int = 0,
        **options: Any,
    ) -> tuple[int, dict[str, Any]]:
        """Status and results of a call; ``fewer`` bytes of workspace than it needs."""
        threads = options.setdefault("threads", 1)
        n, given = self.extents(extents), self.inputs(arrays)
        made, out = self.outputs(extents, starts or {})
        chosen = ctypes.byref(self.options(**options))
        bytes_ = max(0, self.workspace_bytes(extents, threads))
        workspace = (_POINTER(self.memory(bytes_)), ctypes.c_size_t(bytes_ - fewer), chosen)
        with blas_threads():
            if not bound:
                status = self._functions[""](n, ctypes.byref(given), ctypes.byref(out), *workspace)
                return int(status), made
            count = int(self._functions["_state_bytes"](n))
            state = (_POINTER(self.memory(count)), ctypes.c_size_t(count))
            first = ctypes.byref(self.options(threads=threads))
            status = self._functions["_bind"](n, ctypes.byref(given), *state, *workspace[:2], first)
            if status == 0:
                status = self._functions["_call"](
                    n, ctypes.byref(given), ctypes.byref(out), *state, *workspace
                )
        return int(status), made

    def plan(self, extents: Mapping[str, int], threads: int) -> int:
        """The address of a plan."""
        count = int(self._functions["_plan_bytes"]())
        plan = self.memory(count)
        assert not self._functions["_plan"](
            self.extents(extents), threads, _POINTER(plan), ctypes.c_size_t(count)
        )
        return int(plan)


def python_bytes(program: Program, extents: Mapping[str, int]) -> int:
    """Bytes that Python allocates for a call beside the results."""
    manifest = program._execution.manifest
    results = sum(array_bytes(t, manifest, extents) for t in manifest.outputs)
    return program.peak_bytes(extents) - results


def write_library(
    folder: Path, found: Sequence[Any], archs: Sequence[str] = ("native",), name: str = NAME
) -> list[NativeProgram]:
    """Write the library of some programs, each an artifact and its equations."""
    programs = named(found, name, f"{name}_")
    files = library_files(name, programs, f"{name}_", archs)
    write_folder(folder, files.items(), LIBRARY)
    return programs


def load(folder: Path, programs: Sequence[NativeProgram], *settings: str) -> dict[str, Called]:
    """Build the library in a folder; its programs by name."""
    library = ctypes.CDLL(str(built(folder, *settings) / f"lib{NAME}.so"))
    return {p.name: Called(library, p) for p in programs}
