"""A PySCF mean field: orbitals in the order of amplitudes, Fock matrices, energy.

A frame is a set of orbitals that equations refer to: spatial orbitals of a closed shell, alpha or
beta orbitals, or spin orbitals. Occupied orbitals come first in each frame, and frozen ones are
left out. The Fock matrix contains all electrons, the frozen ones included.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, ConvergenceError, UnavailableError, pip_install
from ..ir.layouts import Array

# The number of core orbitals, numbers of orbitals or a mask, for both spins or for each.
Frozen = int | Sequence[Any] | Array | None
_ORTHONORMAL = 1e-6  # largest deviation of overlaps of orbitals
SPATIAL, ALPHA, BETA, SPIN_ORBITAL = "", "a", "b", "g"  # names of frames


def pyscf_module(name: str) -> Any:
    """A module of PySCF, which is an extra and takes a second to load."""
    try:
        importlib.import_module("pyscf")
        return importlib.import_module(f"pyscf.{name}")
    except ImportError as error:
        raise UnavailableError(
            f"PySCF is not installed: pip install pyscf, or {pip_install('chem')}"
        ) from error


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Orbitals, occupied ones first, and their Fock matrix in Hartree.

    ``coefficients`` are matrices (AO, orbital) by spin, "" for spatial orbitals. A column is zero
    if the orbital has no part of that spin.
    """

    coefficients: Mapping[str, Array]
    occupied: int
    fock: Array

    @property
    def count(self) -> int:
        """Number of orbitals."""
        return len(self.fock)

    @property
    def energies(self) -> Array:
        """Diagonal of the Fock matrix, as in PySCF's coupled-cluster codes."""
        return self.fock.diagonal()

    def matrix(self, operator: Array) -> Array:
        """A spin-free operator over atomic orbitals as a matrix over these orbitals."""
        parts = [c.T @ operator @ c for c in self.coefficients.values()]
        return np.asarray(sum(parts))


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The parts of a mean field that equations need.

    ``e_hf`` is the total energy of the determinant of the orbitals in Hartree, ``hcore`` the core
    Hamiltonian over atomic orbitals, without spin; None if it depends on the spin. PySCF may use
    ``memory`` bytes. ``eri`` are the integrals over atomic orbitals that it stores, ``density_fit``
    is its object for density fitting; either may be None.
    """

    kind: str
    e_hf: float
    frames: Mapping[str, Frame]
    mol: Any
    eri: Any
    density_fit: Any
    hcore: Array | None
    memory: float

    def fingerprint(self) -> dict[str, Any]:
        """The atoms, basis, orbitals and energy to which amplitudes belong, in atomic units."""
        mol, frame = self.mol, self.frames[SPIN_ORBITAL]
        basis = repr([sorted(mol._basis.items()), sorted(mol._ecp.items())])
        # One number for each orbital and spin, which a sign or a rotation changes.
        orbitals = [np.cos(np.arange(len(c))) @ c for c in frame.coefficients.values()]
        return {
            "kinds of atoms": " ".join(mol.elements),
            "atoms": mol.atom_coords().tolist(),
            "basis": hashlib.sha256(basis.encode()).hexdigest(),
            "energy": self.e_hf,
            "frozen orbitals or orbital energies": np.sort(frame.energies).tolist(),
            "orbitals or signs of orbitals": np.array(orbitals).tolist(),
        }


def read_reference(mean_field: Any, frozen: Frozen = 0) -> Reference:
    """Read a converged molecular Hartree-Fock object of PySCF with real orbitals.

    ``frozen`` is the number of core orbitals, the numbers of all orbitals that are not correlated,
    or a mask that is True for these: spatial orbitals, but spin orbitals of a GHF reference, as in
    PySCF. Two lists or masks are those of alpha and beta electrons. Objects are refused that are
    not converged, periodic, of a density functional, complex, or have fractional occupations.
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
    left_out = _left_out(frozen, np.asarray(mean_field.mo_occ), kind)
    core = np.asarray(mean_field.get_hcore())
    density = mean_field.make_rdm1()
    potential = mean_field.get_veff(mean_field.mol, density)
    fock = _fock(mean_field, kind, core, density, potential)
    if kind == "GHF":
        frames = _general_frames(mean_field, fock, left_out[0])
    else:
        frames = _frames(mean_field, kind, fock, left_out)
    _refuse_empty(frames[SPIN_ORBITAL], np.asarray(mean_field.mo_occ), frozen)
    return Reference(
        kind=kind,
        e_hf=float(mean_field.energy_tot(dm=density, h1e=core, vhf=potential)),
        frames=frames,
        mol=mean_field.mol,
        eri=_own(mean_field, "_eri"),
        density_fit=_own(mean_field, "with_df"),
        hcore=_without_spin(core, kind),
        memory=float(mean_field.max_memory) * 1e6,
    )


