"""A converged PySCF mean field of a molecule: what ``tcgen solve`` makes of its options.

Mistakes in a geometry, a basis or a number of electrons are refused here, by line or by atom.
"""

from __future__ import annotations

import re
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, ConvergenceError
from ..ir.layouts import Array
from .atomic_integrals import build_fit, pyscf_module

# Convergence of mean fields that tcgen runs, as tight as that of amplitudes.
_ENERGY = 1e-12  # Hartree
_GRADIENT = 1e-8  # norm of the orbital gradient
# Least part of the energy of 1s that a basis for all electrons has. In PySCF 2.14, those for
# relativistic ones have 0.56 and more, others 0.93, and bases for effective core potentials whose
# name does not show it at most 0.34.
_OF_1S = 0.45
_DEPENDENT = 1e-10  # eigenvalue of an overlap that is zero
_CLOSEST = 1e-3  # Bohr between two atoms
_EQUAL = 1e-6  # Hartree between orbitals of equal energy
_PART = 0.02  # norm of the projection of an atomic orbital that is used


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
    symmetry: bool = False,
) -> Any:
    """A converged PySCF mean field of atoms ("O 0 0 0.1; H ...", in Angstrom) or of a file.

    ``spin`` is 2S, the number of unpaired electrons, as in PySCF. ``kind`` is "rhf", "uhf", "rohf"
    or "ghf"; by default RHF for spin 0 and UHF otherwise. ``ecp`` names effective core potentials.
    With ``density_fit`` the mean field also uses fitted integrals, over ``auxbasis`` or by default
    PySCF's choice. With ``symmetry`` the orbitals have irreps of the molecule's point group.
    """
    kind = kind or ("uhf" if spin else "rhf")
    if kind == "rhf" and spin:
        raise ArgumentError(f"an RHF reference has spin 0, not {spin}: use uhf, rohf or ghf")
    if (atom is None) == (xyz is None):
        raise ArgumentError(
            "give either atoms (--atom) or an .xyz file (--xyz), or a file of integrals "
            "(--fcidump, --trexio or --integrals)"
        )
    scf = pyscf_module("scf")
    atoms = str(atom) if xyz is None else read_xyz(xyz)
    mol = _molecule(atoms, basis, ecp, charge, spin)
    if symmetry:
        mol.build(symmetry=True)
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
    _orient(reference)
    return reference


def _orient(reference: Any) -> None:
    """Give orbitals of equal energy, and signs, the same form in every run.

    Rounding, which depends on threads, rotates them. Each set becomes the projections of the first
    atomic orbitals on it, orthonormalised. Orbitals of different irreps are in different sets.
    """
    overlap = reference.get_ovlp()
    spins = isinstance(reference.mo_coeff, tuple) or np.ndim(reference.mo_coeff) == 3
    labels = getattr(type(reference), "get_orbsym", None)
    irreps = np.zeros_like(reference.mo_energy) if labels is None else labels(reference)
    fields = (reference.mo_coeff, reference.mo_energy, reference.mo_occ, irreps)
    for c, energies, occupations, own in zip(*fields, strict=True) if spins else [fields]:
        order = np.lexsort((energies, own, occupations))
        steps = np.abs(np.diff(energies[order])) > _EQUAL
        for numbers in (own, occupations):
            steps |= np.diff(numbers[order]) != 0
        ends = np.flatnonzero(steps) + 1
        for columns in np.split(order, ends):
            c[:, columns] = _projections(c[:, columns], overlap)


def _projections(orbitals: Array, overlap: Array) -> Array:
    """An orthonormal basis of the space of some orbitals, from the first atomic orbitals."""
    weights = orbitals.T @ overlap
    basis = np.zeros((len(weights), 0))
    for column in weights.T:
        rest = column - basis @ (basis.T @ column)
        if np.linalg.norm(rest) > _PART and basis.shape[1] < len(weights):
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
    return orbitals @ basis if basis.shape[1] == len(weights) else orbitals


