"""Integrals over pairs of orbitals, (pq|rs) as a matrix with rows pq and columns rs.

Pairs of real orbitals are those of a triangle, since (pq| equals (qp|; complex orbitals have all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.layouts import Array
from ..simplices import positions

EQUAL = 1e-8  # largest difference of a repeated integral, whose program prints 11 digits; Hartree
_ROWS = 1 << 24  # elements of rows that are transformed at once


def pair_numbers(i: Array, j: Array, count: int, *, real: bool) -> Array:
    """Numbers of pairs of ``count`` orbitals.

    Example:
        >>> i, j = np.array([0, 1, 2]), np.array([2, 1, 0])
        >>> pair_numbers(i, j, 3, real=True).tolist(), pair_numbers(i, j, 3, real=False).tolist()
        ([3, 2, 3], [2, 4, 6])
    """
    if not real:
        return i * count + j
    high: Array = np.maximum(i, j)
    numbers: Array = high * (high + 1) // 2 + np.minimum(i, j)
    return numbers


def put(array: Array, rows: Array, columns: Array, values: Array) -> int | None:
    """Set elements of an array of NaN; the number of one that contradicts another, or None."""
    before = array[rows, columns]
    array[rows, columns] = values
    for other in (before, array[rows, columns]):
        differs = np.abs(other - values) > EQUAL
        if differs.any():
            return int(np.argmax(differs))
    return None


class SparsePairs:
    """Integrals that are set in any order and permutation; missing ones are zero.

    With ``same``, both pairs are of the same orbitals, and may be exchanged.
    """

    def __init__(self, count: int, dtype: Any, *, same: bool) -> None:
        self._count, self._same = count, same
        self._real = np.dtype(dtype).kind == "f"
        size = count * (count + 1) // 2 if self._real else count**2
        self._array = np.full((size, size), np.nan, dtype)

    def put(self, i: Array, j: Array, k: Array, l: Array, values: Array) -> int | None:
        """Set (ij|kl); the number of one that contradicts another, or None."""
        left, right = self._numbers(i, j), self._numbers(k, l)
        images = [(left, right, values)]
        if not self._real:
            images += [(self._numbers(j, i), self._numbers(l, k), values.conj())]
            images += [(b, a, v) for a, b, v in images] if self._same else []
        elif self._same:
            images = [(np.maximum(left, right), np.minimum(left, right), values)]
        wrong = (put(self._array, *image) for image in images)
        return next((number for number in wrong if number is not None), None)

    def filled(self) -> Array:
        """The integrals as a matrix of pairs of real orbitals, else with four axes."""
        array = self._array
        for k, row in enumerate(array):
            row[np.isnan(row)] = 0
            if self._real and self._same:
                array[:k, k] = row[:k]
        return array if self._real else array.reshape((self._count,) * 4)

    def _numbers(self, i: Array, j: Array) -> Array:
        return pair_numbers(i, j, self._count, real=self._real)


def half_transformed(rows: Array, left: Array, right: Array) -> Array:
    """Rows of integrals over pairs p >= q of real functions, with conj(left) and right in place.

    The columns of ``left`` and ``right`` are orbitals; those of the result are all pairs of them.
    """
    n = len(left)
    p, q = np.indices((n, n))
    whole = pair_numbers(p, q, n, real=True)
    result = np.empty(
        (len(rows), left.shape[1] * right.shape[1]), np.result_type(rows, left, right)
    )
    step = max(1, _ROWS // max(1, n * n))
    for k in range(0, len(rows), step):
        part = left.conj().T @ rows[k : k + step, whole] @ right
        result[k : k + step] = part.reshape(len(part), -1)
    return result


def transformed(pairs: Array, c: Array) -> Array:
    """Integrals over other real orbitals, with columns ``c`` over those of ``pairs``."""
    i, j = positions(c.shape[1], 2, strict=False)
    kept = i * c.shape[1] + j
    half = half_transformed(pairs, c, c)[:, kept]
    return half_transformed(np.ascontiguousarray(half.T), c, c)[:, kept]
