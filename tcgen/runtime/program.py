"""Programs that the user calls: ``program(**arrays)``, ``program.bind(**constants)``.

A call allocates its own arena and scratch, so calls from several threads do not disturb each other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..artifact import Artifact
from ..config import parse_extents
from ..errors import ArgumentError, ExtentError
from ..manifest import Manifest
from .allocation import Ledger
from .arguments import Source, check_names, find_extents, misplaced, read_inputs, refuse_positional
from .bound import BoundProgram
from .call import Backend, Call
from .cpu import CpuBackend
from .device import Device
from .gpu import GpuBackend
from .kept import Kept
from .locks import Lock
from .memory import MemoryUse, check_limit, memory_use
from .numpy_ import NumpyBackend
from .report import Report
from .results import Results
from .symmetry import SAMPLES, check_symmetry, packed_generators

Array = npt.NDArray[Any]
_SOURCES = {"cpu": "kernels.c", "cuda": "kernels.cu", "numpy": "kernels.py"}


class Program:
    """A compiled program.

    Shapes: each array has the axes in which its tensor is stored, in C order or not.

    Attributes:
        artifact: its files.
        allocated_bytes: what the latest call allocated at its peak, beyond the inputs.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.allocated_bytes = 0
        self._lock = Lock()
        self._backend: Backend | GpuBackend | None = None
        self._uses: dict[tuple[tuple[int, ...], int], MemoryUse] = {}
        self._found: dict[tuple[object, ...], dict[str, int]] = {}
        self._sampled: frozenset[str] = frozenset()
        self._inputs = tuple(t for t in artifact.manifest.tensors if t.role != "output")

    def __repr__(self) -> str:
        inputs = ", ".join(t.name for t in self._inputs)
        outputs = ", ".join(t.name for t in self.manifest.tensors if t.role == "output")
        manifest = self.manifest
        return f"<{manifest.name}({inputs}) -> {outputs}, {manifest.target}, {manifest.dtype}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Program, (self.artifact,))

    @property
    def manifest(self) -> Manifest:
        """What the runtime knows of the program."""
        return self.artifact.manifest

    @property
    def source(self) -> str:
        """The generated source."""
        return self.artifact.text(_SOURCES[self.manifest.target])

    @property
    def report(self) -> Report:
        """Operations, memory, arrays and loops at the planning extents: ``tcgen report --json``."""
        return Report(json.loads(self.artifact.text("report.json")))

    def explain(self) -> str:
        """The formula sequence with the cost of each line."""
        return self.artifact.text("explain.txt")

    def save(self, folder: str | Path) -> Path:
        """Write the artifact; ``tcgen.load(folder)`` or importing the folder brings it back."""
        return self.artifact.save(folder)

    def build(self) -> None:
        """Compile now what calls would compile, also what only some of them need.

        Raises:
            BuildError: the compiler is missing or failed.
            UnavailableError: the program is for a GPU, and there is none, or no CuPy.
        """
        backend = self._ready()
        if isinstance(backend, CpuBackend):
            backend.complete()

    def extents_for(self, /, **arrays: object) -> dict[str, int]:
        """Extents of the base spaces that a call with some or all arrays would have."""
        wanted = tuple(t for t in self._inputs if t.name in arrays)
        check_names(self.manifest.name, wanted, arrays)
        return find_extents(self.manifest, read_inputs(wanted, arrays))

    def peak_bytes(self, extents: Mapping[str, int] | None = None) -> int:
        """Bytes that a call allocates at its peak, beyond the inputs, with the threads of here.

        Args:
            extents: by base space; those the program was compiled for where they are left out.
        """
        given = dict(parse_extents(extents))
        for base, extent in given.items():
            if base not in self.manifest.bases or extent < 0:
                raise ExtentError(
                    f"extent {base}={extent}: give extents of at least 0 for "
                    f"{', '.join(self.manifest.bases)}"
                )
        chosen = {**dict(self.manifest.planning_extents), **given}
        missing = [b for b in self.manifest.bases if b not in chosen]
        if missing:
            raise ExtentError(f"give the extents of {', '.join(missing)}")
        threads = self._threads(chosen, lambda use: use.peak)
        return self._use(chosen, threads).peak

    def __call__(
        self, /, *positional: object, out: dict[str, Any] | None = None, **arrays: object
    ) -> dict[str, Array]:
        """Run the program.

        Args:
            out: arrays for some or all results, which are overwritten (or added to, where the
                output accumulates); the others are put into it.
            arrays: each input by its name.
            positional: nothing; arrays without names are refused.

        Raises:
            ArgumentError, DtypeError, ShapeError, ExtentError: an array does not fit.
            MemoryLimitError: the extents need more than the program's limit.
            BuildError: the first call cannot compile the source.
        """
        refuse_positional(self.manifest.name, positional, (t.name for t in self._inputs))
        check_names(self.manifest.name, self._inputs, arrays)
        sources = read_inputs(self._inputs, arrays, self._device())
        extents = self._extents(sources)
        self._sample(sources)
        return self._run(sources, extents, out, None, self._on_device(sources))

    def bind(self, /, **constants: object) -> BoundProgram:
        """Fix the constant inputs: what depends on them alone is computed once and kept.

        Arrays that lie as the program wants them are not copied: leave them as they are while the
        bound program is in use, or bind again.

        Raises:
            ArgumentError: a constant is missing, or an input is volatile.
        """
        wanted = tuple(t for t in self._inputs if not t.volatile)
        volatile = [n for n in constants if any(t.name == n and t.volatile for t in self._inputs)]
        if volatile:
            raise ArgumentError(
                f"{self.manifest.name}: {', '.join(volatile)} may change at each call: pass it to "
                f"the bound program, or declare it constant"
            )
        check_names(f"{self.manifest.name}.bind", wanted, constants)
        return BoundProgram(self, read_inputs(wanted, constants, self._device()))

    def _ready(self) -> Backend | GpuBackend:
        if self._backend is None:
            with self._lock:
                if self._backend is None:
                    self._backend = _BACKENDS[self.manifest.target](self.artifact)
        return self._backend

    def _device(self) -> Device | None:
        """The GPU that the program runs on; None for one that runs on the CPU."""
        backend = self._ready() if self.manifest.target == "cuda" else None
        return backend.device if isinstance(backend, GpuBackend) else None

    def _on_device(self, sources: Mapping[str, Source]) -> bool:
        """True where results stay on the GPU, since inputs are there."""
        device = self._device()
        return device is not None and any(device.holds(a) for a in sources.values())

    def _extents(self, sources: Mapping[str, Source]) -> dict[str, int]:
        """Extents of a call; those of the latest shapes are remembered."""
        key = tuple(getattr(sources[t.name], "shape", None) for t in self._inputs)
        found = self._found.get(key)
        if found is None:
            found = find_extents(self.manifest, sources)
            self._found = {**dict(list(self._found.items())[-15:]), key: found}
        return found

    def _use(self, extents: Mapping[str, int], threads: int) -> MemoryUse:
        """Layout of a call; those of the latest extents are remembered."""
        key = (tuple(extents.get(b, 0) for b in self.manifest.bases), threads)
        use = self._uses.get(key)
        if use is None:
            whole = {b: extents.get(b, 0) for b in self.manifest.bases}
            use = memory_use(self.manifest, whole, threads=threads)
            self._uses = {**dict(list(self._uses.items())[-15:]), key: use}
        return use

    def _threads(self, extents: Mapping[str, int], needed: Callable[[MemoryUse], int]) -> int:
        """Threads of a call: as many as there are, or as the memory limit leaves room for."""
        if self.manifest.target == "cuda":
            return 1
        threads, limit = self._ready().threads, self.manifest.memory_limit
        if limit is not None:
            while threads > 1 and needed(self._use(extents, threads)) > limit:
                threads -= 1
        return threads

    def _sample(self, sources: Mapping[str, Source]) -> None:
        """Look once at a few elements of each input whose symmetry the plan relies on."""
        if self._sampled >= sources.keys():
            return
        for tensor in self._inputs:
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

    def _run(
        self,
        sources: Mapping[str, Source],
        extents: Mapping[str, int],
        out: dict[str, Any] | None,
        kept: Kept | None,
        on_device: bool,
    ) -> dict[str, Array]:
        """The volatile phase, after the constant one where nothing is kept."""
        backend, manifest = self._ready(), self.manifest
        if isinstance(backend, GpuBackend):
            use = self._use(extents, 1)
            found, self.allocated_bytes = backend.call(
                use, sources, extents, out, kept, on_device=on_device
            )
            return found
        shapes = self._use(extents, 1).shapes
        inputs = {n: a for n, a in sources.items() if isinstance(a, np.ndarray)}
        results = Results(manifest, dict(shapes), inputs.values(), out)
        apart = misplaced(inputs)
        extra = results.needed + sum(inputs[name].nbytes for name in apart)
        extra += 0 if kept is None else kept.held_bytes

        def needed(use: MemoryUse) -> int:
            return use.arenas + extra

        threads = self._threads(extents, needed)
        use = self._use(extents, threads)
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


_BACKENDS: dict[str, Callable[[Artifact], Backend | GpuBackend]] = {
    "cpu": CpuBackend,
    "cuda": GpuBackend,
    "numpy": NumpyBackend,
}


def load(folder: str | Path) -> Program:
    """A saved program.

    Raises:
        ArtifactError: it is missing, corrupted, or of another version.
    """
    return Program(Artifact.load(folder))
