"""Running compiled kernels through ctypes; the interpreter lock is released meanwhile.

A process that was forked after its parent ran threads stays on one thread: OpenMP's threads do not
survive a fork, and waiting for them would hang.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..artifact import Artifact
from ..manifest import FetchEntry, HostEntry
from .blas import ROUTINES, blas_pointers, blas_threads
from .build import Source, build_libraries
from .host import Values, has_fetch, walk
from .packing import CALLERS, TILES, library
from .store import Store
from .threads import wanted_threads


class _Process:
    """Whether this process has run threads, and whether it is a fork of one that had."""

    threaded = False
    single = False

    @classmethod
    def forked(cls) -> None:
        """Called in the child."""
        cls.single = cls.single or cls.threaded


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Process.forked)


_KINDS = {"float32": "s", "float64": "d", "complex128": "z"}  # in the order of the table
_NONE = (None,) * (len(ROUTINES) + 1)  # without the BLAS, which takes a while to load


def _address(function: Any) -> int | None:
    return None if function is None else ctypes.cast(function, ctypes.c_void_p).value


def _linked(parts: Mapping[tuple[str, str], ctypes.CDLL]) -> dict[tuple[str, str], Any]:
    """Functions of the generated kernel, which find the tiles that they call."""
    functions = {}
    for (part, dtype), caller in parts.items():
        if part not in CALLERS:
            continue
        kind = _KINDS[dtype]
        functions[part, dtype] = getattr(caller, f"tc_{part}_{kind}")
        for way in TILES:
            made = parts.get((way, dtype))
            if made is not None:
                table = (ctypes.c_void_p * 4).in_dll(caller, f"tc_{way}_{kind}")
                table[:] = list((ctypes.c_void_p * 4).in_dll(made, f"tc_made_{kind}"))
    return functions


class CpuBackend:
    """The compiled library of a program."""

    def __init__(self, artifact: Artifact) -> None:
        self.manifest = manifest = artifact.manifest
        text = artifact.text("kernels.c")
        parts = [
            (part, dtype)
            for dtype in sorted({c[0] for k in manifest.kernels for c in k.contractions})
            for part in (*CALLERS, *TILES)
            if artifact.has(library(part, dtype))
        ]
        # What lies around the tiles takes little time beside them, and -O1 compiles twice as fast.
        sources = [
            Source(artifact.text(library(part, dtype)), "-O1" if part in CALLERS else "-O2")
            for part, dtype in parts
        ]
        self._library, *built = build_libraries((Source(text), *sources))
        found = _linked(dict(zip(parts, built, strict=True)))
        self._calls_blas = "tc_gemm_" in text
        # The fourth place tells the kernels that the BLAS runs on the calling thread.
        blas = (*blas_pointers(), blas_threads().controlled or None) if self._calls_blas else _NONE
        entries = (_address(found.get((part, dtype))) for part in CALLERS for dtype in _KINDS)
        pointers = (*blas, *entries)
        self._blas = (ctypes.c_void_p * len(pointers))(*pointers)
        self._kernels = {k.name: k for k in manifest.kernels}

    @property
    def threads(self) -> int:
        """Threads that a call uses: as asked, else those OpenMP offers (OMP_NUM_THREADS)."""
        return 1 if _Process.single else wanted_threads() or int(self._library.tcgen_threads())

    def _alone(self) -> AbstractContextManager[object]:
        """While a program runs that calls the BLAS, the BLAS keeps to the calling thread."""
        return blas_threads() if self._calls_blas else nullcontext()

    def run(
        self,
        phase: str,
        host: tuple[HostEntry, ...],
        store: Store,
        strides: tuple[int, ...],
        threads: int,
        fetch: Callable[[FetchEntry, Values], None],
    ) -> None:
        """Run one phase of the host program."""
        _Process.threaded = _Process.threaded or threads > 1
        places = store.addresses()
        table = (ctypes.c_void_p * len(places))(*places)
        bases = self.manifest.bases
        extents = (ctypes.c_int64 * len(bases))(*(store.extents.get(b, 0) for b in bases))
        apart = (ctypes.c_int64 * len(strides))(*strides)
        count = ctypes.c_int(threads)
        if not has_fetch(host):
            function = getattr(self._library, f"tcgen_phase_{phase}")
            function.restype = None
            with self._alone():
                function(table, extents, apart, count, self._blas)
            return

        def launch(name: str, values: Values) -> None:
            kernel = self._kernels[name]
            given = (ctypes.c_int64 * len(kernel.host))(*(values[v] for v in kernel.host))
            function = getattr(self._library, kernel.symbol)
            function.restype = None
            with self._alone():
                function(table, extents, given, apart, count, self._blas)

        walk(host, self.manifest, store.extents, launch, fetch)
