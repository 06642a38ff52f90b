"""Lowest roots of an eigenvalue problem whose matrix a program multiplies with amplitudes.

PySCF's Davidson method works on vectors of the elements that symmetry leaves independent. A small
matrix is made whole, since the vectors of that method soon depend on each other there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..errors import ArgumentError, ConvergenceError
from ..ir.layouts import Array
from ..ir.tensor import Tensor, symmetry_group

Multiply = Callable[[dict[str, Array]], Mapping[str, Array]]
_MORE = 12  # start vectors beyond the number of roots, so that no root is missed
_SAMPLES = 32  # vectors of signs from which a diagonal is estimated
_WHOLE = 64  # largest number of rows of a matrix that is made whole
_NEGLIGIBLE = 1e-2  # norm of a residual that is dropped, in units of the tolerance
_DEPENDENT = 1e-6  # norm of a new direction, less its part in the space so far, that is dropped
_IMAGINARY = 1e-8  # largest imaginary part of a root that rounding explains, in Hartree


@dataclass(frozen=True, slots=True, eq=False)
class Independent:
    """Elements of a tensor that symmetry leaves independent.

    They are at ``places`` of the flat array. ``source`` has the number of the independent element
    that each element equals up to its ``sign``, which is 0 if symmetry requires zero.
    """

    shape: tuple[int, ...]
    places: Array
    source: Array
    sign: Array

    def pack(self, dense: Array) -> Array:
        """The independent elements of a dense array."""
        return dense.reshape(-1)[self.places]

    def unpack(self, vector: Array) -> Array:
        """The dense array with these independent elements."""
        if not vector.size:
            return np.zeros(self.shape)
        return (vector[self.source] * self.sign).reshape(self.shape)


def independent_elements(tensor: Tensor, shape: Sequence[int]) -> Independent:
    """Elements of a real tensor of this shape that its symmetry leaves independent.

    Example:
        >>> from tcgen.ir.tensor import Role, Space, Symmetry
        >>> o = Space("o")
        >>> t = Tensor("t", (o, o), Role.INPUT, symmetry=(Symmetry((1, 0), -1),))
        >>> independent_elements(t, (2, 2)).unpack(np.array([3.0]))
        array([[ 0.,  3.],
               [-3.,  0.]])
    """
    numbers = np.arange(prod(shape)).reshape(tuple(shape))
    group = symmetry_group(tensor)
    return independent_of(numbers, [(numbers.transpose(s.perm), s.sign) for s in group])


def independent_of(numbers: Array, images: Iterable[tuple[Array, int]]) -> Independent:
    """Independent elements from the numbers of elements, and those that each equals up to a sign.

    ``numbers`` counts the elements of an array.
    """
    shape = numbers.shape
    first, sign, zero = numbers.copy(), np.ones(shape), np.zeros(shape, bool)
    for image, own in images:
        zero |= (image == numbers) & (own < 0)
        smaller = image < first
        first = np.where(smaller, image, first)
        sign = np.where(smaller, own, sign)
    places = np.flatnonzero((first == numbers) & ~zero)
    number_of = np.zeros(numbers.size, int)
    number_of[places] = np.arange(places.size)
    source = number_of[first.reshape(-1)]
    return Independent(shape, places, source, np.where(zero, 0.0, sign).reshape(-1))


@dataclass(frozen=True, slots=True, eq=False)
class Roots:
    """Lowest eigenvalues, amplitudes with the roots on their first axis, norms of residuals."""

    values: tuple[float, ...]
    amplitudes: dict[str, Array]
    norms: tuple[float, ...]
    products: int


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The independent elements of all amplitudes as one vector."""

    parts: Mapping[str, Independent]

    def vectors(self, arrays: Mapping[str, Array]) -> list[Array]:
        """Vectors of dense amplitudes, which have an axis for vectors first."""
        return [
            np.concatenate([part.pack(arrays[name][k]) for name, part in self.parts.items()])
            for k in range(len(next(iter(arrays.values()))))
        ]

    def amplitudes(self, vectors: Sequence[Array]) -> dict[str, Array]:
        """The dense amplitudes of vectors."""
        ends = np.cumsum([part.places.size for part in self.parts.values()])[:-1]
        split = [np.split(vector, ends) for vector in vectors]
        return {
            name: np.stack([part.unpack(pieces[k]) for pieces in split])
            for k, (name, part) in enumerate(self.parts.items())
        }


def estimated_diagonal(multiply: Multiply, parts: Mapping[str, Independent]) -> dict[str, Array]:
    """An estimate of the diagonal of a matrix: the mean of x*(A x) over vectors x of random signs.

    The elements outside the diagonal cancel on average (Bekas, Kokiopoulou and Saad, Applied
    Numerical Mathematics 57, 1214, 2007). The lowest elements choose the start vectors, and all
    precondition; neither needs digits.
    """
    rng = np.random.default_rng(0)
    signs = {}
    for name, part in parts.items():
        drawn = rng.choice([-1.0, 1.0], (_SAMPLES, part.places.size))
        signs[name] = np.stack([part.unpack(vector) for vector in drawn])
    return {name: np.mean(signs[name] * image, axis=0) for name, image in multiply(signs).items()}


