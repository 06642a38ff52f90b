"""Programs whose constant inputs are fixed: ``bound(**volatile)``.

The constant phase of such a program runs once, and its state serves all calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy.typing as npt

from ..artifact.manifest import array_bytes
from ..options import parse_extents
from .arguments import (
    Reader,
    Source,
    only_inputs,
    refuse_positional,
)
from .call.phase import ConstantState, compute_state
from .execution import Execution
from .fork_safe_lock import Lock
from .guests import with_guests
from .memory.usage import check_limit
from .parts import Rectangle
from .report import Report

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
        self._state_extents: tuple[int, ...] = ()  # those of self._needed
        self._volatile = tuple(t for t in execution.inputs if t.volatile)
        self._reader = Reader(self._volatile, execution.manifest.dtype)
        self._needed = execution.manifest.constant_bases
        shown = execution.shown_extents(constants)
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
    def report(self) -> Report:
        """Operations, memory, arrays and loops at the planning extents, as for the program.

        Raises:
            ArtifactError: the file of the report is missing or damaged.
        """
        return self._execution.report

    def explain(self) -> str:
        """The formula sequence with the cost of each line."""
        return self._execution.explain()

    def peak_bytes(self, extents: Mapping[str, int] | None = None) -> int:
        """Bytes that a call allocates at its peak beyond the inputs, with all that is kept.

        This is ``allocated_bytes`` of a call at these extents whose arrays are in C order.

        Args:
            extents: by base space; by default those that the program was compiled for.

        Raises:
            ExtentError: an extent is missing, is negative, or is of no base space.
            BuildError: the first call cannot compile the source.
        """
        manifest = self._execution.manifest

        def held(chosen: Mapping[str, int]) -> int:
            results = manifest.constant_outputs
            return self._copied_bytes + sum(array_bytes(t, manifest, chosen) for t in results)

        return self._execution.peak_bytes(dict(parse_extents(extents)), held)

    def parts(self, extents: Mapping[str, int] | None = None) -> int:
        """Number of parts of a call, as for a program."""
        return self._execution.parts(dict(parse_extents(extents)))

    def touches(
        self, first: int, last: int, extents: Mapping[str, int] | None = None
    ) -> dict[str, tuple[Rectangle, ...]]:
        """Rectangles of inputs and outputs that some parts touch, as for a program."""
        return self._execution.touches(first, last, dict(parse_extents(extents)))

    def seconds(self, first: int, last: int, extents: Mapping[str, int] | None = None) -> float:
        """Predicted time of some parts in seconds, as for a program."""
        return self._execution.seconds(first, last, dict(parse_extents(extents)))

    def flops(self, first: int, last: int, extents: Mapping[str, int] | None = None) -> int:
        """Flops of some parts, as for a program."""
        return self._execution.flops(first, last, dict(parse_extents(extents)))

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
            arrays, out, back = with_guests(execution.device, arrays, out)
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

    def _repr_html_(self) -> str:
        """The equations and the costs, for a notebook."""
        return self._execution.html(repr(self))

    def __repr__(self) -> str:
        manifest = self._execution.manifest
        takes = ", ".join(t.name for t in self._volatile)
        return f"<{manifest.name}, bound({takes}), {manifest.target}, {manifest.dtype}>"

    def _state_at(self, extents: Mapping[str, int]) -> ConstantState:
        """The state that the constant phase leaves at these extents, computed if it is missing."""
        needed = tuple([extents[base] for base in self._needed])
        with self._lock:
            if self._state is None or self._state_extents != needed:
                self._state, self._state_extents = self._compute(extents), needed
            return self._state

    def _compute(self, extents: Mapping[str, int]) -> ConstantState:
        execution, manifest = self._execution, self._execution.manifest
        results = manifest.constant_outputs
        layout = execution.constant_layout(extents)
        other = layout.use.outputs + self._copied_bytes  # outside the arenas of later calls
        other += sum(array_bytes(t, manifest, extents) for t in results)
        layout = execution.layout_within_limit(layout, other)
        check_limit(manifest, layout.extents, layout.use.arenas + other)
        return compute_state(
            execution.backend, layout, self._constants, results, self._copied_bytes
        )
