"""Runs compiled kernels through ctypes, which releases the interpreter lock.

A process that was forked after its parent ran threads uses one thread: OpenMP's threads do not
survive a fork, and a wait for them would never end.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from typing import Any

from ...artifact.folder import Artifact
from ...artifact.kernel_abi import CALLERS, FALLBACK, HEIGHTS, TILES, library
from ...artifact.manifest import SOURCES
from ...dtypes import ALL as DTYPES
from ...dtypes import BY_NAME
from ...errors import ArtifactError
from ...records.loops import Fetch, launched
from ..call.host_loops import PhaseBuffers, walk
from ..fork_safe_lock import Once
from ..host_device import HostDevice
from ..host_program import Values, on_host
from .blas import ROUTINES, blas_pointers, blas_threads, used_threads
from .build import Source, build_libraries, building, standing_in
from .bundled_objects import BundledObjects, read_objects, with_objects
from .interrupt import NOT_INTERRUPTED, is_long, on_main_thread, run_interruptible
from .toolchain import probe_compiler


class _Process:
    """Whether this process has run threads, and whether it is a fork of a process that had."""

    threaded = False
    single = False

    @classmethod
    def forked(cls) -> None:
        """Called in the child."""
        cls.single = cls.single or cls.threaded


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Process.forked)


_NO_CONTEXT = nullcontext()
_MAX_LAYOUTS = 256  # cached decisions whether calls of a layout are long
# For programs that do not call the BLAS: SciPy takes a while to load.
_NO_BLAS: tuple[int | None, ...] = (None,) * (len(ROUTINES) + 1)


def _linked(
    part: str, dtype: str, caller: ctypes.CDLL, made: Mapping[tuple[str, str], ctypes.CDLL]
) -> int:
    """Address of a part of the kernel, linked to the micro-kernels that it calls."""
    letter = BY_NAME[dtype].letter
    for operands in TILES:
        tiles = made.get((operands, dtype))
        if tiles is not None:
            table = (ctypes.c_void_p * HEIGHTS).in_dll(caller, f"tc_{operands}_{letter}")
            table[:] = list((ctypes.c_void_p * HEIGHTS).in_dll(tiles, f"tc_made_{letter}"))
    address = ctypes.cast(getattr(caller, f"tc_{part}_{letter}"), ctypes.c_void_p).value
    assert address is not None, "a function of a library has an address"
    return address


def _source(artifact: Artifact, part: str, dtype: str) -> Source:
    """What calls micro-kernels takes little time beside them; -O1 compiles it twice as fast."""
    level = "-O1" if part in (*CALLERS, FALLBACK) else "-O2"
    return Source(artifact.text(library(part, dtype)), level)


def _sources(artifact: Artifact) -> tuple[Source, dict[tuple[str, str], Source]]:
    """The source of a program's kernels, and the parts of the contraction kernel that it calls."""
    dtypes = sorted({c[0] for k in artifact.manifest.kernels for c in k.contractions})
    parts = [part for dtype in dtypes for part in _present(artifact, (*CALLERS, *TILES), dtype)]
    return Source(artifact.text(SOURCES["cpu"])), {part: _source(artifact, *part) for part in parts}


def _present(artifact: Artifact, parts: Iterable[str], dtype: str) -> list[tuple[str, str]]:
    """The parts of the kernel that an artifact has for an element type."""
    return [(part, dtype) for part in parts if artifact.has(library(part, dtype))]


def _fallback(artifact: Artifact, bundled: BundledObjects, dtype: str) -> int:
    """Address of the function for contractions whose staging buffer would be too small."""
    parts = _present(artifact, (FALLBACK, *TILES), dtype)
    built = build_libraries([_source(artifact, *part) for part in parts], bundled)
    return _linked("blocks", dtype, built[0], dict(zip(parts, built, strict=True)))


