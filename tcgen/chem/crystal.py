"""A mean field of PySCF with k-points: its orbitals, Fock matrices and energy.

The orbitals of all k-points are those of one crystal of N cells. Fock matrices do not contain the
correction of the exchange for its finite extent (PySCF's ``exxdiv``), as in PySCF's coupled
cluster. Orbital energies are those of the mean field, in which that correction lowers occupied
orbitals; these are the denominators of MP2 and (T).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm, prod
from operator import index
from typing import Any

import numpy as np

from ..errors import ArgumentError, ConvergenceError
from ..grading import Grading
from ..ir.layouts import Array
from .atomic_integrals import pyscf_module
from .crystal_integrals import CrystalIntegrals
from .frames import ALPHA, BETA, SPIN_ORBITAL, Frame, Frozen, compacted, frames_of, numbers_of
from .mean_field import own_attribute
from .reference import Reference

# Largest distance of k-points that are the same, in units of reciprocal vectors, as in PySCF.
_SAME = 1e-6
_MOST_POINTS = 100  # along one reciprocal axis


@dataclass(frozen=True, slots=True, eq=False)
class Crystal(Reference):
    """A mean field with k-points, whose energy is that of one cell.

    ``coefficients`` are those of each set of orbitals at each k-point over atomic orbitals,
    ``of_set`` the numbers of orbitals among those of all k-points in turn, and ``at`` the numbers
    of their k-points. ``mesh`` is the group of the momenta, and ``momenta`` the element of each
    k-point in it.
    """

    coefficients: tuple[tuple[Array, ...], ...]
    of_set: tuple[Array, ...]
    at: tuple[Array, ...]
    cell: Any
    kpts: Array
    mesh: tuple[int, ...]
    momenta: tuple[int, ...]
    density_fit: Any

    @property
    def cells(self) -> int:
        """The number of k-points, and of cells of the crystal."""
        return len(self.kpts)

    def group(self) -> Grading:
        """The group of the momenta, without orbitals."""
        return Grading(self.mesh, {}, name=f"k-points {' x '.join(map(str, self.mesh))}")

    def elements(self) -> tuple[tuple[int, ...], ...]:
        """The momentum of each orbital of each set."""
        return tuple(tuple(self.momenta[k] for k in own) for own in self.at)

    def integrals(self, auxbasis: str | None = None) -> CrystalIntegrals:
        """Products of the three-index integrals of the mean field; another basis is refused."""
        if auxbasis is not None:
            raise ArgumentError(
                f"auxbasis={auxbasis!r}, but integrals are those of the mean field: pass "
                f"{self.kind}(cell, kpts).density_fit(auxbasis={auxbasis!r}).run()"
            )
        return CrystalIntegrals(
            self.frames, self.density_fit, self.kpts, self.coefficients, self.at, self.group(),
            self.momenta,
        )  # fmt: skip

    def dipole(self, _frame: Frame) -> None:
        """None: crystals have no position operator."""

    def moments(self, _order: int) -> None:
        """None: crystals have no position operator."""

    def density(self) -> Array:
        """Refused: there is none over atomic orbitals of one cell."""
        raise ArgumentError("densities over k-points are not made: read amplitudes and values")

    def of_nuclei(self, _order: int) -> Array:
        """Refused: a crystal has no moments."""
        raise ArgumentError("a crystal has no moments of nuclei: use a molecule")

    def numbers(self, number: int) -> Array:
        """The numbers of the orbitals of a set, those of all k-points counted in turn."""
        return self.of_set[number]

    def irreps(self, _frame: Frame) -> tuple[list[int], Callable[[int], str]] | None:
        """None: momenta are not numbers that combine by exclusive or."""
        return None

    def by_spin(self, frame: Frame) -> list[Array]:
        """Coefficients of orbitals over the atomic orbitals of their k-point."""
        found = []
        for part in frame.parts.values():
            own, at = self.coefficients[part.number], self.at[part.number]
            c = np.zeros((len(own[0]), frame.count), complex)
            whole = np.concatenate(own, axis=1)
            assert whole.shape[1] == len(at)
            used = part.places >= 0
            c[:, used] = whole[:, part.places[used]]
            found.append(c)
        return found

    def fingerprint(self) -> dict[str, Any]:
        """The atoms, lattice, k-points, basis, orbitals and energy."""
        cell, frame = self.cell, self.frames[SPIN_ORBITAL]
        basis = repr([sorted(cell._basis.items()), sorted(cell._ecp.items()), cell.pseudo])
        orbitals = [np.cos(np.arange(len(c))) @ c for c in self.by_spin(frame)]
        return {
            "kinds of atoms": " ".join(cell.elements),
            "atoms": cell.atom_coords().tolist(),
            "lattice": cell.lattice_vectors().tolist(),
            "k-points": self.kpts.tolist(),
            "basis": hashlib.sha256(basis.encode()).hexdigest(),
            "energy": self.e_hf,
            "frozen orbitals or orbital energies": np.sort(frame.energies).tolist(),
            "orbitals or phases of orbitals": np.array(orbitals).view(float).tolist(),
        }


def has_kpoints(mean_field: Any) -> bool:
    """True for a mean field of PySCF with k-points."""
    if own_attribute(mean_field, "cell") is None:
        return False
    return isinstance(mean_field, pyscf_module("pbc.scf.khf").KSCF)


def read_crystal(mean_field: Any, frozen: Frozen = 0) -> Crystal:
    """Read a converged KRHF, KUHF or KGHF object of PySCF with Gaussian density fitting.

    ``frozen`` is the number of core orbitals at each k-point, their numbers or a mask for all
    k-points, or one of these lists for each k-point. Objects with symmetry of the space group are
    converted by their ``to_khf``.

    Raises:
        ArgumentError: the object is none of these, its k-points are not a group, or occupations are
            fractions.
        ConvergenceError: it is not converged.
    """
    scf = pyscf_module("pbc.scf")
    symmetric = own_attribute(mean_field, "to_khf")
    if symmetric is not None and not isinstance(mean_field.kpts, np.ndarray):
        mean_field = symmetric()
    kinds = (
        ("KGHF", "GHF", scf.kghf.KGHF),
        ("KUHF", "UHF", scf.kuhf.KUHF),
        ("KRHF", "RHF", scf.khf.KRHF),
    )
    name, kind = next(
        ((name, kind) for name, kind, cls in kinds if isinstance(mean_field, cls)), ("", "")
    )
    _refuse_unusable(mean_field, name)
    cell, kpts = mean_field.cell, np.asarray(mean_field.kpts).reshape(-1, 3)
    mesh, momenta = momenta_of(cell.get_scaled_kpts(kpts))
    fock = _fock(mean_field)
    spins = 2 if kind == "UHF" else 1
    orbitals = [mean_field.mo_coeff] if spins == 1 else [*mean_field.mo_coeff]
    occupations = [mean_field.mo_occ] if spins == 1 else [*mean_field.mo_occ]
    focks = [fock] if spins == 1 else [*fock]
    sizes = [[np.shape(c)[1] for c in own] for own in orbitals]
    if sizes[0] != sizes[-1]:
        raise ArgumentError("alpha and beta orbitals of a k-point differ in number: use KGHF")
    matrices = [
        _diagonal_blocks([c.conj().T @ f @ c for c, f in zip(own, f_k, strict=True)])
        for own, f_k in zip(orbitals, focks, strict=True)
    ]
    flat = np.array([np.concatenate([*map(np.asarray, own)]) for own in occupations])
    at = np.repeat(np.arange(len(kpts)), sizes[0])
    sets, masks = orbitals, None
    if kind == "GHF":
        halves = [[np.split(np.asarray(c), 2)[s] for c in orbitals[0]] for s in (0, 1)]
        sets = halves
        masks = {
            spin: np.concatenate([np.any(c != 0, axis=0) for c in own])
            for spin, own in zip((ALPHA, BETA), halves, strict=True)
        }
    frames, of_set = compacted(
        frames_of(
            kind,
            matrices if spins == 2 or kind == "GHF" else [matrices[0]] * 2,
            flat if kind == "UHF" else flat[0],
            _frozen_orbitals(frozen, sizes[0]),
            masks,
        )
    )
    madelung = 0.0
    if own_attribute(mean_field, "exxdiv") == "ewald":
        madelung = float(pyscf_module("pbc.tools").madelung(cell, kpts))
    return Crystal(
        kind=name,
        e_hf=float(np.real(mean_field.e_tot)),
        frames={n: replace(frame, lowered=madelung) for n, frame in frames.items()},
        memory=float(mean_field.max_memory) * 1e6,
        origin=f"PySCF, {len(kpts)} k-points, {cell.natm} atoms a cell, density-fitted",
        coefficients=tuple(
            tuple(
                np.asarray(c)[:, kept[at[kept] == k] - start]
                for k, (c, start) in enumerate(zip(own, _starts(sizes[0]), strict=True))
            )
            for own, kept in zip(sets, of_set, strict=True)
        ),
        of_set=tuple(of_set),
        at=tuple(at[kept] for kept in of_set),
        cell=cell,
        kpts=kpts,
        mesh=mesh,
        momenta=momenta,
        density_fit=mean_field.with_df,
    )


def momenta_of(scaled: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The group of k-points, and the number of the element of each.

    ``scaled`` are the points in units of reciprocal vectors, which may be shifted. Points of a mesh
    that are missing have no orbitals.

    Raises:
        ArgumentError: the sum of two momenta, counted from the first point, is not in the list.

    Example:
        >>> momenta_of(np.array([[0, 0, 0.25], [0, 0, 0.75]]))
        ((1, 1, 2), (0, 1))
    """
    advice = "use a mesh, such as cell.make_kpts((2, 2, 2)), with all its points"
    steps = (np.asarray(scaled, float) - scaled[0]) % 1.0
    fractions = [[Fraction(x).limit_denominator(_MOST_POINTS) for x in row] for row in steps]
    mesh = tuple(lcm(*(row[axis].denominator for row in fractions)) for axis in range(3))
    exact = np.array([[float(x) for x in row] for row in fractions])
    if np.abs(steps - exact).max() > _SAME or prod(mesh) > _MOST_POINTS * len(steps):
        raise ArgumentError(f"the k-points are not those of a mesh: {advice}")
    places = [tuple(int(x * n) % n for x, n in zip(r, mesh, strict=True)) for r in fractions]
    known = set(places)
    if len(known) < len(places):
        twice = next(n for n, place in enumerate(places) if place in places[:n])
        raise ArgumentError(f"k-point {twice} is in the list twice: {advice}")
    for n, one in enumerate(places):
        for m, other in enumerate(places):
            total = tuple((a + b) % c for a, b, c in zip(one, other, mesh, strict=True))
            if total not in known:
                raise ArgumentError(
                    f"the list of k-points is not closed: counted from the first one, the sum of "
                    f"k-points {n} and {m} is not in it: {advice}"
                )
    numbers = [int(np.ravel_multi_index(place, mesh)) for place in places]
    return mesh, tuple(numbers)


