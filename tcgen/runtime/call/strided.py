"""Arrays that are parts of larger ones, which kernels read and write in place."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from ...records.tensors import Tensor
from ..device_protocol import Device

Array = npt.NDArray[Any]


def left_out(array: Array) -> tuple[int, ...] | None:
    """Elements behind each axis in the larger C-ordered array that this one is a slice of.

    They are 0 for the first axis; None if the array is not a slice of a C-ordered one.

    Example:
        >>> import numpy as np
        >>> x = np.empty((4, 5, 6))
        >>> left_out(x), left_out(x[1:, 1:3, 2:]), left_out(x[:, :, ::2])
        ((0, 0, 0), (0, 3, 2), None)
    """
    gaps = [0] * array.ndim
    if array.flags.c_contiguous:
        return tuple(gaps)
    # The stride of an axis with one element is arbitrary; such an axis may still be a part.
    inner, step = array.ndim, array.itemsize  # the next axis within; bytes of its stride
    for axis in range(array.ndim - 1, -1, -1):
        if array.shape[axis] == 1:
            continue
        length = array.shape[inner] if inner < array.ndim else 1
        whole, rest = divmod(array.strides[axis], step)
        if rest or whole < length:
            return None
        if whole > length:
            place = inner if inner < array.ndim else axis + 1
            if place == array.ndim:
                return None  # elements of the last axis do not follow each other
            gaps[place] = whole - length
        inner, step = axis, array.strides[axis]
    return tuple(gaps)


def gap_extents(device: Device, tensor: Tensor, array: Any) -> dict[str, int] | None:
    """Extents of the gaps behind the axes of the caller's array, which has the tensor's shape.

    None if kernels cannot take it in place.
    """
    if not tensor.storage.within or not device.holds(array) or not device.aligned(array):
        return None
    gaps = left_out(array)
    if gaps is None:
        return None
    extents, behind = {}, tensor.gaps
    for axis, elements in zip(tensor.stored_order, gaps, strict=True):
        base = behind[axis]
        if base is not None:
            extents[base] = elements
        elif elements:
            return None
    return extents
