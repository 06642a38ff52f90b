"""A PySCF mean field: its orbitals, Fock matrices and energy.

The Fock matrix contains all electrons, the frozen ones included.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, ConvergenceError
from ..ir.layouts import Array
from .atomic_integrals import AtomicIntegrals, pyscf_module
from .frames import ALPHA, BETA, SPIN_ORBITAL, Frame, Frozen, compacted, frames_of
from .reference import Reference

_ORTHONORMAL = 1e-6  # largest deviation of overlaps of orbitals


@dataclass(frozen=True, slots=True, eq=False)
class MeanField(Reference):
    """A mean field of PySCF, which may use ``memory`` bytes.

    ``coefficients`` are those of each set of orbitals over atomic orbitals, ``of_set`` their
    numbers among all orbitals of the object, and ``symmetry`` their labels. ``density_fit`` is its
    object for density fitting; each of these two may be None. ``of_determinant`` is the density
    matrix over atomic orbitals. The ``source`` is the object itself.
    """

    coefficients: tuple[Array, ...]
    of_set: tuple[Array, ...]
    mol: Any
    source: Any
    density_fit: Any
    symmetry: tuple[Array, ...] | None
    of_determinant: Array

    def integrals(self, auxbasis: str | None = None) -> AtomicIntegrals:
        """Integrals that PySCF transforms or fits."""
        return AtomicIntegrals(
            self.frames, self.memory, self.coefficients, self.mol, self._eri, self.density_fit,
            auxbasis,
        )  # fmt: skip

    def _eri(self) -> Any:
        """The integrals over atomic orbitals that the object stores, or None."""
        return own_attribute(self.source, "_eri")

    def release(self) -> None:
        """Drop those integrals; PySCF makes them again where it needs them."""
        if self._eri() is not None:
            self.source._eri = None

    def dipole(self, frame: Frame) -> Array | None:
        """Dipole integrals; None without a basis set."""
        if not self.mol._basis:
            return None
        dipole = np.zeros((3, frame.count, frame.count), frame.fock.dtype)
        for c in self.by_spin(frame):
            dipole += c.conj().T @ self.mol.intor_symmetric("int1e_r", comp=3) @ c
        return dipole

    def moments(self, order: int) -> Array | None:
        """Integrals of 1, of coordinates or of their products; None without a basis set."""
        if not self.mol._basis:
            return None
        name = ("int1e_ovlp", "int1e_r", "int1e_rr")[order]
        values: Array = self.mol.intor(name).reshape(3**order, self.mol.nao, self.mol.nao)
        return values

    def density(self) -> Array:
        """That of the object of PySCF."""
        return self.of_determinant

    def of_nuclei(self, order: int) -> Array:
        """The charges are those of PySCF, less the electrons of effective core potentials."""
        places, charges = self.mol.atom_coords(), self.mol.atom_charges()
        if order == 1:
            return np.asarray(charges @ places)
        return np.asarray(np.einsum("n,nx,ny->xy", charges, places, places))

    def numbers(self, number: int) -> Array:
        """The numbers of the orbitals of a set in the object of PySCF."""
        return self.of_set[number]

    def irreps(self, frame: Frame) -> tuple[list[int], Callable[[int], str]] | None:
        """PySCF's labels of Abelian groups; None without symmetry."""
        if self.symmetry is None:
            return None
        found = [0] * frame.count
        for part in frame.parts.values():
            for k, place in enumerate(part.places):
                if place >= 0:
                    # Labels of linear molecules are those of D2h or C2v modulo 10.
                    found[k] = int(self.symmetry[part.number][place]) % 10
        group = {"Dooh": "D2h", "Coov": "C2v", "SO3": "D2h"}.get(self.mol.groupname)
        symm = pyscf_module("symm")
        return found, lambda label: str(symm.irrep_id2name(group or self.mol.groupname, label))

    def molecule(self) -> dict[str, Any]:
        """The molecule as QCSchema has it, with ghost atoms marked, and the name of its basis."""
        mol = self.mol
        symbols = (str(mol.atom_pure_symbol(k)) for k in range(mol.natm))
        return {
            "symbols": [re.sub(r"^(?i:ghost[-:]?|x[-:])(?=.)", "", x) for x in symbols],
            "geometry": mol.atom_coords().ravel().tolist(),
            "real": [bool(charge) for charge in mol.atom_charges()],
            "molecular_charge": int(mol.charge),
            "molecular_multiplicity": int(mol.spin) + 1,
            "basis": mol.basis if isinstance(mol.basis, str) else "(given by atom)",
        }

    def fingerprint(self) -> dict[str, Any]:
        """The atoms, basis, orbitals and energy."""
        mol, frame = self.mol, self.frames[SPIN_ORBITAL]
        basis = repr([sorted(mol._basis.items()), sorted(mol._ecp.items())])
        # One number for each orbital and spin, which a sign or a rotation changes.
        orbitals = [np.cos(np.arange(len(c))) @ c for c in self.by_spin(frame)]
        return {
            "kinds of atoms": " ".join(mol.elements),
            "atoms": mol.atom_coords().tolist(),
            "basis": hashlib.sha256(basis.encode()).hexdigest(),
            "energy": self.e_hf,
            "frozen orbitals or orbital energies": np.sort(frame.energies).tolist(),
            "orbitals or signs of orbitals": np.array(orbitals).view(float).tolist(),
        }

    def by_spin(self, frame: Frame) -> list[Array]:
        """Coefficients of the orbitals of a frame, zero where they have no part of a spin."""
        found = []
        for part in frame.parts.values():
            used, own = part.places >= 0, self.coefficients[part.number]
            c = np.zeros((len(own), frame.count), own.dtype)
            c[:, used] = own[:, part.places[used]]
            found.append(c)
        return found


