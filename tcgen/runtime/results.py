"""Arrays for the results: new ones, or those that the caller gives in ``out``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, ReadOnlyError, ShapeError
from ..manifest import Manifest, TensorEntry
from .allocation import Ledger
from .arguments import check_dtype, describe

Array = npt.NDArray[Any]


class Results:
    """Results of one call: first what they need, then the arrays.

    Attributes:
        needed: bytes of the arrays that must be made.
        copied: outputs whose array in ``out`` cannot be written directly.
        working: C-contiguous array for each output that kernels write to, once allocated.
        returned: what the caller gets; the same array where it can be written directly.
    """

    def __init__(
        self,
        manifest: Manifest,
        shapes: Mapping[str, tuple[int, ...]],
        inputs: Iterable[Array],
        out: dict[str, Any] | None,
    ) -> None:
        self._outputs = [t for t in manifest.tensors if t.role == "output"]
        self._shapes = shapes
        given = check_out(self._outputs, out)
        inputs = tuple(inputs)
        self.working: dict[str, Array] = {}
        self.returned: dict[str, Array] = {}
        copied: list[str] = []
        self.needed = 0
        for tensor in self._outputs:
            shape = shapes[tensor.name]
            if tensor.name in given:
                target = given[tensor.name]
                _check_target(tensor, target, shape)
                self.returned[tensor.name] = target
                direct = target.flags.c_contiguous and target.flags.aligned
                # Kernels assume that nothing they write to is also an input.
                if direct and not any(np.may_share_memory(target, array) for array in inputs):
                    self.working[tensor.name] = target.view(np.ndarray)
                    continue
                copied.append(tensor.name)
            self.needed += math.prod(shape) * np.dtype(tensor.dtype).itemsize
        self.copied = tuple(copied)
        check_overlap(self.returned)

    def allocate(self, ledger: Ledger) -> None:
        """Make the arrays that the caller did not give, or that kernels cannot write to."""
        for tensor in self._outputs:
            name = tensor.name
            if name in self.working:
                continue
            made = ledger.array(self._shapes[name], tensor.dtype)
            if name in self.returned and tensor.accumulate:
                made[...] = self.returned[name]
            self.working[name] = made
            self.returned.setdefault(name, made)
        self.returned = {t.name: self.returned[t.name] for t in self._outputs}

    def finish(self, out: dict[str, Any] | None) -> dict[str, Array]:
        """Copy what could not be written directly, fill ``out``, and return the results."""
        for name, array in self.working.items():
            if name in self.copied:
                self.returned[name][...] = array
        if out is None:
            return self.returned
        out.update(self.returned)
        return out


def check_out(outputs: list[TensorEntry], out: object) -> dict[str, Any]:
    """The arrays in ``out``.

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
    return given


def _check_target(tensor: TensorEntry, target: object, shape: tuple[int, ...]) -> None:
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
