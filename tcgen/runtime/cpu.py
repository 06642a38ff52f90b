"""Running compiled kernels through ctypes; the interpreter lock is released meanwhile.

A process that was forked after its parent ran threads stays on one thread: OpenMP's threads do not
survive a fork, and waiting for them would hang.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

from ..artifact import Artifact
from ..manifest import FetchEntry, HostEntry
from .blas import blas_pointers, blas_threads
from .build import build_library
from .host import Values, has_fetch, walk
from .packing import library
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


def _contractions(artifact: Artifact) -> dict[str, Any]:
    """The contraction function of each element type that a program needs."""
    dtypes = {c[0] for k in artifact.manifest.kernels for c in k.contractions}
    return {
        kind: getattr(build_library(artifact.text(library(dtype)), "-O2"), f"tc_contract_{kind}")
        for dtype, kind in _KINDS.items()
        if dtype in dtypes
    }


def _address(function: Any) -> int | None:
    return None if function is None else ctypes.cast(function, ctypes.c_void_p).value


class CpuBackend:
    """The compiled library of a program."""

    def __init__(self, artifact: Artifact) -> None:
        self.manifest = manifest = artifact.manifest
        self._library = build_library(artifact.text("kernels.c"))
        self._contractions = _contractions(artifact)
        # The fourth place tells the kernels that the BLAS runs on the calling thread.
        pointers = (
            *blas_pointers(),
            1 if blas_threads().controlled else None,
            *(_address(self._contractions.get(kind)) for kind in _KINDS.values()),
        )
        self._blas = (ctypes.c_void_p * len(pointers))(*pointers)
        self._kernels = {k.name: k for k in manifest.kernels}

    @property
    def threads(self) -> int:
        """Threads that a call uses: as asked, else those OpenMP offers (OMP_NUM_THREADS)."""
        return 1 if _Process.single else wanted_threads() or int(self._library.tcgen_threads())

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
            with blas_threads():
                function(table, extents, apart, count, self._blas)
            return

        def launch(name: str, values: Values) -> None:
            kernel = self._kernels[name]
            given = (ctypes.c_int64 * len(kernel.host))(*(values[v] for v in kernel.host))
            function = getattr(self._library, kernel.symbol)
            function.restype = None
            with blas_threads():
                function(table, extents, given, apart, count, self._blas)

        walk(host, self.manifest, store.extents, launch, fetch)
