"""Arrays for the results: new ones, or those that the caller gives in ``out``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ...artifact.manifest import TensorEntry
from ...errors import ArgumentError, ReadOnlyError, ShapeError
from ..arguments import check_dtype, describe, in_place
from ..memory.ledger import Ledger
from .layout import Output
from .strided import gap_extents

Array = npt.NDArray[Any]


class Results:
    """Results of one call: first what they need, then the arrays.

    Attributes:
        needed: bytes of the arrays that must be made.
        copied: outputs whose array in ``out`` cannot be written directly.
        gaps: extents of what lies between the elements of arrays in ``out`` that kernels write to.
        working: array for each output that kernels write to, once allocated; C-contiguous where its
            tensor has no gaps.
    """

    __slots__ = ("_given", "_outputs", "copied", "gaps", "needed", "working")

    def __init__(
        self, outputs: tuple[Output, ...], inputs: Iterable[Array], out: dict[str, Any] | None
    ) -> None:
        self._outputs = outputs
        self._given = check_out([output.tensor for output in outputs], out)
        self.working: dict[str, Array] = {}
        self.copied: list[str] = []
        self.needed = 0
        self.gaps: dict[str, int] = {}
        for output in outputs:
            name = output.tensor.name
            if name in self._given:
                target = self._given[name]
                _check_target(output, target)
                # Kernels assume that nothing they write to is also an input.
                gaps = gap_extents(output.tensor, target) if output.tensor.gaps else None
                if (in_place(target) or gaps is not None) and _apart(target, inputs):
                    self.gaps |= gaps or {}
                    self.working[name] = target.view(np.ndarray)
                    continue
                self.copied.append(name)
            self.needed += output.bytes
        if len(self._given) > 1:
            check_overlap(self._given)

    def allocate(self, ledger: Ledger) -> None:
        """Make the arrays that the caller did not give, or that kernels cannot write to."""
        for output in self._outputs:
            name = output.tensor.name
            if name in self.working:
                continue
            self.working[name] = made = ledger.array(output.shape, output.dtype)
            if output.tensor.accumulate:
                made[...] = self._given[name]

    @property
    def copied_bytes(self) -> int:
        """Bytes of the results that are copied to arrays in ``out``."""
        return sum(self._given[name].nbytes for name in self.copied)

    def finish(self, out: dict[str, Any] | None) -> dict[str, Array]:
        """Copy what could not be written directly, fill ``out``, and return the results."""
        for name in self.copied:
            self._given[name][...] = self.working[name]
        names = (output.tensor.name for output in self._outputs)
        returned = {name: self._given.get(name, self.working[name]) for name in names}
        if out is None:
            return returned
        out.update(returned)
        return out


def check_out(outputs: list[TensorEntry], out: object) -> dict[str, Any]:
    """The arrays in ``out``, in the order of the outputs.

    Raises:
        ArgumentError: it is no dict, names no output, or lacks the array an output starts from.
    """
    if out is not None and not isinstance(out, dict):
        raise ArgumentError(
            f"out must be a dict of arrays by output name, found {type(out).__name__}"
        )
    given = out or {}
    names = [t.name for t in outputs]
    unknown = [str(n) for n in given if n not in names]
    if unknown:
        raise ArgumentError(
            f"out has {', '.join(unknown)}, which is no output (outputs: {', '.join(names)})"
        )
    for tensor in outputs:
        if tensor.accumulate and tensor.name not in given:
            raise ArgumentError(
                f"output {tensor.name} accumulates: pass the array it starts from as "
                f'out={{"{tensor.name}": array}}'
            )
    return {n: given[n] for n in names if n in given}


def _apart(target: Array, inputs: Iterable[Array]) -> bool:
    """No input is where a result is written."""
    for array in inputs:  # noqa: SIM110  (a generator takes longer than the question)
        if np.may_share_memory(target, array):
            return False
    return True


def _check_target(output: Output, target: object) -> None:
    tensor, shape = output.tensor, output.shape
    if not isinstance(target, np.ndarray):
        raise ArgumentError(
            f'out["{tensor.name}"] must be a NumPy array, found {type(target).__name__}'
        )
    if isinstance(target, np.ma.MaskedArray):
        raise ArgumentError(f'out["{tensor.name}"] is a masked array: pass its .data')
    check_dtype(tensor, target.dtype, target=True)
    if target.shape != shape:
        raise ShapeError(
            f'out["{tensor.name}"] for {describe(tensor)} must have shape {shape}, '
            f"found {target.shape}"
        )
    if not target.flags.writeable:
        raise ReadOnlyError(f'out["{tensor.name}"] is read-only: pass an array to write to')


def check_overlap(
    arrays: Mapping[str, Any], overlap: Callable[[Any, Any], bool] = np.shares_memory
) -> None:
    """No two results go to the same memory.

    Raises:
        ArgumentError: naming the two.
    """
    items = list(arrays.items())
    for n, (name, array) in enumerate(items):
        for other, second in items[:n]:
            if overlap(array, second):
                raise ArgumentError(
                    f'out["{other}"] and out["{name}"] overlap in memory: pass separate arrays'
                )
