"""Conversion between dense arrays and the arrays of a caller: axis order and packed groups.

A caller's array has its axes in ``Tensor.stored_order``. A packed group of axes is one axis that
stores a triangle (or a simplex of more axes) row by row; an axis over a joined space is whole. A
dense array has its axes in declared order. The interpreter has a conversion of its own, written
element by element, so that a mistake in this module shows in comparisons.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..simplices import positions, unpacked
from .tensor import Tensor

Array: TypeAlias = npt.NDArray[Any]


def dense_shape(tensor: Tensor, extents: Mapping[str, int]) -> tuple[int, ...]:
    """Shape of the dense array."""
    return tuple(space.extent_in(extents) for space in tensor.spaces)


def pack(tensor: Tensor, dense: Array) -> Array:
    """The caller's array of a dense array: C-contiguous, in stored order, packed."""
    array = np.transpose(dense, tensor.stored_order)
    for position, (_, packing) in enumerate(tensor.stored()):
        if packing:
            extent = array.shape[position]
            front: tuple[Any, ...] = (slice(None),) * position
            array = array[(*front, *positions(extent, packing.count, packing.antisymmetric))]
    return np.ascontiguousarray(array).reshape(array.shape)


def unpack(tensor: Tensor, stored: npt.ArrayLike, extents: Mapping[str, int]) -> Array:
    """The dense array of a caller's array; a view if nothing is packed."""
    array = np.asarray(stored)
    position = 0
    for axis, packing in tensor.stored():
        if packing:
            extent = tensor.spaces[axis].extent_in(extents)
            grid = tuple(np.indices((extent,) * packing.count))
            array = unpacked(array, position, grid, packing.antisymmetric)
        position += packing.count if packing else 1
    return np.transpose(array, np.argsort(tensor.stored_order)) if array.ndim else array
