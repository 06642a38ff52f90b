"""Auxiliary functions with irreps, for three-index integrals over blocks.

Fitted integrals ``sum_P b[P,p,q]*b[P,r,s]`` do not change if auxiliary functions are replaced by an
orthonormal set of sums of them. Those of one irrep span the columns of b for the pairs of orbitals
whose product is this irrep, since columns of different irreps are orthogonal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.layouts import Array
from .pairs import TESTS

# Part of the largest diagonal element at which a Cholesky decomposition ends. Fitted integrals lose
# as much.
_ENOUGH = 1e-13


class AuxiliaryIrreps:
    """Orthonormal sums of auxiliary functions by irrep.

    Args:
        factors: b[P,p,q] over the orbitals of each frame, and the irreps of these.
        products: the product of each two irreps.

    Attributes:
        vectors: the sums of each irrep, one a column.
        forbidden: an estimate of the norm of the fitted integrals that irreps forbid, in Hartree.
    """

    def __init__(self, factors: Sequence[tuple[Array, Array]], products: Array) -> None:
        self.vectors: list[Array] = []
        by_irrep: list[list[Array]] = [[] for _ in products]
        for b, irreps in factors:
            p, q = np.tril_indices(len(irreps))
            pairs = products[irreps[p], irreps[q]]
            for g, own in enumerate(by_irrep):
                own.append(b[:, p[pairs == g], q[pairs == g]])
        functions = len(factors[0][0])
        overlaps = [sum((b @ b.T for b in own), np.zeros((functions,) * 2)) for own in by_irrep]
        largest = max(float(x.diagonal().max(initial=0.0)) for x in overlaps)
        self.vectors = [_range(overlap, _ENOUGH * largest) for overlap in overlaps]
        self.forbidden = _forbidden([np.concatenate(own, axis=1) for own in by_irrep])

    @property
    def irreps(self) -> list[int]:
        """The irreps of all sums."""
        return [g for g, own in enumerate(self.vectors) for _ in range(own.shape[1])]


def _range(matrix: Array, tolerance: float) -> Array:
    """An orthonormal basis of the range of a positive semidefinite matrix.

    It is that of the columns of a pivoted Cholesky decomposition.
    """
    columns = np.zeros(matrix.shape)
    rest = matrix.diagonal().copy()
    rank = 0
    while rank < len(matrix) and rest.max() > tolerance:
        pivot = int(rest.argmax())
        column = matrix[pivot] - columns[:, :rank] @ columns[pivot, :rank]
        columns[:, rank] = column / np.sqrt(rest[pivot])
        rest -= columns[:, rank] ** 2
        rest[pivot] = 0.0
        rank += 1
    return np.asarray(np.linalg.qr(columns[:, :rank])[0])


def _forbidden(by_irrep: Sequence[Array]) -> float:
    """The norm of products of the columns of different irreps, from some random sums of them."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for g, b in enumerate(by_irrep):
        sums = b @ rng.standard_normal((b.shape[1], TESTS))
        others = [np.linalg.norm(x.T @ sums, axis=0) for h, x in enumerate(by_irrep) if h != g]
        worst = max(worst, float(np.linalg.norm(others) / np.sqrt(TESTS)) if others else 0.0)
    return worst
