"""Arrays that are parts of larger ones, which kernels read and write where they are."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from ...artifact.manifest import TensorEntry

Array = npt.NDArray[Any]


def left_out(array: Array) -> tuple[int, ...] | None:
    """How much longer each axis is in the array in C order of which this one is a part.

    Args:
        array: of any shape and strides.

    Returns:
        Elements behind each axis, none behind the first one; None where there is no such array, or
        where elements are not aligned.

    Example:
        >>> import numpy as np
        >>> x = np.empty((4, 5, 6))
        >>> left_out(x), left_out(x[1:, 1:3, 2:]), left_out(x[:, :, ::2])
        ((0, 0, 0), (0, 3, 2), None)
    """
    flags = array.flags
    if not flags.aligned:
        return None
    gaps = [0] * array.ndim
    if flags.c_contiguous:
        return tuple(gaps)
    # The stride of an axis with one element says nothing; such an axis may still be a part.
    behind, step = array.ndim, array.itemsize
    for axis in range(array.ndim - 1, -1, -1):
        if array.shape[axis] == 1:
            continue
        length = array.shape[behind] if behind < array.ndim else 1
        whole, rest = divmod(array.strides[axis], step)
        if rest or whole < length:
            return None
        if whole > length:
            place = behind if behind < array.ndim else axis + 1
            if place == array.ndim:
                return None  # elements of the last axis do not follow each other
            gaps[place] = whole - length
        behind, step = axis, array.strides[axis]
    return tuple(gaps)


def gap_extents(tensor: TensorEntry, array: Array) -> dict[str, int] | None:
    """Extents of what lies behind the axes of a tensor with gaps; None where kernels need a copy.

    Args:
        tensor: an argument or a result.
        array: the caller's, of the tensor's shape.
    """
    found = left_out(array)
    if found is None:
        return None
    extents = {}
    for axis, elements in zip(tensor.order, found, strict=True):
        base = tensor.gaps[axis]
        if base is not None:
            extents[base] = elements
        elif elements:
            return None
    return extents
