"""A PySCF mean field: orbitals in the order of amplitudes, Fock matrices, energy.

A frame is a set of orbitals that equations refer to: spatial orbitals of a closed shell, alpha or
beta orbitals, or spin orbitals. Occupied orbitals come first in each frame, and frozen ones are
left out. The Fock matrix contains all electrons, the frozen ones included.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, ConvergenceError, UnavailableError, pip_install
from ..ir.layouts import Array

# The number of core orbitals, numbers of orbitals or a mask, for both spins or for each.
Frozen = int | Sequence[Any] | Array | None
# Convergence of mean fields that tcgen runs, as tight as that of amplitudes.
_ENERGY = 1e-12  # Hartree
_GRADIENT = 1e-8  # norm of the orbital gradient
_ORTHONORMAL = 1e-6  # largest deviation of overlaps of orbitals
# Least part of the energy of 1s that a basis for all electrons has. In PySCF 2.14, those for
# relativistic ones have 0.56 and more, others 0.93, and bases for effective core potentials whose
# name does not show it at most 0.34.
_OF_1S = 0.45
_DEPENDENT = 1e-10  # eigenvalue of an overlap that is zero
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
        eri=getattr(mean_field, "_eri", None),
        density_fit=getattr(mean_field, "with_df", None),
        hcore=_without_spin(core, kind),
        memory=float(mean_field.max_memory) * 1e6,
    )


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
    if hasattr(mean_field, "cell") or hasattr(mean_field, "kpts"):
        raise ArgumentError(
            f"{found} is periodic: tcgen.chem reads molecular references only; equations with "
            f"k-points need a loop over them around the program"
        )
    if kind is None:
        raise ArgumentError(
            f"{found} is not a Hartree-Fock object of PySCF: pass a converged RHF, ROHF, UHF or GHF"
        )
    if getattr(mean_field, "xc", None) is not None:
        raise ArgumentError(
            f"{found} is a density-functional reference, whose Fock matrix is not that of "
            f"Hartree-Fock: pass mf.to_hf().run()"
        )
    if not mean_field.converged:
        raise ConvergenceError(
            f"the {kind} reference is not converged: run mf.kernel(), with mf.newton() or a "
            f"larger mf.max_cycle if it stops early"
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


def run_mean_field(
    *,
    atom: str | None = None,
    xyz: Path | None = None,
    basis: str = "cc-pvdz",
    ecp: str | None = None,
    charge: int = 0,
    spin: int = 0,
    kind: str | None = None,
    density_fit: bool = False,
    auxbasis: str | None = None,
) -> Any:
    """A converged PySCF mean field of atoms ("O 0 0 0.1; H ...", in Angstrom) or of a file.

    ``spin`` is 2S, the number of unpaired electrons, as in PySCF. ``kind`` is "rhf", "uhf", "rohf"
    or "ghf"; by default RHF for spin 0 and UHF otherwise. ``ecp`` names effective core potentials.
    With ``density_fit`` the mean field also uses fitted integrals, over ``auxbasis`` or by default
    PySCF's choice.
    """
    gto, scf = pyscf_module("gto"), pyscf_module("scf")
    kind = kind or ("uhf" if spin else "rhf")
    if kind == "rhf" and spin:
        raise ArgumentError(f"an RHF reference has spin 0, not {spin}: use uhf, rohf or ghf")
    if (atom is None) == (xyz is None):
        raise ArgumentError("give either atoms or an .xyz file")
    try:
        atoms = atom if xyz is None else gto.mole.fromfile(str(xyz), "xyz")
        mol = gto.M(atom=atoms, basis=basis, ecp=ecp or {}, charge=charge, spin=spin, verbose=0)
    except OSError:
        raise
    except Exception as error:  # PySCF has no class of its own for bad input
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ArgumentError(
            f"PySCF cannot read the molecule: {reason}: check atoms, basis, ecp, charge and "
            f"spin (2S)"
        ) from error
    _refuse_missing_ecp(mol, basis)
    reference = getattr(scf, kind.upper())(mol)
    if density_fit:
        reference = reference.density_fit(auxbasis=auxbasis)
        build_fit(reference.with_df)
    reference.conv_tol, reference.conv_tol_grad = _ENERGY, _GRADIENT
    reference.max_cycle = 200
    reference.kernel()
    if not reference.converged:
        raise ConvergenceError(
            f"{kind.upper()} does not converge to {_ENERGY} Hartree in {reference.max_cycle} "
            f"iterations: check the geometry, charge and spin, or converge the reference in PySCF "
            f"and pass it to tcgen.chem.solve"
        )
    return reference


def _refuse_missing_ecp(mol: Any, basis: str) -> None:
    """Refuse a basis for effective core potentials (ECPs) with all electrons."""
    atoms = [k for k in range(mol.natm) if mol.atom_charge(k)]
    bare = {mol.atom_symbol(k): k for k in atoms if mol.atom_symbol(k) not in mol._ecp}
    for atom in bare.values():
        symbol = mol.atom_pure_symbol(atom)
        potential = _potential(basis, symbol)
        advice = f"add ecp (--ecp {potential}), or choose a basis for all electrons"
        if potential is None:
            advice = (
                "choose a basis for all electrons, name its potential with ecp (--ecp), or pass "
                "a mean field with a pseudopotential to tcgen.chem.solve"
            )
            if "gth" not in basis.lower() and _describes_core(mol, atom):
                continue
        raise ArgumentError(
            f"the basis {basis} of {symbol} is made for an effective core potential: {advice}"
        )


def _potential(basis: str, symbol: str) -> str | None:
    """PySCF's name of the potential for which a basis is made, such as bfd for bfd-vdz."""
    module = pyscf_module("gto.basis")
    plain = re.sub("[-_ ]", "", basis.lower())
    names = sorted((name for name in module.ALIAS if name in plain), key=len, reverse=True)
    for name in (basis, *map(str, names)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # PySCF has several errors for a name without a potential.
            with suppress(RuntimeError, KeyError, TypeError):
                if module.load_ecp(name, symbol):
                    return name
    return None


def _describes_core(mol: Any, atom: int) -> bool:
    """True if a basis has a 1s orbital of the nucleus, or if 1s belongs to the valence shell."""
    first, last = mol.aoslice_by_atom()[atom, :2]
    charge, shells = mol.atom_charge(atom), (first, last, first, last)
    if charge <= 2 or first == last:
        return True
    with mol.with_rinv_at_nucleus(atom):
        attraction = -charge * mol.intor("int1e_rinv", shls_slice=shells)
    weights, vectors = np.linalg.eigh(mol.intor("int1e_ovlp", shls_slice=shells))
    vectors = vectors[:, weights > _DEPENDENT] / np.sqrt(weights[weights > _DEPENDENT])
    energy = vectors.T @ (mol.intor("int1e_kin", shls_slice=shells) + attraction) @ vectors
    return bool(np.linalg.eigvalsh(energy)[0] < -_OF_1S * charge**2 / 2)


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
