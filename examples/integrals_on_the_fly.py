"""Coulomb and exchange matrices from integrals made tile by tile, against PySCF. Needs PySCF.

    python examples/integrals_on_the_fly.py [--basis cc-pvdz] [--target numpy]

The n^4 integrals are an input declared ``generated``: the program asks for one tile at a time, and
a callable fills it by blocks of shells. The n^4 array never exists. Ends with status 1 if a matrix
differs from PySCF's by more than 1e-9.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from pyscf import gto, scf

import tcgen

SPEC = """
space n
index p q r s : n
input eri[n,n,n,n] generated
input d[n,n]
output j, k
j[p,q] = eri[p,q,r,s]*d[r,s]
k[p,r] = eri[p,q,r,s]*d[q,s]
"""
WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"


class Repulsion:
    """Electron repulsion integrals (pq|rs) of a molecule by tiles.

    PySCF computes whole shells. A tile gets the shells that cover its ranges, less what sticks out.
    """

    def __init__(self, mol: gto.Mole) -> None:
        self.mol = mol
        self.first = mol.ao_loc_nr()  # first orbital of each shell, and behind the last one
        self.largest = 0

    def __call__(self, out: np.ndarray, ranges: tuple[slice, ...]) -> None:
        shells, inside = [], []
        for r in ranges:
            low = int(np.searchsorted(self.first, r.start, side="right")) - 1
            high = int(np.searchsorted(self.first, r.stop, side="left"))
            shells += [low, high]
            start = int(self.first[low])
            inside.append(slice(r.start - start, r.stop - start))
        block = self.mol.intor("int2e", shls_slice=shells)
        out[...] = block[tuple(inside)]
        self.largest = max(self.largest, out.nbytes)


def main() -> int:
    """Compare with PySCF; 0 if they agree."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--atom", default=WATER, help="atoms and coordinates in Angstrom")
    parser.add_argument("--basis", default="cc-pvdz")
    parser.add_argument("--target", choices=("cpu", "numpy"))
    options = parser.parse_args()

    mol = gto.M(atom=options.atom, basis=options.basis, verbose=0)
    reference = scf.RHF(mol).run()
    density, n = reference.make_rdm1(), mol.nao
    program = tcgen.compile(SPEC, extents={"n": n}, target=options.target)
    integrals = Repulsion(mol)
    out = program(eri=integrals, d=density)

    worst = 0.0
    for name, expected in zip("jk", reference.get_jk(mol, density), strict=True):
        error = float(np.max(np.abs(out[name] - expected)))
        worst = max(worst, error)
        print(f"{name}: largest difference from PySCF {error:.1e}")
    print(
        f"all integrals would take {8 * n**4:,} bytes, the largest tile had {integrals.largest:,}"
    )
    print(f"the call allocated {program.allocated_bytes:,} bytes")
    return int(worst > 1e-9)


if __name__ == "__main__":
    sys.exit(main())
