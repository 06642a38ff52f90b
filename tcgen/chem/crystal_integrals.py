"""Integrals of k-points, from density fitting by Gaussian functions, for one k-point on each axis.

The three-index integrals of all pairs of k-points are held. Blocks of two-electron integrals are
products of these, one product of matrices for each momentum, so that no array of all orbitals
exists. Orbitals are normalised over the whole crystal of N cells: an integral is 1/N of PySCF's,
and the energies of equations are those of N cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..blocks.arrays import BlockedArray
from ..errors import ArgumentError
from ..grading import Grading
from ..ir.layouts import Array
from ..ir.tensor import Tensor
from ..records.quantity import Quantity
from .frames import Block, Frame
from .integrals import Blocks, Integrals, TransformOptions

_ELEMENTS = 1 << 21  # elements of blocks that are made at a time
_SLICE = 500  # MB of three-index integrals that PySCF reads at a time


class CrystalIntegrals(Integrals):
    """Integrals over the orbitals of k-points.

    ``coefficients`` are those of each set at each k-point over atomic orbitals, ``at`` the number
    of the k-point of each orbital of a set. Orbitals of a set are sorted by k-point. ``momenta``
    are the elements of the k-points in a ``group``.
    """

    def __init__(
        self,
        frames: Mapping[str, Frame],
        density_fit: Any,
        kpts: Array,
        coefficients: Sequence[Sequence[Array]],
        at: Sequence[Array],
        group: Grading,
        momenta: Sequence[int],
    ) -> None:
        super().__init__(frames, [len(own) for own in at], complex)
        self._density_fit, self._kpts = density_fit, kpts
        self._coefficients, self._at_k = coefficients, at
        self._group, self._momenta = group, momenta
        self._starts = [np.searchsorted(own, np.arange(len(kpts))) for own in at]
        # (set, k of the conjugated orbital, k of the other one) -> [function, orbital, orbital]
        self._three: dict[tuple[int, int, int], Array] = {}
        # For each momentum of a density the signs of the auxiliary functions.
        self._signs: dict[int, Array] = {}

    @property
    def auxiliary(self) -> int:
        """Refused: auxiliary functions have momenta, which no space of equations has yet."""
        raise ArgumentError(
            "three-index integrals of k-points are not passed to equations: use equations of "
            "four-index integrals, such as ccsd_complex_closed_shell"
        )

    def transform_for(self, blocks: Iterable[Blocks], options: TransformOptions) -> None:  # noqa: ARG002
        """Make the three-index integrals, in memory, if equations read some blocks."""
        if not [*blocks] or self._three:
            return
        for k, one in enumerate(self._kpts):
            for n in range(k, len(self._kpts)):
                self._transform(k, n, np.array([one, self._kpts[n]]))

    def _transform(self, k: int, n: int, pair: Array) -> None:
        parts: list[list[Array]] = [[] for _ in self._coefficients]
        signs = []
        for real, imaginary, sign in self._density_fit.sr_loop(pair, _SLICE, compact=False):
            atomic = real + 1j * imaginary
            signs.append(np.full(len(real), float(sign)))
            for own, c in zip(parts, self._coefficients, strict=True):
                rows = atomic.reshape(len(real), len(c[k]), len(c[n]))
                own.append(np.matmul(c[k].conj().T, rows @ c[n]))
        for number, own in enumerate(parts):
            made = np.concatenate(own) / len(self._kpts) ** 0.5
            self._three[number, k, n] = made
            self._three[number, n, k] = made.conj().transpose(0, 2, 1)
        self._signs[self._transfer(k, n)] = self._signs[self._transfer(n, k)] = np.concatenate(
            signs
        )

    def _transfer(self, k: int, n: int) -> int:
        """The momentum that the density of two k-points, of which the first is conjugated, has."""
        group, momenta = self._group, self._momenta
        return int(group.addition[momenta[n], group.negation[momenta[k]]])

    def fill(
        self,
        array: BlockedArray,
        frames: Sequence[str],
        places: Sequence[Sequence[Array]],
        quantity: Quantity,
    ) -> None:
        """Fill the blocks of integrals.

        ``frames`` are those of the axes, and ``places`` the places in them of the orbitals of each
        element of the grading, which are of one k-point.
        """
        array.data[...] = 0
        orders = {
            Quantity.CHEMIST: (((0, 1, 2, 3), 1),),
            Quantity.PHYSICIST: (((0, 2, 1, 3), 1),),
            Quantity.ANTISYMMETRISED: (((0, 2, 1, 3), 1), ((0, 3, 1, 2), -1)),
        }[quantity]
        for order, sign in orders:
            # Pairs of elements of the two densities (pq| and |rs), by the momentum of a density.
            densities = [self._densities(frames, places, order[n : n + 2]) for n in (0, 2)]
            for transfer, left in densities[0].items():
                right = densities[1].get(int(self._group.negation[transfer]))
                if right is not None:
                    self._add(array, order, sign * self._signs[transfer], left, right)

    def _densities(
        self, frames: Sequence[str], places: Sequence[Sequence[Array]], axes: Sequence[int]
    ) -> dict[int, tuple[Array, Array]]:
        """By momentum: pairs of elements, and [function, pair, orbital, orbital], padded by zeros.

        Pairs without a common spin are left out.
        """
        parts = [self._frames[frames[axis]].parts for axis in axes]
        one, other = (places[axis] for axis in axes)
        most = [max(map(len, own), default=0) for own in (one, other)]
        found: dict[int, list[tuple[int, int, int, Array]]] = {}
        for g, left in enumerate(one):
            for h, right in enumerate(other):
                blocks: list[tuple[Array, Array, Array]] = []
                transfer = None
                for spin in parts[0]:
                    if spin not in parts[1] or not (len(left) and len(right)):
                        continue
                    number = parts[0][spin].number
                    rows, columns = parts[0][spin].places[left], parts[1][spin].places[right]
                    up, down = np.flatnonzero(rows >= 0), np.flatnonzero(columns >= 0)
                    if not (len(up) and len(down)):
                        continue
                    rows, columns = rows[up], columns[down]
                    k, n = (int(self._at_k[number][x[0]]) for x in (rows, columns))
                    starts, transfer = self._starts[number], self._transfer(k, n)
                    part = self._three[number, k, n][:, rows - starts[k]][:, :, columns - starts[n]]
                    blocks.append((up, down, part))
                if transfer is None:
                    continue
                factor = np.zeros((len(self._signs[transfer]), *most), complex)
                for up, down, part in blocks:
                    factor[:, up[:, None], down] += part
                found.setdefault(transfer, []).append((g, h, transfer, factor))
        return {
            transfer: (
                np.array([own[:2] for own in pairs], np.int64),
                np.stack([own[3] for own in pairs], axis=1),
            )
            for transfer, pairs in found.items()
        }

    @staticmethod
    def _add(
        array: BlockedArray,
        order: Sequence[int],
        signs: Array,
        left: tuple[Array, Array],
        right: tuple[Array, Array],
    ) -> None:
        """Add the products of two densities to all blocks that these pairs of elements have."""
        (pairs, one), (others, other) = left, right
        layout = array.layout
        offsets, strides = layout.places
        shape = [*one.shape[2:], *other.shape[2:]]
        ranges = np.indices(shape).reshape(4, -1)
        values = other.reshape(len(other), -1)
        step = max(1, _ELEMENTS // max(1, len(others) * len(ranges[0])))
        for start in range(0, len(pairs), step):
            chosen = slice(start, start + step)
            rows = (one[:, chosen] * signs[:, None, None, None]).reshape(len(signs), -1)
            made = rows.T @ values
            count = len(pairs[chosen])
            made = made.reshape(count, shape[0] * shape[1], len(others), shape[2] * shape[3])
            made = made.transpose(0, 2, 1, 3).reshape(count * len(others), -1)
            irreps = np.empty((count * len(others), 4), np.int64)
            irreps[:, list(order[:2])] = np.repeat(pairs[chosen], len(others), axis=0)
            irreps[:, list(order[2:])] = np.tile(others, (count, 1))
            allowed = layout.allowed(irreps)
            numbers = layout.find(irreps[allowed])
            at = np.repeat(offsets[numbers][:, None], len(ranges[0]), axis=1)
            inside = np.ones(at.shape, bool)
            for own, axis in zip(ranges, order, strict=True):
                at += strides[numbers, axis, None] * own
                inside &= own < layout.extents[numbers, axis, None]
            array.data[at[inside]] += made[allowed][inside]

    def _over(self, _sets: Sequence[tuple[int, Array]]) -> Array:
        raise ArgumentError(
            "integrals over the orbitals of all k-points are not made as one array, nor is the "
            "core Hamiltonian: pass blocks of integrals and Fock matrices to equations"
        )

    def _fitted(self, _p: Block, _q: Block) -> Array:
        raise AssertionError("three-index integrals of k-points are held by pairs of k-points")

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