def read_xyz(path: Path) -> str:
    """The atoms of an .xyz file, "O 0.0 0.0 0.1; ...", in Angstrom.

    Raises:
        ArgumentError: with the first line that is wrong, also if there are more atoms than the
            first line says, which PySCF leaves out.
    """
    gto = pyscf_module("gto")
    form = "an .xyz file has the number of atoms, a comment, and a line 'O 0.0 0.0 0.1' for each"
    try:
        lines = path.read_text(encoding="utf-8").rstrip().split("\n")
    except UnicodeDecodeError:
        raise ArgumentError(f"{path} is not a text: {form}") from None
    if "&FCI" in lines[0].upper():
        raise ArgumentError(
            f"{path} holds integrals (FCIDUMP), not atoms: use --fcidump, or pass "
            f"tcgen.chem.read_fcidump(file) to tcgen.chem.solve"
        )
    if not re.fullmatch(r"\s*\d+\s*", lines[0]):
        raise ArgumentError(f"{path}, line 1: {lines[0]!r:.60} is not a number of atoms: {form}")
    count, atoms = int(lines[0]), []
    for number, line in enumerate(lines[2 : 2 + count], 3):
        symbol, *place = line.split()[:4] or [""]
        try:
            if len(place) < 3 or not np.isfinite([float(x) for x in place]).all():
                raise ValueError
            symbol.isdigit() or gto.charge(symbol)
        except (KeyError, ValueError):
            raise ArgumentError(
                f"{path}, line {number}: {line!r:.60} is not an atom and its place: {form}"
            ) from None
        atoms.append(" ".join((symbol, *place)))
    if len(lines) != 2 + count:
        found = max(0, len(lines) - 2)
        raise ArgumentError(
            f"{path}: the number of atoms in line 1 is {count}, that of lines after the comment "
            f"{found}: correct line 1, and keep one geometry in the file"
        )
    return "; ".join(atoms)


def _molecule(atoms: str, basis: str, ecp: str | None, charge: int, spin: int) -> Any:
    """The molecule of PySCF, whose atoms, basis and number of electrons are checked."""
    gto = pyscf_module("gto")
    try:
        # Without a spin PySCF accepts any number of electrons.
        mol = gto.M(atom=atoms, basis=basis, ecp=ecp or {}, charge=charge, spin=None, verbose=0)
    except pyscf_module("lib.exceptions").BasisNotFoundError as error:
        potential = f", or no potential {ecp!r}" if ecp else ""
        reason = " ".join(str(error).split())
        raise ArgumentError(
            f"PySCF has no basis {basis!r} for all of these atoms{potential} ({reason}): choose "
            f"another one"
        ) from error
    except Exception as error:  # PySCF has no class of its own for bad input
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ArgumentError(
            f"PySCF cannot read the atoms {atoms!r:.80}, the basis or the potential ({reason}): "
            f"write atoms such as 'O 0 0 0.1; H 0 0.8 -0.5', in Angstrom"
        ) from error
    symbols = dict.fromkeys(mol.atom_symbol(k) for k in range(mol.natm))
    bare = ", ".join(symbol for symbol in symbols if not mol._basis.get(symbol))
    if bare:
        raise ArgumentError(f"the basis {basis!r} has no functions for {bare}: choose another")
    places = mol.atom_coords()
    distances = np.linalg.norm(places[:, None] - places, axis=2) + np.eye(mol.natm)
    if (distances < _CLOSEST).any():
        one, two = np.argwhere(distances < _CLOSEST)[0] + 1
        raise ArgumentError(f"atoms {one} and {two} are at the same place: correct one of them")
    electrons = mol.nelectron
    if electrons < 0:
        raise ArgumentError(
            f"--charge {charge} removes more electrons than the atoms have, "
            f"{electrons + charge}: correct one of them"
        )
    if electrons < spin or (electrons - spin) % 2:
        fitting = "an even" if electrons % 2 == 0 else "an odd"
        raise ArgumentError(
            f"the number of electrons, {electrons} at charge {charge}, does not fit the spin, "
            f"{spin} unpaired electrons (2S): give {fitting} spin (--spin) of at most {electrons}, "
            f"or another charge (--charge)"
        )
    mol.spin = spin
    return mol


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
