"""Operators of second quantisation as matrices over all determinants, by Jordan and Wigner.

They evaluate an ansatz without Wick's theorem: exp(-T) H exp(T) is a product of matrices.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, reduce
from itertools import combinations, permutations, product

import numpy as np
from scipy.linalg import expm

from support.whole_orbitals import parity

Arrays = dict[str, np.ndarray]


class FockSpace:
    """Matrices for ``o`` occupied and ``v`` virtual spin orbitals, with random f and v."""

    def __init__(self, o: int, v: int, *, dtype: str = "float64") -> None:
        self.o, self.n, self.rng = o, o + v, np.random.default_rng(11)
        self.dtype = np.dtype(dtype)
        self.extents = {"o": o, "v": v}
        signs, lower, one = np.diag([1.0, -1.0]), np.array([[0.0, 1.0], [0.0, 0.0]]), np.eye(2)
        self.ann = [
            reduce(np.kron, [signs] * p + [lower] + [one] * (self.n - p - 1)) for p in range(self.n)
        ]
        self.vacuum = reduce(lambda vec, p: self.ann[p].T @ vec, reversed(range(o)), self._empty())
        f = self._draw((self.n,) * 2)
        self.f = f + f.conj().T
        g = self._antisymmetric(self._draw((self.n,) * 4), 2)
        self.v = g + g.conj().transpose(2, 3, 0, 1)

    def _empty(self) -> np.ndarray:
        return np.eye(2**self.n)[0]

    def _draw(self, shape: tuple[int, ...]) -> np.ndarray:
        real = self.rng.standard_normal(shape)
        return real + 1j * self.rng.standard_normal(shape) if self.dtype.kind == "c" else real

    def _antisymmetric(self, raw: np.ndarray, first: int) -> np.ndarray:
        """Antisymmetric in the first axes and in the others."""
        for axes in (range(first), range(first, raw.ndim)):
            orders = list(permutations(axes))
            raw = sum(
                parity([k - axes[0] for k in order]) * np.moveaxis(raw, list(axes), order)
                for order in orders
            ) / len(orders)
        return raw

    @cached_property
    def f_part(self) -> np.ndarray:
        return self._normal(self._one(self.f))

    @cached_property
    def hamiltonian(self) -> np.ndarray:
        """F + V in normal order: its expectation value for the reference is zero."""
        h = self.f - np.einsum("piqi->pq", self.v[:, : self.o, :, : self.o])
        pairs = list(combinations(range(self.n), 2))
        two = sum(self.v[p + q] * self._string(p, q) for p, q in product(pairs, pairs))
        return self._normal(self._one(h) + two)

    def _one(self, h: np.ndarray) -> np.ndarray:
        return sum(h[p, q] * self._string((p,), (q,)) for p, q in np.ndindex(h.shape))

    def _normal(self, matrix: np.ndarray) -> np.ndarray:
        return matrix - self.mean(matrix) * np.eye(len(matrix))

    def _string(self, created: tuple[int, ...], removed: tuple[int, ...]) -> np.ndarray:
        """a+ b+ .. j i for ab.., ij.."""
        matrices = [self.ann[p].T for p in created] + [self.ann[p] for p in reversed(removed)]
        return reduce(np.matmul, matrices)

    def mean(self, matrix: np.ndarray) -> complex:
        return self.vacuum @ matrix @ self.vacuum

    def amplitudes(self, holes: int, particles: int) -> np.ndarray:
        """Random, small, with occupied axes first."""
        shape = (self.o,) * holes + (self.n - self.o,) * particles
        return self._antisymmetric(self._draw(shape), holes) / 4

    def operator(self, array: np.ndarray, holes: int) -> np.ndarray:
        """Sum of array[ij.., ab..] a+ b+ .. j i over distinct excitations."""
        distinct = self._distinct(holes, array.ndim - holes)
        return sum(array[index] * self._excitation(index, holes) for index in distinct)

    def _distinct(self, holes: int, particles: int) -> Iterator[tuple[int, ...]]:
        """Indices i < j < .., a < b < .."""
        sides = (
            combinations(range(self.o), holes),
            combinations(range(self.n - self.o), particles),
        )
        return (i + a for i, a in product(*sides))

    def _excitation(self, index: tuple[int, ...], holes: int) -> np.ndarray:
        return self._string(tuple(a + self.o for a in index[holes:]), index[:holes])

    def projected(self, matrix: np.ndarray, holes: int, particles: int) -> np.ndarray:
        """<0| (a+ b+ .. j i)+ matrix |0> for all ij.., ab.."""
        ket = matrix @ self.vacuum
        shape = (self.o,) * holes + (self.n - self.o,) * particles
        result = np.zeros(shape, dtype=ket.dtype)
        for index in self._distinct(holes, particles):
            value = (self._excitation(index, holes) @ self.vacuum) @ ket
            for i, a in product(permutations(range(holes)), permutations(range(particles))):
                place = (*(index[k] for k in i), *(index[holes + k] for k in a))
                result[place] = parity(i) * parity(a) * value
        return result

    def from_the_left(self, matrix: np.ndarray, holes: int, particles: int) -> np.ndarray:
        """<0| matrix a+ b+ .. j i |0> for all ij.., ab.."""
        return self.projected(matrix.T, holes, particles)

    def integrals(self, names: list[str]) -> Arrays:
        """Blocks f_ov, v_oovv, .. of these names."""
        part = {"o": slice(0, self.o), "v": slice(self.o, None)}
        whole = {"f": self.f, "v": self.v}
        return {
            name: np.ascontiguousarray(whole[name[0]][tuple(part[x] for x in name[2:])])
            for name in names
            if name[:2] in ("f_", "v_")
        }


def transformed(h: np.ndarray, t: np.ndarray) -> np.ndarray:
    """exp(-T) H exp(T)."""
    return expm(-t) @ h @ expm(t)


def commutator(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b - b @ a


def series(h: np.ndarray, x: np.ndarray, order: int) -> np.ndarray:
    """H + [H, X] + 1/2 [[H, X], X] + ..."""
    total = term = h
    for n in range(1, order + 1):
        term = commutator(term, x) / n
        total = total + term
    return total
