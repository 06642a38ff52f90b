"""A Hamiltonian over orthonormal orbitals: integrals of any program or model, without an SCF.

The determinant is that of the occupied orbitals that the caller names. Its Fock matrix is made from
the integrals, so that orbitals need not be canonical.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..ir.layouts import Array
from ..options import parse_bytes
from ..simplices import extent_of, positions
from .crystal import has_kpoints, read_crystal
from .frames import ALPHA, BETA, SPIN_ORBITAL, Block, Frame, Frozen, frames_of
from .integrals import Blocks, Integrals, TransformOptions
from .mean_field import read_mean_field
from .reference import Reference

_SYMMETRIC = 1e-8  # largest deviation of integrals that are equal by symmetry, in Hartree
_AT_ONCE = 1 << 22  # elements that are compared at once
_CANONICAL = 1e-5  # largest element of a Fock matrix that is zero for a converged SCF, in Hartree
_LEVEL = 1e-6  # difference of orbital energies that are equal, in Hartree


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Hamiltonian:
    """Integrals over orbitals and a determinant; :func:`hamiltonian` makes it.

    Attributes:
        kind: "RHF", "ROHF", "UHF", or "GHF" for spin orbitals.
        nelec: numbers of alpha and beta electrons; of all electrons and 0 for spin orbitals.
        core: energy without electrons, in Hartree.
        e_hf: energy of the determinant, in Hartree.
        h: core Hamiltonians in Hartree, for UHF those of alpha and of beta orbitals.
        fock: Fock matrices of alpha and of beta electrons in Hartree, one for spin orbitals.
        occupations: electrons in each orbital; for UHF in two rows.
        irreps: labels of the orbitals, or None; ``isym`` is that of the state.
        frozen: orbitals that are not correlated, as in :func:`tcgen.chem.solve`.
        origin: source of the integrals, in words.
    """

    kind: str
    nelec: tuple[int, int]
    core: float
    e_hf: float
    h: tuple[Array, ...]
    fock: tuple[Array, ...]
    occupations: Array
    irreps: tuple[int | str, ...] | None
    isym: int | None
    frozen: Frozen
    origin: str
    memory: float
    pairs: Mapping[tuple[int, int], Array]
    factors: tuple[Array, ...]

    def __repr__(self) -> str:
        orbitals = f"{len(self.h[0])} {'spin orbitals' if self.kind == 'GHF' else 'orbitals'}"
        return f"<{self.kind}, {orbitals}, E(HF) = {self.e_hf:.10f}, integrals of {self.origin}>"

    def reference(self, frozen: Frozen = 0) -> HeldReference:
        """The reference that equations read, without frozen orbitals.

        Raises:
            ArgumentError: orbitals are frozen here and there, or do not fit.
        """
        unset = [f is None or (not np.iterable(f) and f == 0) for f in (frozen, self.frozen)]
        if not any(unset):
            raise ArgumentError(
                f"frozen={frozen!r} is given to a Hamiltonian that has frozen={self.frozen!r}: "
                f"leave one of them out"
            )
        given: Any = self.frozen if unset[0] else frozen
        first = np.atleast_2d(self.occupations)[:, : given if isinstance(given, int) else 0]
        if np.any(first == 0):
            raise ArgumentError(
                f"frozen={given} are the first orbitals, and some of them are not occupied: give a "
                f"list of orbitals, counted from 0"
            )
        frames = frames_of(self.kind, self.fock, self.occupations, given)
        return HeldReference(self.kind, self.e_hf, frames, self.memory, self.origin, self)


@dataclass(frozen=True, slots=True, eq=False)
class HeldReference(Reference):
    """The determinant of a Hamiltonian."""

    hamiltonian: Hamiltonian

    def integrals(self, auxbasis: str | None = None) -> HeldIntegrals:
        """The integrals that are held; an auxiliary basis is refused."""
        if auxbasis is not None:
            raise ArgumentError(
                f"auxbasis={auxbasis!r} fits integrals over atomic orbitals, which the integrals "
                f"of {self.origin} are not: leave it out"
            )
        return HeldIntegrals(self.frames, self.hamiltonian)

    def dipole(self, frame: Frame) -> Array | None:  # noqa: ARG002
        """None."""
        return None

    def moments(self, order: int) -> Array | None:
        """That orbitals of one set are orthonormal; None for others, and for coordinates."""
        held = self.hamiltonian
        return np.eye(len(held.h[0]))[None] if order == 0 and len(held.h) == 1 else None

    def by_spin(self, frame: Frame) -> list[Array]:
        """Unit vectors."""
        found = []
        for part in frame.parts.values():
            used = np.flatnonzero(part.places >= 0)
            c = np.zeros((len(self.hamiltonian.h[part.number]), frame.count))
            c[part.places[used], used] = 1.0
            found.append(c)
        return found

    def density(self) -> Array:
        """The occupations; zero for alpha and beta orbitals of their own."""
        occupations = self.hamiltonian.occupations
        return np.diag(occupations if occupations.ndim == 1 else 0.0 * occupations[0])

    def of_nuclei(self, order: int) -> Array:
        """Zero: places of nuclei are not known."""
        return np.zeros((3,) * order)

    def numbers(self, number: int) -> Array:
        """All numbers."""
        return np.arange(len(self.hamiltonian.h[number]))

    def irreps(self, frame: Frame) -> tuple[list[int], Callable[[int], str]] | None:
        """Molpro's numbers from 1, whose products are exclusive ors from 0; None for others."""
        labels = self.hamiltonian.irreps
        known = labels is not None and all(isinstance(x, int) and 1 <= x <= 8 for x in labels)
        if labels is None or not known or len({*labels}) == 1:
            return None
        numbers = [0] * frame.count
        for part in frame.parts.values():
            for k, place in enumerate(part.places):
                numbers[k] = int(labels[place]) - 1 if place >= 0 else numbers[k]
        return numbers, lambda label: str(label + 1)

    def fingerprint(self) -> dict[str, Any]:
        """The energy, and numbers that a sign or a rotation of orbitals changes."""
        frame, held = self.frames[SPIN_ORBITAL], self.hamiltonian
        integrals = HeldIntegrals(self.frames, held)
        numbers = [integrals.mark(k) + np.cos(np.arange(len(h))) @ h for k, h in enumerate(held.h)]
        marks = [
            np.where(part.places < 0, 0.0, numbers[part.number][part.places])
            for part in frame.parts.values()
        ]
        return {
            "atoms": "none, but integrals over orbitals",
            "energy": self.e_hf,
            "frozen orbitals or orbital energies": np.sort(frame.energies).tolist(),
            "orbitals or signs of orbitals": np.array(marks).view(float).tolist(),
        }


