"""Programs whose constant inputs are fixed: ``bound(**volatile)``.

What depends on the constants alone is computed once and kept beside the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..artifact.manifest import KernelEntry, Manifest, TensorEntry
from ..artifact.sizes import array_bytes, stored_shape
from .arguments import (
    Source,
    check_names,
    find_extents,
    misplaced,
    read_inputs,
    refuse_positional,
    shape_of,
)
from .call.kept import Kept
from .call.phase import run_phase
from .execution import Execution
from .fork_safe_lock import Lock
from .gpu.backend import GpuBackend
from .host_program import launches
from .memory.ledger import Ledger
from .memory.usage import check_limit

Array = npt.NDArray[Any]


class BoundProgram:
    """A program with its constants: ``bound(**volatile)``.

    What depends on the constants alone is computed at once where their shapes show all extents for
    it, else at the first call, whose arrays do.

    Args:
        execution: the program's.
        constants: its constant inputs, checked.
    """

    def __init__(self, execution: Execution, constants: dict[str, Source]) -> None:
        self._execution = execution
        self._on_device = execution.on_device(constants)
        self._constants = constants
        self._lock = Lock()
        self._kept: Kept | None = None
        self._volatile = tuple(t for t in execution.inputs if t.volatile)
        self._needed = _needed(execution.manifest)
        shapes = {name: shape_of(array) for name, array in constants.items()}
        shown = find_extents(execution.manifest, shapes, complete=False)
        execution.sample(constants)
        self._copied = 0
        backend = execution.backend() if execution.manifest.target == "cuda" else None
        if isinstance(backend, GpuBackend):
            constants, self._copied = backend.hold(constants)
            self._constants = constants
        for name in misplaced(constants):
            copies = Ledger()
            constants[name] = copies.copy(constants[name])
            self._copied += copies.now
        if all(base in shown for base in self._needed):
            self._keep(shown)

    def __reduce__(self) -> tuple[Any, ...]:
        return (BoundProgram, (self._execution, self._constants))

    @property
    def allocated_bytes(self) -> int:
        """What the latest call of the program, bound or not, allocated, beyond its inputs."""
        return self._execution.allocated_bytes

    @property
    def kept_bytes(self) -> int:
        """Bytes of what was computed from the constants."""
        kept = self._kept
        return 0 if kept is None else kept.memory.nbytes + kept.held_bytes

    def __call__(
        self, /, *positional: object, out: dict[str, Any] | None = None, **arrays: object
    ) -> dict[str, Array]:
        """Run the volatile part: the volatile inputs by name, and ``out`` as for a program.

        Raises:
            ExtentError: the arrays have other extents than the constants.
        """
        execution, name = self._execution, self._execution.manifest.name
        wanted = self._volatile
        if positional:
            refuse_positional(name, wanted)
        check_names(f"{name}, bound", wanted, arrays)
        given = read_inputs(wanted, arrays, execution.device())
        sources = {**self._constants, **given}
        extents = execution.extents(sources)
        execution.sample(sources)
        # Where nothing is passed, results are where the constants were when they were bound.
        on_device = execution.on_device(given) if given else self._on_device
        return execution.run(sources, extents, out, self._keep(extents), on_device=on_device)

    def __repr__(self) -> str:
        manifest = self._execution.manifest
        takes = ", ".join(t.name for t in self._volatile)
        return f"<{manifest.name}, bound({takes}), {manifest.target}, {manifest.dtype}>"

    def _keep(self, extents: Mapping[str, int]) -> Kept:
        """What the constant phase leaves at these extents, computed where it is not there yet."""
        needed = tuple([(base, extents[base]) for base in self._needed])
        with self._lock:
            if self._kept is None or self._kept.extents != needed:
                self._kept = self._compute(extents, needed)
            return self._kept

    def _compute(
        self, extents: Mapping[str, int], needed_extents: tuple[tuple[str, int], ...]
    ) -> Kept:
        execution, manifest = self._execution, self._execution.manifest
        whole = {b: extents.get(b, 0) for b in manifest.bases}
        results = _results(manifest)
        backend = execution.backend()
        setting = execution.setting(whole)
        beside = setting.use.outputs + self._copied  # of the calls that follow
        beside += sum(array_bytes(t, manifest, whole) for t in results)
        setting = execution.fitting(setting, beside)
        use = setting.use
        check_limit(manifest, whole, use.arenas + beside)
        if isinstance(backend, GpuBackend):
            left = backend.keep(use, self._constants, whole, results)
            return Kept(needed_extents, *left, self._copied)
        ledger = Ledger(self._copied)
        outputs = {t.name: ledger.array(stored_shape(t, manifest, whole), t.dtype) for t in results}
        memory = ledger.arena(use.kept)
        inputs = {n: a for n, a in self._constants.items() if isinstance(a, np.ndarray)}
        callers = {**inputs, **outputs}
        run_phase(backend, setting, 0, self._constants, callers, memory, ledger)
        return Kept(needed_extents, memory, outputs, self._copied)


def _kernels(manifest: Manifest) -> tuple[KernelEntry, ...]:
    """Kernels of the constant phase."""
    names = launches(manifest.host_constant)
    return tuple(k for k in manifest.kernels if k.name in names)


def _needed(manifest: Manifest) -> tuple[str, ...]:
    """Base spaces whose extents the constant phase and what it keeps depend on."""
    used = {s for k in _kernels(manifest) for s in k.spaces}
    used |= {
        base
        for b in manifest.buffers
        if b.keep
        for s, n in zip(b.spaces, b.lengths, strict=True)
        if n is None
        for base in manifest.bases_of(s)
    }
    return tuple(b for b in manifest.bases if b in used)


def _results(manifest: Manifest) -> tuple[TensorEntry, ...]:
    """Outputs that the constant phase computes."""
    names = {w for k in _kernels(manifest) for w in k.writes}
    found = {b.tensor for b in manifest.buffers if b.place == "caller" and b.name in names}
    return tuple(t for t in manifest.tensors if t.role == "output" and t.name in found)
