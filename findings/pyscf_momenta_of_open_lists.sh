#!/usr/bin/env bash
# PySCF 2.14.0: kpts_helper.get_kconserv gives, for momenta p, q and r of a list, the one at which
# p - q + r - s is a reciprocal lattice vector. If the list does not contain it, the table has 0, as
# if it were the first k-point, so that integrals that are zero would be read.
# Output seen: "mesh of 4: 0 of 64 entries are wrong; its first 3 points: 6 of 27, all 0". The script
# fails if such a list is refused or the entries are no number of a k-point.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyscf==2.14.0
"$folder/venv/bin/python" - <<'PYTHON'
from itertools import product

import numpy as np
from pyscf.pbc import gto
from pyscf.pbc.lib import kpts_helper

cell = gto.M(
    atom="H 0 0 0; H 0 0 0.8", a=3 * np.eye(3), basis="gth-szv", pseudo="gth-pade", verbose=0
)
mesh = cell.make_kpts([1, 1, 4])


def wrong(kpts):
    """Entries of the table at which momentum is not conserved."""
    table, entries = kpts_helper.get_kconserv(cell, kpts), []
    for p, q, r in product(range(len(kpts)), repeat=3):
        left = kpts[p] - kpts[q] + kpts[r] - kpts[table[p, q, r]]
        phases = left @ cell.lattice_vectors().T / (2 * np.pi)
        if abs(phases - phases.round()).max() > 1e-6:
            entries.append(int(table[p, q, r]))
    return entries


if wrong(mesh) or wrong(mesh[:3]) != 6 * [0]:
    raise SystemExit(f"entries that are wrong: {wrong(mesh)} of the mesh, {wrong(mesh[:3])} of 3 points")
print("mesh of 4: 0 of 64 entries are wrong; its first 3 points: 6 of 27, all 0")
PYTHON
