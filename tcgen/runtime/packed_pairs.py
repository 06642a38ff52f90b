"""Symmetric axes as triangles and tetrahedra, the storage of inputs declared ``packed``."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..dtypes import NAMES
from ..errors import ArgumentError, AxisError, DtypeError, ShapeError
from ..simplices import positions
from .symmetry_check import check_symmetry

Array = npt.NDArray[Any]


def pack_pairs(array: npt.ArrayLike, *pairs: tuple[int, ...], antisymmetric: bool = False) -> Array:
    """The array with each pair of neighbouring axes as one axis of n(n+1)/2 elements.

    It holds the lower triangle row by row, (p,q) with p >= q at p(p+1)/2 + q, as inputs declared
    ``packed`` are stored and as PySCF stores them. An antisymmetric pair has p > q at p(p-1)/2 + q.
    More than two axes are packed alike: (p,q,r) with p > q > r is at C(p,3) + C(q,2) + r.

    Args:
        array: symmetric under the exchange of the axes of each pair.
        pairs: of neighbouring axes, such as (0, 1), (2, 3), or more of them, such as (0, 1, 2).
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
    for group in pairs:
        if len(group) < 2:
            raise ArgumentError(f"{group}: pack two axes or more")
        if any(second != first + 1 for first, second in pairwise(group)):
            raise ArgumentError(f"pair {group}: the axes must be neighbours")
        if len({dense.shape[axis] for axis in group}) > 1:
            raise ShapeError(
                f"pair {group}: the axes must have the same length, found shape {dense.shape}"
            )
        for first, second in pairwise(group):
            perm = list(range(dense.ndim))
            perm[first], perm[second] = second, first
            check_symmetry("array", dense, [(tuple(perm), -1 if antisymmetric else 1, False)])
    for group in sorted(pairs, reverse=True):
        held = positions(dense.shape[group[0]], len(group), antisymmetric)
        front: tuple[Any, ...] = (slice(None),) * group[0]
        dense = dense[(*front, *held)]
    return dense
