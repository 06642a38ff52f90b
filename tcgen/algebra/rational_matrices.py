"""Decompositions of a family of matrices into few matrices of rank one, over the rationals.

This module works on matrices of fractions and knows nothing of tensors. A family of p x q matrices
``C[r]`` (one for each right operand r; a row for each order of the left side, a column for each
left operand) is written as ``C[r] = sum_n w[n][r] * outer(u[n], l[n])`` with few n. The least
number of n is the tensor rank. It is at least the dimension d of the span of the matrices, and
equals d exactly where the span has a basis of matrices of rank one (Kruskal, Linear Algebra Appl.
18 (1977) 95). For two matrices, the roots of the pencil give these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import gcd, isqrt, lcm
from typing import TypeAlias

Vector: TypeAlias = tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """The matrix ``outer(row, column)``."""

    row: Vector
    column: Vector

    @property
    def flat(self) -> Vector:
        """Its elements, row by row."""
        return tuple(x * y for x in self.row for y in self.column)

    @property
    def terms(self) -> int:
        """Number of elements of both vectors that are not zero."""
        return sum(map(bool, self.row)) + sum(map(bool, self.column))


@lru_cache(4096)
def decomposed(
    matrices: tuple[Vector, ...], rows: int, most_pairs: int | None = None
) -> tuple[tuple[Pair, ...], tuple[Vector, ...]]:
    """Pairs whose span holds every matrix, and the coefficients of each matrix in them.

    Matrices have one shape and are stored row by row. Linear combinations of rank one are searched
    for in the first ``most_pairs`` pairs of matrices, by default all.

    Example:
        ``2 TJ - TK - XJ`` added directly and ``-XK`` added with the left side exchanged are two
        products:

        >>> one = tuple(map(Fraction, (2, -1, 0, 0)))   # J; rows: direct, exchanged; columns: T, X
        >>> two = tuple(map(Fraction, (-1, 0, 0, -1)))  # K
        >>> pairs, _ = decomposed((one, two), 2)
        >>> len(pairs)
        2
    """
    basis = reduced(matrices)
    candidates = _rank_one_elements(tuple(basis), tuple(dict.fromkeys(matrices)), rows, most_pairs)
    chosen: list[Pair] = []
    span: list[Vector] = []

    def choose(pair: Pair) -> None:
        """Add a pair that is not in the span of those chosen before."""
        nonlocal span
        grown = reduced((*span, pair.flat))
        if len(grown) > len(span):
            chosen.append(pair)
            span = grown

    for pair in sorted(candidates, key=lambda p: (p.terms, _size(p.flat), p.flat)):
        choose(pair)
    # Single elements cover the remainder that no matrix of rank one in the span reaches.
    columns = len(matrices[0]) // rows
    for vector in basis:
        rest = remainder(vector, span)
        for place, value in enumerate(rest):
            if value:
                choose(Pair(_unit(place // columns, rows), _unit(place % columns, columns)))
    flats = [p.flat for p in chosen]
    return tuple(chosen), tuple(coordinates(m, flats) for m in matrices)


def symmetric_squares(
    matrix: Sequence[Sequence[Fraction]],
) -> list[tuple[Fraction, Vector]] | None:
    """A symmetric matrix as ``sum of weight * outer(v, v)``, as many as its rank.

    None if elimination meets a remainder without an element on its diagonal.

    Example:
        >>> one, two = Fraction(1), Fraction(2)
        >>> [(int(w), [*map(int, v)]) for w, v in symmetric_squares([[two, two], [two, two]])]
        [(2, [1, 1])]
        >>> symmetric_squares([[0 * one, one], [one, 0 * one]]) is None
        True
    """
    rest = [list(row) for row in matrix]
    result: list[tuple[Fraction, Vector]] = []
    while any(map(any, rest)):
        pivot = next((n for n, row in enumerate(rest) if row[n]), None)
        if pivot is None:
            return None
        weight = rest[pivot][pivot]
        vector = tuple(x / weight for x in rest[pivot])
        rest = [
            [x - weight * a * b for x, b in zip(row, vector, strict=True)]
            for row, a in zip(rest, vector, strict=True)
        ]
        result.append((weight, vector))
    return result


def reduced(vectors: Iterable[Vector]) -> list[Vector]:
    """The reduced row echelon form, zero rows left out."""
    basis: list[Vector] = []
    for vector in vectors:
        rest = remainder(vector, basis)
        lead = next((n for n, x in enumerate(rest) if x), None)
        if lead is None:
            continue
        new = tuple(x / rest[lead] for x in rest)
        basis = [_without(old, new, lead) for old in basis]
        basis.append(new)
    return sorted(basis, reverse=True)


def remainder(vector: Vector, basis: Sequence[Vector]) -> Vector:
    """The remainder of a vector modulo a basis in reduced row echelon form."""
    for row in basis:
        vector = _without(vector, row, next(n for n, x in enumerate(row) if x))
    return vector


def _without(vector: Vector, row: Vector, lead: int) -> Vector:
    """The vector less the multiple of a row that makes its element ``lead`` zero."""
    factor = vector[lead]
    if not factor:
        return vector
    return tuple(x - factor * y if y else x for x, y in zip(vector, row, strict=True))


def coordinates(vector: Vector, basis: Sequence[Vector]) -> Vector:
    """Coefficients of a vector in independent vectors whose span contains it."""
    count = len(basis)
    rows = [(*tuple(b[n] for b in basis), vector[n]) for n in range(len(vector))]
    solved = reduced(rows)
    result = [Fraction(0)] * count
    for row in solved:
        lead = next(n for n, x in enumerate(row) if x)
        assert lead < count, "the vector is not in the span"
        result[lead] = row[count]
    return tuple(result)


def _rank_one_elements(
    basis: tuple[Vector, ...], members: tuple[Vector, ...], rows: int, most_pairs: int | None
) -> list[Pair]:
    """Matrices of rank one in a span: members, pencil roots, and those with a known column."""
    pairs: dict[Pair, None] = {}
    pool = tuple(dict.fromkeys((*basis, *members)))
    for vector in pool:
        pair = _as_pair(vector, rows)
        if pair is not None:
            pairs[pair] = None
    for one, two in list(combinations(pool, 2))[:most_pairs]:
        for root in _pencil_roots(one, two, rows):
            combined = tuple(x - root * y for x, y in zip(one, two, strict=True))
            pair = _as_pair(combined, rows)
            if pair is not None:
                pairs[pair] = None
    columns = len(pool[0]) // rows
    known_columns = [_unit(n, columns) for n in range(columns)]
    known_columns += [
        _normal(v[n * columns : (n + 1) * columns]) for v in pool for n in range(rows)
    ]
    known_columns += [pair.column for pair in pairs]
    for column in dict.fromkeys(x for x in known_columns if any(x)):
        for row in _rows_with(column, basis, rows):
            pairs[Pair(row, column)] = None
    return list(pairs)


def _rows_with(column: Vector, basis: tuple[Vector, ...], rows: int) -> list[Vector]:
    """A basis of the rows u for which ``outer(u, column)`` is in the span."""
    # For these u, each vector orthogonal to the span is orthogonal to outer(u, column).
    width = len(column)
    conditions = [
        tuple(
            sum((v[n * width + k] * x for k, x in enumerate(column) if x), Fraction(0))
            for n in range(rows)
        )
        for v in kernel(basis, rows * width)
    ]
    return [_normal(u) for u in kernel(reduced(conditions), rows)]


def kernel(basis: Sequence[Vector], width: int) -> list[Vector]:
    """Vectors orthogonal to every row of a reduced row echelon form."""
    leads = [next(n for n, x in enumerate(row) if x) for row in basis]
    result = []
    for free in range(width):
        if free in leads:
            continue
        vector = [Fraction(0)] * width
        vector[free] = Fraction(1)
        for lead, row in zip(leads, basis, strict=True):
            vector[lead] = -row[free]
        result.append(tuple(vector))
    return result


def _pencil_roots(one: Vector, two: Vector, rows: int) -> list[Fraction]:
    """Rational x for which every 2 x 2 minor of ``one - x * two`` vanishes."""
    columns = len(one) // rows
    roots: list[Fraction] | None = None
    for top, bottom in combinations(range(rows), 2):
        for left, right in combinations(range(columns), 2):
            a, d = top * columns + left, bottom * columns + right
            b, c = top * columns + right, bottom * columns + left
            square = two[a] * two[d] - two[b] * two[c]
            linear = one[b] * two[c] + two[b] * one[c] - one[a] * two[d] - two[a] * one[d]
            constant = one[a] * one[d] - one[b] * one[c]
            if not (square or linear or constant):
                continue
            minor_roots = _quadratic_roots(square, linear, constant)
            roots = minor_roots if roots is None else [x for x in roots if x in minor_roots]
            if not roots:
                return []
    return roots or []


def _quadratic_roots(square: Fraction, linear: Fraction, constant: Fraction) -> list[Fraction]:
    """Rational roots of ``square*x**2 + linear*x + constant``."""
    if not square:
        return [-constant / linear] if linear else []
    discriminant = linear * linear - 4 * square * constant
    if discriminant < 0:
        return []
    top, bottom = isqrt(discriminant.numerator), isqrt(discriminant.denominator)
    root = Fraction(top, bottom)
    if root * root != discriminant:
        return []
    return sorted({(-linear - root) / (2 * square), (-linear + root) / (2 * square)})


def _as_pair(vector: Vector, rows: int) -> Pair | None:
    """The matrix as an outer product; None if its rank is not one."""
    columns = len(vector) // rows
    matrix = [vector[n * columns : (n + 1) * columns] for n in range(rows)]
    first = next((matrix_row for matrix_row in matrix if any(matrix_row)), None)
    if first is None:
        return None
    column = _normal(first)
    lead = next(n for n, x in enumerate(column) if x)
    row = tuple(matrix_row[lead] / column[lead] for matrix_row in matrix)
    pair = Pair(_normal(row), column)
    flat = tuple(x * y for x in row for y in column)
    return pair if flat == vector else None


def _normal(vector: Vector) -> Vector:
    """A multiple of the vector: integers without common divisor, the first nonzero one positive."""
    if not any(vector):
        return vector
    scale = lcm(*(x.denominator for x in vector))
    whole = [int(x * scale) for x in vector]
    divisor = gcd(*whole)
    lead = next(x for x in whole if x)
    divisor = divisor if lead > 0 else -divisor
    return tuple(Fraction(x // divisor) for x in whole)


def _unit(place: int, width: int) -> Vector:
    """A unit vector."""
    return tuple(Fraction(n == place) for n in range(width))


def _size(vector: Vector) -> int:
    """Sum of all numerators and denominators: of two decompositions the simpler one is taken."""
    return sum(abs(x.numerator) + x.denominator for x in vector if x)
