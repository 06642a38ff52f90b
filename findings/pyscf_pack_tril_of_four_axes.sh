#!/usr/bin/env bash
# PySCF 2.14.0: lib.pack_tril packs matrices, and stacks of matrices along one axis. Of an array with
# four axes, such as integrals (pq|rs), it returns two axes without an error, and the values are not
# the triangles of its matrices.
# Output seen: "(2, 3, 3) -> (2, 6); (2, 2, 3, 3) -> (2, 3)". The script fails if four axes are
# refused, or packed as a loop over the first axis packs them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyscf==2.14.0 numpy==2.4.6 scipy==1.17.1 h5py==3.16.0
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from pyscf import lib

drawn = np.random.default_rng(0).random((2, 2, 3, 3))
symmetric = drawn + drawn.swapaxes(-1, -2)
expected = np.stack([lib.pack_tril(part) for part in symmetric])
found = lib.pack_tril(symmetric)
print(symmetric[0].shape, "->", expected[0].shape, end="; ")
print(symmetric.shape, "->", found.shape)
if found.shape == expected.shape:
    raise SystemExit("PySCF packs four axes")
assert found.shape == (2, 3)
PYTHON
