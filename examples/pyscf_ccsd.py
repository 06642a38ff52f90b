"""CCSD on a PySCF reference with generated code, in two ways. Needs PySCF.

    python examples/pyscf_ccsd.py [--atom "Li 0 0 0; H 0 0 1.5957"] [--basis sto-3g] [--frozen 1]

(a) inside PySCF: a subclass of rccsd.RCCSD whose update_amps is the generated program, so that
DIIS, convergence, ccsd_t(), solve_lambda() and make_rdm1() stay PySCF's; (b) with tcgen.chem.solve,
which takes the reference and iterates by itself. Ends with status 1 if either energy differs
from PySCF's own by more than 1e-8 Hartree.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from pyscf import cc
from pyscf_blocks import closed_shell, mean_field, molecule, tight

import tcgen

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"


def bound_ccsd(arrays: dict[str, np.ndarray], target: str | None) -> Any:
    """Closed-shell CCSD compiled for these extents, with integrals, Fock and energies bound."""
    extents = {"o": arrays["e_o"].size, "v": arrays["e_v"].size}
    program = tcgen.compile(tcgen.spec_path("ccsd_closed_shell"), extents=extents, target=target)
    triangles = tcgen.pack_pairs(arrays["v_vvvv"], (0, 1), (2, 3))
    return program.bind(**arrays | {"v_vvvv": triangles})


class GeneratedCCSD(cc.rccsd.RCCSD):
    """PySCF's RCCSD with generated amplitude updates."""

    _keys = frozenset({"target", "step", "step_eris"})
    target: str | None = None
    step: Any = None
    step_eris: Any = None

    def update_amps(
        self, t1: np.ndarray, t2: np.ndarray, eris: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """New amplitudes t + r/D; the integrals are bound when they are first seen."""
        if self.step is None or self.step_eris is not eris:
            self.step, self.step_eris = bound_ccsd(closed_shell(self, eris), self.target), eris
        out = self.step(t1=t1, t2=t2)
        return out["t1_new"], out["t2_new"]


def main() -> int:
    """Compare three CCSD energies; 0 if they agree."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--atom", default=WATER, help="atoms and coordinates in Angstrom")
    parser.add_argument("--basis", default="cc-pvdz")
    parser.add_argument("--charge", type=int, default=0)
    parser.add_argument("--frozen", type=int, default=0, help="core orbitals left uncorrelated")
    parser.add_argument("--target", choices=("cpu", "numpy"))
    options = parser.parse_args()

    reference = mean_field(molecule(options.atom, options.basis, options.charge))
    frozen = options.frozen or None
    own = tight(cc.rccsd.RCCSD(reference, frozen=frozen))
    own.kernel()

    inside = tight(GeneratedCCSD(reference, frozen=frozen))
    inside.target = options.target
    inside.kernel()

    solved = tcgen.chem.solve(
        "ccsd_closed_shell",
        reference,
        frozen=options.frozen,
        target=options.target,
        show=False,
    )

    print(f"E(HF)                         {reference.e_tot:18.12f}")
    print(f"E(CCSD) PySCF                 {own.e_corr:18.12f}")
    worst = 0.0
    for text, energy in (("inside PySCF", inside.e_corr), ("solve", solved.e_corr)):
        worst = max(worst, abs(energy - own.e_corr))
        print(f"E(CCSD) generated, {text:12s}{energy:17.12f}   {energy - own.e_corr:+.1e}")
    return 0 if worst < 1e-8 else 1


if __name__ == "__main__":
    sys.exit(main())
