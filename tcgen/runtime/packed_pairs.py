"""Symmetric pairs of axes as triangles, the storage of inputs declared ``packed``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..dtypes import NAMES
from ..errors import ArgumentError, AxisError, DtypeError, ShapeError
from .symmetry_check import check_symmetry

Array = npt.NDArray[Any]


def pack_pairs(array: npt.ArrayLike, *pairs: tuple[int, int], antisymmetric: bool = False) -> Array:
    """The array with each pair of neighbouring axes as one axis of n(n+1)/2 elements.

    It holds the lower triangle row by row, (p,q) with p >= q at p(p+1)/2 + q, as inputs declared
    ``packed`` are stored and as PySCF stores them. An antisymmetric pair has p > q at p(p-1)/2 + q.

    Args:
        array: symmetric under the exchange of the axes of each pair.
        pairs: of neighbouring axes, such as (0, 1), (2, 3).
        antisymmetric: the exchange changes the sign, and diagonals are not stored.

    Raises:
        DtypeError: the array is not float64, float32 or complex128.
        AxisError: there is no such axis.
        ArgumentError: two axes are not neighbours, or two pairs share an axis.
        ShapeError: the axes of a pair differ in length.
        CheckError: elements that should agree do not.

    Example:
        >>> pack_pairs([[1.0, 2.0], [2.0, 5.0]], (0, 1))
        array([1., 2., 5.])
    """
    dense = np.asarray(array)
    if dense.dtype.name not in NAMES:
        raise DtypeError(f"the array is {dense.dtype}: convert it to {' or '.join(NAMES)}")
    axes = [axis for pair in pairs for axis in pair]
    for axis in axes:
        if not 0 <= axis < dense.ndim:
            raise AxisError(f"axis {axis}: the array has {dense.ndim} axes", axis, dense.ndim)
    if len(set(axes)) != len(axes):
        raise ArgumentError(f"pairs {', '.join(map(str, pairs))} share an axis")
    for first, second in pairs:
        if second != first + 1:
            raise ArgumentError(f"pair ({first}, {second}): the axes must be neighbours")
        if dense.shape[first] != dense.shape[second]:
            raise ShapeError(
                f"pair ({first}, {second}): the axes must have the same length, "
                f"found shape {dense.shape}"
            )
        perm = list(range(dense.ndim))
        perm[first], perm[second] = second, first
        check_symmetry("array", dense, [(tuple(perm), -1 if antisymmetric else 1, False)])
    for first, _ in sorted(pairs, reverse=True):
        rows, columns = np.tril_indices(dense.shape[first], -1 if antisymmetric else 0)
        front: tuple[Any, ...] = (slice(None),) * first
        dense = dense[(*front, rows, columns)]
    return dense
