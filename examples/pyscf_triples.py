"""The (T) energy with generated code, closed shell and spin orbitals, against PySCF. Needs PySCF.

    python examples/pyscf_triples.py [--atom "O 0 0 0.1173; ..."] [--basis 6-31g] [--frozen 1]

Ends with status 1 if either energy differs from PySCF's ccsd_t() by more than 1e-8 Hartree.
"""

from __future__ import annotations

import argparse
import sys

from pyscf import cc
from pyscf_blocks import general_solver, mean_field, molecule, tight

import tcgen

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"


def main() -> int:
    """Compare both forms with PySCF; 0 if they agree."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--atom", default=WATER, help="atoms and coordinates in Angstrom")
    parser.add_argument("--basis", default="6-31g")
    parser.add_argument("--frozen", type=int, default=0, help="core orbitals left uncorrelated")
    parser.add_argument("--target", choices=("cpu", "numpy"))
    options = parser.parse_args()

    reference = mean_field(molecule(options.atom, options.basis))
    closed = cc.rccsd.RCCSD(reference, frozen=options.frozen or None)
    general = general_solver(reference, options.frozen)
    worst = 0.0
    for form, solver in (("closed_shell", tight(closed)), ("spin_orbital", tight(general))):
        solver.kernel()
        expected = float(solver.ccsd_t())
        triples = tcgen.chem.solve(
            f"t_{form}",
            reference,
            frozen=options.frozen,
            amplitudes={"t1": solver.t1, "t2": solver.t2},
            target=options.target,
            show=False,
        )
        energy = triples.energies["e_t"]
        worst = max(worst, abs(energy - expected))
        print(
            f"E(T) {form}   PySCF {expected:.12f}   generated {energy:.12f}"
            f"   {energy - expected:+.1e}"
        )
    return 0 if worst < 1e-8 else 1


if __name__ == "__main__":
    sys.exit(main())
