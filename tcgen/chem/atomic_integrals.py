"""Integrals over orbitals from integrals over atomic orbitals, by PySCF.

Several blocks are cut out of one transform over all orbitals, if that takes fewer flops than a
transform for each. If integrals do not fit into memory, these go to a file, half-transformed too.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import comb
from typing import Any

import numpy as np

from ..compiler.progress import Progress
from ..errors import ArgumentError, UnavailableError, pip_install
from ..ir.layouts import Array
from .frames import Block, Frame
from .integral_file import IntegralFile, progress_of
from .integrals import Blocks, Integrals, TransformOptions
from .pairs import (
    AllowedPairs,
    blocks_of_columns,
    forbidden_norm,
    half_transformed,
    transposed_parts,
)

# Bytes that PySCF takes to transform integrals that it computes on the way.
_OUTCORE = 1e9
# Part of the memory for columns, or rows, between a file and the transform.
_IN_PARTS = 1 / 8


def pyscf_module(name: str) -> Any:
    """A module of PySCF, which is an extra and takes a second to load."""
    try:
        importlib.import_module("pyscf")
        return importlib.import_module(f"pyscf.{name}")
    except ImportError as error:
        raise UnavailableError(
            f"PySCF is not installed: pip install pyscf, or {pip_install('chem')}"
        ) from error


class AtomicIntegrals(Integrals):
    """Integrals that are transformed by block, or for all pairs of orbitals at once.

    Density-fitted references give fitted integrals, as in PySCF. Three-index integrals of other
    references are over ``auxbasis``, by default PySCF's choice for MP2.
    """

    def __init__(
        self,
        frames: Mapping[str, Frame],
        memory: float,
        coefficients: Sequence[Array],
        mol: Any,
        eri: Callable[[], Any],
        density_fit: Any,
        auxbasis: str | None,
    ) -> None:
        super().__init__(frames, [c.shape[1] for c in coefficients], np.result_type(*coefficients))
        if density_fit and auxbasis is not None and density_fit.auxbasis != auxbasis:
            raise ArgumentError(
                f"auxbasis={auxbasis!r}: the densities of the reference are fitted in "
                f"{density_fit.auxbasis or 'a basis of its own'}: leave it out, or give that basis "
                f"to mf.density_fit(auxbasis=...)"
            )
        self._memory, self._coefficients, self._mol, self._held = memory, coefficients, mol, eri
        self._density_fit, self._auxbasis = density_fit, auxbasis
        self._tell: Progress = lambda _: None
        self._fit: Any = None

    @property
    def _eri(self) -> Any:
        """Integrals over atomic orbitals that the mean field holds now, or None."""
        return self._held()

    @property
    def auxiliary(self) -> int:
        """Number of auxiliary functions."""
        return int(self._built().get_naoaux())

    def forget_pairs(self) -> None:
        """Drop the integrals over all pairs of orbitals."""
        for made in (self._pairs, self._stored, self._allowed):
            made.clear()

    def transform_for(self, blocks: Iterable[Blocks], options: TransformOptions) -> None:
        """Transform all orbitals at once for blocks (pq|rs), if that is less work than each.

        With a named file the result is read from there, or written there.
        """
        file, on_disk, irreps = options.file, options.on_disk, options.irreps
        apart, wanted = self._plan(blocks)
        named = file is not None and file.named is not None
        if file is not None:
            self._tell = file.tell
        always = options.always or named or self._at_once(apart, wanted, on_disk=on_disk)
        if not (wanted and always):
            return
        if file is not None and (found := file.pairs()):
            self._stored.update(found)
            return
        if named:
            # Other equations may read those of other spins.
            wanted = {(k, n) for n in range(len(self._coefficients)) for k in range(n + 1)}
        elements = sum(self._pair_count(k) * self._pair_count(n) for k, n in wanted)
        half = max(self._half(self._pair_count(k)) for k, _ in wanted)
        fits = elements * self._dtype.itemsize + max(half, options.beside) <= self._memory
        in_memory = fits and not on_disk and self._density_fit is None
        if file is None and not in_memory:
            return
        if file is not None and (named or not in_memory):
            on_file = 0 if in_memory else self._half_on_file(max(k for k, _ in wanted))
            file.reserve(on_file, elements * self._dtype.itemsize)
        for n, c in enumerate(self._coefficients):
            others = sorted(k for k, m in wanted if m == n)
            if others and not in_memory:
                assert file is not None
                self._to_file(file, n, others)
                continue
            first = self._first_half(c, c, compact=self._real) if others else None
            for k in others:
                d = self._coefficients[k]
                if irreps is not None and first is not None and self._real and not named:
                    rows, columns = irreps.of_pairs(k), irreps.of_pairs(n)
                    between = forbidden_norm(first, columns, d, irreps.of_sets[k], irreps.products)
                    self._left_out = max(self._left_out, between)
                    self._allowed[k, n] = AllowedPairs(
                        first, columns, d, rows, len(irreps.products)
                    )
                    continue
                made = self._general((d, d, c, c), first, compact=self._real)
                self._pairs[k, n] = made
                if named:
                    assert file is not None
                    file.create_pairs((k, n), made.shape, made.dtype)[...] = made
        if file is not None:
            stored = file.pairs()
            if not in_memory:
                self._stored.update(stored)

    def _plan(self, blocks: Iterable[Blocks]) -> tuple[float, set[tuple[int, int]]]:
        """Flops of a transform for each block, and the sets of both pairs of all of them."""
        apart: dict[object, float] = {}
        wanted: set[tuple[int, int]] = set()
        for p, q, r, s in blocks:
            sides = tuple(sorted((tuple(sorted((p, q))), tuple(sorted((r, s))))))
            for x, y in product(self._common_spins(p, q), self._common_spins(r, s)):
                at = [self._at(b, spin) for b, spin in ((p, x), (q, x), (r, y), (s, y))]
                one, two = at[0][0], at[2][0]
                wanted.add((min(one, two), max(one, two)))
                flops = _flops(self._mol.nao, *(len(places) for _, places, _ in at))
                apart[sides, one, two] = flops
        return sum(apart.values()), wanted

    def _at_once(self, apart: float, wanted: set[tuple[int, int]], *, on_disk: bool) -> bool:
        """True if one transform of all orbitals is less work than one for each block.

        Complex ones would take several times the room of blocks on disk.
        """
        if not self._real:
            return False
        if self._density_fit is not None:
            return on_disk
        count = self._counts
        of_pairs = ((count[k], count[k], count[n], count[n]) for k, n in wanted)
        return sum(_flops(self._mol.nao, *own) for own in of_pairs) <= apart

    def _pair_count(self, number: int) -> int:
        """Pairs of orbitals of a set."""
        count = self._counts[number]
        return comb(count + 1, 2) if self._real else count**2

    def _to_file(self, file: IntegralFile, n: int, others: Sequence[int]) -> None:
        """Integrals over all pairs, columns those of one set and rows those of others, in a file.

        Half-transformed integrals are there in between: rows are pairs of orbitals, columns those
        of atomic orbitals, or fitting functions.
        """
        half = self._half_in_file(file, n)
        columns, inner = half.shape
        room = self._memory * _IN_PARTS
        for k in others:
            d, rows = self._coefficients[k], self._pair_count(k)
            other = half if self._density_fit is None or k == n else self._half_in_file(file, k)
            data = file.create_pairs((k, n), (rows, columns), self._dtype)
            most = max(1, int(room / (self._dtype.itemsize * max(1, inner, rows))))
            show = progress_of(self._tell, "second half", columns)
            for start in range(0, columns, most):
                own = half[start : start + most]
                if self._density_fit is None:
                    parts = transposed_parts(own)
                    made = half_transformed(parts, len(own), d, d, triangle=self._real)
                    data[:, start : start + most] = made
                else:
                    for row in range(0, rows, most):
                        part = other[row : row + most]
                        data[row : row + most, start : start + most] = part @ own.T
                show(start + len(own))
            if other is not half:
                file.remove(f"half {k}")
        file.remove(f"half {n}")

    def _half_on_file(self, number: int) -> int:
        """Bytes of the half-transformed integrals that are on disk at once, up to a set."""
        fitted = self._density_fit is not None
        inner = self.auxiliary if fitted else comb(self._mol.nao + 1, 2)
        # Fitted ones of two sets are multiplied with each other.
        counts = sorted(map(self._pair_count, range(number + 1)))[-2 if fitted else -1 :]
        return int(sum(counts) * inner * self._dtype.itemsize)

    def _half_in_file(self, file: IntegralFile, n: int) -> Any:
        """Half-transformed integrals of all pairs of a set, as a dataset."""
        c, rows = self._coefficients[n], self._pair_count(n)
        if self._density_fit is None:
            columns, source = comb(len(c) + 1, 2), self._atomic_columns()
        else:
            columns = self.auxiliary
            source = (part for packed in self._built().loop() for part in transposed_parts(packed))
        half = file.create(f"half {n}", (rows, columns), self._dtype)
        start, room = 0, self._memory * _IN_PARTS
        show = progress_of(self._tell, "first half", columns)
        for parts in batches(source, room / (self._dtype.itemsize * max(1, rows))):
            width = sum(part.shape[1] for part in parts)
            made = half_transformed(parts, width, c, c, triangle=self._real)
            half[:, start : start + width] = made
            start += width
            show(start)
        return half

    def _atomic_columns(self) -> Iterator[Array]:
        """Integrals over atomic orbitals as a matrix of pairs, in blocks of columns.

        Those that the mean field does not hold are computed, by shells.
        """
        if self._eri is not None:
            yield from _columns(self._eri, comb(self._mol.nao + 1, 2))
            return
        first, count = self._mol.ao_loc_nr(), self._mol.nbas
        for shell in range(count):
            ranges = (shell, shell + 1, 0, shell + 1, 0, count, 0, count)
            made = self._mol.intor("int2e", aosym="s2kl", shls_slice=ranges)
            # Pairs of equal orbitals are those of a triangle.
            i, j = np.tril_indices(first[shell + 1])
            own = i >= first[shell]
            rows = made.reshape(*made.shape[:2], -1)[i[own] - first[shell], j[own]]
            yield from transposed_parts(rows)

    def _half(self, pairs: int) -> float:
        """Bytes of half-transformed integrals with some pairs of orbitals."""
        if self._density_fit is not None:
            return float(pairs * self.auxiliary * self._dtype.itemsize)
        if self._eri is None:
            return _OUTCORE
        atomic = self._mol.nao
        return float(pairs * comb(atomic + 1, 2) * self._dtype.itemsize)

    def _general(
        self, coefficients: Sequence[Array], half: Array | None = None, *, compact: bool
    ) -> Array:
        """(pq|rs) as a matrix; with ``compact`` over triangles of pairs of equal orbitals.

        ``half`` may have the first half of the transform, that of r and s.
        """
        if half is None:
            p, q, r, s = (c.shape[1] for c in coefficients)
            if not self._real and p * q < r * s:
                # The half of few pairs first: a large block is made in many parts.
                turned = self._general((*coefficients[2:], *coefficients[:2]), compact=compact)
                return np.ascontiguousarray(turned.T)
            half = self._first_half(*coefficients[2:], compact=compact)
        if half is not None:
            parts = self._shown(transposed_parts(half), "second half", len(half))
            return half_transformed(parts, len(half), *coefficients[:2], triangle=compact)
        from pyscf import ao2mo  # noqa: PLC0415

        options = {"max_memory": _OUTCORE / 1e6} if self._eri is None else {}
        source = self._mol if self._eri is None else self._eri
        return np.asarray(ao2mo.general(source, coefficients, compact=compact, **options))

    def _first_half(self, r: Array, s: Array, *, compact: bool) -> Array | None:
        """Integrals with orbitals r and s, and columns of atomic orbitals.

        None if PySCF makes both halves: in core it takes half of the time for blocks of different
        orbitals, and twice the time for triangles.
        """
        if self._real and (self._eri is None or not compact):
            return None
        eri = self._mol.intor("int2e", aosym="s4") if self._eri is None else self._eri
        pairs = comb(len(r) + 1, 2)
        parts = self._shown(_columns(eri, pairs), "first half", pairs)
        return half_transformed(parts, pairs, r, s, triangle=compact)

    def _shown(self, parts: Iterable[Array], work: str, count: int) -> Iterator[Array]:
        """Parts of a matrix of ``count`` columns, whose transform is shown as progress."""
        show, done = progress_of(self._tell, work, count), 0
        for part in parts:
            yield part
            done += part.shape[1]
            show(done)

    def _over(self, sets: Sequence[tuple[int, Array]]) -> Array:
        one, two = sorted((sets[0][0], sets[2][0]))
        if (one, two) in self._made():
            return super()._over(sets)
        return self._general([self._coefficients[k][:, n] for k, n in sets], compact=False)

    def triangles(self, p: Block, r: Block) -> Array | None:
        """The same, but None if the integrals are fitted and were not made for all pairs."""
        cut = super().triangles(p, r)
        if cut is not None or self._density_fit is not None:
            return cut
        parts = [self._of(b, self._common_spins(b, b)[0])[0] for b in (p, p, r, r)]
        return self._general(parts, compact=True)

    def _transformed(self, p: Block, q: Block, r: Block, s: Block) -> Array:
        if self._density_fit is None or self.has_pairs((p, q, r, s)):
            return super()._transformed(p, q, r, s)
        return np.tensordot(self.three_index(p, q), self.three_index(r, s), axes=(0, 0))

    def _built(self) -> Any:
        if self._fit is None:
            fit = self._density_fit
            if fit is None and not self._mol._basis:
                raise ArgumentError(
                    "the mean field has integrals of a file or of a model, without a basis set to "
                    "fit: use equations without three-index integrals, or pass these with inputs="
                )
            if fit is None:
                from pyscf import df  # noqa: PLC0415

                fit = df.DF(self._mol, auxbasis=self._auxbasis)
                if self._auxbasis is None:
                    fit.auxbasis = df.make_auxbasis(self._mol, mp2fit=True)
            build_fit(fit)
            self._fit = fit
        return self._fit

    def _fitted(self, p: Block, q: Block) -> Array:
        from pyscf import lib  # noqa: PLC0415

        result = np.zeros((self.auxiliary, len(p.places), len(q.places)), self._dtype)
        start = 0
        for packed in self._built().loop():
            over_orbitals = lib.unpack_tril(np.asarray(packed))
            stop = start + len(over_orbitals)
            for spin in self._common_spins(p, q):
                (left, rows), (right, columns) = (self._of(b, spin) for b in (p, q))
                half = np.tensordot(over_orbitals, right, axes=(2, 0))  # axes P, AO, q
                part = np.matmul(left.conj().T, half)
                result[np.ix_(np.arange(start, stop), rows, columns)] += part
            start = stop
        return result

    def _of(self, block: Block, spin: str) -> tuple[Array, Array]:
        """Coefficients of the orbitals with a part of this spin, and their places in the block."""
        number, places, used = self._at(block, spin)
        return self._coefficients[number][:, places], used


def _flops(atomic: int, p: int, q: int, r: int, s: int) -> float:
    """Flops of a transform of integrals over atomic orbitals, first half and second half."""
    pairs = atomic * (atomic + 1) / 2
    made = p * (p + 1) / 2 if p == q else p * q
    first = pairs * 2 * (atomic**2 * min(p, q) + atomic * p * q)
    return float(first + made * 2 * (atomic**2 * min(r, s) + atomic * r * s))


def batches(parts: Iterable[Array], columns: float) -> Iterator[list[Array]]:
    """Parts of a matrix in lists with at least a number of columns, but for the last one.

    Example:
        >>> [len(some) for some in batches([np.zeros((2, 3))] * 5, 6.0)]
        [2, 2, 1]
    """
    some: list[Array] = []
    for part in parts:
        some.append(part)
        if sum(one.shape[1] for one in some) >= columns:
            yield some
            some = []
    if some:
        yield some


def _columns(eri: Array, pairs: int) -> Iterator[Array]:
    """Integrals over real functions as a matrix of pairs, in blocks of columns.

    They are there by 8-fold symmetry, as a matrix of pairs, or whole.
    """
    blocks = blocks_of_columns(pairs)
    if eri.size == comb(pairs + 1, 2):
        k = np.arange(pairs)
        first = k * (k + 1) // 2
        # The larger one of two numbers is that of the element in the lower triangle.
        numbers = (np.maximum(first[:, None] + k[b], first[b] + k[:, None]) for b in blocks)
        return (np.take(eri, number, mode="clip") for number in numbers)
    if eri.size != pairs**2:
        from pyscf import ao2mo  # noqa: PLC0415

        eri = ao2mo.restore(4, eri, len(eri))
    matrix = eri.reshape(pairs, pairs)
    return (matrix[:, block] for block in blocks)


def build_fit(fit: Any) -> None:
    """Make the three-index integrals of a PySCF object for density fitting."""
    if fit._cderi is not None:
        return
    try:
        fit.build()
    except RuntimeError as error:  # the base class of PySCF's error for unknown basis sets
        raise ArgumentError(
            f"PySCF cannot fit densities in the auxiliary basis {fit.auxbasis}: "
            f"{' '.join(str(error).split())}: choose another one with auxbasis"
        ) from error
