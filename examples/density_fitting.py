"""DF-MP2 and the density-fitted particle ladder of water with generated code. Needs PySCF.

    python examples/density_fitting.py [--basis cc-pvdz] [--auxbasis cc-pvdz-ri] [--frozen 1]

The ladder contracts W[a,b,e,f] = sum_P b[P,a,e]*b[P,b,f], V^4 elements on paper; with loops fused
(objective linear) W shrinks to what one pass of the shared loops needs. Ends with status 1 if the
DF-MP2 energy differs from PySCF's by more than 1e-8 Hartree, or the ladder from dense NumPy by more
than 1e-10.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from pyscf import df
from pyscf.mp import dfmp2
from pyscf_blocks import density_fitted, mean_field, molecule

import tcgen

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"


def fused(spec: str, arrays: dict[str, np.ndarray], target: str | None) -> Any:
    """The program of a shipped spec with fused loops, for the extents of b[P,..], e_o and e_v."""
    extents = {"o": arrays["e_o"].size, "v": arrays["e_v"].size, "x": arrays["b_ov"].shape[0]}
    path = tcgen.spec_path(spec)
    return tcgen.compile(path, extents=extents, target=target, objective="linear")


def main() -> int:
    """Compare both with PySCF and NumPy; 0 if they agree."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--basis", default="cc-pvdz")
    parser.add_argument("--auxbasis", default="cc-pvdz-ri")
    parser.add_argument("--frozen", type=int, default=0, help="core orbitals left uncorrelated")
    parser.add_argument("--target", choices=("cpu", "numpy"))
    options = parser.parse_args()

    reference = mean_field(molecule(WATER, options.basis))
    arrays = density_fitted(reference, options.auxbasis, options.frozen)
    b_ov, b_vv, e_o, e_v = (arrays[n] for n in ("b_ov", "b_vv", "e_o", "e_v"))

    solver = dfmp2.DFMP2(reference, frozen=options.frozen or None)
    solver.with_df = df.DF(reference.mol, auxbasis=options.auxbasis)
    expected = float(solver.kernel()[0])
    energy = float(fused("mp2_df", arrays, options.target)(b_ov=b_ov, e_o=e_o, e_v=e_v)["e"])
    print(f"E(DF-MP2) PySCF {expected:.12f}   generated {energy:.12f}   {energy - expected:+.1e}")

    d1 = e_o[:, None] - e_v
    ovov = np.einsum("Pia,Pjb->iajb", b_ov, b_ov, optimize=True)
    tau = (ovov / (d1[:, :, None, None] + d1)).transpose(0, 2, 1, 3)
    program = fused("df_ladder", arrays, options.target)
    ladder = program(b_vv=b_vv, tau=tau)["r2"]
    dense = np.einsum("Pae,Pbf,ijef->ijab", b_vv, b_vv, tau, optimize=True)
    deviation = float(np.abs(ladder - dense).max())
    memory = program.report["memory"]
    before, after = memory["intermediates_unfused_bytes"], memory["intermediates_static_bytes"]
    print(f"ladder    generated against dense NumPy {deviation:+.1e}")
    print(f"          intermediates {before:,} bytes before fusion, {after:,} after")
    return 0 if abs(energy - expected) < 1e-8 and deviation < 1e-10 else 1


if __name__ == "__main__":
    sys.exit(main())
