"""The (T) energy with generated code, closed shell and spin orbitals, against PySCF. Needs PySCF.

    python examples/pyscf_triples.py [--atom "O 0 0 0.1173; ..."] [--basis 6-31g] [--frozen 1]

Ends with status 1 if either energy differs from PySCF's ccsd_t() by more than 1e-8 Hartree.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from pyscf import cc
from pyscf_blocks import closed_shell, general_solver, mean_field, molecule, spin_orbital, tight

import tcgen

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
COMMON = ("f_ov", "e_o", "e_v")
CLOSED_SHELL = (*COMMON, "v_ovoo", "v_ovov", "v_ovvv")
SPIN_ORBITAL = (*COMMON, "v_ooov", "v_oovv", "v_ovvv")


def triples(
    spec: str,
    names: tuple[str, ...],
    arrays: dict[str, np.ndarray],
    t1: np.ndarray,
    t2: np.ndarray,
    target: str | None = None,
) -> float:
    """(T) energy in Hartree: ``spec`` names the form, ``names`` the arrays that it reads."""
    extents = {"o": t1.shape[0], "v": t1.shape[1]}
    program = tcgen.compile(tcgen.spec_path(spec), extents=extents, target=target)
    return float(program(**{name: arrays[name] for name in names}, t1=t1, t2=t2)["e_t"])


def main() -> int:
    """Compare both forms with PySCF; 0 if they agree."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--atom", default=WATER, help="atoms and coordinates in Angstrom")
    parser.add_argument("--basis", default="6-31g")
    parser.add_argument("--frozen", type=int, default=0, help="core orbitals left uncorrelated")
    parser.add_argument("--target", choices=("cpu", "numpy"))
    options = parser.parse_args()

    reference = mean_field(molecule(options.atom, options.basis))
    closed = tight(cc.rccsd.RCCSD(reference, frozen=options.frozen or None))
    closed.kernel()
    general = tight(general_solver(reference, options.frozen))
    general.kernel()

    worst = 0.0
    for text, spec, names, solver, arrays in (
        ("closed shell", "t_closed_shell", CLOSED_SHELL, closed, closed_shell(closed)),
        ("spin orbital", "t_spin_orbital", SPIN_ORBITAL, general, spin_orbital(general)),
    ):
        expected = float(solver.ccsd_t())
        energy = triples(spec, names, arrays, solver.t1, solver.t2, options.target)
        worst = max(worst, abs(energy - expected))
        print(
            f"E(T) {text}   PySCF {expected:.12f}   generated {energy:.12f}"
            f"   {energy - expected:+.1e}"
        )
    return 0 if worst < 1e-8 else 1


if __name__ == "__main__":
    sys.exit(main())
