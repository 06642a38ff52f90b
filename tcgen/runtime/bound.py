"""Programs whose constant inputs are fixed: ``bound(**volatile)``.

The constant phase of such a program runs once, and its state serves all calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy.typing as npt

from ..artifact.manifest import array_bytes
from .arguments import (
    Reader,
    Source,
    only_inputs,
    refuse_positional,
)
from .call.phase import ConstantState, compute_state
from .dlpack import adopt_arguments
from .execution import Execution
from .fork_safe_lock import Lock
from .memory import check_limit
from .queries import ProgramQueries

Array = npt.NDArray[Any]


class BoundProgram(ProgramQueries):
    """A program whose constant inputs are fixed: ``bound(**volatile)``.

    The constant phase runs at once if all its extents follow from the constants, else at the first
    call.

    Args:
        execution: the program's.
        constants: its constant inputs, checked.
    """

    def __init__(self, execution: Execution, constants: dict[str, Source]) -> None:
        self._execution = execution
        self._on_device = execution.on_device(constants)
        self._lock = Lock()
        self._state: ConstantState | None = None
        self._state_extents: tuple[int, ...] = ()  # those of self._needed
        self._volatile = tuple(t for t in execution.inputs if t.volatile)
        self._reader = Reader(self._volatile, execution.manifest.dtype)
        self._needed = execution.manifest.constant_bases
        inferred = execution.inferred_extents(constants)
        execution.sample(constants)
        self._constants, self._copied_bytes = execution.hold(constants)
        if all(base in inferred for base in self._needed):
            self._state_at(inferred)

    def __reduce__(self) -> tuple[Any, ...]:
        return (BoundProgram, (self._execution, self._constants))

    @property
    def kept_bytes(self) -> int:
        """Bytes of all that was computed from the constants, and of copies of them."""
        state = self._state
        return 0 if state is None else state.memory.nbytes + state.bytes_beside_arena

    def __call__(
        self,
        /,
        *positional: object,
        out: dict[str, Any] | None = None,
        part: tuple[int, int] | Any = None,
        strict: bool = True,
        **arrays: object,
    ) -> dict[str, Array]:
        """Run the volatile phase: its inputs by name, and the keywords of a program.

        Raises:
            ExtentError: the arrays have other extents than the constants.
        """
        execution, name = self._execution, self._execution.manifest.name
        wanted = self._volatile
        if positional:
            refuse_positional(name, wanted)
        if not strict:
            arrays = only_inputs(wanted, arrays)
        back: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        if not execution.device.on_cpu:
            arrays, out, back = adopt_arguments(execution.device, arrays, out)
        given = self._reader.read(f"{name}, bound", execution.device, arrays)
        sources = {**self._constants, **given}
        extents = execution.extents(sources)
        if part is None:
            execution.sample(sources)
        # Without volatile inputs, results are where the constants were when they were bound.
        on_device = execution.on_device(given) if given else self._on_device
        state = self._state_at(extents)
        made = execution.run(sources, extents, out, state, on_device=on_device, part=part)
        return made if back is None else back(made)

    def __repr__(self) -> str:
        manifest = self._execution.manifest
        takes = ", ".join(t.name for t in self._volatile)
        return f"<{manifest.name}, bound({takes}), {manifest.target}, {manifest.dtype}>"

    def _bytes_between_calls(self, extents: Mapping[str, int]) -> int:
        manifest = self._execution.manifest
        results = manifest.constant_outputs
        return self._copied_bytes + sum(array_bytes(t, manifest, extents) for t in results)

    def _state_at(self, extents: Mapping[str, int]) -> ConstantState:
        """The state that the constant phase leaves at these extents, computed if it is missing."""
        needed = tuple([extents[base] for base in self._needed])
        with self._lock:
            if self._state is None or self._state_extents != needed:
                self._state, self._state_extents = self._compute(extents), needed
            return self._state

    def _compute(self, extents: Mapping[str, int]) -> ConstantState:
        execution, manifest = self._execution, self._execution.manifest
        layout = execution.constant_layout(extents)
        other = layout.use.outputs + self._bytes_between_calls(extents)
        layout = execution.layout_within_limit(layout, other)
        check_limit(manifest, layout.extents, layout.use.arenas + other)
        return compute_state(
            execution.backend,
            layout,
            self._constants,
            manifest.constant_outputs,
            self._copied_bytes,
        )