def _diagonal_blocks(blocks: Iterable[Array]) -> Array:
    parts = [*blocks]
    made = np.zeros((sum(map(len, parts)),) * 2, complex)
    for part, start in zip(parts, _starts([len(p) for p in parts]), strict=True):
        made[start : start + len(part), start : start + len(part)] = part
    return made


def _starts(sizes: Sequence[int]) -> list[int]:
    return [*map(int, np.cumsum([0, *sizes])[:-1])]


def _fock(mean_field: Any) -> Array:
    """Fock matrices over atomic orbitals, without the correction of the exchange."""
    density = mean_field.make_rdm1()
    with pyscf_module("lib").temporary_env(mean_field, exxdiv=None):
        potential = mean_field.get_veff(mean_field.cell, density)
    fock: Array = np.asarray(mean_field.get_hcore()) + np.asarray(potential)
    return fock


def _frozen_orbitals(frozen: Frozen, sizes: Sequence[int]) -> list[int]:
    """Numbers of frozen orbitals among those of all k-points."""
    try:
        given: Any = 0 if frozen is None else frozen
        if np.iterable(given):
            items = [*given]
        elif (count := index(given)) >= 0:
            items = [*range(count)]
        else:
            raise ValueError
        nested = bool(items) and all(np.ndim(item) == 1 for item in items)
        each = items if nested else [items] * len(sizes)
        return [
            start + n
            for own, size, start in zip(each, sizes, _starts(sizes), strict=True)
            for n in numbers_of(own, size)
        ]
    except (TypeError, ValueError, IndexError):
        raise ArgumentError(
            f"frozen={frozen!r:.80} does not fit {len(sizes)} k-points of {min(sizes)} orbitals "
            f"or more: give the number of core orbitals at each k-point, a list of orbitals "
            f"counted from 0, a mask that is True for frozen ones, or a list for each k-point"
        ) from None


def _refuse_unusable(mean_field: Any, kind: str) -> None:
    found = type(mean_field).__name__
    if not kind or own_attribute(mean_field, "xc") is not None:
        raise ArgumentError(
            f"{found} is not a Hartree-Fock object with k-points that equations can use: pass a "
            f"converged KRHF, KUHF or KGHF with .density_fit()"
        )
    if not mean_field.converged:
        raise ConvergenceError(f"the {kind} reference is not converged: run mf.kernel()")
    df = pyscf_module("pbc.df")
    fit = mean_field.with_df
    if not isinstance(fit, df.GDF) or isinstance(fit, df.MDF):
        raise ArgumentError(
            f"{found} has integrals of {type(fit).__name__}, and blocks of integrals are made of "
            f"Gaussian density fitting: pass {kind}(cell, kpts).density_fit().run()"
        )
    occupations = mean_field.mo_occ if kind != "KUHF" else [o for s in mean_field.mo_occ for o in s]
    allowed = {0.0, 2.0} if kind == "KRHF" else {0.0, 1.0}
    if not {float(x) for own in occupations for x in np.unique(own)} <= allowed:
        raise ArgumentError(
            f"the {kind} reference has fractional occupations: use whole ones, without smearing"
        )
