#!/usr/bin/env bash
# ebcc 1.6.2: EBCC of an ROHF reference of PySCF 2.14.0 takes the solver of closed shells. It says
# that it is converged, and the energy of CCSD of a nitrogen atom is three times that of PySCF, which
# ebcc finds from the same orbitals given as UHF.
# Output seen: "REBCC True -0.114366, UEBCC -0.037668, PySCF -0.037668". The script fails if the
# reference is refused or the energy is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q ebcc==1.6.2 pyscf==2.14.0
"$folder/venv/bin/python" - <<'PYTHON'
import ebcc
from pyscf import cc, gto, scf

mol = gto.M(atom="N 0 0 0", basis="6-31g", spin=3, verbose=0)
mf = scf.ROHF(mol).run(conv_tol=1e-11)
given = ebcc.EBCC(mf, ansatz="CCSD", log=ebcc.NullLogger())
converted = ebcc.EBCC(mf.to_uhf(), ansatz="CCSD", log=ebcc.NullLogger())
given.kernel(), converted.kernel()
expected = cc.UCCSD(mf).run().e_corr
assert abs(converted.e_corr - expected) < 1e-6
if not given.converged or abs(given.e_corr - expected) < 1e-3:
    raise SystemExit(f"ROHF: converged {given.converged}, {given.e_corr}, expected {expected}")
print(f"{type(given).__name__} {given.converged} {given.e_corr:.6f},", end=" ")
print(f"{type(converted).__name__} {converted.e_corr:.6f}, PySCF {expected:.6f}")
PYTHON
