#!/usr/bin/env bash
# ebcc 1.6.2: the triples of an unrestricted reference are not those of the same reference in spin
# orbitals. (T) of a nitrogen atom is 1.46 times the value of GEBCC, which is that of PySCF 2.14.0's
# UCCSD(T) and GCCSD(T); CC3 and CCSDT differ, too, while CCSD agrees.
# Output seen: "CCSD -0.0000000, CCSD(T) -0.0000754, CC3 -0.0000040, CCSDT -0.0000060 (UEBCC less
# GEBCC)". The script fails if a method with triples agrees.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q ebcc==1.6.2 pyscf==2.14.0
"$folder/venv/bin/python" - <<'PYTHON'
import ebcc
from pyscf import gto, scf

mol = gto.M(atom="N 0 0 0", basis="6-31g", spin=3, verbose=0)
mf = scf.UHF(mol).run(conv_tol=1e-12)


def energy(reference, ansatz):
    solver = ebcc.EBCC(reference, ansatz=ansatz, log=ebcc.NullLogger())
    solver.kernel()
    assert solver.converged
    return solver.e_tot


found = {}
for ansatz in ("CCSD", "CCSD(T)", "CC3", "CCSDT"):
    found[ansatz] = energy(mf, ansatz) - energy(mf.to_ghf(), ansatz)
print(", ".join(f"{name} {value:.7f}" for name, value in found.items()), "(UEBCC less GEBCC)")
if abs(found["CCSD"]) > 1e-7 or any(abs(found[n]) < 1e-6 for n in ("CCSD(T)", "CC3", "CCSDT")):
    raise SystemExit("the triples of both agree, or CCSD does not")
PYTHON
