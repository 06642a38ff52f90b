"""The particle ladder from integrals in an HDF5 file, read slice by slice. Needs h5py.

    python examples/integrals_on_disk.py [-o 8] [-v 60] [--target numpy]

The program is compiled with ``sliced=("v_vvvv",)``: the file is never read as a whole, so that it
may be larger than memory. Ends with status 1 if the result differs from NumPy's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np

import tcgen

SPEC = """
space o occupied
space v virtual
index i j : o
index a b c d : v
input v_vvvv[v,v,v,v], t2[o,o,v,v]
output r
r[i,j,a,b] = v_vvvv[a,b,c,d]*t2[i,j,c,d]
"""


def main() -> int:
    """Write a file, contract it, compare; 0 if they agree."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("-o", type=int, default=8, help="occupied orbitals")
    parser.add_argument("-v", type=int, default=60, help="virtual orbitals")
    parser.add_argument("--target", choices=("cpu", "numpy"))
    options = parser.parse_args()
    o, v = options.o, options.v

    program = tcgen.compile(
        SPEC, extents={"o": o, "v": v}, target=options.target, sliced=("v_vvvv",)
    )
    random = np.random.default_rng(0)
    t2 = random.random((o, o, v, v))
    worst = 0.0
    with (
        tempfile.TemporaryDirectory() as folder,
        h5py.File(Path(folder) / "integrals.h5", "w") as file,
    ):
        data = file.create_dataset("v_vvvv", (v, v, v, v), "f8")
        for a in range(v):
            data[a] = random.random((v, v, v))
        out = program(v_vvvv=data, t2=t2)["r"]
        for a in range(0, v, max(1, v // 4)):
            expected = np.tensordot(t2, data[a], axes=([2, 3], [1, 2]))
            error = np.max(np.abs(out[:, :, a] - expected)) / np.max(np.abs(expected))
            worst = max(worst, float(error))
    print(f"the file had {8 * v**4:,} bytes, the call allocated {program.allocated_bytes:,}")
    print(f"largest relative difference from NumPy {worst:.1e}")
    return int(worst > 1e-12)


if __name__ == "__main__":
    sys.exit(main())
