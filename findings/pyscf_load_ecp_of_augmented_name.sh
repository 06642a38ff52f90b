#!/usr/bin/env bash
# PySCF 2.14.0: load_ecp finds the potential of cc-pvdz-pp for gold. For aug-cc-pvdz-pp, a basis that
# uses the same potential and is listed among PySCF's names, it raises a TypeError of os.path.join
# instead of an error that says that there is no such potential.
# Output seen: "60 electrons; TypeError: join() argument must be str, bytes, or os.PathLike object,
# not 'tuple'". The script fails if PySCF finds the potential or raises another error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyscf==2.14.0 numpy==2.4.6 scipy==1.17.1 h5py==3.16.0
"$folder/venv/bin/python" - <<'PYTHON'
from pyscf.gto import basis

print(basis.load_ecp("cc-pvdz-pp", "Au")[0], "electrons;", end=" ")
assert "augccpvdzpp" in basis.ALIAS
try:
    basis.load_ecp("aug-cc-pvdz-pp", "Au")
except TypeError as error:
    print("TypeError:", error)
    assert "join() argument" in str(error)
else:
    raise SystemExit("PySCF finds the potential")
PYTHON
