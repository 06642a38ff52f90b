"""Running one program on given inputs: its backend, and what late calls showed of extents.

Programs and bound programs check what the caller passes; both run here. A call allocates its own
arena and scratch, so calls from several threads do not disturb each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..artifact.folder import Artifact
from ..artifact.manifest import Manifest, TensorEntry
from .arguments import Source, find_extents, in_place, shape_of
from .call.kept import Kept
from .call.layout import Setting, settle
from .call.phase import Backend, run_phase
from .call.results import Results
from .call.strided import gap_extents
from .cpu.backend import CpuBackend
from .device_protocol import Device
from .fork_safe_lock import Lock
from .gpu.backend import GpuBackend
from .memory.ledger import Ledger
from .memory.usage import check_limit
from .numpy_backend import NumpyBackend
from .symmetry_check import SAMPLES, check_symmetry, packed_generators

Array = npt.NDArray[Any]
_REMEMBERED = 256  # shapes of late calls, and settings that they led to


class Execution:
    """The calls of one program.

    Attributes:
        artifact: its files.
        manifest: what the runtime knows of it.
        inputs: its inputs in declared order.
        allocated_bytes: what the latest call allocated at its peak, beyond the inputs.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.manifest = artifact.manifest
        self.inputs = tuple(t for t in artifact.manifest.tensors if t.role != "output")
        self.allocated_bytes = 0
        self._bases = artifact.manifest.bases
        self._parts = tuple(t for t in artifact.manifest.tensors if t.gaps)
        self._lock = Lock()
        self._backend: Backend | GpuBackend | None = None
        # The caches are their own locks, and hold values that nobody changes.
        remember = lru_cache(maxsize=_REMEMBERED)
        self._extents = remember(partial(_extents, self.manifest, self.inputs))
        self._settings = remember(partial(settle, self.manifest))
        self._sampled: frozenset[str] = frozenset()

    def __reduce__(self) -> tuple[Any, ...]:
        return (Execution, (self.artifact,))

    def backend(self) -> Backend | GpuBackend:
        """What runs the program, compiled when it is first asked for.

        Raises:
            BuildError: the compiler is missing or failed.
            UnavailableError: the program is for a GPU, and there is none, or no CuPy.
        """
        if self._backend is None:
            with self._lock:
                if self._backend is None:
                    self._backend = _BACKENDS[self.manifest.target](self.artifact)
        return self._backend

    def device(self) -> Device | None:
        """The GPU that the program runs on; None for one that runs on the CPU."""
        backend = self.backend() if self.manifest.target == "cuda" else None
        return backend.device if isinstance(backend, GpuBackend) else None

    def on_device(self, sources: Mapping[str, Source]) -> bool:
        """True where results stay on the GPU, since inputs are there."""
        device = self.device()
        return device is not None and any(device.holds(a) for a in sources.values())

    def extents(self, sources: Mapping[str, Source]) -> Mapping[str, int]:
        """Extents of a call; those of late shapes are remembered.

        Raises:
            ShapeError, ExtentError: the shapes do not fit each other.
        """
        found = self._extents(tuple([shape_of(sources[t.name]) for t in self.inputs]))
        if not self._parts:
            return found
        # New arrays and copies lie by themselves, and so does all that is sent to a GPU.
        gaps = {base: 0 for t in self._parts for base in t.gaps if base is not None}
        for tensor in self._parts if self.manifest.target != "cuda" else ():
            if tensor.name in sources:
                gaps |= gap_extents(tensor, sources[tensor.name]) or {}
        return {**found, **gaps}

    def setting(self, extents: Mapping[str, int]) -> Setting:
        """What a call at these extents, with as many threads as there are, shares with others."""
        threads = 1 if self.manifest.target == "cuda" else self.backend().threads
        return self._settings(tuple([extents[b] for b in self._bases]), threads)

    def fitting(self, setting: Setting, beside: int) -> Setting:
        """The setting with as many of its threads as the memory limit leaves room for.

        Args:
            setting: with as many threads as there are.
            beside: bytes of what the call allocates beside its arenas.
        """
        limit = self.manifest.memory_limit
        if limit is not None:
            while setting.threads > 1 and setting.use.arenas + beside > limit:
                values = tuple(setting.extents.values())
                setting = self._settings(values, setting.threads - 1)
        return setting

    def sample(self, sources: Mapping[str, Source]) -> None:
        """Look once at a few elements of each input whose symmetry the plan relies on.

        Raises:
            SymmetryError: an input does not have the symmetry that is declared for it.
        """
        if self._sampled >= sources.keys():
            return
        for tensor in self.inputs:
            if tensor.name not in sources or tensor.name in self._sampled or not tensor.symmetry:
                continue
            array = sources[tensor.name]
            if not isinstance(array, np.ndarray):
                continue
            if tensor.packed:
                check_symmetry(tensor.name, array, packed_generators(tensor), samples=SAMPLES)
            else:
                generators = [(s.perm, s.sign, s.conj) for s in tensor.symmetry]
                logical = array.transpose(np.argsort(tensor.order))
                check_symmetry(tensor.name, logical, generators, samples=SAMPLES)
        self._sampled |= frozenset(sources)

    def call(
        self,
        sources: Mapping[str, Source],
        out: dict[str, Any] | None,
        note: Callable[[int], None] | None = None,
    ) -> dict[str, Array]:
        """Both phases on inputs that :func:`read_inputs` accepted, or that are known to be right.

        Args:
            sources: every input.
            out: arrays for some or all results.
            note: called with the bytes of inputs and results that were copied, since kernels of the
                CPU cannot read or write them where they are.

        Raises:
            ArgumentError, DtypeError, ShapeError, ExtentError: an array does not fit.
            MemoryLimitError: the extents need more than the program's limit.
            BuildError: the first call cannot compile the source.
        """
        extents = self.extents(sources)
        self.sample(sources)
        return self.run(sources, extents, out, None, on_device=self.on_device(sources), note=note)

    def run(
        self,
        sources: Mapping[str, Source],
        extents: Mapping[str, int],
        out: dict[str, Any] | None,
        kept: Kept | None,
        *,
        on_device: bool,
        note: Callable[[int], None] | None = None,
    ) -> dict[str, Array]:
        """The volatile phase, after the constant one where nothing is kept.

        Args:
            sources: every input, checked.
            extents: of all base spaces.
            out: arrays for some or all results.
            kept: what the constant phase left, or None.
            on_device: results stay on the GPU.
            note: as for :meth:`call`.

        Raises:
            MemoryLimitError: the call needs more than the program's limit.
            ArgumentError, DtypeError, ShapeError: an array of ``out`` does not fit.
        """
        backend, manifest = self.backend(), self.manifest
        if isinstance(backend, GpuBackend):
            use = self.setting(extents).use
            found, self.allocated_bytes = backend.call(
                use, sources, extents, out, kept, on_device=on_device
            )
            return found
        inputs = {n: a for n, a in sources.items() if isinstance(a, np.ndarray)}
        apart = [n for n, a in inputs.items() if not in_place(a)]
        for tensor in self._parts:
            if tensor.name in apart and gap_extents(tensor, inputs[tensor.name]) is not None:
                apart.remove(tensor.name)
        setting = self.setting(extents)
        results = Results(setting.outputs, inputs.values(), out)
        if results.gaps:
            setting = self.setting({**extents, **results.gaps})
        held = 0 if kept is None else kept.held_bytes
        beside = results.needed + held
        for name in apart:
            beside += inputs[name].nbytes
        if manifest.memory_limit is not None:
            setting = self.fitting(setting, beside)
            check_limit(manifest, extents, setting.use.arenas + beside, (*apart, *results.copied))
        ledger = Ledger(held, reuse=manifest.memory_limit is None and not manifest.tight)
        results.allocate(ledger)  # first: what is too large is refused before inputs are copied
        for name in apart:
            inputs[name] = ledger.copy(inputs[name])
        callers = {**inputs, **results.working}
        if kept is None:
            memory = ledger.arena(setting.use.kept)
            run_phase(backend, setting, 0, sources, callers, memory, ledger)
        else:
            ledger.add(setting.use.kept.total)
            memory = kept.memory
            for name, array in kept.outputs.items():
                results.working[name][...] = array
        run_phase(backend, setting, 1, sources, callers, memory, ledger)
        self.allocated_bytes = ledger.peak
        if note is not None:
            note(sum(inputs[n].nbytes for n in apart) + results.copied_bytes)
        return results.finish(out)


def _extents(
    manifest: Manifest, inputs: tuple[TensorEntry, ...], shapes: tuple[tuple[int, ...] | None, ...]
) -> Mapping[str, int]:
    """Extents of a call from the shapes of its inputs."""
    names = (tensor.name for tensor in inputs)
    return MappingProxyType(find_extents(manifest, dict(zip(names, shapes, strict=True))))


_BACKENDS: dict[str, Callable[[Artifact], Backend | GpuBackend]] = {
    "cpu": CpuBackend,
    "cuda": GpuBackend,
    "numpy": NumpyBackend,
}
