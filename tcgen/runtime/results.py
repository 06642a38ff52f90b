"""Arrays for the results: new ones, or those that the caller gives in ``out``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..artifact import Manifest, TensorEntry
from ..errors import ArgumentError, ShapeError
from .arguments import check_dtype, describe

Array = npt.NDArray[Any]


class Results:
    """Results of one call.

    Attributes:
        working: C-contiguous array for each output that kernels write to.
        returned: what the caller gets; the same array where it can be written directly.
        allocated: bytes of the new arrays among them.
    """

    def __init__(
        self,
        manifest: Manifest,
        shapes: Mapping[str, tuple[int, ...]],
        inputs: Iterable[Array],
        out: dict[str, Any] | None,
    ) -> None:
        outputs = [t for t in manifest.tensors if t.role == "output"]
        given = check_out(outputs, out)
        inputs = tuple(inputs)
        self.working: dict[str, Array] = {}
        self.returned: dict[str, Array] = {}
        self.allocated = 0
        self._copied: set[str] = set()
        for tensor in outputs:
            shape = shapes[tensor.name]
            if tensor.name not in given:
                fresh = np.empty(shape, tensor.dtype)
                self.working[tensor.name] = self.returned[tensor.name] = fresh
                self.allocated += fresh.nbytes
                continue
            target = given[tensor.name]
            _check_target(tensor, target, shape)
            direct = target.flags.c_contiguous and target.flags.aligned
            # Kernels assume that nothing they write to is also an input.
            if not direct or any(np.may_share_memory(target, array) for array in inputs):
                copy = (
                    np.array(target, order="C")
                    if tensor.accumulate
                    else np.empty(shape, tensor.dtype)
                )
                self.working[tensor.name] = copy
                self._copied.add(tensor.name)
                self.allocated += copy.nbytes
            else:
                self.working[tensor.name] = target.view(np.ndarray)
            self.returned[tensor.name] = target
        _check_overlap(self.returned)

    def finish(self, out: dict[str, Any] | None) -> dict[str, Array]:
        """Copy what could not be written directly, fill ``out``, and return the results."""
        for name, array in self.working.items():
            if name in self._copied:
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
    check_dtype(tensor, target.dtype)
    if target.shape != shape:
        raise ShapeError(
            f'out["{tensor.name}"] for {describe(tensor)} must have shape {shape}, '
            f"found {target.shape}"
        )
    if not target.flags.writeable:
        raise ArgumentError(f'out["{tensor.name}"] is read-only: pass an array to write to')


def _check_overlap(arrays: Mapping[str, Array]) -> None:
    items = list(arrays.items())
    for n, (name, array) in enumerate(items):
        for other, second in items[:n]:
            if np.may_share_memory(array, second) and np.shares_memory(array, second):
                raise ArgumentError(
                    f'out["{other}"] and out["{name}"] overlap in memory: pass separate arrays'
                )
