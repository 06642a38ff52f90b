"""Integrals over pairs of orbitals, (pq|rs) as a matrix with rows pq and columns rs.

Pairs of real orbitals are those of a triangle, since (pq| equals (qp|; complex orbitals have all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..errors import MemoryLimitError
from ..hardware import memory_of_node
from ..ir.layouts import Array

EQUAL = 1e-8  # largest difference of a repeated integral, whose program prints 11 digits; Hartree
TESTS = 3  # sums with random factors that test for integrals between irreps
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


def _number_of_pairs(count: int, dtype: Any) -> int:
    return count * (count + 1) // 2 if np.dtype(dtype).kind == "f" else count**2


def refuse_many(source: str, count: int, dtype: Any) -> None:
    """Refuse integrals over so many orbitals that the machine cannot hold them.

    Raises:
        MemoryLimitError: it names the ``source`` that has this number.
    """
    needed = _number_of_pairs(count, dtype) ** 2 * np.dtype(dtype).itemsize
    if needed > memory_of_node():
        raise MemoryLimitError(
            f"{source}: integrals over pairs of {count:,} orbitals take {needed:,} bytes, and this "
            f"machine has {memory_of_node():,}: correct the number, or write three-index integrals"
        )


class SparsePairs:
    """Integrals that are set in any order and permutation; missing ones are zero.

    With ``same``, both pairs are of the same orbitals, and may be exchanged.
    """

    def __init__(self, count: int, dtype: Any, *, same: bool) -> None:
        self._count, self._same = count, same
        self._real = np.dtype(dtype).kind == "f"
        size = _number_of_pairs(count, dtype)
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
    whole = _of_squares(n)
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


def _of_squares(count: int) -> Array:
    """The numbers of the pairs of real functions at the places of a square."""
    p, q = np.indices((count, count))
    return pair_numbers(p, q, count, real=True).ravel()


class AllowedPairs:
    """Integrals over pairs of real orbitals that have equal irreps; the others are zero.

    Args:
        half: half-transformed integrals, rows pairs of orbitals and columns pairs of functions.
        of_columns: irreps of the pairs of orbitals of ``half``, columns of the integrals.
        orbitals: columns are orbitals, whose pairs are the rows of the integrals.
        of_rows: irreps of these pairs.
        irreps: number of irreps.
    """

    def __init__(
        self, half: Array, of_columns: Array, orbitals: Array, of_rows: Array, irreps: int
    ) -> None:
        self._of_rows, self._of_columns = of_rows, of_columns
        n, count = orbitals.shape
        whole, first = _of_squares(n), np.ascontiguousarray(orbitals.T)
        left, right = np.tril_indices(count)
        squares, made = np.empty((n * n, 0)), np.empty((count, 0))
        self._matrices = []
        for g in range(irreps):
            own, rows = np.flatnonzero(of_columns == g), np.flatnonzero(of_rows == g)
            stops = np.searchsorted(left[rows], np.arange(count + 1)).tolist()
            matrix = np.empty((len(rows), len(own)))
            for block in blocks_of_columns(len(own)):
                part = np.ascontiguousarray(half[own[block]].T)
                width = part.shape[1]
                if squares.shape[1] != width:
                    squares, made = np.empty((n * n, width)), np.empty((count, n * width))
                np.take(part, whole, axis=0, out=squares, mode="clip")
                np.matmul(first, squares.reshape(n, n * width), out=made)
                for i, square in enumerate(made.reshape(count, n, width)):
                    pairs = slice(stops[i], stops[i + 1])
                    np.matmul(first[right[rows[pairs]]], square, out=matrix[pairs, block])
            self._matrices.append(matrix)
        # The place of each pair among those of its irrep.
        self._row, self._column = (
            np.array([np.cumsum(of == g) - 1 for g in range(irreps)])[of, np.arange(len(of))]
            for of in (of_rows, of_columns)
        )

    def cut(self, rows: Array, columns: Array) -> Array:
        """The integrals of some pairs of orbitals."""
        result = np.zeros((len(rows), len(columns)))
        of_rows, of_columns = self._of_rows[rows], self._of_columns[columns]
        for g in np.unique(of_rows):
            r, c = np.flatnonzero(of_rows == g), np.flatnonzero(of_columns == g)
            own: Array = self._matrices[g][self._row[rows[r]][:, None], self._column[columns[c]]]
            if own.shape == result.shape:
                return own
            result[r[:, None], c] = own
        return result


def forbidden_norm(
    half: Array, of_rows: Array, orbitals: Array, irreps: Array, products: Array
) -> float:
    """An estimate of the norm of the integrals that :class:`AllowedPairs` leaves out, in Hartree.

    They are added up with random factors, a few times: a norm is missed only by chance.
    """
    n = len(orbitals)
    whole = _of_squares(n)
    rng = np.random.default_rng(0)
    squares = 0.0
    for g in range(len(products)):
        own = half[of_rows == g]
        if not len(own):
            continue
        sums = (rng.standard_normal((TESTS, len(own))) @ own)[:, whole].reshape(TESTS, n, n)
        made = orbitals.T @ sums @ orbitals
        made[:, products[irreps[:, None], irreps] == g] = 0.0
        squares += float((made**2).sum()) / TESTS
    return float(np.sqrt(squares))


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
