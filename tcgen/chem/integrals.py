"""Two-electron integrals over blocks of orbitals, from the integrals of a PySCF reference.

A block names a frame of the reference and some of its orbitals. An integral over orbitals of
different spin in one charge density is zero, so that the same code serves spatial orbitals, blocks
by spin and spin orbitals.

Several blocks are cut out of one transform over all orbitals, if that takes fewer flops than a
transform for each and fits into memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import comb
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..ir.layouts import Array
from ..ir.tensor import Tensor
from ..simplices import positions
from .reference import Frame, Reference, build_fit

# Bytes that PySCF takes to transform integrals that it computes on the way.
_OUTCORE = 1e9


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
        self._pairs: dict[tuple[int, int], Array] = {}
        self._orbitals: list[Array] = []  # coefficients, each once
        self._fit: Any = None

    @property
    def auxiliary(self) -> int:
        """Number of auxiliary functions."""
        return int(self._density_fit().get_naoaux())

    def forget(self) -> None:
        """Drop the cached blocks."""
        self._chemist.clear()
        self._factors.clear()

    def forget_pairs(self) -> None:
        """Drop the integrals over all pairs of orbitals."""
        self._pairs.clear()

    def transform_for(
        self, blocks: Iterable[tuple[Block, Block, Block, Block]], beside: float = 0.0
    ) -> None:
        """Transform all orbitals at once for blocks (pq|rs), if that is less work than each.

        Blocks of ``beside`` bytes are then held beside the result.
        """
        if self._reference.density_fit is not None:
            return
        atomic = self._reference.mol.nao
        apart: dict[object, float] = {}
        wanted: set[tuple[int, int]] = set()
        for p, q, r, s in blocks:
            sides = tuple(sorted((tuple(sorted((p, q))), tuple(sorted((r, s))))))
            for x, y in product(self._common_spins(p, q), self._common_spins(r, s)):
                one, two = self._number(p, x), self._number(r, y)
                wanted.add((min(one, two), max(one, two)))
                lengths = (
                    len(self._places(b, spin)) for b, spin in ((p, x), (q, x), (r, y), (s, y))
                )
                apart[sides, one, two] = _flops(atomic, *lengths)
        count = [c.shape[1] for c in self._orbitals]
        whole = sum(_flops(atomic, count[k], count[k], count[n], count[n]) for k, n in wanted)
        elements = sum(comb(count[k] + 1, 2) * comb(count[n] + 1, 2) for k, n in wanted)
        half = max((self._half(comb(count[k] + 1, 2)) for k, _ in wanted), default=0.0)
        needed = elements * 8 + max(half, beside)
        if whole >= sum(apart.values()) or needed > self._reference.memory:
            return
        for k, n in wanted:
            c, d = self._orbitals[k], self._orbitals[n]
            self._pairs[k, n] = self._general((c, c, d, d), compact=True)

    def bytes_apart(self, tensor: Tensor, blocks: tuple[Block, Block, Block, Block]) -> float:
        """Most bytes while (pq|rs) is made alone, the result in the layout of a tensor included."""
        p, q, r, s = (len(block.places) for block in blocks)
        if self._in_triangles(tensor, blocks):
            left, right = comb(p + 1, 2), comb(r + 1, 2)
            return left * right * 8 + self._half(left)
        return p * q * r * s * 8 * 2 + self._half(p * q)

    def _half(self, pairs: int) -> float:
        """Bytes of half-transformed integrals with some pairs of orbitals."""
        if self._reference.density_fit is not None:
            return pairs * self.auxiliary * 8
        if self._reference.eri is None:
            return _OUTCORE
        atomic = self._reference.mol.nao
        return pairs * comb(atomic + 1, 2) * 8

    def _general(self, coefficients: Sequence[Array], *, compact: bool) -> Array:
        """PySCF's transform; with ``compact``, triangles of pairs of equal orbitals."""
        from pyscf import ao2mo  # noqa: PLC0415

        options = {"max_memory": _OUTCORE / 1e6} if self._reference.eri is None else {}
        made = ao2mo.general(self._source, coefficients, compact=compact, **options)
        return np.asarray(made)

    def _in_triangles(self, tensor: Tensor, blocks: tuple[Block, Block, Block, Block]) -> bool:
        """True if PySCF's transform has the layout of a tensor."""
        p, q, r, s = blocks
        stored = [packing for _, packing in tensor.stored()]
        return (
            (p, r) == (q, s)
            and tensor.stored_order == (0, 1, 2, 3)
            and len(stored) == 2
            and all(x is not None and x.count == 2 and not x.antisymmetric for x in stored)
            and len(self._common_spins(p, p)) == len(self._common_spins(r, r)) == 1
        )

    def stored(self, tensor: Tensor, blocks: tuple[Block, Block, Block, Block]) -> Array | None:
        """(pq|rs) in the layout of a tensor, without a dense array.

        It is cut out of the integrals over all pairs, or transformed into triangles; None if the
        layout or the spins ask for more.
        """
        layout = [packing for _, packing in tensor.stored()]
        if tensor.stored_order != (0, 1, 2, 3):
            return None
        shape: list[int] = []
        numbers, places = [], []
        for p, q in (blocks[:2], blocks[2:]):
            spins = self._common_spins(p, q)
            packing = layout.pop(0)
            if packing is None and layout and layout[0] is None:
                layout.pop(0)
                i, j = (x.ravel() for x in np.indices((len(p.places), len(q.places))))
                shape += (len(p.places), len(q.places))
            elif packing is not None and packing.count == 2:
                i, j = positions(len(p.places), 2, packing.antisymmetric)
                shape.append(len(i))
            else:
                return None
            left, right = (self._places(b, spins[0]) for b in (p, q))
            if len(spins) != 1 or (len(left), len(right)) != (len(p.places), len(q.places)):
                return None
            numbers.append(self._number(p, spins[0]))
            places.append(_pair(left[i], right[j]))
        cut = self._cut(numbers[0], numbers[1], places[0], places[1])
        if cut is not None:
            return cut.reshape(shape)
        if self._reference.density_fit is not None or not self._in_triangles(tensor, blocks):
            return None
        parts = [self._columns(b, self._common_spins(b, b)[0])[0] for b in blocks]
        # PySCF numbers the pairs as packed axes do.
        return self._general(parts, compact=True)

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

    @property
    def _source(self) -> Any:
        return self._reference.mol if self._reference.eri is None else self._reference.eri

    def _number(self, block: Block, spin: str) -> int:
        """The number of the coefficients of all orbitals of a frame with a part of this spin."""
        c = self._frame(block).coefficients[spin]
        c = c[:, np.any(c != 0, axis=0)]
        for number, known in enumerate(self._orbitals):
            if np.array_equal(known, c):
                return number
        self._orbitals.append(c)
        return len(self._orbitals) - 1

    def _places(self, block: Block, spin: str) -> Array:
        """Places of a block's orbitals among those of its frame with a part of this spin."""
        used = np.any(self._frame(block).coefficients[spin] != 0, axis=0)
        number = np.cumsum(used) - 1
        return np.array([number[k] for k in block.places if used[k]], int)

    def _cut(self, one: int, two: int, rows: Array, columns: Array) -> Array | None:
        """Integrals over some pairs of orbitals; None if all pairs were not transformed."""
        pairs = self._pairs.get((min(one, two), max(one, two)))
        if pairs is None:
            return None
        if one > two:
            pairs = pairs.T
        result = np.empty((len(rows), len(columns)))
        for place, row in zip(result, rows, strict=True):
            np.take(pairs[row], columns, out=place)
        return result

    def _transformed(self, p: Block, q: Block, r: Block, s: Block) -> Array:
        if self._reference.density_fit is not None:
            left, right = self.three_index(p, q), self.three_index(r, s)
            return np.tensordot(left, right, axes=(0, 0))
        blocks = (p, q, r, s)
        whole = tuple(len(block.places) for block in blocks)
        result = np.zeros(whole)
        for one, two in product(self._common_spins(p, q), self._common_spins(r, s)):
            parts = [self._columns(b, x) for b, x in zip(blocks, (one, one, two, two), strict=True)]
            shape = tuple(len(places) for _, places in parts)
            if 0 in shape:
                continue
            left, right = (
                _pair(self._places(a, x)[:, None], self._places(b, x)[None, :]).ravel()
                for a, b, x in ((p, q, one), (r, s, two))
            )
            part = self._cut(self._number(p, one), self._number(r, two), left, right)
            if part is None:
                part = self._general([c for c, _ in parts], compact=False)
            part = part.reshape(shape)
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


def _pair(i: Array, j: Array) -> Array:
    """Numbers of pairs of orbitals, in the order of PySCF."""
    high: Array = np.maximum(i, j)
    numbers: Array = high * (high + 1) // 2 + np.minimum(i, j)
    return numbers


def _flops(atomic: int, p: int, q: int, r: int, s: int) -> float:
    """Flops of a transform of integrals over atomic orbitals, first half and second half."""
    pairs = atomic * (atomic + 1) / 2
    made = p * (p + 1) / 2 if p == q else p * q
    first = pairs * 2 * (atomic**2 * min(p, q) + atomic * p * q)
    return float(first + made * 2 * (atomic**2 * min(r, s) + atomic * r * s))