def _own(mean_field: Any, name: str) -> Any:
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
        return np.stack([fock, fock]) if kind == "RHF" else fock
    # PySCF's matrix has those of both spins as attributes during an iteration only.
    fock = mean_field.get_fock(**given, cycle=0)
    if not hasattr(fock, "focka"):
        raise ArgumentError(
            f"get_fock of this {type(mean_field).__name__} has no Fock matrices of alpha and beta "
            f"electrons (focka, fockb): pass mf.to_uhf() with the same changes"
        )
    return np.stack([fock.focka, fock.fockb])


def _without_spin(core: Array, kind: str) -> Array | None:
    """The core Hamiltonian of both spins, or None if it is not one."""
    if kind == "GHF":
        half = len(core) // 2
        blocks = core.reshape(2, half, 2, half).transpose(0, 2, 1, 3)
        return blocks[0, 0] if np.array_equal(core, np.kron(np.eye(2), blocks[0, 0])) else None
    return core if core.ndim == 2 else None


def _refuse_empty(frame: Frame, occupations: Array, frozen: Frozen) -> None:
    """Refuse frozen orbitals that leave no occupied or no virtual ones, if there are some."""
    for name, count, all_of_them in (
        ("occupied", frame.occupied, np.any(occupations > 0)),
        ("virtual", frame.count - frame.occupied, np.any(occupations == 0)),
    ):
        if all_of_them and not count:
            raise ArgumentError(
                f"frozen={frozen!r} leaves no {name} orbitals to correlate: freeze fewer"
            )


