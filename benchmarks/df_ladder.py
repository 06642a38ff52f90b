"""The density-fitted particle ladder within a memory limit, beside dgemm in the same run.

    python benchmarks/df_ladder.py --occupied 15 --virtual 243 --auxiliary 700 --limit 1GiB

W[a,b,e,f] would take 27.9 GB at these extents. Calls of the program and matrix products by the
BLAS of NumPy alternate. The output has the median Gflop/s of both, their ratio, the bytes that a
call allocated, and the growth of the resident set since a call at small extents.
Compare times of one run only with each other. One round at these extents takes minutes.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import numpy as np

import tcgen

SPEC = Path(__file__).parent.parent / "specs" / "df_ladder.spec"


def resident_most() -> int:
    """Bytes that this process has held at most (Linux)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    raise SystemExit("/proc/self/status has no VmHWM")


def main() -> None:
    """Time the program and dgemm in turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, extent in (("occupied", 15), ("virtual", 120), ("auxiliary", 350)):
        parser.add_argument(f"--{name}", type=int, default=extent)
    parser.add_argument("--limit", default="64MiB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--order", type=int, default=3000, help="of the square matrices of dgemm")
    given = parser.parse_args()
    o, v, x = given.occupied, given.virtual, given.auxiliary

    program = tcgen.compile(
        SPEC, extents={"o": o, "v": v, "x": x}, memory_limit=given.limit, objective="time"
    )
    print(program.explain())
    rng = np.random.default_rng(0)
    b_vv = rng.standard_normal((x, v, v))
    b_vv += b_vv.transpose(0, 2, 1).copy()
    tau = rng.standard_normal((o, o, v, v))
    tau += tau.transpose(1, 0, 3, 2).copy()
    left = rng.standard_normal((given.order, given.order))
    product = np.empty_like(left)
    repeats = max(1, round(program.report["operations"]["sequence"] / (6 * given.order**3)))

    def dgemm() -> float:
        start = time.perf_counter()
        for _ in range(repeats):
            np.matmul(left, left, out=product)
        return 2 * given.order**3 * repeats / (time.perf_counter() - start) / 1e9

    def ladder(out: dict[str, np.ndarray]) -> float:
        start = time.perf_counter()
        program(b_vv=b_vv, tau=tau, out=out)
        return program.report["operations"]["sequence"] / (time.perf_counter() - start) / 1e9

    program(b_vv=b_vv[:2, :3, :3].copy(), tau=tau[:2, :2, :3, :3].copy())
    out = {"r2": np.ones((o, o, v, v))}  # written, so that it is resident
    of_dgemm, of_ladder = [dgemm()], []
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the most is what is held now
    before = resident_most()
    for _ in range(given.rounds):
        of_ladder.append(ladder(out))
        of_dgemm.append(dgemm())
        print(f"ladder {of_ladder[-1]:.1f}, dgemm {of_dgemm[-1]:.1f} Gflop/s", flush=True)
    grown = resident_most() - before
    error = 0.0
    for i, j, a, b in rng.integers(0, (o, o, v, v), (8, 4)):
        wanted = np.einsum("Pe,Pf,ef->", b_vv[:, a], b_vv[:, b], tau[i, j], optimize=True)
        error = max(error, abs(out["r2"][i, j, a, b] - wanted) / abs(wanted))
    one, other = statistics.median(of_ladder), statistics.median(of_dgemm)
    print(f"ladder {one:.1f} Gflop/s, dgemm {other:.1f} Gflop/s, ratio {one / other:.3f}")
    print(f"allocated {program.allocated_bytes:,} bytes, resident set grew by {grown:,} bytes")
    print(f"largest relative error of eight elements {error:.1e}")


if __name__ == "__main__":
    main()