class _Linked:
    """The libraries of a program, compiled and linked to each other.

    Attributes:
        library: kernels and phases.
        openmp: kernels can use several threads.
        calls_blas: some kernel calls the BLAS.
        table: functions that kernels call, by place; null for those that are not compiled yet. The
            last entry is the address of the number that ends kernels.
        later: functions of the table that are compiled when a call needs them, by place.
    """

    def __init__(self, artifact: Artifact) -> None:
        kernels, parts = _sources(artifact)
        dtypes = sorted({dtype for _, dtype in parts})
        self._bundled = bundled = read_objects(artifact)
        self.openmp = bundled.openmp if bundled.objects else probe_compiler().openmp
        self._sources = (kernels, *parts.values())
        self.library, *built = build_libraries(self._sources, bundled)
        made = dict(zip(parts, built, strict=True))
        self.calls_blas = "tc_gemm_" in kernels.text
        blas = _NO_BLAS
        if self.calls_blas:  # the last entry tells kernels that the BLAS runs on the calling thread
            blas = (*blas_pointers(), blas_threads().controlled or None)
        places = {
            caller: len(blas) + n
            for n, caller in enumerate(itertools.product(CALLERS, (dtype.name for dtype in DTYPES)))
        }
        entries = (
            _linked(part, dtype, made[part, dtype], made) if (part, dtype) in made else None
            for part, dtype in places
        )
        pointers = (*blas, *entries, ctypes.addressof(NOT_INTERRUPTED))
        self.table = (ctypes.c_void_p * len(pointers))(*pointers)
        self.later = {
            places["blocks", dtype]: Once(partial(_fallback, artifact, bundled, dtype))
            for dtype in dtypes
            if artifact.has(library(FALLBACK, dtype))
        }
        self._others = tuple(
            _source(artifact, part, dtype)
            for dtype in dtypes
            for part, _ in _present(artifact, (FALLBACK, *TILES), dtype)
        )

    def complete(self) -> None:
        """Compile also the functions that only some calls need."""
        build_libraries(self._others, self._bundled)
        for function in self.later.values():
            function.get()

    def carry(self, artifact: Artifact) -> Artifact:
        """The artifact with all libraries of the program."""
        self.complete()
        sources = tuple(dict.fromkeys((*self._sources, *self._others)))
        libraries = build_libraries(sources, self._bundled)
        built = [(s.text, s.level, lib) for s, lib in zip(sources, libraries, strict=True)]
        return with_objects(artifact, built, openmp=self.openmp)

    def function(self, symbol: str) -> Any:
        """A function of the library, which keeps it."""
        function = getattr(self.library, symbol)
        function.restype = None
        return function

    def call(
        self, function: Any, *before: Any, after: tuple[Any, ...] = (), ends: bool = False
    ) -> None:
        """Call a function of the library; the table of functions is between its other arguments.

        While a program runs that calls the BLAS, the BLAS keeps to the calling thread. If it
        ``ends``, an exception in this thread ends the kernels.
        """
        if not (ends or self.calls_blas or self.later):
            function(*before, self.table, *after)
            return
        with (
            blas_threads() if self.calls_blas else _NO_CONTEXT,
            standing_in(self.table, self.later) as functions,
        ):
            if not ends:
                function(*before, functions, *after)
                return
            stop = ctypes.c_int(0)
            own = type(functions)(*functions)
            own[len(own) - 1] = ctypes.addressof(stop)
            run_interruptible(function, (*before, own, *after), stop)


def _link(artifact: Artifact) -> _Linked:
    """The libraries of a program; ArtifactError if they lack functions that the manifest names."""
    manifest = artifact.manifest
    symbols = {kernel.name: kernel.symbol for kernel in manifest.kernels}
    called = ["tcgen_threads"]
    for phase, host in (("constant", manifest.host_constant), ("volatile", manifest.host_volatile)):
        if on_host(manifest, host):
            called += [symbols[name] for name in launched(host)]
        elif host:
            called.append(f"tcgen_phase_{phase}")
    try:
        linked = _Linked(artifact)
        for symbol in called:
            getattr(linked.library, symbol)
    except (AttributeError, ValueError) as error:  # unknown symbols
        raise ArtifactError(
            f"the sources of {manifest.name} do not fit its manifest ({error}): "
            f"compile the program again"
        ) from error
    return linked


class CpuBackend:
    """The compiled libraries of a program."""

    def __init__(self, artifact: Artifact) -> None:
        self.manifest, self._artifact = artifact.manifest, artifact
        self.device = HostDevice(reuse=artifact.manifest.reuses_memory)
        self._linked = Once(lambda: _link(artifact))
        self._kernels = {k.name: k for k in artifact.manifest.kernels}
        self._is_long = lru_cache(maxsize=_MAX_LAYOUTS)(is_long)

    def building(self) -> AbstractContextManager[None]:
        """Compile what all calls need in the background."""
        kernels, parts = _sources(self._artifact)
        return building((kernels, *parts.values()), read_objects(self._artifact))

    def build(self) -> None:
        """Compile all functions, also those that only some calls need."""
        self._linked.get().complete()

    def with_objects(self, artifact: Artifact) -> Artifact:
        """The artifact with compiled objects, for machines with this processor."""
        return self._linked.get().carry(artifact)

    @property
    def threads(self) -> int:
        """Threads of a call: as :func:`set_threads` says, else as many as OpenMP offers.

        One thread where the compiler has no OpenMP, and in a forked process.
        """
        linked = self._linked.get()
        if _Process.single or not linked.openmp:
            return 1
        return used_threads(linked.library.tcgen_threads())

    def run(self, buffers: PhaseBuffers, fetch: Callable[[Fetch, Values], None]) -> None:
        """Run one phase of the host program."""
        linked = self._linked.get()
        layout, phase, table = buffers.layout, buffers.phase, buffers.table()
        if layout.threads > 1:
            _Process.threaded = True
        extents, strides, threads = layout.extent_table, layout.stride_table, layout.threads
        ends = on_main_thread() and self._is_long(layout, phase.name)

        if not phase.on_host:
            function, part = linked.function(f"tcgen_phase_{phase.name}"), buffers.part
            numbers = (
                () if part is None else (ctypes.c_int64(part.first), ctypes.c_int64(part.last))
            )
            linked.call(function, table, extents, strides, threads, after=numbers, ends=ends)
            return

        def launch(name: str, values: Values) -> None:
            kernel = self._kernels[name]
            function = linked.function(kernel.symbol)
            given = buffers.host_values(kernel, values)
            host = (ctypes.c_int64 * len(given))(*given)
            linked.call(function, table, extents, host, strides, threads, ends=ends)

        walk(buffers, launch, fetch)
