"""Integrals of k-points, from density fitting by Gaussian functions, for one k-point on each axis.

The three-index integrals of all pairs of k-points are held. Blocks of two-electron integrals are
products of these, so that no array of all orbitals exists. Orbitals are normalised over the whole
crystal of N cells: an integral is 1/N of PySCF's, and the energies of equations are those of N
cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..ir.layouts import Array
from ..ir.tensor import Tensor
from .frames import Block, Frame
from .integrals import Blocks, Integrals

_SLICE = 500  # MB of three-index integrals that PySCF reads at a time


class CrystalIntegrals(Integrals):
    """Integrals over the orbitals of k-points.

    ``coefficients`` are those of each set at each k-point over atomic orbitals, ``at`` the number
    of the k-point of each orbital of a set. Orbitals of a set are sorted by k-point.
    """

    def __init__(
        self,
        frames: Mapping[str, Frame],
        density_fit: Any,
        kpts: Array,
        coefficients: Sequence[Sequence[Array]],
        at: Sequence[Array],
    ) -> None:
        super().__init__(frames, [len(own) for own in at], complex)
        self._density_fit, self._kpts = density_fit, kpts
        self._coefficients, self._at_k = coefficients, at
        self._starts = [np.searchsorted(own, np.arange(len(kpts))) for own in at]
        # (set, k of the conjugated orbital, k of the other one) -> [function, orbital, orbital]
        self._three: dict[tuple[int, int, int], Array] = {}
        self._signs: dict[int, Array] = {}

    @property
    def auxiliary(self) -> int:
        """Refused: auxiliary functions have momenta, which no space of equations has yet."""
        raise ArgumentError(
            "three-index integrals of k-points are not passed to equations: use equations of "
            "four-index integrals, such as ccsd_complex_closed_shell"
        )

    def transform_for(self, blocks: Iterable[Blocks], _beside: float = 0.0) -> None:
        """Make the three-index integrals, if equations read some blocks."""
        if not [*blocks] or self._three:
            return
        for k, one in enumerate(self._kpts):
            for n, other in enumerate(self._kpts):
                self._transform(k, n, np.array([one, other]))

    def _transform(self, k: int, n: int, pair: Array) -> None:
        parts: list[list[Array]] = [[] for _ in self._coefficients]
        signs = []
        slices = self._density_fit.sr_loop(pair, _SLICE, compact=False)
        for real, imaginary, sign in slices:
            atomic = (real + 1j * imaginary).reshape(len(real), -1)
            signs.append(np.full(len(real), float(sign)))
            for own, c in zip(parts, self._coefficients, strict=True):
                rows = atomic.reshape(len(real), len(c[k]), len(c[n]))
                own.append(np.matmul(c[k].conj().T, rows @ c[n]))
        for number, own in enumerate(parts):
            made = np.concatenate(own) / len(self._kpts) ** 0.5
            self._three[number, k, n] = made
        self._signs[k * len(self._kpts) + n] = np.concatenate(signs)

    def has_pairs(self, _blocks: Iterable[Block]) -> bool:
        """True: blocks are made of three-index integrals."""
        return True

    def cut(self, p: Block, q: Block, r: Block, s: Block) -> Array:
        """(pq|rs) of orbitals of one k-point on each axis."""
        left, right = self.three_index(p, q), self.three_index(r, s)
        k, n = self._momentum(p), self._momentum(q)
        signs = self._signs[k * len(self._kpts) + n]
        count, rows = len(signs), (len(p.places), len(q.places))
        if (signs < 0).any():
            left = left * signs[:, None, None]
        flat = left.reshape(count, -1).T @ right.reshape(count, -1)
        return np.asarray(flat.reshape(*rows, len(r.places), len(s.places)))

    def _fitted(self, p: Block, q: Block) -> Array:
        result: Array | None = None
        for spin in self._common_spins(p, q):
            (number, left, rows), (_, right, columns) = (self._at(b, spin) for b in (p, q))
            if not (len(rows) and len(columns)):
                continue
            starts = self._starts[number]
            k, n = int(self._at_k[number][left[0]]), int(self._at_k[number][right[0]])
            part = self._three[number, k, n]
            part = part[:, left - starts[k]][:, :, right - starts[n]]
            if result is None:
                result = np.zeros((len(part), len(p.places), len(q.places)), complex)
            result[:, rows[:, None], columns] += part
        if result is None:
            k, n = self._momentum(p), self._momentum(q)
            count = len(self._signs[k * len(self._kpts) + n])
            return np.zeros((count, len(p.places), len(q.places)), complex)
        return result

    def _momentum(self, block: Block) -> int:
        """The k-point of the orbitals of a block."""
        for spin in self._frames[block.frame].parts:
            number, places, _ = self._at(block, spin)
            if len(places):
                return int(self._at_k[number][places[0]])
        raise AssertionError(block)

    def bytes_apart(self, _tensor: Tensor, _blocks: Blocks) -> float:
        """Bytes of the three-index integrals, beside which only blocks are made."""
        functions = self._density_fit.get_naoaux()
        orbitals = sum(count**2 for count in self._counts)
        return float(functions * orbitals * self._dtype.itemsize)

    def _half(self, _pairs: int) -> float:
        return 0.0

    def forget(self) -> None:
        """Drop the three-index integrals."""
        super().forget()
        self._three.clear()

    def forget_pairs(self) -> None:
        """Do nothing: integrals over all pairs are not made."""
