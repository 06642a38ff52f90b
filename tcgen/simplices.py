"""Axes of one space stored as one axis of their distinct values: triangles, tetrahedra, and so on.

Symmetric axes have the values i >= j >= ..., antisymmetric ones (*strict*) i > j > ... . They are
stored in lexical order, so that i >= j is at i(i+1)/2 + j, and i > j at i(i-1)/2 + j.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, factorial
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def stored_values(extent: int, count: int, strict: bool) -> int:
    """The number of values of ``count`` axes that are stored.

    Example:
        >>> stored_values(4, 2, strict=False), stored_values(4, 3, strict=True)
        (10, 4)
    """
    return comb(extent if strict else extent + count - 1, count) if extent else 0


def extent_of(values: int, count: int, strict: bool) -> int | None:
    """The extent with that number of stored values; None if there is none.

    Example:
        >>> extent_of(10, 2, strict=False), extent_of(11, 2, strict=False)
        (4, None)
    """
    low, high = 0, count + 1
    while stored_values(high, count, strict) < values:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if stored_values(middle, count, strict) < values:
            low = middle + 1
        else:
            high = middle
    return low if stored_values(low, count, strict) == values else None


def positions(extent: int, count: int, strict: bool) -> tuple[Array, ...]:
    """The positions on each axis of all stored values, in the order in which they are stored.

    Example:
        >>> [axis.tolist() for axis in positions(3, 2, strict=True)]
        [[1, 2, 2], [0, 0, 1]]
    """
    front: Array = np.arange(extent)[None, :]
    for _ in range(1, count):
        lengths = front[-1] if strict else front[-1] + 1
        ends = np.cumsum(lengths)
        last = np.arange(int(ends[-1]) if ends.size else 0) - np.repeat(ends - lengths, lengths)
        front = np.vstack((np.repeat(front, lengths, axis=1), last))
    return tuple(front)


def parity(order: Sequence[int]) -> int:
    """The sign of a permutation: 1 or -1."""
    inversions = sum(a > b for n, b in enumerate(order) for a in order[:n])
    return -1 if inversions % 2 else 1


def places(axes: Sequence[Array], strict: bool) -> tuple[Array, Array]:
    """Places at which the values of any positions are stored, and the signs to read them with.

    Args:
        axes: positions on each axis, which broadcast.
        strict: the axes are antisymmetric. The sign of equal positions is 0, and their place any.

    Example:
        >>> place, sign = places((np.array([2, 0]), np.array([1, 2])), strict=True)
        >>> place.tolist(), sign.tolist()
        ([2, 1], [1, -1])
    """
    given = np.stack(np.broadcast_arrays(*axes))
    count = len(given)
    ordered = -np.sort(-given, axis=0)
    place = np.zeros(given.shape[1:], np.int64)
    sign = np.ones(given.shape[1:], np.int64)
    for n, value in enumerate(ordered):
        size = count - n
        choices = np.ones_like(place)
        for k in range(size):
            choices = choices * (value - k if strict else value + k)
        place += choices // factorial(size)
    if strict:
        for n in range(count):
            for m in range(n):
                sign *= np.sign(given[m] - given[n])
        place = np.where(sign == 0, 0, place)
    return place, sign


def unpacked(
    array: Array, axis: int, axes: Sequence[Array], strict: bool, *, start: int = 0
) -> Array:
    """The array with several axes in place of one that stores their values.

    ``axes`` has the positions on each of them. The stored axis begins with the value ``start``.
    """
    place, sign = places(axes, strict)
    stored = sign != 0
    packed = np.moveaxis(array, axis, -1)
    dense = np.zeros((*packed.shape[:-1], *place.shape), array.dtype)
    signs = sign[stored].astype(array.real.dtype)
    dense[..., stored] = packed[..., place[stored] - start] * signs
    count = len(axes)
    return np.moveaxis(dense, range(-count, 0), range(axis, axis + count))