class HeldIntegrals(Integrals):
    """Integrals over all pairs of orbitals that are held, or made from three-index ones."""

    def __init__(self, frames: Mapping[str, Frame], held: Hamiltonian) -> None:
        counts = [len(h) for h in held.h]
        super().__init__(frames, counts, np.result_type(*held.pairs.values(), *held.factors))
        self._pairs.update(held.pairs)
        self._held = held

    @property
    def auxiliary(self) -> int:
        """Number of auxiliary functions."""
        return len(self._three(0))

    def transform_for(self, blocks: Iterable[Blocks], options: TransformOptions) -> None:
        """Nothing."""

    def forget_pairs(self) -> None:
        """Nothing: the caller's arrays stay."""

    def mark(self, number: int) -> Array:
        """A number for each orbital of a set, sum_qrs (pq|rs) w_q w_r w_s with w_q = cos q."""
        numbers, factors = [], self._held.factors
        over: Any = 0.0
        for k, n in enumerate(self._counts):
            i, j = np.indices((n, n))
            numbers.append(self._pair(k, i, j))
            weights = np.bincount(numbers[k].ravel(), (np.cos(i) * np.cos(j)).ravel())
            if factors:
                over = over + factors[number].T @ (factors[k] @ weights)
            else:
                pairs = self._pairs[min(number, k), max(number, k)]
                over = over + (pairs if number <= k else pairs.T) @ weights
        marks: Array = over[numbers[number]] @ np.cos(np.arange(self._counts[number]))
        return marks

    def _half(self, pairs: int) -> float:  # noqa: ARG002
        return 0.0

    def _cut(self, left: tuple[int, Array], right: tuple[int, Array]) -> Array | None:
        if not self._held.factors:
            return super()._cut(left, right)
        (one, rows), (two, columns) = left, right
        return self._three(one)[:, rows].T @ self._three(two)[:, columns]

    def _fitted(self, p: Block, q: Block) -> Array:
        result = np.zeros((self.auxiliary, len(p.places), len(q.places)), self._dtype)
        for spin in self._common_spins(p, q):
            (number, left, rows), (_, right, columns) = (self._at(b, spin) for b in (p, q))
            pairs = self._pair(number, left[:, None], right[None, :])
            result[:, rows[:, None], columns] = self._three(number)[:, pairs]
        return result

    def _three(self, number: int) -> Array:
        if not self._held.factors:
            raise ArgumentError(
                f"the integrals of {self._held.origin} have four indices, without a basis set to "
                f"fit: use equations without three-index integrals, pass these with inputs=, or "
                f"make the Hamiltonian with cderi="
            )
        return self._held.factors[number]


