"""Runs a mean field of PySCF for a molecule, converged as tightly as amplitudes are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import ArgumentError, ConvergenceError
from .integrals import build_fit
from .reference import pyscf_module

_ENERGY = 1e-12  # Hartree to which the energy is converged
_GRADIENT = 1e-8  # norm of the orbital gradient


def run_mean_field(
    *,
    atom: str | None = None,
    xyz: Path | None = None,
    basis: str = "cc-pvdz",
    charge: int = 0,
    spin: int = 0,
    kind: str | None = None,
    density_fit: bool = False,
    auxbasis: str | None = None,
) -> Any:
    """A converged PySCF mean field.

    Args:
        atom: atoms and coordinates in Angstrom, "O 0 0 0.1; H ...".
        xyz: a file with them, instead.
        basis: name of a basis set.
        charge: of the molecule.
        spin: 2S, the number of unpaired electrons, as in PySCF.
        kind: "rhf", "uhf", "rohf" or "ghf"; by default RHF for spin 0 and UHF otherwise.
        density_fit: fit integrals, in the mean field too.
        auxbasis: basis set of the fit; by default PySCF's choice.

    Raises:
        ArgumentError: the molecule is not understood, or ``kind`` does not fit its spin.
        ConvergenceError: the mean field does not converge.
        UnavailableError: PySCF is not installed.
    """
    gto, scf = pyscf_module("gto"), pyscf_module("scf")
    kind = kind or ("uhf" if spin else "rhf")
    if kind == "rhf" and spin:
        raise ArgumentError(f"an RHF reference has spin 0, not {spin}: use uhf, rohf or ghf")
    if (atom is None) == (xyz is None):
        raise ArgumentError("give either atoms or an .xyz file")
    try:
        atoms = atom if xyz is None else gto.mole.fromfile(str(xyz), "xyz")
        mol = gto.M(atom=atoms, basis=basis, charge=charge, spin=spin, verbose=0)
    except OSError:
        raise
    except Exception as error:  # of many classes: PySCF has none of its own for input
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ArgumentError(
            f"PySCF cannot read the molecule: {reason}: check atoms, basis, charge and spin (2S)"
        ) from error
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
