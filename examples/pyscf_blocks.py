"""Integrals, Fock matrix and orbital energies of a PySCF reference, under the names of the specs.

Everything is real float64 with 4-index integrals in full; occupied axes come first in amplitudes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pyscf import cc, df, gto, lib, scf

Arrays = dict[str, np.ndarray]

CLOSED_SHELL = ("oooo", "ovoo", "oovv", "ovov", "ovvv", "vvvv")
SPIN_ORBITAL = ("oooo", "ooov", "oovv", "ovov", "ovvv", "vvvv")
UNRESTRICTED = (
    *("oooo", "ovoo", "oovv", "ovov", "OOOO", "OVOO", "OOVV", "OVOV"),
    *("ooOO", "ovOO", "ooVV", "ovOV", "OVoo", "OOvv"),
)
UNRESTRICTED_PACKED = ("ovvv", "OVVV", "ovVV", "OVvv")


def molecule(atom: str, basis: str, charge: int = 0, spin: int = 0) -> gto.Mole:
    """A molecule from ``"O 0 0 0.1; H ..."`` in Angstrom; ``spin`` is 2S."""
    return gto.M(atom=atom, basis=basis, charge=charge, spin=spin, verbose=0, max_memory=2000)


def mean_field(mol: gto.Mole, kind: str = "RHF") -> Any:
    """A converged RHF, UHF or ROHF reference (1e-13 Hartree, gradient 1e-8).

    Raises:
        ArithmeticError: the SCF did not converge.
    """
    reference = getattr(scf, kind)(mol)
    reference.conv_tol, reference.conv_tol_grad = 1e-13, 1e-8
    reference.kernel()
    if not reference.converged:
        raise ArithmeticError(f"{kind} did not converge for {mol.atom!r} in {mol.basis!r}")
    return reference


def tight(solver: Any) -> Any:
    """The same PySCF coupled-cluster object with thresholds fit for comparisons to 1e-10."""
    solver.conv_tol, solver.conv_tol_normt, solver.max_cycle = 1e-13, 1e-10, 200
    return solver


def closed_shell(solver: cc.rccsd.RCCSD, eris: Any = None) -> Arrays:
    """Blocks of ``rccsd.RCCSD``: chemist (pq|rs) over spatial orbitals, real and 8-fold symmetric.

    Returns:
        f_oo, f_ov, f_vv, e_o, e_v and v_oooo[i,j,k,l] = (ij|kl), v_ovoo, v_oovv, v_ovov, v_ovvv,
        v_vvvv in the shapes that their names say, in Hartree.
    """
    eris = solver.ao2mo() if eris is None else eris
    return _blocks(eris, CLOSED_SHELL)


def spin_orbital(solver: cc.gccsd.GCCSD, eris: Any = None) -> Arrays:
    """Blocks of ``gccsd.GCCSD``: physicist antisymmetrised <pq||rs> over spin orbitals.

    Returns:
        f_oo, f_ov, f_vv, e_o, e_v and v_oooo[i,j,k,l] = <ij||kl>, v_ooov, v_oovv, v_ovov, v_ovvv,
        v_vvvv in the shapes that their names say, in Hartree.
    """
    eris = solver.ao2mo() if eris is None else eris
    return _blocks(eris, SPIN_ORBITAL)


def general_solver(reference: Any, frozen: int = 0) -> cc.gccsd.GCCSD:
    """GCCSD of any RHF, ROHF or UHF reference; ``frozen`` counts spatial core orbitals."""
    return cc.GCCSD(scf.addons.convert_to_ghf(reference), frozen=2 * frozen or None)


def _blocks(eris: Any, names: tuple[str, ...]) -> Arrays:
    o, v = slice(None, eris.nocc), slice(eris.nocc, None)
    fock, energies = np.asarray(eris.fock).real, np.asarray(eris.mo_energy).real
    arrays = {
        "f_oo": fock[o, o].copy(),
        "f_ov": fock[o, v].copy(),
        "f_vv": fock[v, v].copy(),
        "e_o": energies[o].copy(),
        "e_v": energies[v].copy(),
    }
    return arrays | {f"v_{name}": np.asarray(getattr(eris, name)) for name in names}


def unrestricted(solver: cc.uccsd.UCCSD, eris: Any = None) -> Arrays:
    """Blocks of ``uccsd.UCCSD``: chemist (pq|rs), lower case alpha and upper case beta orbitals.

    Returns:
        f_oo .. f_VV, e_o, e_v, e_O, e_V and the integrals with at most three virtual axes, such as
        v_ovOV[i,a,J,B] = (ia|JB) and v_OVvv[I,A,b,c] = (IA|bc), in Hartree.
    """
    eris = solver.ao2mo() if eris is None else eris
    arrays = {}
    for (o, v), fock, energies, nocc in zip(
        ("ov", "OV"), (eris.focka, eris.fockb), eris.mo_energy, solver.nocc, strict=True
    ):
        fock, left, right = np.asarray(fock), slice(None, nocc), slice(nocc, None)
        arrays[f"f_{o}{o}"] = fock[left, left].copy()
        arrays[f"f_{o}{v}"] = fock[left, right].copy()
        arrays[f"f_{v}{v}"] = fock[right, right].copy()
        arrays[f"e_{o}"], arrays[f"e_{v}"] = energies[left].copy(), energies[right].copy()
    for name in UNRESTRICTED:
        arrays[f"v_{name}"] = np.asarray(getattr(eris, name))
    for name in UNRESTRICTED_PACKED:  # stored as triangles of the last pair
        arrays[f"v_{name}"] = np.asarray(getattr(eris, f"get_{name}")())
    return arrays


def density_fitted(reference: Any, auxbasis: str, frozen: int = 0) -> Arrays:
    """Cholesky-whitened three-index integrals b[P,p,q] with (pq|rs) ~ sum_P b[P,p,q]*b[P,r,s].

    Returns:
        b_oo, b_ov, b_vv, e_o, e_v of a closed-shell reference, in Hartree.
    """
    fit = df.DF(reference.mol, auxbasis=auxbasis)
    coefficients = reference.mo_coeff[:, frozen:]
    rows = np.vstack([np.asarray(part) for part in fit.loop()])
    full = np.einsum(
        "mp,Pmn,nq->Ppq", coefficients, lib.unpack_tril(rows), coefficients, optimize=True
    )
    nocc = reference.mol.nelectron // 2 - frozen
    o, v = slice(None, nocc), slice(nocc, None)
    energies = reference.mo_energy[frozen:]
    return {
        "b_oo": full[:, o, o].copy(),
        "b_ov": full[:, o, v].copy(),
        "b_vv": full[:, v, v].copy(),
        "e_o": energies[o].copy(),
        "e_v": energies[v].copy(),
    }