def hamiltonian(
    h: Any,
    eri: Any = None,
    nelec: Any = None,
    *,
    cderi: Any = None,
    spin: int | None = None,
    core: float = 0.0,
    spin_orbitals: bool = False,
    occupied: Any = None,
    orbital_energies: Any = None,
    irreps: Sequence[int | str] | None = None,
    isym: int | None = None,
    frozen: Frozen = 0,
    memory: str | int = "4GB",
    origin: str = "arrays",
) -> Hamiltonian:
    """Integrals over orthonormal orbitals as a reference for ``solve``, in place of a mean field.

    Integrals are in chemists' notation, (pq|rs), and in Hartree. The Fock matrix is made from them;
    orbitals that are not canonical give a warning with its elements that do not vanish.

    Args:
        h: core Hamiltonian, n x n; two of these for alpha and beta orbitals of their own.
        eri: two-electron integrals: n x n x n x n, or over the n(n+1)/2 pairs p >= q of real
            orbitals as a square or its lower triangle; for alpha and beta orbitals three of these:
            (aa|aa), (aa|bb), (bb|bb).
        nelec: number of electrons, or those of alpha and beta electrons.
        cderi: three-index integrals b in place of ``eri``, with (pq|rs) = sum over P of
            b[P,p,q] b[P,r,s], vectors x n x n or vectors x pairs; two of these for alpha and beta
            orbitals.
        spin: 2S, the number of unpaired electrons; by default the least.
        core: energy without electrons, such as the repulsion of nuclei.
        spin_orbitals: the orbitals are spin orbitals, which may mix spins and be complex.
        occupied: numbers of the occupied orbitals, from 0; a list for each spin unless they are
            the same. By default the lowest of ``orbital_energies``, or else the first.
        orbital_energies: n numbers in Hartree, in two rows for alpha and beta orbitals. They choose
            the occupied orbitals; denominators have the diagonal of the Fock matrix.
        irreps: a label for each orbital.
        isym: the label of the state.
        frozen: orbitals that are not correlated, as in ``solve``.
        memory: bytes that arrays of integrals may take together; larger ones go to a file.
        origin: source of the integrals, for messages and ``--json``.

    Raises:
        ArgumentError: numbers of electrons, or symmetries of integrals, contradict each other.
        ShapeError: an array has another shape.

    Example (two sites of a Hubbard model, as two orbitals):
        >>> h = np.array([[-1.0, 0.0], [0.0, 1.0]])
        >>> eri = np.zeros((2, 2, 2, 2))
        >>> for p, q, r, s in np.ndindex(eri.shape):
        ...     eri[p, q, r, s] = 2.0 if (p + q + r + s) % 2 == 0 else 0.0
        >>> round(hamiltonian(h, eri / 2, nelec=2).e_hf, 6)
        -1.0
    """
    if (eri is None) == (cderi is None):
        raise ArgumentError("give either eri, (pq|rs), or cderi, three-index integrals")
    whole = _numbers("h", h)
    unrestricted = whole.ndim == 3
    cores = tuple(whole) if unrestricted else (whole,)
    if whole.ndim not in (2, 3):
        raise ShapeError(f"h has the shape {whole.shape}: it is n x n")
    if len(cores) > 2 or (spin_orbitals and unrestricted):
        raise ArgumentError(
            "h has several matrices: give one, or with alpha and beta orbitals two, and not with "
            "spin_orbitals=True"
        )
    count = len(whole[0]) if unrestricted else len(whole)
    for one in cores:
        if one.shape != (count, count):
            raise ShapeError(f"h has the shape {one.shape}: it is n x n, for {count} orbitals")
        _refuse_asymmetric("h", one, {"h[p,q] = conj(h[q,p])": one.T.conj()})
    pairs: dict[tuple[int, int], Array] = {}
    factors: tuple[Array, ...] = ()
    given = eri if cderi is None else cderi
    name = "eri" if cderi is None else "cderi"
    several = unrestricted and np.iterable(given)
    parts = [_numbers(name, one) for one in (given if several else [given])]
    complex_orbitals = any(map(np.iscomplexobj, (*cores, *parts)))
    if len(parts) != (1 if not unrestricted else 3 if cderi is None else 2):
        raise ShapeError(
            f"alpha and beta orbitals need three arrays eri, (aa|aa), (aa|bb) and (bb|bb), or two "
            f"arrays cderi, and there are {len(parts)}"
        )
    if cderi is None:
        places = [(0, 0), (0, 1), (1, 1)]
        pairs = {
            place: _over_pairs(part, count, place, complex_orbitals)
            for place, part in zip(places, parts, strict=False)
        }
    else:
        factors = tuple(_vectors(part, count, complex_orbitals) for part in parts)
    electrons = _electrons(nelec, spin, count, spin_orbitals)
    kind = "GHF" if spin_orbitals else "UHF" if unrestricted else "RHF"
    kind = "ROHF" if kind == "RHF" and electrons[0] != electrons[1] else kind
    occupations = _occupations(kind, electrons, count, occupied, orbital_energies)
    labels, state = _labels(irreps, count), _number_of_state(isym)

    energy_without = _numbers("core", core)
    if energy_without.ndim or energy_without.imag or not np.isfinite(energy_without):
        raise ArgumentError(f"core={core!r:.80} is not an energy: give one real number, in Hartree")
    start = float(energy_without.real)

    def made(fock: Sequence[Array], energy: float) -> Hamiltonian:
        return Hamiltonian(
            kind, electrons, start, energy, cores, tuple(fock), occupations, labels, state,
            frozen, origin, float(parse_bytes(memory)), pairs, factors,
        )  # fmt: skip

    bare = cores if spin_orbitals or unrestricted else cores * 2
    frames = frames_of(kind, bare, occupations, 0)
    integrals = HeldIntegrals(frames, made((), 0.0))
    fock, energy = [], start
    names = (SPIN_ORBITAL,) if spin_orbitals else (ALPHA, BETA)
    for name, one in zip(names, bare, strict=True):
        order = next(iter(frames[name].parts.values())).places
        fock.append(one + integrals.potential(name)[np.ix_(*[np.argsort(order)] * 2)])
        among = order[: frames[name].occupied]
        energy += float((one + fock[-1]).diagonal()[among].real.sum()) / 2
    result = made(fock, energy)
    _warn_of_orbitals(result, frames_of(kind, fock, occupations, 0))
    return result