def read_mean_field(mean_field: Any, frozen: Frozen = 0) -> MeanField:
    """Read a converged molecular Hartree-Fock object of PySCF, with real or complex orbitals.

    ``frozen`` is the number of core orbitals, the numbers of all orbitals that are not correlated,
    or a mask that is True for these: spatial orbitals, but spin orbitals of a GHF reference, as in
    PySCF. Two lists or masks are those of alpha and beta electrons. Objects are refused that are
    not converged, periodic, of a density functional, or have fractional occupations.
    """
    scf = pyscf_module("scf")
    kinds = (
        ("GHF", scf.ghf.GHF),
        ("UHF", scf.uhf.UHF),
        ("ROHF", scf.rohf.ROHF),
        ("RHF", scf.hf.RHF),
    )
    kind = next((name for name, cls in kinds if isinstance(mean_field, cls)), None)
    _refuse_unusable(mean_field, kind)
    assert kind is not None
    core = np.asarray(mean_field.get_hcore())
    density = mean_field.make_rdm1()
    potential = mean_field.get_veff(mean_field.mol, density)
    fock = _fock(mean_field, kind, core, density, potential)
    c, occupations = np.asarray(mean_field.mo_coeff), np.asarray(mean_field.mo_occ)
    if not (np.any(np.imag(c)) or np.any(np.imag(fock))):
        c, fock = c.real, fock.real
    both = c if kind == "UHF" else np.stack([c] * len(fock))
    matrices = [own.conj().T @ f @ own for own, f in zip(both, fock, strict=True)]
    orbitals, spins = [*both], None
    if kind == "GHF":
        orbitals = np.split(c, 2)
        spins = {
            name: np.any(p != 0, axis=0) for name, p in zip((ALPHA, BETA), orbitals, strict=True)
        }
    frames, sets = compacted(frames_of(kind, matrices, occupations, frozen, spins))
    return MeanField(
        kind=kind,
        e_hf=float(np.real(mean_field.energy_tot(dm=density, h1e=core, vhf=potential))),
        frames=frames,
        memory=float(mean_field.max_memory) * 1e6,
        origin=_origin(mean_field),
        coefficients=tuple(orbitals[k][:, kept] for k, kept in enumerate(sets)),
        of_set=tuple(sets),
        mol=mean_field.mol,
        source=mean_field,
        density_fit=own_attribute(mean_field, "with_df"),
        symmetry=_symmetry(mean_field, kind, sets),
        of_determinant=_both_spins(kind, np.asarray(density)),
    )


def _both_spins(kind: str, density: Array) -> Array:
    """The sum of the density matrices of alpha and beta electrons over atomic orbitals."""
    if kind == "GHF":
        half = len(density) // 2
        density = np.stack([density[:half, :half], density[half:, half:]])
    return density.sum(axis=0) if density.ndim == 3 else density


def _symmetry(mean_field: Any, kind: str, sets: Sequence[Array]) -> tuple[Array, ...] | None:
    """Labels of the orbitals of each set; None without symmetry, or for GHF.

    PySCF labels orbitals without symmetry too: states have a label only if all their amplitudes
    agree on it.
    """
    labels = own_attribute(mean_field, "get_orbsym")
    if kind == "GHF" or not mean_field.mol.symmetry or labels is None:
        return None
    both = labels() if kind == "UHF" else [labels()] * len(sets)
    return tuple(np.asarray(one)[kept] for one, kept in zip(both, sets, strict=True))


def _origin(mean_field: Any) -> str:
    mol, fit = mean_field.mol, own_attribute(mean_field, "with_df")
    basis = mol.basis if isinstance(mol.basis, str) else "basis sets by atom"
    fitted = "" if fit is None else ", density-fitted"
    over = f"{basis}, {mol.natm} atoms" if mol._basis else "of a model or a file"
    return f"PySCF, {over}{fitted}"


def own_attribute(mean_field: Any, name: str) -> Any:
    """An attribute of the object or its class, or None.

    For a missing one PySCF imports all its modules, which takes as long as a small calculation.
    """
    try:
        return object.__getattribute__(mean_field, name)
    except AttributeError:
        return None


