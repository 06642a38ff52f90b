"""Running compiled kernels through ctypes; the interpreter lock is released meanwhile.

A process that was forked after its parent ran threads stays on one thread: OpenMP's threads do not
survive a fork, and waiting for them would hang.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from ..artifact import Artifact
from ..manifest import FetchEntry, HostEntry
from .blas import ROUTINES, blas_pointers, blas_threads
from .build import Source, build_libraries
from .host import Values, has_fetch, walk
from .later import Later, standing_in
from .packing import CALLERS, FALLBACK, HEIGHTS, TILES, library
from .store import Store
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
    """What lies around the tiles takes little time beside them; -O1 compiles it twice as fast."""
    level = "-O2" if part in TILES else "-O1"
    return Source(artifact.text(library(part, dtype)), level)


def _fallback(artifact: Artifact, dtype: str, made: Mapping[tuple[str, str], ctypes.CDLL]) -> int:
    """Address of the blocks that are called where the buffer of a stage is too small."""
    (caller,) = build_libraries((_source(artifact, FALLBACK, dtype),))
    return _linked("blocks", dtype, caller, made)


class CpuBackend:
    """The compiled library of a program."""

    def __init__(self, artifact: Artifact) -> None:
        self.manifest = manifest = artifact.manifest
        text = artifact.text("kernels.c")
        dtypes = sorted({c[0] for k in manifest.kernels for c in k.contractions})
        parts = [
            (part, dtype)
            for dtype in dtypes
            for part in (*CALLERS, *TILES)
            if artifact.has(library(part, dtype))
        ]
        sources = [_source(artifact, part, dtype) for part, dtype in parts]
        self._library, *built = build_libraries((Source(text), *sources))
        made = dict(zip(parts, built, strict=True))
        self._calls_blas = "tc_gemm_" in text
        # The fourth place tells the kernels that the BLAS runs on the calling thread.
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
            places["blocks", dtype]: Later(partial(_fallback, artifact, dtype, made))
            for dtype in dtypes
            if artifact.has(library(FALLBACK, dtype))
        }
        self._kernels = {k.name: k for k in manifest.kernels}

    def complete(self) -> None:
        """Compile what only some calls need."""
        for function in self._later.values():
            function.made()

    @property
    def threads(self) -> int:
        """Threads that a call uses: as asked, else those OpenMP offers (OMP_NUM_THREADS)."""
        return 1 if _Process.single else used_threads(int(self._library.tcgen_threads()))

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
            with self._alone(), standing_in(self._table, self._later) as functions:
                function(table, extents, apart, count, functions)
            return

        def launch(name: str, values: Values) -> None:
            kernel = self._kernels[name]
            given = (ctypes.c_int64 * len(kernel.host))(*(values[v] for v in kernel.host))
            function = getattr(self._library, kernel.symbol)
            function.restype = None
            with self._alone(), standing_in(self._table, self._later) as functions:
                function(table, extents, given, apart, count, functions)

        walk(host, self.manifest, store.extents, launch, fetch)