def read_reference(source: Any, frozen: Frozen = 0) -> Reference:
    """The reference of a Hamiltonian, or of a mean field of PySCF."""
    if isinstance(source, Hamiltonian):
        return source.reference(frozen)
    return read_crystal(source, frozen) if has_kpoints(source) else read_mean_field(source, frozen)


def _numbers(name: str, given: Any) -> Array:
    """An array in double precision, real or complex."""
    try:
        array = np.asarray(given)
        array = array.astype(np.promote_types(array.dtype, float), copy=False)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype.kind not in "fc":
        raise ArgumentError(f"{name} is not an array of numbers, or of arrays of one shape")
    return array


def _refuse_asymmetric(name: str, array: Array, images: Mapping[str, Array]) -> None:
    for law, image in images.items():
        step = max(1, _AT_ONCE // max(1, array[:1].size))
        parts = (slice(k, k + step) for k in range(0, len(array), step))
        found = [np.abs(array[part] - image[part]).max(initial=0.0) for part in parts]
        deviation = float(np.max(found, initial=0.0))
        if not deviation <= _SYMMETRIC:
            raise ArgumentError(
                f"{name} deviates by {deviation:.1e} from {law}: correct it; integrals are those "
                f"of chemists, (pq|rs), which <pq|rs> become by transpose(0, 2, 1, 3)"
            )


def _over_pairs(eri: Array, n: int, place: tuple[int, int], complex_orbitals: bool) -> Array:
    """Integrals as a matrix over pairs of orbitals."""
    name, same = f"eri[{sum(place)}]" if place != (0, 0) else "eri", len({*place}) == 1
    pairs = n * (n + 1) // 2
    if eri.shape == (n,) * 4:
        laws = {"(pq|rs) = conj(qp|sr)": eri.transpose(1, 0, 3, 2).conj()}
        if not complex_orbitals:
            laws["(pq|rs) = (qp|rs)"] = eri.transpose(1, 0, 2, 3)
        if same:
            laws["(pq|rs) = (rs|pq)"] = eri.transpose(2, 3, 0, 1)
        _refuse_asymmetric(name, eri, laws)
        if complex_orbitals:
            return eri.reshape(n * n, n * n)
        i, j = positions(n, 2, strict=False)
        return eri[i, j][:, i, j]
    if complex_orbitals:
        raise ShapeError(f"{name} has the shape {eri.shape}: of complex orbitals it is {(n,) * 4}")
    if eri.shape == (pairs, pairs):
        if same:
            _refuse_asymmetric(name, eri, {"(pq|rs) = (rs|pq)": eri.T})
        return eri
    if same and eri.ndim == 1 and extent_of(eri.size, 2, strict=False) == pairs:
        i, j = positions(pairs, 2, strict=False)
        whole = np.empty((pairs, pairs))
        whole[i, j] = whole[j, i] = eri
        return whole
    raise ShapeError(
        f"{name} has the shape {eri.shape}: for {n} orbitals it is {(n,) * 4}, or "
        f"{(pairs, pairs)} over pairs p >= q"
    )


def _vectors(cderi: Array, n: int, complex_orbitals: bool) -> Array:
    """Three-index integrals as vectors over pairs of orbitals."""
    if cderi.ndim == 3 and cderi.shape[1:] == (n, n):
        images = {"b[P,p,q] = conj(b[P,q,p])": cderi.transpose(0, 2, 1).conj()}
        _refuse_asymmetric("cderi", cderi, images)
        i, j = positions(n, 2, strict=False)
        return cderi.reshape(-1, n * n) if complex_orbitals else cderi[:, i, j]
    pairs = n * (n + 1) // 2
    if complex_orbitals or cderi.shape[1:] != (pairs,):
        raise ShapeError(
            f"cderi has the shape {cderi.shape}: for {n} orbitals it is vectors x {n} x {n}, or of "
            f"real orbitals vectors x {pairs} pairs p >= q"
        )
    return cderi


def _electrons(nelec: Any, spin: int | None, count: int, spin_orbitals: bool) -> tuple[int, int]:
    """Numbers of alpha and beta electrons; of all and 0 for spin orbitals."""
    try:
        given = np.atleast_1d(np.asarray(-1 if nelec is None else nelec))
    except ValueError:  # lists of different lengths
        given = np.array([-1])
    number = given.dtype.kind in "iuf"
    whole = (
        number and given.size in (1, 2) and np.all(given == np.rint(given)) and np.all(given >= 0)
    )
    numbers = [int(n) for n in given] if whole else []
    total = sum(numbers)
    if spin_orbitals:
        if whole and total <= count:
            return total, 0
        fits = f"{count} spin orbitals"
    else:
        try:
            unpaired = total % 2 if spin is None else index(spin)
        except TypeError:
            message = f"spin={spin!r:.80} is not 2S, the number of unpaired electrons"
            raise ArgumentError(message) from None
        if len(numbers) == 2:
            unpaired = numbers[0] - numbers[1] if spin is None else unpaired
        alpha, beta = (total + unpaired) // 2, (total - unpaired) // 2
        odd = (total + unpaired) % 2 or (len(numbers) == 2 and [alpha, beta] != numbers)
        if whole and not odd and min(alpha, beta) >= 0 and max(alpha, beta) <= count:
            return alpha, beta
        fits = f"spin={spin} in {count} orbitals"
    raise ArgumentError(
        f"nelec={nelec!r} does not fit {fits}: give the number of electrons, or those of alpha and "
        f"beta electrons, and spin=2S, the number of unpaired ones"
    )


def _labels(irreps: Any, count: int) -> tuple[int | str, ...] | None:
    """Labels of the orbitals, integers or texts."""
    if irreps is None:
        return None
    known = np.iterable(irreps) and not isinstance(irreps, str | bytes | Mapping)
    labels = list(irreps) if known else []
    numbers = [isinstance(x, int | np.integer) and not isinstance(x, bool) for x in labels]
    texts = [isinstance(x, str) for x in labels]
    if not known or not all(a or b for a, b in zip(numbers, texts, strict=True)):
        raise ArgumentError(
            f"irreps={irreps!r:.80} is not a list of labels: give an integer or a text for each of "
            f"the {count} orbitals"
        )
    if len(labels) != count:
        raise ShapeError(f"irreps has {len(labels)} labels, and there are {count} orbitals")
    return tuple(str(x) if text else int(x) for x, text in zip(labels, texts, strict=True))


def _number_of_state(isym: Any) -> int | None:
    try:
        return None if isym is None else index(isym)
    except TypeError:
        raise ArgumentError(
            f"isym={isym!r:.80} is not an integer, the label of the state"
        ) from None


def _occupations(
    kind: str, electrons: tuple[int, int], count: int, occupied: Any, energies: Any
) -> Array:
    """Electrons in each orbital, in two rows for UHF."""
    spins = 1 if kind in ("RHF", "GHF") else 2
    if occupied is not None:
        try:
            several = len(occupied) == 2 and all(np.ndim(one) == 1 for one in occupied)
            lists = occupied if several else [occupied] * spins
            chosen = [[index(k) for k in one] for one in lists]
        except TypeError:
            chosen = [[-1]]
    else:
        order = np.arange(count)[None, :]
        if energies is not None:
            levels = np.atleast_2d(_numbers("orbital_energies", energies))
            if levels.shape[1:] != (count,) or len(levels) > 2:
                raise ShapeError(
                    f"orbital_energies has the shape {np.shape(energies)}, and there are {count} "
                    f"orbitals"
                )
            if levels.dtype.kind == "c" or not np.all(np.isfinite(levels)):
                raise ArgumentError(
                    "orbital_energies has numbers that are not real or not finite: leave it out, "
                    "and name the occupied orbitals (occupied=)"
                )
            order = np.argsort(levels, axis=1, kind="stable")
        chosen = [order[min(s, len(order) - 1), : electrons[s]].tolist() for s in range(spins)]
    filled = np.zeros((spins, count))
    # A closed shell may be given by the lists of both spins, spin orbitals only by one.
    lists_allowed = (1,) if kind == "GHF" else (1, 2) if kind == "RHF" else (2,)
    for spin, own in enumerate(chosen):
        wrong = len(chosen) not in lists_allowed or not {*own} <= {*range(count)}
        if wrong or len({*own}) != electrons[spin]:
            raise ArgumentError(
                f"occupied={occupied!r:.80} does not fit: give the numbers, from 0 to {count - 1}, "
                f"of {' and '.join(str(n) for n in electrons[:spins])} orbitals"
            )
        filled[min(spin, spins - 1), own] = 1
    if kind == "UHF":
        return filled
    unequal = kind == "RHF" and {*chosen[0]} != {*chosen[-1]}
    if unequal or (kind == "ROHF" and np.any(filled[1] > filled[0])):
        raise ArgumentError(
            "beta electrons are in orbitals without alpha electrons: exchange the spins (spin=2S "
            "is not negative), or give alpha and beta orbitals of their own"
        )
    total: Array = filled.sum(axis=0)
    return total * 2 if kind == "RHF" else total


def _warn_of_orbitals(held: Hamiltonian, frames: Mapping[str, Frame]) -> None:
    """Warn if virtual orbitals lie below occupied ones, or elements of the Fock matrix remain."""
    coupling = rest = 0.0
    words = {SPIN_ORBITAL: ""} if held.kind == "GHF" else {ALPHA: ""}
    if held.kind in ("ROHF", "UHF"):
        words = {ALPHA: " for alpha electrons", BETA: " for beta electrons"}
    for name, word in words.items():
        frame = frames[name]
        o, energies = frame.occupied, frame.energies
        order = next(iter(frame.parts.values())).places
        if energies[:o].max(initial=-np.inf) > energies[o:].min(initial=np.inf) + _LEVEL:
            lowest = sorted(order[np.argsort(energies, kind="stable")[:o]].tolist())
            warnings.warn(
                f"an occupied orbital of {held.origin} lies above a virtual one: orbitals may not "
                f"be in order of energy: the lowest are occupied={lowest}{word}",
                RuntimeWarning,
                stacklevel=3,
            )
        coupling, rest = map(max, (coupling, rest), frame.off_diagonal())
    if max(coupling, rest) > _CANONICAL:
        warnings.warn(
            f"the orbitals of {held.origin} are not canonical: the Fock matrix has elements of up "
            f"to {coupling:.1e} Hartree between occupied and virtual orbitals (f_ov), and "
            f"{rest:.1e} among each: use equations that read its blocks; equations with orbital "
            f"energies leave these elements out",
            RuntimeWarning,
            stacklevel=3,
        )
