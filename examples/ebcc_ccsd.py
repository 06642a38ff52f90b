"""ebcc's RCCSD with generated code, in two ways. Needs ebcc (which needs PySCF).

    python examples/ebcc_ccsd.py [--atom "Li 0 0 0; H 0 0 1.5957"] [--basis sto-3g]

(a) pair by pair: ebcc looks up its contraction function at each call, and tcgen.contract has its
signature; (b) whole functions: the solver's ``_eqns`` is replaced by a compiled spec, so that all
contractions of an iteration are planned together. DIIS and convergence stay ebcc's. Ends with
status 1 if either energy differs from ebcc's own by more than 1e-10 Hartree.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
from ebcc import REBCC, NullLogger
from ebcc.util import Namespace, einsumfunc
from pyscf_blocks import mean_field, molecule

import tcgen

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
FOCK = ("oo", "ov", "vv")
INTEGRALS = ("oooo", "ovoo", "oovv", "ovov", "ovvv", "vvvv")


@contextmanager
def generated_contractions() -> Iterator[None]:
    """Inside, every pairwise contraction of ebcc is tcgen's."""
    kept = einsumfunc._contract_backend
    einsumfunc._contract_backend = tcgen.contract
    try:
        yield
    finally:
        einsumfunc._contract_backend = kept


class GeneratedEquations:
    """ebcc's module of equations with energy and residuals from a compiled spec.

    Other functions (lambda, density matrices, EOM) are those of the module it stands for.
    """

    def __init__(self, own: ModuleType, extents: dict[str, int]) -> None:
        self.own = own
        self.program = tcgen.compile(tcgen.spec_path("ccsd_closed_shell"), extents=extents)
        self.step: Any = None
        self.integrals: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    def _run(self, f: Any, t1: np.ndarray, t2: np.ndarray, v: Any) -> dict[str, Any]:
        """One evaluation; Fock matrix and integrals are bound when they are first seen."""
        if self.integrals is not v:
            constants = {f"f_{block}": getattr(f, block) for block in FOCK}
            constants |= {f"v_{block}": getattr(v, block) for block in INTEGRALS}
            constants["v_vvvv"] = tcgen.pack_pairs(v.vvvv, (0, 1), (2, 3))
            energies = {"e_o": np.diag(f.oo), "e_v": np.diag(f.vv)}
            self.step, self.integrals = self.program.bind(**constants, **energies), v
        return self.step(t1=t1, t2=t2)

    def energy(self, f: Any, t1: np.ndarray, t2: np.ndarray, v: Any, **_: Any) -> float:
        """Correlation energy in Hartree."""
        return float(self._run(f, t1, t2, v)["e"])

    def update_amps(self, f: Any, t1: np.ndarray, t2: np.ndarray, v: Any, **_: Any) -> Namespace:
        """Residuals; ebcc divides them by the orbital energies and adds the amplitudes."""
        out = self._run(f, t1, t2, v)
        return Namespace(t1new=out["r1"], t2new=out["r2"])


def solver(reference: Any) -> REBCC:
    """ebcc's RCCSD, converged tightly enough to compare to 1e-10."""
    made = REBCC(reference, ansatz="CCSD", log=NullLogger())
    made.options.e_tol, made.options.t_tol = 1e-12, 1e-9
    return made


def main() -> int:
    """Compare three CCSD energies; 0 if they agree."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--atom", default=WATER, help="atoms and coordinates in Angstrom")
    parser.add_argument("--basis", default="6-31g")
    parser.add_argument(
        "--all-kernels", action="store_true", help="leave no small contraction to NumPy"
    )
    options = parser.parse_args()
    if options.all_kernels:
        os.environ["TCGEN_EINSUM_MIN_FLOPS"] = "0"

    reference = mean_field(molecule(options.atom, options.basis))
    own = solver(reference)
    own.kernel()

    pairwise = solver(reference)
    with generated_contractions():
        pairwise.kernel()
    report = tcgen.einsum_report()

    whole = solver(reference)
    extents = {"o": int(whole.nocc), "v": int(whole.nvir)}
    whole._eqns = GeneratedEquations(whole._eqns, extents)
    whole.kernel()

    print(f"E(RCCSD) ebcc              {own.e_corr:18.12f}")
    worst = 0.0
    for text, energy in (("pair by pair", pairwise.e_corr), ("whole functions", whole.e_corr)):
        worst = max(worst, abs(energy - own.e_corr))
        print(f"E(RCCSD) {text:18s}{energy:18.12f}   {energy - own.e_corr:+.1e}")
    print(f"contractions: {report.kernel_calls} generated, {report.numpy_calls} left to NumPy")
    return 0 if worst < 1e-10 and own.converged and whole.converged else 1


if __name__ == "__main__":
    sys.exit(main())
