"""Programs whose constant inputs are fixed: ``bound(**volatile)``.

The constant phase of such a program runs once, and its state serves all calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from ..artifact.manifest import KernelEntry, Manifest, TensorEntry
from ..artifact.sizes import array_bytes, stored_shape
from .arguments import (
    Source,
    check_here,
    check_names,
    find_extents,
    read_inputs,
    refuse_positional,
    shape_of,
)
from .call.phase import ConstantState, run_phase
from .execution import Execution
from .fork_safe_lock import Lock
from .host_program import launches
from .memory.ledger import Ledger
from .memory.usage import check_limit

Array = npt.NDArray[Any]


class BoundProgram:
    """A program whose constant inputs are fixed: ``bound(**volatile)``.

    The constant phase runs at once if the shapes of the constants show all extents that it needs,
    else at the first call, whose arrays show the others.

    Args:
        execution: the program's.
        constants: its constant inputs, checked.
    """

    def __init__(self, execution: Execution, constants: dict[str, Source]) -> None:
        self._execution = execution
        self._on_device = execution.on_device(constants)
        self._lock = Lock()
        self._state: ConstantState | None = None
        self._volatile = tuple(t for t in execution.inputs if t.volatile)
        self._needed = _needed(execution.manifest)
        shapes = {name: shape_of(array) for name, array in constants.items()}
        shown = find_extents(execution.manifest, shapes, complete=False)
        execution.sample(constants)
        self._constants, self._copied_bytes = execution.hold(constants)
        if all(base in shown for base in self._needed):
            self._state_at(shown)

    def __reduce__(self) -> tuple[Any, ...]:
        return (BoundProgram, (self._execution, self._constants))

    @property
    def allocated_bytes(self) -> int:
        """Bytes that the latest call of the program, bound or not, allocated beyond its inputs."""
        return self._execution.allocated_bytes

    @property
    def kept_bytes(self) -> int:
        """Bytes of all that was computed from the constants, and of copies of them."""
        state = self._state
        return 0 if state is None else state.memory.nbytes + state.bytes_beside_arena

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
        given = read_inputs(execution.device, wanted, arrays)
        sources = {**self._constants, **given}
        extents = execution.extents(sources)
        execution.sample(sources)
        # Without volatile inputs, results are where the constants were when they were bound.
        on_device = execution.on_device(given) if given else self._on_device
        state = self._state_at(extents)
        return execution.run(sources, extents, out, state, on_device=on_device)

    def __repr__(self) -> str:
        manifest = self._execution.manifest
        takes = ", ".join(t.name for t in self._volatile)
        return f"<{manifest.name}, bound({takes}), {manifest.target}, {manifest.dtype}>"

    def _state_at(self, extents: Mapping[str, int]) -> ConstantState:
        """The state that the constant phase leaves at these extents, computed if it is missing."""
        needed = tuple([(base, extents[base]) for base in self._needed])
        with self._lock:
            if self._state is None or self._state.extents != needed:
                self._state = self._compute(extents, needed)
            return self._state

    def _compute(
        self, extents: Mapping[str, int], needed_extents: tuple[tuple[str, int], ...]
    ) -> ConstantState:
        execution, manifest = self._execution, self._execution.manifest
        complete = {b: extents.get(b, 0) for b in manifest.bases}
        results = _results(manifest)
        layout = execution.layout(complete)
        other = layout.use.outputs + self._copied_bytes  # outside the arenas of later calls
        other += sum(array_bytes(t, manifest, complete) for t in results)
        layout = execution.layout_within_limit(layout, other)
        check_limit(manifest, complete, layout.use.arenas + other)
        device = execution.device
        for name, array in self._constants.items():
            if device.holds(array):
                check_here(name, array, device)
        ledger = Ledger(device, self._copied_bytes)
        outputs = {
            t.name: ledger.array(stored_shape(t, manifest, complete), t.dtype) for t in results
        }
        memory = ledger.arena(layout.use.lasting)
        arrays = {**self._constants, **outputs}
        run_phase(execution.backend, layout, 0, self._constants, arrays, memory, ledger)
        device.wait()  # later calls may be on other streams
        return ConstantState(needed_extents, memory, outputs, self._copied_bytes)


def _kernels(manifest: Manifest) -> tuple[KernelEntry, ...]:
    """Kernels of the constant phase."""
    names = launches(manifest.host_constant)
    return tuple(k for k in manifest.kernels if k.name in names)


def _needed(manifest: Manifest) -> tuple[str, ...]:
    """Base spaces on whose extents the constant phase and its state depend."""
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
    written = {b.tensor for b in manifest.buffers if b.place == "caller" and b.name in names}
    return tuple(t for t in manifest.tensors if t.role == "output" and t.name in written)
