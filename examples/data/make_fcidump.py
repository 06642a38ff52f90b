"""Write water.fcidump: integrals of water in 6-31G over canonical orbitals, and print energies.

    python examples/data/make_fcidump.py

Needs PySCF; ``examples/native`` reads the file.
"""

from __future__ import annotations

from pathlib import Path

from pyscf import cc, gto, mp, scf
from pyscf.tools import fcidump

FILE = Path(__file__).resolve().parent / "water.fcidump"
ATOM = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"


def main() -> None:
    """Write the file and print the energies that the examples find."""
    mf = scf.RHF(gto.M(atom=ATOM, basis="6-31g", verbose=0)).set(conv_tol=1e-13).run()
    fcidump.from_scf(mf, str(FILE), tol=1e-11, float_format=" %.12g")
    second, coupled = mp.MP2(mf).run(), cc.CCSD(mf).set(conv_tol=1e-11).run()
    print(f"HF {mf.e_tot:.10f}, MP2 {second.e_corr:.10f}, CCSD {coupled.e_corr:.10f}")
    print(f"(T) {coupled.ccsd_t():.10f}")


if __name__ == "__main__":
    main()