def _fock(mean_field: Any, kind: str, core: Array, density: Any, potential: Any) -> Array:
    """The Fock matrix over atomic orbitals, with all that the mean field adds to it.

    That of alpha and that of beta electrons, but one matrix of a GHF reference.
    """
    given = {"h1e": core, "vhf": potential, "dm": density}
    if kind != "ROHF":
        fock = np.asarray(mean_field.get_fock(**given))
        return np.stack([fock, fock]) if kind == "RHF" else fock.reshape(-1, *fock.shape[-2:])
    # PySCF's matrix has those of both spins as attributes during an iteration only.
    fock = mean_field.get_fock(**given, cycle=0)
    if not hasattr(fock, "focka"):
        raise ArgumentError(
            f"get_fock of this {type(mean_field).__name__} has no Fock matrices of alpha and beta "
            f"electrons (focka, fockb): pass mf.to_uhf() with the same changes"
        )
    return np.stack([fock.focka, fock.fockb])


def _refuse_unusable(mean_field: Any, kind: str | None) -> None:
    found = type(mean_field).__name__
    if any(own_attribute(mean_field, name) is not None for name in ("cell", "kpts")):
        raise ArgumentError(
            f"{found} is periodic and has one k-point: pass an object with k-points and Gaussian "
            f"density fitting, such as KRHF(cell, cell.make_kpts((1, 1, 1))).density_fit().run()"
        )
    if kind is None:
        of_file = (
            "; tcgen.chem.read_fcidump and read_trexio read integrals from files"
            if isinstance(mean_field, str | Path)
            else ""
        )
        raise ArgumentError(
            f"{found} is not a Hartree-Fock object of PySCF: pass a converged RHF, ROHF, UHF or "
            f"GHF{of_file}"
        )
    if own_attribute(mean_field, "xc") is not None:
        raise ArgumentError(
            f"{found} is a density-functional reference, whose Fock matrix is not that of "
            f"Hartree-Fock: pass mf.to_hf().run(); to correlate the Kohn-Sham orbitals "
            f"themselves, write hf = mf.to_hf(); hf.converged = True, and pass hf"
        )
    if not own_attribute(mean_field, "converged"):
        raise ConvergenceError(
            f"the {kind} reference is not converged: run mf.kernel(), with mf.newton() or a "
            f"larger mf.max_cycle if it stops early; if its orbitals are converged ones from a "
            f"checkpoint, which does not say so, set mf.converged = True"
        )
    fit = own_attribute(mean_field, "with_df")
    if fit is not None and not hasattr(fit, "get_naoaux"):
        raise ArgumentError(
            f"{found} has exchange on a grid (SGX, COSX), without integrals that equations can "
            f"use: pass mf.undo_sgx().run(), or mf.undo_sgx().density_fit().run()"
        )
    _refuse_orbitals(mean_field, kind)
    if np.iscomplexobj(own_attribute(mean_field, "_eri")):
        raise ArgumentError(
            f"the integrals over atomic orbitals of this {kind} reference are complex: pass those "
            f"over its orbitals to tcgen.chem.hamiltonian"
        )
    allowed = {0.0, 1.0, 2.0} if kind == "ROHF" else {0.0, 2.0} if kind == "RHF" else {0.0, 1.0}
    if not set(np.unique(np.asarray(mean_field.mo_occ))) <= allowed:
        raise ArgumentError(
            f"the {kind} reference has fractional occupations: use whole ones, without smearing"
        )


def _refuse_orbitals(mean_field: Any, kind: str) -> None:
    """Refuse orbitals that are missing, of another shape, or not orthonormal."""
    overlap = np.asarray(mean_field.get_ovlp())
    try:
        coefficients, occupations = map(np.asarray, (mean_field.mo_coeff, mean_field.mo_occ))
    except ValueError:  # arrays of different shapes
        coefficients = occupations = np.asarray(None)
    spins, count = (2,) * (kind == "UHF"), coefficients.shape[-1:]
    if kind == "GHF" and coefficients.shape[:-1] == (2 * len(overlap),):
        raise ArgumentError(
            f"get_ovlp of this GHF reference has {len(overlap)} rows, without spin, and its "
            f"orbitals {2 * len(overlap)}: pass the RHF, ROHF or UHF object of which it was made "
            f"(equations over spin orbitals take it), or give it get_hcore and get_ovlp for both "
            f"spins"
        )
    if (coefficients.shape, occupations.shape) != (
        (*spins, len(overlap), *count),
        (*spins, *count),
    ):
        raise ArgumentError(
            f"mo_coeff and mo_occ of this {kind} reference are not orbitals over {len(overlap)} "
            f"atomic orbitals and their occupations: run mf.kernel(), or correct their shapes "
            f"{coefficients.shape} and {occupations.shape}"
        )
    products = coefficients.conj().swapaxes(-1, -2) @ overlap @ coefficients
    deviation = np.abs(products - np.eye(*count)).max(initial=0.0)
    if not deviation <= _ORTHONORMAL:
        raise ArgumentError(
            f"the orbitals of this {kind} reference are not orthonormal: mo_coeff.T @ S @ mo_coeff "
            f"deviates from 1 by {deviation:.1e}, at most {_ORTHONORMAL}: orthonormalise them, for "
            f"example by pyscf.lo.orth.vec_lowdin(mf.mo_coeff, mf.get_ovlp())"
        )