def lowest_roots(
    multiply: Multiply,
    parts: Mapping[str, Independent],
    diagonal: Mapping[str, Array],
    start: Mapping[str, Array],
    *,
    count: int,
    tolerance: float,
    max_cycle: int,
) -> Roots:
    """Lowest eigenvalues of a matrix by their real parts, with PySCF's Davidson method.

    ``multiply`` takes amplitudes with some vectors on their first axis, and returns the products.
    ``start`` also has this axis, or is {}; ``parts`` and ``diagonal``, an estimate of the matrix'
    diagonal, do not. ``tolerance`` is the largest norm of each residual.

    The eigenvalues of a real matrix are real. Those of a complex matrix may be complex, as in
    coupled cluster with a magnetic field; the real parts are returned, and a warning says so.
    """
    layout = Layout(parts)
    (estimate,) = layout.vectors({name: array[None] for name, array in diagonal.items()})
    if estimate.size < count:
        raise ArgumentError(
            f"nroots={count}, but the matrix has {estimate.size} rows: ask for fewer"
        )
    products = 0

    def apply(vectors: Sequence[Array]) -> list[Array]:
        nonlocal products
        products += len(vectors)
        return layout.vectors(multiply(layout.amplitudes(vectors)))

    if estimate.size <= _WHOLE:
        values, vectors = _all_roots(np.stack(apply(list(np.eye(estimate.size))), axis=1))
    else:
        guess = layout.vectors(start)[:count] if start else []
        if len(guess) < count:
            guess += _unit_vectors(estimate, count + _MORE)
        values, vectors = _davidson(apply, guess, estimate, count, tolerance, max_cycle)
    # Directions that vanish by rounding leave as vectors of norm 0.
    found = [k for k, vector in enumerate(vectors) if np.linalg.norm(vector) > _DEPENDENT]
    if len(found) < count:
        raise ConvergenceError(
            f"only {len(found)} of nroots={count} roots have a vector: ask for fewer or more roots"
        )
    order = sorted(found, key=lambda k: float(values[k].real))[:count]
    chosen = [vectors[k] for k in order]
    norms = tuple(
        float(np.linalg.norm(image - values[k] * vector))
        for image, k, vector in zip(apply(chosen), order, chosen, strict=True)
    )
    roots = tuple(float(values[k].real) for k in order)
    imaginary = max(abs(float(values[k].imag)) for k in order)
    if imaginary > max(_IMAGINARY, tolerance):
        warnings.warn(
            f"roots are complex, with imaginary parts up to {imaginary:.1e} Hartree: a truncated "
            f"method has such roots for complex orbitals, and the real parts are returned",
            RuntimeWarning,
            stacklevel=2,
        )
    return Roots(roots, layout.amplitudes(chosen), norms, products)


def _unit_vectors(estimate: Array, count: int) -> list[Array]:
    """Unit vectors at the smallest elements of the diagonal."""
    places = np.argsort(estimate, kind="stable")[:count]
    units = np.zeros((len(places), estimate.size))
    units[np.arange(len(places)), places] = 1.0
    return list(units)


def _davidson(
    apply: Callable[[Sequence[Array]], list[Array]],
    guess: list[Array],
    estimate: Array,
    count: int,
    tolerance: float,
    max_cycle: int,
) -> tuple[Array, list[Array]]:
    from pyscf import lib  # noqa: PLC0415

    # PySCF compares residuals and the norms of new directions with one number: the matrix is
    # scaled, so that it suits both.
    scale = _DEPENDENT / (tolerance * _NEGLIGIBLE)

    complex_vectors = False

    def scaled(vectors: Sequence[Array]) -> list[Array]:
        nonlocal complex_vectors
        images = [scale * image for image in apply(vectors)]
        complex_vectors = complex_vectors or any(map(np.iscomplexobj, images))
        return images

    def precondition(residual: Array, value: float, *_: object) -> Array:
        below = estimate - np.real(value) / scale
        return np.asarray(residual / np.where(np.abs(below) < 1e-8, 1e-8, below))

    def pick(values: Array, vectors: Array, roots: int, known: Any) -> Any:
        if complex_vectors:
            order = np.argsort(values.real, kind="stable")
            return values[order], vectors[:, order], order
        picked = lib.linalg_helper.pick_real_eigs(values / scale, vectors, roots, known)
        return picked[0] * scale, *picked[1:]

    _, values, vectors = lib.davidson_nosym1(
        scaled,
        guess,
        precondition,
        tol=min(tolerance, 1e-10) * scale,
        tol_residual=tolerance * scale,
        lindep=_DEPENDENT**2,
        max_cycle=max_cycle,
        max_space=max(20, 6 * count) + _MORE,
        nroots=count,
        pick=pick,
        verbose=0,
    )
    vectors = [*map(np.asarray, vectors if count > 1 else np.atleast_2d(vectors))]
    if not complex_vectors:
        vectors = [v.real for v in vectors]
    return np.atleast_1d(values) / scale, vectors


def _all_roots(matrix: Array) -> tuple[Array, list[Array]]:
    """All eigenvalues of a matrix, and vectors of norm 1; those of a real matrix are real.

    Equal eigenvalues may come as a complex pair by rounding: the real and the imaginary part of its
    vectors are then the two vectors.
    """
    values, columns = np.linalg.eig(matrix)
    if np.iscomplexobj(matrix):
        return values, list(columns.T)
    real = np.where(values.imag < 0, columns.imag, columns.real)
    return values.real, list((real / np.linalg.norm(real, axis=0)).T)
