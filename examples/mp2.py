"""MP2 and density-fitted MP2 of water with generated code, and what each stores. Needs PySCF.

    python examples/mp2.py [--basis cc-pvdz] [--auxbasis cc-pvdz-ri] [--target cpu|numpy]

The denominator is part of the equations, so no amplitudes are stored: fused, the four-index
integrals g[i,a,j,b] of DF-MP2 shrink too. Ends with status 1 if the MP2 energy differs from
PySCF's by more than 1e-8 Hartree.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from pyscf import ao2mo, mp
from pyscf_blocks import density_fitted, mean_field, molecule

import tcgen

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"


def energy(spec: str, arrays: dict[str, np.ndarray], target: str | None) -> tuple[float, int, int]:
    """MP2 energy, bytes of intermediates before fusion, and after it."""
    extents = {"o": arrays["e_o"].size, "v": arrays["e_v"].size}
    if "b_ov" in arrays:
        extents["x"] = arrays["b_ov"].shape[0]
    program = tcgen.compile(
        tcgen.spec_path(spec), extents=extents, target=target, objective="linear"
    )
    memory = program.report["memory"]
    before, after = memory["intermediates_unfused_bytes"], memory["intermediates_static_bytes"]
    return float(program(**arrays)["e"]), before, after


def main() -> int:
    """Print both energies and their memory; 0 if MP2 agrees with PySCF."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--basis", default="cc-pvdz")
    parser.add_argument("--auxbasis", default="cc-pvdz-ri")
    parser.add_argument("--target", choices=("cpu", "numpy"))
    options = parser.parse_args()

    reference = mean_field(molecule(WATER, options.basis))
    expected = float(mp.MP2(reference).run().e_corr)
    fitted = density_fitted(reference, options.auxbasis)
    fitted = {name: fitted[name] for name in ("b_ov", "e_o", "e_v")}
    nocc, nvir = fitted["e_o"].size, fitted["e_v"].size
    occupied, virtual = reference.mo_coeff[:, :nocc], reference.mo_coeff[:, nocc:]
    g = ao2mo.general(reference.mol, (occupied, virtual, occupied, virtual), compact=False)
    exact = {"g": g.reshape(nocc, nvir, nocc, nvir), "e_o": fitted["e_o"], "e_v": fitted["e_v"]}

    print(f"PySCF    E(MP2) = {expected:.12f}")
    results = {}
    for text, spec, arrays in (("MP2", "mp2_closed_shell", exact), ("DF-MP2", "mp2_df", fitted)):
        results[text], before, after = energy(spec, arrays, options.target)
        print(
            f"{text:8s} E(MP2) = {results[text]:.12f}   {results[text] - expected:+.1e}"
            f"   intermediates {before:,} bytes, fused {after:,}"
        )
    return 0 if abs(results["MP2"] - expected) < 1e-8 else 1


if __name__ == "__main__":
    sys.exit(main())
