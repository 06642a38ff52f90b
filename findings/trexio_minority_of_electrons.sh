#!/usr/bin/env bash
# trexio 2.6.1 (PyPI): a file into which only the number of up-spin electrons was written has a number
# of down-spin electrons, 0, and of electrons in all, both of which has_... affirms. A reader cannot
# tell a state of highest spin from a file whose writer left the other number out.
# Output seen: "given 2 and nothing: up 2, down 0, all 2". The script fails if the number is missing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q numpy==2.4.6 trexio==2.6.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import trexio

with trexio.File("given.h5", "w", back_end=trexio.TREXIO_HDF5) as file:
    trexio.write_electron_up_num(file, 2)
with trexio.File("given.h5", "r", back_end=trexio.TREXIO_HDF5) as file:
    if not (trexio.has_electron_dn_num(file) and trexio.has_electron_num(file)):
        raise SystemExit("a number that was not written is missing")
    numbers = [
        trexio.read_electron_up_num(file),
        trexio.read_electron_dn_num(file),
        trexio.read_electron_num(file),
    ]
print("given 2 and nothing: up {}, down {}, all {}".format(*numbers))
assert numbers == [2, 0, 2]
PYTHON
