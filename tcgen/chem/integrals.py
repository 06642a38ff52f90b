"""Two-electron integrals over blocks of orbitals, from the integrals of a PySCF reference.

A block names a frame of the reference and some of its orbitals. An integral over orbitals of
different spin in one charge density is zero, so that the same code serves spatial orbitals, blocks
by spin and spin orbitals.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..ir.layouts import Array
from .reference import Frame, Reference, build_fit


@dataclass(frozen=True, slots=True, order=True)
class Block:
    """Some orbitals of a frame, by their places in it."""

    frame: str
    places: tuple[int, ...]


class Integrals:
    """Integrals over orbitals; transformed blocks are cached.

    Density-fitted references give fitted integrals, as in PySCF. Three-index integrals of other
    references are over ``auxbasis``, by default PySCF's choice for MP2.
    """

    def __init__(self, reference: Reference, auxbasis: str | None = None) -> None:
        self._reference = reference
        self._auxbasis = auxbasis
        self._chemist: dict[tuple[Block, ...], Array] = {}
        self._factors: dict[tuple[Block, ...], Array] = {}
        self._fit: Any = None

    @property
    def auxiliary(self) -> int:
        """Number of auxiliary functions."""
        return int(self._density_fit().get_naoaux())

    def forget(self) -> None:
        """Drop the cached blocks."""
        self._chemist.clear()
        self._factors.clear()

    def chemist(self, p: Block, q: Block, r: Block, s: Block) -> Array:
        """(pq|rs) with axes p, q, r, s, in Hartree; do not write to it."""
        left, right = sorted((p, q)), sorted((r, s))
        swapped = left > right
        key = (*right, *left) if swapped else (*left, *right)
        if key not in self._chemist:
            self._chemist[key] = self._transformed(*key)
        first = (0, 1) if (p, q) == tuple(left) else (1, 0)
        second = (2, 3) if (r, s) == tuple(right) else (3, 2)
        axes = tuple((k + 2) % 4 for k in (*first, *second)) if swapped else (*first, *second)
        return self._chemist[key].transpose(axes)

    def physicist(self, p: Block, q: Block, r: Block, s: Block) -> Array:
        """<pq|rs> = (pr|qs) with axes p, q, r, s, in Hartree; do not write to it."""
        return self.chemist(p, r, q, s).transpose(0, 2, 1, 3)

    def antisymmetrised(self, p: Block, q: Block, r: Block, s: Block) -> Array:
        """<pq||rs> = (pr|qs) - (ps|qr) with axes p, q, r, s, in Hartree."""
        return self.physicist(p, q, r, s) - self.chemist(p, s, q, r).transpose(0, 2, 3, 1)

    def three_index(self, p: Block, q: Block) -> Array:
        """b[P,p,q] with (pq|rs) ~ sum_P b[P,p,q]*b[P,r,s]; do not write to it."""
        if (p, q) not in self._factors:
            self._factors[p, q] = self._fitted(p, q)
        return self._factors[p, q]

    def _frame(self, block: Block) -> Frame:
        return self._reference.frames[block.frame]

    def _columns(self, block: Block, spin: str) -> tuple[Array, Array]:
        """Coefficients of the orbitals with a part of this spin, and their places in the block."""
        c = self._frame(block).coefficients[spin][:, list(block.places)]
        places = np.flatnonzero(np.any(c != 0, axis=0))
        return c[:, places], places

    def _common_spins(self, p: Block, q: Block) -> list[str]:
        left = self._frame(p).coefficients
        return [spin for spin in left if spin in self._frame(q).coefficients]

    def _transformed(self, p: Block, q: Block, r: Block, s: Block) -> Array:
        if self._reference.density_fit is not None:
            left, right = self.three_index(p, q), self.three_index(r, s)
            return np.tensordot(left, right, axes=(0, 0))
        from pyscf import ao2mo  # noqa: PLC0415

        source = self._reference.mol if self._reference.eri is None else self._reference.eri
        blocks = (p, q, r, s)
        whole = tuple(len(block.places) for block in blocks)
        result = np.zeros(whole)
        for one, two in product(self._common_spins(p, q), self._common_spins(r, s)):
            parts = [self._columns(b, x) for b, x in zip(blocks, (one, one, two, two), strict=True)]
            shape = tuple(len(places) for _, places in parts)
            if 0 in shape:
                continue
            part = ao2mo.general(source, [c for c, _ in parts], compact=False).reshape(shape)
            if shape == whole:
                result += part
            else:
                result[np.ix_(*(places for _, places in parts))] += part
        return result

    def _density_fit(self) -> Any:
        if self._fit is None:
            fit = self._reference.density_fit
            if fit is None and not self._reference.mol._basis:
                raise ArgumentError(
                    "the mean field has integrals of a file or of a model, without a basis set to "
                    "fit: use equations without three-index integrals, or pass these with inputs="
                )
            if fit is None:
                from pyscf import df  # noqa: PLC0415

                fit = df.DF(self._reference.mol, auxbasis=self._auxbasis)
                if self._auxbasis is None:
                    fit.auxbasis = df.make_auxbasis(self._reference.mol, mp2fit=True)
            build_fit(fit)
            self._fit = fit
        return self._fit

    def _fitted(self, p: Block, q: Block) -> Array:
        from pyscf import lib  # noqa: PLC0415

        result = np.zeros((self.auxiliary, len(p.places), len(q.places)))
        start = 0
        for packed in self._density_fit().loop():
            over_orbitals = lib.unpack_tril(np.asarray(packed))
            stop = start + len(over_orbitals)
            for spin in self._common_spins(p, q):
                (left, rows), (right, columns) = self._columns(p, spin), self._columns(q, spin)
                half = np.tensordot(over_orbitals, right, axes=(2, 0))  # axes P, AO, q
                part = np.matmul(left.T, half)
                result[np.ix_(np.arange(start, stop), rows, columns)] += part
            start = stop
        return result
