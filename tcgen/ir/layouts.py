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

from ..simplices import places, positions
from .cost import extent_of
from .tensor import Packing, Tensor

Array: TypeAlias = npt.NDArray[Any]


def stored_axes(tensor: Tensor) -> tuple[tuple[tuple[int, ...], Packing | None], ...]:
    """For each axis of the caller's array its logical axes and their packing.

    The row of a triangle is the axis of the pair that is first in the stored order.
    """
    packings = {axis: p for p in tensor.storage.packed for axis in p.axes}
    order = tensor.stored_order
    groups: list[tuple[tuple[int, ...], Packing | None]] = []
    position = 0
    while position < len(order):
        packing = packings.get(order[position])
        width = packing.count if packing else 1
        groups.append((order[position : position + width], packing))
        position += width
    return tuple(groups)


def dense_shape(tensor: Tensor, extents: Mapping[str, int]) -> tuple[int, ...]:
    """Shape of the dense array."""
    return tuple(extent_of(space, extents) for space in tensor.spaces)


def stored_shape(tensor: Tensor, extents: Mapping[str, int]) -> tuple[int, ...]:
    """Shape of the caller's array: (10,) for a packed pair of axes of extent 4."""
    shape = []
    for axes, packing in stored_axes(tensor):
        extent = extent_of(tensor.spaces[axes[0]], extents)
        shape.append(packing.values(extent) if packing else extent)
    return tuple(shape)


def pack(tensor: Tensor, dense: Array) -> Array:
    """The caller's array of a dense array: C-contiguous, in stored order, packed."""
    array = np.transpose(dense, tensor.stored_order)
    for position, (_, packing) in enumerate(stored_axes(tensor)):
        if packing:
            extent = array.shape[position]
            front: tuple[Any, ...] = (slice(None),) * position
            array = array[(*front, *positions(extent, packing.count, packing.antisymmetric))]
    return np.ascontiguousarray(array).reshape(array.shape)


def unpack(tensor: Tensor, stored: npt.ArrayLike, extents: Mapping[str, int]) -> Array:
    """The dense array of a caller's array; a view if nothing is packed."""
    array = np.asarray(stored)
    position = 0
    for axes, packing in stored_axes(tensor):
        if packing:
            extent = extent_of(tensor.spaces[axes[0]], extents)
            grid = np.indices((extent,) * packing.count)
            place, sign = places(tuple(grid), packing.antisymmetric)
            is_stored = sign != 0
            packed = np.moveaxis(array, position, -1)
            dense = np.zeros(packed.shape[:-1] + place.shape, array.dtype)
            signs = sign[is_stored].astype(array.real.dtype)
            dense[..., is_stored] = packed[..., place[is_stored]] * signs
            count = packing.count
            array = np.moveaxis(dense, range(-count, 0), range(position, position + count))
        position += len(axes)
    return np.transpose(array, np.argsort(tensor.stored_order)) if array.ndim else array
