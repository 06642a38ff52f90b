"""Integrals over pairs of orbitals, (pq|rs) as a matrix with rows pq and columns rs.

Pairs of real orbitals are those of a triangle, since (pq| equals (qp|; complex orbitals have all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..ir.layouts import Array

EQUAL = 1e-8  # largest difference of a repeated integral, whose program prints 11 digits; Hartree
BLOCK = 64  # columns that are transformed at once: enough for matrix products, few for a cache


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


def half_transformed(
    parts: Iterable[Array], columns: int, left: Array, right: Array, *, triangle: bool
) -> Array:
    """A matrix whose rows, pairs p >= q of real functions, are transformed to pairs of orbitals.

    ``parts`` are the matrix in blocks of its ``columns``, those of :func:`blocks_of_columns`. The
    columns of ``left``, conjugated, and of ``right`` are orbitals. With ``triangle`` both are the
    same, and the result has the pairs i >= j, else all of them.
    """
    n, m = len(left), right.shape[1]
    p, q = np.indices((n, n))
    whole = pair_numbers(p, q, n, real=True).ravel()
    first, second = np.ascontiguousarray(left.conj().T), np.ascontiguousarray(right.T)
    count = len(first)
    rows = count * (count + 1) // 2 if triangle else count * m
    result = np.empty((rows, columns), np.result_type(first, second))
    # Memory that is allocated anew for each part would take longer to map than to fill.
    squares = half = np.empty((0, 0))
    start = 0
    for part in parts:
        width = part.shape[1]
        if half.shape != (count, n * width):
            squares = np.empty((n * n, width), part.dtype)
            half = np.empty((count, n * width), first.dtype)
        np.take(part, whole, axis=0, out=squares, mode="clip")
        np.matmul(first, squares.reshape(n, n * width), out=half)
        for i, matrix in enumerate(half.reshape(count, n, width)):
            end = i + 1 if triangle else m
            row = i * (i + 1) // 2 if triangle else i * m
            np.matmul(second[:end], matrix, out=result[row : row + end, start : start + width])
        start += width
    return result


def transposed_parts(matrix: Array) -> Iterator[Array]:
    """The transpose of a matrix in blocks of columns."""
    return (np.ascontiguousarray(matrix[k].T) for k in blocks_of_columns(len(matrix)))


def blocks_of_columns(count: int) -> list[slice]:
    """Ranges of the blocks that :func:`half_transformed` takes.

    Example:
        >>> blocks_of_columns(100)
        [slice(0, 64, None), slice(64, 100, None)]
    """
    return [slice(k, min(k + BLOCK, count)) for k in range(0, count, BLOCK)]


def transformed(pairs: Array, c: Array) -> Array:
    """Integrals over other real orbitals, with columns ``c`` over those of ``pairs``."""
    half = half_transformed(transposed_parts(pairs), len(pairs), c, c, triangle=True)
    return half_transformed(transposed_parts(half), len(half), c, c, triangle=True)
