"""Two-electron integrals over blocks of orbitals of a reference.

An integral over orbitals of different spin in one charge density is zero, so that the same code
serves spatial orbitals, blocks by spin and spin orbitals. Blocks are cut out of the integrals over
all pairs of orbitals of sets, if these are there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import comb
from typing import Any

import numpy as np

from ..ir.layouts import Array
from ..ir.tensor import Tensor
from ..simplices import positions
from .frames import ALPHA, BETA, SPIN_ORBITAL, Block, Frame
from .integral_file import IntegralFile, StoredRows
from .pairs import AllowedPairs, pair_numbers

Blocks = tuple[Block, Block, Block, Block]


@dataclass(frozen=True, slots=True, eq=False)
class Irreps:
    """The irreps of the orbitals of each set, and the product of each two irreps."""

    of_sets: Sequence[Array]
    products: Array

    def of_pairs(self, number: int) -> Array:
        """The irreps of the pairs of orbitals of a set, in the order of a triangle."""
        own = self.of_sets[number]
        i, j = positions(len(own), 2, strict=False)
        return np.asarray(self.products[own[i], own[j]])


@dataclass(frozen=True, slots=True, eq=False)
class TransformOptions:
    """The place of integrals over all pairs of orbitals, and which of them are made.

    Attributes:
        beside: bytes of the blocks beside which they have to fit into memory.
        file: their place if they do not fit; a named file has them in any case.
        on_disk: tiles are cut out of them later, so that memory is not used.
        always: they are made even if that is more work than blocks one by one.
        irreps: integrals that these forbid may be left out: see ``largest_between``.
    """

    beside: float = 0.0
    file: IntegralFile | None = None
    on_disk: bool = False
    always: bool = False
    irreps: Irreps | None = None


class Integrals(ABC):
    """Integrals over the orbitals of frames; blocks are cached.

    ``counts`` are the numbers of orbitals of the sets. A subclass provides the integrals over pairs
    of orbitals of sets, and three-index ones.
    """

    def __init__(
        self, frames: Mapping[str, Frame], counts: Sequence[int], dtype: Any = float
    ) -> None:
        self._frames, self._counts, self._dtype = frames, counts, np.dtype(dtype)
        self._real = self._dtype.kind == "f"
        self._chemist: dict[Blocks, Array] = {}
        self._factors: dict[tuple[Block, Block], Array] = {}
        self._pairs: dict[tuple[int, int], Array] = {}
        self._stored: dict[tuple[int, int], StoredRows] = {}
        self._allowed: dict[tuple[int, int], AllowedPairs] = {}
        self._left_out = 0.0  # norm of the integrals that irreps forbid, if they were left out

    @property
    @abstractmethod
    def auxiliary(self) -> int:
        """Number of auxiliary functions."""

    @abstractmethod
    def transform_for(self, blocks: Iterable[Blocks], options: TransformOptions) -> None:
        """Make the integrals over all pairs for blocks (pq|rs), if that is less work than each."""

    @abstractmethod
    def _half(self, pairs: int) -> float:
        """Bytes that a transform to some pairs of orbitals takes beside its result."""

    @abstractmethod
    def _fitted(self, p: Block, q: Block) -> Array:
        """b[P,p,q], as in ``three_index``."""

    @abstractmethod
    def forget_pairs(self) -> None:
        """Drop the integrals over all pairs of orbitals, if they can be made again."""

    def forget(self) -> None:
        """Drop the cached blocks."""
        self._chemist.clear()
        self._factors.clear()

    def bytes_apart(self, tensor: Tensor, blocks: Blocks) -> float:
        """Most bytes while (pq|rs) is made alone, the result in the layout of a tensor included."""
        p, q, r, s = (len(block.places) for block in blocks)
        if self._in_triangles(tensor, blocks):
            left, right = comb(p + 1, 2), comb(r + 1, 2)
            return left * right * 8 + self._half(left)
        half = self._half(p * q if self._real else min(p * q, r * s))
        return float(p * q * r * s * self._dtype.itemsize * 2 + half)

    def stored(self, tensor: Tensor, blocks: Blocks) -> Array | None:
        """(pq|rs) in the layout of a tensor, without a dense array.

        It is cut out of the integrals over all pairs, or transformed into triangles; None if the
        layout or the spins ask for more.
        """
        layout = [packing for _, packing in tensor.stored()]
        if tensor.stored_order != (0, 1, 2, 3) or not self._real:
            return None
        shape: list[int] = []
        sides = []
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
            (number, left, _), (_, right, _) = (self._at(b, spins[0]) for b in (p, q))
            if len(spins) != 1 or (len(left), len(right)) != (len(p.places), len(q.places)):
                return None
            sides.append((number, self._pair(number, left[i], right[j])))
        cut = self._cut(*sides)
        if cut is not None:
            return cut.reshape(shape)
        return self.triangles(blocks[0], blocks[2]) if self._in_triangles(tensor, blocks) else None

    def triangles(self, p: Block, r: Block) -> Array | None:
        """(pq|rs) of real orbitals p >= q of one block and r >= s of another, as a matrix.

        None if the integrals are fitted.
        """
        sides = []
        for block in (p, r):
            number, places, _ = self._at(block, self._common_spins(block, block)[0])
            i, j = positions(len(places), 2, strict=False)
            sides.append((number, self._pair(number, places[i], places[j])))
        return self._cut(*sides)

    def chemist(self, p: Block, q: Block, r: Block, s: Block) -> Array:
        """(pq|rs) with axes p, q, r, s, in Hartree; do not write to it."""
        left = (p, q) if p <= q or not self._real else (q, p)
        right = (r, s) if r <= s or not self._real else (s, r)
        swapped = left > right
        key = (*right, *left) if swapped else (*left, *right)
        if key not in self._chemist:
            self._chemist[key] = self._transformed(*key)
        first = (0, 1) if (p, q) == left else (1, 0)
        second = (2, 3) if (r, s) == right else (3, 2)
        axes = tuple((k + 2) % 4 for k in (*first, *second)) if swapped else (*first, *second)
        return self._chemist[key].transpose(axes)

    def cut(self, p: Block, q: Block, r: Block, s: Block) -> Array:
        """(pq|rs) as ``chemist`` gives it, which is not kept."""
        return self._transformed(p, q, r, s)

    def has_pairs(self, blocks: Iterable[Block]) -> bool:
        """True if integrals over all pairs of these orbitals were made."""
        frames = {block.frame for block in blocks}
        sets = sorted({p.number for name in frames for p in self._frames[name].parts.values()})
        made = self._made()
        return all((k, n) in made for k in sets for n in sets if k <= n)

    def _made(self) -> set[tuple[int, int]]:
        """The sets over whose pairs of orbitals all integrals were made."""
        return self._pairs.keys() | self._stored.keys() | self._allowed.keys()

    def largest_between(self, irreps: Irreps) -> float:
        """The largest integral over all pairs whose irreps differ, in Hartree.

        Of those that were left out, it is the norm.
        """
        of_pairs = [irreps.of_pairs(number) for number in range(len(irreps.of_sets))]
        worst = self._left_out
        for (k, n), pairs in (self._pairs | self._stored).items():
            differs = [of_pairs[n] != g for g in range(len(irreps.products))]
            numbers = np.arange(len(of_pairs[k]))
            parts = pairs.parts(numbers) if isinstance(pairs, StoredRows) else [(numbers, pairs)]
            for place, rows in parts:
                for row, g in zip(rows, of_pairs[k][place], strict=True):
                    worst = max(worst, float(np.abs(row[differs[g]]).max(initial=0.0)))
        return worst

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

    def potential(self, name: str) -> Array:
        """The potential of all occupied orbitals of frames on those of a frame, in Hartree.

        It is sum_i <pi||qi> over spin orbitals i: without frozen ones.
        """
        frames = (SPIN_ORBITAL,) if name == SPIN_ORBITAL else (ALPHA, BETA)
        whole = Block(name, tuple(range(self._frames[name].count)))
        occupied = {n: Block(n, tuple(range(self._frames[n].occupied))) for n in (*frames, name)}
        own = occupied[name]
        result: Array = -np.einsum("piiq->pq", self._transformed(whole, own, own, whole))
        for other in frames:
            pairs = self._transformed(whole, whole, occupied[other], occupied[other])
            result += np.einsum("pqii->pq", pairs)
        return result

    def _at(self, block: Block, spin: str) -> tuple[int, Array, Array]:
        """The set of a block's orbitals with a part of this spin, their places in it and in it."""
        part = self._frames[block.frame].parts[spin]
        places = part.places[list(block.places)]
        used = np.flatnonzero(places >= 0)
        return part.number, places[used], used

    def _common_spins(self, p: Block, q: Block) -> list[str]:
        left, right = (self._frames[block.frame].parts for block in (p, q))
        return [spin for spin in left if spin in right]

    def _pair(self, number: int, i: Array, j: Array) -> Array:
        """Numbers of pairs of orbitals of a set."""
        return pair_numbers(i, j, self._counts[number], real=self._real)

    def _cut(self, left: tuple[int, Array], right: tuple[int, Array]) -> Array | None:
        """Integrals over pairs of orbitals, by set and number; None if not all were made."""
        (one, rows), (two, columns) = left, right
        key = min(one, two), max(one, two)
        allowed = self._allowed.get(key)
        if allowed is not None:
            return allowed.cut(rows, columns) if one <= two else allowed.cut(columns, rows).T
        pairs, stored = self._pairs.get(key), self._stored.get(key)
        if stored is not None:
            rows, columns = (rows, columns) if one <= two else (columns, rows)
            result = np.empty((len(rows), len(columns)), stored.dtype)
            for place, part in stored.parts(rows):
                np.take(part, columns, axis=1, out=result[place], mode="clip")
            return result if one <= two else np.ascontiguousarray(result.T)
        if pairs is None:
            return None
        if one > two:
            pairs = pairs.T
        result = np.empty((len(rows), len(columns)), pairs.dtype)
        for place, row in zip(result, rows, strict=True):
            np.take(pairs[row], columns, out=place)
        return result

    def _over(self, sets: Sequence[tuple[int, Array]]) -> Array:
        """(pq|rs) as a matrix for places of orbitals p, q, r, s in their sets."""
        pairs = (
            (i[0], self._pair(i[0], i[1][:, None], j[1][None, :]).ravel())
            for i, j in (sets[:2], sets[2:])
        )
        cut = self._cut(*pairs)
        assert cut is not None
        return cut

    def _in_triangles(self, tensor: Tensor, blocks: Blocks) -> bool:
        """True if transforms into triangles have the layout of a tensor."""
        p, q, r, s = blocks
        stored = [packing for _, packing in tensor.stored()]
        return (
            self._real
            and (p, r) == (q, s)
            and tensor.stored_order == (0, 1, 2, 3)
            and len(stored) == 2
            and all(x is not None and x.count == 2 and not x.antisymmetric for x in stored)
            and len(self._common_spins(p, p)) == len(self._common_spins(r, r)) == 1
        )

    def _transformed(self, p: Block, q: Block, r: Block, s: Block) -> Array:
        blocks = (p, q, r, s)
        whole = tuple(len(block.places) for block in blocks)
        result: Array | None = None
        for one, two in product(self._common_spins(p, q), self._common_spins(r, s)):
            at = [self._at(b, x) for b, x in zip(blocks, (one, one, two, two), strict=True)]
            shape = tuple(len(used) for *_, used in at)
            if 0 in shape:
                continue
            part = self._over([(number, places) for number, places, _ in at])
            part = part.reshape(shape)
            if result is None and shape == whole:
                result = part
                continue
            result = np.zeros(whole, self._dtype) if result is None else result
            result[np.ix_(*(used for *_, used in at))] += part
        return np.zeros(whole, self._dtype) if result is None else result
