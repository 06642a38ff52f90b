"""Write water_631g.npz beside this file: the arrays that examples/water.py reads. Needs PySCF.

H2O in 6-31G, all electrons correlated. Orbital signs are fixed, so that a second run writes the
same numbers up to the rounding of the integral code.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from pyscf import cc, lib

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from pyscf_blocks import closed_shell, mean_field, molecule, tight  # noqa: E402  (after the path)

GEOMETRY = "O 0.0 0.0 0.1173; H 0.0 0.7572 -0.4692; H 0.0 -0.7572 -0.4692"  # Angstrom


def main() -> None:
    """Run RHF and CCSD, and write blocks, orbital energies and both energies."""
    lib.num_threads(1)  # the same rounding in every run
    reference = mean_field(molecule(GEOMETRY, "6-31g"))
    orbitals = reference.mo_coeff
    size = np.abs(orbitals)
    # Of coefficients that symmetry makes equal the first one counts, however they were rounded.
    leading = (size > 0.999 * size.max(axis=0)).argmax(axis=0)
    reference.mo_coeff = orbitals * np.sign(orbitals[leading, np.arange(orbitals.shape[1])])

    solver = tight(cc.rccsd.RCCSD(reference))
    eris = solver.ao2mo()
    solver.kernel(eris=eris)
    arrays = closed_shell(solver, eris)
    arrays |= {"e_hf": np.array(reference.e_tot), "e_ccsd": np.array(solver.e_corr)}
    np.savez_compressed(HERE / "water_631g.npz", **arrays)
    for name, array in arrays.items():
        print(f"{name:7s} {array.shape!s:16s} {np.linalg.norm(array):18.12f}")


if __name__ == "__main__":
    main()