def _refuse_unusable(mean_field: Any, kind: str | None) -> None:
    found = type(mean_field).__name__
    if any(_own(mean_field, name) is not None for name in ("cell", "kpts")):
        raise ArgumentError(
            f"{found} is periodic: tcgen.chem reads molecular references only; equations with "
            f"k-points need a loop over them around the program"
        )
    if kind is None:
        of_file = (
            "; of a file pyscf.tools.fcidump.to_scf(file).run() makes one from an FCIDUMP"
            if isinstance(mean_field, str | Path)
            else ""
        )
        raise ArgumentError(
            f"{found} is not a Hartree-Fock object of PySCF: pass a converged RHF, ROHF, UHF or "
            f"GHF{of_file}"
        )
    if _own(mean_field, "xc") is not None:
        raise ArgumentError(
            f"{found} is a density-functional reference, whose Fock matrix is not that of "
            f"Hartree-Fock: pass mf.to_hf().run(); to correlate the Kohn-Sham orbitals "
            f"themselves, write hf = mf.to_hf(); hf.converged = True, and pass hf"
        )
    if not _own(mean_field, "converged"):
        raise ConvergenceError(
            f"the {kind} reference is not converged: run mf.kernel(), with mf.newton() or a "
            f"larger mf.max_cycle if it stops early; if its orbitals are converged ones from a "
            f"checkpoint, which does not say so, set mf.converged = True"
        )
    fit = _own(mean_field, "with_df")
    if fit is not None and not hasattr(fit, "get_naoaux"):
        raise ArgumentError(
            f"{found} has exchange on a grid (SGX, COSX), without integrals that equations can "
            f"use: pass mf.undo_sgx().run(), or mf.undo_sgx().density_fit().run()"
        )
    _refuse_orbitals(mean_field, kind)
    if np.iscomplexobj(mean_field.mo_coeff) or np.iscomplexobj(mean_field.get_hcore()):
        raise ArgumentError(
            f"the orbitals or the Hamiltonian of this {kind} reference are complex: "
            f"tcgen.chem reads real ones only"
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


def _left_out(frozen: Frozen, occupations: Array, kind: str) -> tuple[set[int], set[int]]:
    """The orbitals of alpha and beta electrons that are not correlated."""
    count = occupations.shape[-1]
    given: Any = 0 if frozen is None else frozen
    try:
        if not np.iterable(given):
            fits = 0 <= index(given) <= count
            chosen = [list(range(index(given)))] * 2 if fits else []
        else:
            items = list(given)
            by_spin = bool(items) and all(np.ndim(item) == 1 for item in items)
            spins = (
                items if by_spin and kind in ("UHF", "ROHF") and len(items) == 2 else [items] * 2
            )
            chosen = [_numbers(spin, count) for spin in spins]
        alpha, beta = map(set, chosen)
    except (TypeError, ValueError, IndexError):
        alpha = beta = {-1}
    if not alpha | beta <= set(range(count)):
        word = "spin orbitals" if kind == "GHF" else "orbitals"
        each = ", or two of these for alpha and beta" if kind in ("UHF", "ROHF") else ""
        raise ArgumentError(
            f"frozen={frozen!r} does not fit the {count} {word} of the {kind} reference: give the "
            f"number of core orbitals, a list of orbitals counted from 0, or a mask of {count} "
            f"booleans that are True for frozen orbitals{each}"
        )
    return alpha, beta


def _numbers(items: Any, count: int) -> list[int]:
    """Numbers of the orbitals of a list, which may count from the end, or of a mask.

    ValueError or IndexError for one that does not fit.
    """
    items = list(items)
    booleans = [isinstance(item, bool | np.bool_) for item in items]
    if not any(booleans):
        return [range(count)[index(item)] for item in items]
    if not all(booleans) or len(items) != count:
        raise ValueError
    return [k for k, item in enumerate(items) if item]


def _active(occupations: Array, left_out: set[int]) -> tuple[list[int], list[int]]:
    """Orbitals that are not frozen: occupied and virtual ones."""
    kept = [k for k in range(len(occupations)) if k not in left_out]
    return [k for k in kept if occupations[k] > 0], [k for k in kept if occupations[k] == 0]


def _frames(
    mean_field: Any, kind: str, fock: Array, left_out: tuple[set[int], set[int]]
) -> dict[str, Frame]:
    """Frames of a reference whose orbitals have one spin each."""
    coefficients = np.asarray(mean_field.mo_coeff)
    occupations = np.asarray(mean_field.mo_occ)
    if kind != "UHF":
        coefficients = np.stack([coefficients, coefficients])
        occupations = np.stack([occupations > 0, occupations == 2]).astype(float)
    frames = {}
    numbers: list[tuple[list[int], list[int]]] = []
    for spin, name in enumerate((ALPHA, BETA)):
        occupied, virtual = _active(occupations[spin], left_out[spin])
        numbers.append((occupied, virtual))
        c = coefficients[spin][:, occupied + virtual]
        frames[name] = Frame({name: c}, len(occupied), c.T @ fock[spin] @ c)
    frames[SPIN_ORBITAL] = _interleaved(frames[ALPHA], frames[BETA], numbers, kind == "UHF")
    if kind == "RHF":
        alpha = frames[ALPHA]
        frames[SPATIAL] = Frame({"": alpha.coefficients[ALPHA]}, alpha.occupied, alpha.fock)
    return frames


def _interleaved(
    alpha: Frame, beta: Frame, numbers: Sequence[tuple[list[int], list[int]]], by_energy: bool
) -> Frame:
    """Spin orbitals in PySCF's order: by energy for UHF, else alpha and beta side by side."""
    c_a, c_b = alpha.coefficients[ALPHA], beta.coefficients[BETA]
    energies = (alpha.energies, beta.energies)
    order: list[tuple[int, int]] = []  # spin, place in the frame of that spin
    for part in range(2):
        places = [
            (energies[s][k] if by_energy else number, s, k)
            for s, frame in enumerate((alpha, beta))
            for k, number in enumerate(numbers[s][part], start=part * frame.occupied)
        ]
        order += [(s, k) for _, s, k in sorted(places)]
    nao, count = len(c_a), len(order)
    coefficients = {ALPHA: np.zeros((nao, count)), BETA: np.zeros((nao, count))}
    fock = np.zeros((count, count))
    for spin, (name, c, frame) in enumerate(((ALPHA, c_a, alpha), (BETA, c_b, beta))):
        columns = [n for n, (s, _) in enumerate(order) if s == spin]
        places_of_spin = [k for s, k in order if s == spin]
        coefficients[name][:, columns] = c[:, places_of_spin]
        fock[np.ix_(columns, columns)] = frame.fock[np.ix_(places_of_spin, places_of_spin)]
    return Frame(coefficients, alpha.occupied + beta.occupied, fock)


def _general_frames(mean_field: Any, fock: Array, left_out: set[int]) -> dict[str, Frame]:
    """The frame of a GHF reference, whose orbitals mix both spins."""
    occupied, virtual = _active(np.asarray(mean_field.mo_occ), left_out)
    c = np.asarray(mean_field.mo_coeff)[:, occupied + virtual]
    nao = len(c) // 2
    parts = {ALPHA: c[:nao], BETA: c[nao:]}
    return {SPIN_ORBITAL: Frame(parts, len(occupied), c.T @ fock @ c)}


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
