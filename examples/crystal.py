"""MP2 and CCSD of a crystal with k-points, and its ionisation energies by k-point, beside PySCF.

    python examples/crystal.py [--mesh 1 1 3] [--tolerance 1e-7]

The equations are those of one crystal; momentum conservation leaves blocks of them.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from pyscf.pbc import cc, gto, mp, scf

import tcgen


def main() -> int:
    """Compare energies of one cell with PySCF's; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mesh", type=int, nargs=3, default=(1, 1, 3), help="k-points")
    parser.add_argument("--tolerance", type=float, default=1e-7, help="Hartree a cell")
    options = parser.parse_args()

    chain = gto.M(
        a=np.diag([4.5, 4.5, 2.0]), atom="H 0 0 0.1; H 0 0 0.85", basis="gth-szv",
        pseudo="gth-pade", verbose=0,
    )  # fmt: skip
    kmf = scf.KRHF(chain, chain.make_kpts(options.mesh)).density_fit()
    kmf.conv_tol = 1e-11
    kmf.kernel()

    mp2 = tcgen.chem.solve("mp2_complex_closed_shell", kmf, show=False)
    ccsd = tcgen.chem.solve("ccsd_complex_closed_shell", kmf, tolerance=1e-8)
    reference = cc.KRCCSD(kmf)
    reference.conv_tol, reference.conv_tol_normt = 1e-10, 1e-8
    reference.kernel()
    pairs = [
        ("MP2", mp2.e_corr, mp.KMP2(kmf).kernel()[0]),
        ("CCSD", ccsd.e_corr, reference.e_corr),
    ]
    ground = tcgen.chem.solve("ccsd_complex_spin_orbital", kmf, tolerance=1e-8, show=False)
    for k, place in enumerate(np.ndindex(*options.mesh)):
        name = ",".join(map(str, place))
        ionised = tcgen.chem.solve(
            "eom_ip_ccsd_complex_spin_orbital", kmf, amplitudes=ground, irrep=name, show=False,
            tolerance=1e-6,
        )  # fmt: skip
        expected = np.ravel(reference.ipccsd(nroots=1, kptlist=[k])[0])[0]
        pairs.append((f"IP {name}", ionised.roots[0], float(expected)))

    wrong = 0
    for name, found, expected in pairs:
        limit = options.tolerance if not name.startswith("IP") else 1e-5
        wrong += not abs(found - expected) < limit
        print(f"{name:10} {found:15.10f}  PySCF {expected:15.10f}  {found - expected:8.1e}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
