"""Programs with all arrays but amplitudes, and their outputs at zero amplitudes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..blocks.arrays import BlockedArray
from ..blocks.program import BlockedProgram
from ..compiler.api import compiled
from ..ir.layouts import Array, pack
from ..ir.system import System
from ..ir.tensor import Tensor
from ..options import Planning
from ..runtime.program import Program
from .equations import Equations, at_zero


def bound(
    program: Program | BlockedProgram,
    system: System,
    arrays: Mapping[str, Any],
    equations: Equations,
) -> Callable[..., Mapping[str, Array]]:
    """The program with all arrays but amplitudes; constants are bound if no amplitude is one."""
    solved = {a.tensor.name for a in equations.amplitudes}
    constant = {t.name for t in system.inputs if not t.volatile}
    if not constant & set(arrays) or constant & solved:
        return partial(program, **arrays)
    bound = program.bind(**{n: a for n, a in arrays.items() if n in constant})
    return partial(bound, **{n: a for n, a in arrays.items() if n not in constant})


class Later:
    """A program and its arrays, which are bound when it is first called, or before.

    Energies of a crystal of ``cells`` cells are those of one.
    """

    def __init__(
        self,
        program: Program | BlockedProgram,
        system: System,
        arrays: dict[str, Any],
        equations: Equations,
        cells: int = 1,
    ) -> None:
        self._parts = program, system, arrays, equations
        self._cells = cells
        self._run: Callable[..., Mapping[str, Array]] | None = None

    def bind(self) -> Callable[..., Mapping[str, Array]]:
        """The program with all arrays but amplitudes."""
        if self._run is None:
            self._run = bound(*self._parts)
            # Bound constants may be copies in another layout.
            self._parts[2].clear()
        return self._run

    def __call__(self, **amplitudes: Array) -> Mapping[str, Array]:
        """The outputs for these amplitudes."""
        outputs = self.bind()(**amplitudes)
        if self._cells == 1:
            return outputs
        energies = {name: outputs[name] / self._cells for name in self._parts[3].energies}
        return {**outputs, **energies}


def outputs_at_zero(
    system: System,
    equations: Equations,
    sizes: Mapping[str, int],
    arrays: Mapping[str, Any],
    on_disk: tuple[str, ...],
    dtype: str,
    most_bytes: int,
) -> dict[str, Array]:
    """The outputs that determine amplitudes, at zero amplitudes; without those that vanish.

    Few terms of the equations remain, and NumPy evaluates them. The result is {} if that takes more
    than ``most_bytes``.
    """
    # Extents of joined spaces with an empty part do not follow from the arrays that are read.
    if equations.eigenvalue or 0 in sizes.values():
        return {}
    constant = at_zero(
        system,
        {a.tensor.name for a in equations.amplitudes},
        {a.output.name for a in equations.amplitudes},
    )
    if not constant.equations:
        return {}
    names = {tensor.name for tensor in constant.inputs}
    sliced = tuple(name for name in on_disk if name in names)
    extents = {name: max(1, extent) for name, extent in sizes.items()}
    plan = Planning(sliced=sliced)
    program = compiled(
        constant, extents, "numpy", dtype, None, (), (), plan, False, False, documents=False
    )
    if program.peak_bytes(sizes) > most_bytes:
        return {}
    read = {t.name: t for t in constant.inputs}
    return program(**{n: as_dense(read[n], a) for n, a in arrays.items() if n in names})


def as_dense(tensor: Tensor, array: Any) -> Any:
    """An array in the caller's layout, dense if it has blocks."""
    return pack(tensor, array.dense()) if isinstance(array, BlockedArray) else array
