#!/usr/bin/env bash
# PySCF 2.14.0: PCM() can be attached to GHF as to RHF and UHF, and the object builds. RHF and UHF
# give equal energies of water in the solvent; the run of GHF, the same state, ends in a ValueError
# of NumPy: the integrals of the solvent are over atomic orbitals without spin, the density of GHF
# has both spins.
# Output seen: "RHF -74.96915 UHF -74.96915 GHF ValueError: operands could not be broadcast ...".
# The script fails if the run of GHF ends without this error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyscf==2.14.0 numpy==2.4.6 scipy==1.17.1 h5py==3.16.0
"$folder/venv/bin/python" - <<'PYTHON'
from pyscf import gto, scf

atoms = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
water = gto.M(atom=atoms, basis="sto-3g", verbose=0)
energies = [method(water).PCM().run().e_tot for method in (scf.RHF, scf.UHF)]
print("RHF {:.5f} UHF {:.5f}".format(*energies), end=" ")
assert abs(energies[0] - energies[1]) < 1e-6
solvated = scf.GHF(water).PCM()
try:
    solvated.run()
except ValueError as error:
    print("GHF ValueError:", error)
    assert "broadcast" in str(error)
else:
    raise SystemExit(f"GHF {solvated.e_tot:.5f}: PySCF runs it")
PYTHON
