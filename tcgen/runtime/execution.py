"""Running one program on given inputs: its backend, and what late calls showed of extents.

Programs and bound programs check what the caller passes; both run here. A call allocates its own
arena and scratch, so calls from several threads do not disturb each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..artifact import Artifact
from .allocation import Ledger
from .arguments import Source, find_extents, misplaced
from .call import Backend, Call
from .cpu import CpuBackend
from .device import Device
from .footprint import MemoryUse
from .gpu import GpuBackend
from .kept import Kept
from .locks import Lock
from .memory import check_limit, memory_use
from .numpy_ import NumpyBackend
from .results import Results
from .symmetry import SAMPLES, check_symmetry, packed_generators

Array = npt.NDArray[Any]
_REMEMBERED = 16  # late calls, of each kind


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
        self._lock = Lock()
        self._backend: Backend | GpuBackend | None = None
        self._uses: dict[tuple[tuple[int, ...], int], MemoryUse] = {}
        self._found: dict[tuple[object, ...], dict[str, int]] = {}
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

    def extents(self, sources: Mapping[str, Source]) -> dict[str, int]:
        """Extents of a call; those of the latest shapes are remembered.

        Raises:
            ShapeError, ExtentError: the shapes do not fit each other.
        """
        key = tuple(getattr(sources[t.name], "shape", None) for t in self.inputs)
        found = self._found.get(key)
        if found is None:
            found = find_extents(self.manifest, sources)
            self._found = _remember(self._found, key, found)
        return found

    def use(self, extents: Mapping[str, int], threads: int) -> MemoryUse:
        """Layout of a call; those of the latest extents are remembered."""
        key = (tuple(extents.get(b, 0) for b in self.manifest.bases), threads)
        use = self._uses.get(key)
        if use is None:
            whole = {b: extents.get(b, 0) for b in self.manifest.bases}
            use = memory_use(self.manifest, whole, threads=threads)
            self._uses = _remember(self._uses, key, use)
        return use

    def threads(self, extents: Mapping[str, int], needed: Callable[[MemoryUse], int]) -> int:
        """Threads of a call: as many as there are, or as the memory limit leaves room for."""
        if self.manifest.target == "cuda":
            return 1
        threads, limit = self.backend().threads, self.manifest.memory_limit
        if limit is not None:
            while threads > 1 and needed(self.use(extents, threads)) > limit:
                threads -= 1
        return threads

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

    def run(
        self,
        sources: Mapping[str, Source],
        extents: Mapping[str, int],
        out: dict[str, Any] | None,
        kept: Kept | None,
        *,
        on_device: bool,
    ) -> dict[str, Array]:
        """The volatile phase, after the constant one where nothing is kept.

        Args:
            sources: every input, checked.
            extents: of all base spaces.
            out: arrays for some or all results.
            kept: what the constant phase left, or None.
            on_device: results stay on the GPU.

        Raises:
            MemoryLimitError: the call needs more than the program's limit.
            ArgumentError, DtypeError, ShapeError: an array of ``out`` does not fit.
        """
        backend, manifest = self.backend(), self.manifest
        if isinstance(backend, GpuBackend):
            use = self.use(extents, 1)
            found, self.allocated_bytes = backend.call(
                use, sources, extents, out, kept, on_device=on_device
            )
            return found
        shapes = self.use(extents, 1).shapes
        inputs = {n: a for n, a in sources.items() if isinstance(a, np.ndarray)}
        results = Results(manifest, dict(shapes), inputs.values(), out)
        apart = misplaced(inputs)
        extra = results.needed + sum(inputs[name].nbytes for name in apart)
        extra += 0 if kept is None else kept.held_bytes

        def needed(use: MemoryUse) -> int:
            return use.arenas + extra

        threads = self.threads(extents, needed)
        use = self.use(extents, threads)
        check_limit(manifest, extents, needed(use), (*apart, *results.copied))
        held = 0 if kept is None else kept.held_bytes
        ledger = Ledger(held, reuse=manifest.memory_limit is None and not manifest.tight)
        results.allocate(ledger)  # first: what is too large is refused before inputs are copied
        for name in apart:
            inputs[name] = ledger.copy(inputs[name])
        callers = {**inputs, **results.working}
        call = Call(manifest, backend, use, threads, sources, extents, callers, ledger)
        if kept is None:
            memory = ledger.arena(use.kept)
            call.run(0, memory)
        else:
            ledger.add(use.kept.total)
            memory = kept.memory
            for name, array in kept.outputs.items():
                results.working[name][...] = array
        call.run(1, memory)
        self.allocated_bytes = ledger.peak
        return results.finish(out)


def _remember(known: dict[Any, Any], key: object, value: object) -> dict[Any, Any]:
    """The latest entries and a new one, as another dict: other threads may be reading this one."""
    return {**dict(list(known.items())[1 - _REMEMBERED :]), key: value}


_BACKENDS: dict[str, Callable[[Artifact], Backend | GpuBackend]] = {
    "cpu": CpuBackend,
    "cuda": GpuBackend,
    "numpy": NumpyBackend,
}
