"""Integrals that are too many for memory: which inputs go to a file, and the file.

The arrays of a mean field may together take half of the memory that the PySCF object allows
(``mf.max_memory``, in MB). While they take more, the largest one is written to a temporary HDF5
file, block by block, and the program reads it in slices.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from math import prod
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..ir.layouts import pack, stored_shape
from ..ir.tensor import Role, Tensor, element_bytes

Array = npt.NDArray[Any]
_PART = 1 / 2  # of the memory that PySCF may use, for all arrays that are held whole
_PARTS_AT_ONCE = 8  # arrays of the bytes of a block that making one takes


def kept_on_disk(
    tensors: Iterable[Tensor], extents: Mapping[str, int], dtype: str, memory: float
) -> tuple[str, ...]:
    """Names of the inputs that go to a file, largest first.

    Args:
        tensors: inputs that are quantities of a mean field.
        extents: of the base spaces.
        dtype: element type of the program.
        memory: bytes that PySCF may use.

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> v = Space("v")
        >>> inputs = [Tensor("e_v", (v,), Role.INPUT), Tensor("f_vv", (v, v), Role.INPUT)]
        >>> kept_on_disk(inputs, {"v": 10}, "float64", memory=1000)
        ('f_vv',)
    """
    needed = {
        t.name: element_bytes(t, dtype) * prod(stored_shape(t, extents))
        for t in tensors
        if t.role is Role.INPUT
    }
    chosen = []
    for name in sorted(needed, key=lambda n: (-needed[n], n)):
        if sum(needed.values()) <= memory * _PART:
            break
        chosen.append(name)
        del needed[name]
    return tuple(chosen)


def unpacked(tensor: Tensor) -> Tensor:
    """The tensor as it is stored in a file: whole."""
    return replace(tensor, storage=replace(tensor.storage, packed=()))


def blocks_of(count: int, row_bytes: int, memory: float) -> list[slice]:
    """Ranges of the first axis of an array whose blocks fit into memory while they are made.

    Example:
        >>> blocks_of(5, row_bytes=100, memory=1600)
        [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    rows = max(1, int(memory / _PARTS_AT_ONCE / max(1, row_bytes)))
    return [slice(start, min(start + rows, count)) for start in range(0, count, rows)]


class IntegralFile:
    """A temporary HDF5 file with arrays in the caller's layout; it goes when it is closed."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._file: Any = None

    def __enter__(self) -> IntegralFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def write(
        self, tensor: Tensor, shape: tuple[int, ...], axis: int, blocks: Iterable[Array], dtype: str
    ) -> Any:
        """The dataset of an input from blocks of its dense array, in order along an axis."""
        if self._file is None:
            import h5py  # noqa: PLC0415  (PySCF brings it)

            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="tcgen-"))
            self._file = self._stack.enter_context(h5py.File(Path(folder) / "integrals.h5", "w"))
        order = tensor.stored_order
        data = self._file.create_dataset(tensor.name, [shape[k] for k in order], dtype)
        start = 0
        for block in blocks:
            stop = start + block.shape[axis]
            place = [slice(None)] * tensor.rank
            place[order.index(axis)] = slice(start, stop)
            data[tuple(place)] = np.asarray(pack(tensor, block))
            start = stop
        return data
