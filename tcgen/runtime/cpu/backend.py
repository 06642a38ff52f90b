"""Running compiled kernels through ctypes; the interpreter lock is released meanwhile.

A process that was forked after its parent ran threads stays on one thread: OpenMP's threads do not
survive a fork, and waiting for them would hang.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from ...artifact.folder import Artifact
from ...artifact.kernel_abi import CALLERS, FALLBACK, HEIGHTS, TILES, library
from ...artifact.manifest import FetchEntry
from ..call.buffers import Store
from ..host_program import Values, walk
from .blas import ROUTINES, blas_pointers, blas_threads
from .build import Source, build_libraries
from .lazy_link import Later, standing_in
from .threads import used_threads


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
_NOTHING = nullcontext()
_NONE = (None,) * (len(ROUTINES) + 1)  # without the BLAS, which takes a while to load


def _address(function: Any) -> int | None:
    return None if function is None else ctypes.cast(function, ctypes.c_void_p).value


def _linked(
    part: str, dtype: str, caller: ctypes.CDLL, made: Mapping[tuple[str, str], ctypes.CDLL]
) -> int:
    """Address of the function of a part of the kernel, which is given the tiles that it calls."""
    kind = _KINDS[dtype]
    for way in TILES:
        tiles = made.get((way, dtype))
        if tiles is not None:
            table = (ctypes.c_void_p * HEIGHTS).in_dll(caller, f"tc_{way}_{kind}")
            table[:] = list((ctypes.c_void_p * HEIGHTS).in_dll(tiles, f"tc_made_{kind}"))
    address = _address(getattr(caller, f"tc_{part}_{kind}"))
    assert address is not None, "a function of a library has an address"
    return address


def _source(artifact: Artifact, part: str, dtype: str) -> Source:
    """What calls micro-kernels takes little time beside them; -O1 compiles it twice as fast."""
    level = "-O1" if part in (*CALLERS, FALLBACK) else "-O2"
    return Source(artifact.text(library(part, dtype)), level)


def _present(artifact: Artifact, parts: Iterable[str], dtype: str) -> list[tuple[str, str]]:
    """Those parts of the kernel that an artifact has for an element type."""
    return [(part, dtype) for part in parts if artifact.has(library(part, dtype))]


def _fallback(artifact: Artifact, dtype: str) -> int:
    """Address of the blocks that are called where the buffer of a stage is too small."""
    parts = _present(artifact, (FALLBACK, *TILES), dtype)
    built = build_libraries([_source(artifact, *part) for part in parts])
    return _linked("blocks", dtype, built[0], dict(zip(parts, built, strict=True)))


class CpuBackend:
    """The compiled library of a program."""

    def __init__(self, artifact: Artifact) -> None:
        self.manifest = manifest = artifact.manifest
        text = artifact.text("kernels.c")
        dtypes = sorted({c[0] for k in manifest.kernels for c in k.contractions})
        parts: list[tuple[str, str]] = []
        for dtype in dtypes:
            parts += _present(artifact, (*CALLERS, *TILES), dtype)
        sources = [_source(artifact, part, dtype) for part, dtype in parts]
        self._library, *built = build_libraries((Source(text), *sources))
        made = dict(zip(parts, built, strict=True))
        self._calls_blas = "tc_gemm_" in text
        # The place behind it tells the kernels that the BLAS runs on the calling thread.
        blas = (*blas_pointers(), blas_threads().controlled or None) if self._calls_blas else _NONE
        places = {
            caller: len(blas) + n for n, caller in enumerate(itertools.product(CALLERS, _KINDS))
        }
        entries = (
            _linked(part, dtype, made[part, dtype], made) if (part, dtype) in made else None
            for part, dtype in places
        )
        pointers = (*blas, *entries)
        self._table = (ctypes.c_void_p * len(pointers))(*pointers)
        self._later = {
            places["blocks", dtype]: Later(partial(_fallback, artifact, dtype))
            for dtype in dtypes
            if artifact.has(library(FALLBACK, dtype))
        }
        self._others = tuple(
            _source(artifact, part, dtype)
            for dtype in dtypes
            for part, _ in _present(artifact, (FALLBACK, *TILES), dtype)
        )
        self._kernels = {k.name: k for k in manifest.kernels}

    def complete(self) -> None:
        """Compile what only some calls need."""
        build_libraries(self._others)
        for function in self._later.values():
            function.made()

    @property
    def threads(self) -> int:
        """Threads that a call uses: as asked, else those OpenMP offers (OMP_NUM_THREADS)."""
        return 1 if _Process.single else used_threads(self._library.tcgen_threads())

    def _alone(self) -> AbstractContextManager[object]:
        """While a program runs that calls the BLAS, the BLAS keeps to the calling thread."""
        return blas_threads() if self._calls_blas else _NOTHING

    def _function(self, symbol: str) -> Any:
        function = getattr(self._library, symbol)  # which the library keeps
        function.restype = None
        return function

    def run(self, store: Store, fetch: Callable[[FetchEntry, Values], None]) -> None:
        """Run one phase of the host program."""
        setting, phase, table = store.setting, store.phase, store.table()
        if setting.threads > 1:
            _Process.threaded = True
        extents, strides, threads = setting.extent_table, setting.stride_table, setting.threads
        if not phase.fetches:
            function = self._function(f"tcgen_phase_{phase.name}")
            with self._alone(), standing_in(self._table, self._later) as functions:
                function(table, extents, strides, threads, functions)
            return

        def launch(name: str, values: Values) -> None:
            kernel = self._kernels[name]
            function = self._function(kernel.symbol)
            given = (ctypes.c_int64 * len(kernel.host))(*(values[v] for v in kernel.host))
            with self._alone(), standing_in(self._table, self._later) as functions:
                function(table, extents, given, strides, threads, functions)

        walk(phase.host, self.manifest, setting.extents, launch, fetch)
