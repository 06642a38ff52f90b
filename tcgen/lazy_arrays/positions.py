"""Positions of maxima and minima, as a pair of reductions for kernels.

The first reduction finds the maximum, the second one the least position whose element equals it.
NumPy takes the first one of several equal elements, and the first NaN if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.reduction import Reduction
from .graph import Elementwise, Node, Position, Reduce, Scalar, Transpose, leaf

_BOOL = np.dtype(bool)


def position_node(array: Node, axes: tuple[int, ...], *, largest: bool) -> Node | None:
    """The node of the position over axes, counted in C order; None if kernels count less far.

    The array has real numbers, at least one of them; the axes ascend.

    Example:
        >>> node = position_node(leaf(np.eye(3)), (0, 1), largest=True)
        >>> [part.work.array.ravel().tolist() for part in node.work.operands[1:3]]
        [[0.0, 3.0, 6.0], [0.0, 1.0, 2.0]]
    """
    dtype = array.dtype
    numbers: Any = np if array.backend is None else array.backend.module
    count = 1
    places: list[Node] = []
    for axis in reversed(axes):
        extent = array.shape[axis]
        shape = [1] * array.ndim
        shape[axis] = extent
        places.insert(
            0, leaf(numbers.arange(extent, dtype=dtype).reshape(shape) * dtype.type(count))
        )
        count *= extent
    if count > 2 ** (np.finfo(dtype).nmant + 1):
        return None
    kept = tuple(n for axis, n in enumerate(array.shape) if axis not in axes)
    end = Node(Scalar(float(count)), (), dtype)
    return Node(Position((array, *places, end), axes, largest), kept, np.dtype(np.intp))


def as_reductions(work: Position, operands: Sequence[Node]) -> Node:
    """The node of a position in operations that kernels have."""
    array, *places, end = operands
    dtype, shape = array.dtype, array.shape
    kept = [axis for axis in range(array.ndim) if axis not in work.axes]
    below = tuple(shape[axis] for axis in kept)
    first = Reduction.MAX if work.largest else Reduction.MIN
    extreme = Node(Reduce(array, work.axes, first), below, dtype)
    source = tuple(kept.index(axis) if axis in kept else None for axis in range(array.ndim))
    aligned = tuple(1 if axis is None else below[axis] for axis in source)
    extreme = Node(Transpose(extreme, source), aligned, dtype)
    equal = Node(Elementwise("equal", (array, extreme)), shape, _BOOL)
    unordered = Node(Elementwise("not_equal", (array, array)), shape, _BOOL)
    found = Node(Elementwise("or", (equal, unordered)), shape, _BOOL)
    place = places[0]
    for other in places[1:]:
        broadcast = np.broadcast_shapes(place.shape, other.shape)
        place = Node(Elementwise("add", (place, other)), broadcast, dtype)
    chosen = Node(Elementwise("where", (found, place, end)), shape, dtype)
    return Node(Reduce(chosen, work.axes, Reduction.MIN), below, np.dtype(np.intp))
