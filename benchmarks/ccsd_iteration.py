"""Time of one CCSD iteration before and after the operation minimisation, from `.sym` term lists.

    python benchmarks/ccsd_iteration.py --repeat 20

Extents are those of H2O and N2 in cc-pVDZ, all electrons correlated; arrays are random, which does
not affect times. Each list is compiled with --no-optimize (every term alone, in its best order) and
with the search; constants are bound, and the two programs are called in turn. Prints the least time
of each and the median of the ratios.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median

import numpy as np

import tcgen
from tcgen.compiler.driver import read_system
from tcgen.testing import random_arrays

EQS = Path(__file__).parent.parent / "tests" / "data" / "eqs"
CASES = [
    ("H2O", "closed shell", "rccsd_sa.sym", {"o": 5, "v": 19}),
    ("N2", "closed shell", "rccsd_sa.sym", {"o": 7, "v": 21}),
    ("H2O", "spin-orbital", "ccsd_so.sym", {"o": 10, "v": 38}),
    ("N2", "spin-orbital", "ccsd_so.sym", {"o": 14, "v": 42}),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--target", default=None)
    chosen = parser.parse_args()
    print("| molecule | equations | each term alone | factored | ratio | flops ratio |")
    print("|---|---|---|---|---|---|")
    for molecule, kind, name, extents in CASES:
        path = EQS / f"{name}.json"
        system = read_system(path)
        arrays = random_arrays(system, extents, dtype="float64", seed=0)
        constants = {t.name: arrays[t.name] for t in system.inputs if not t.volatile}
        changing = {t.name: arrays[t.name] for t in system.inputs if t.volatile}
        programs = [
            tcgen.compile(path, extents=extents, optimize=optimize, target=chosen.target)
            for optimize in (False, True)
        ]
        steps = [program.bind(**constants) for program in programs]
        before, after = (step(**changing) for step in steps)
        for output, value in before.items():
            scale = float(np.abs(value).max())
            np.testing.assert_allclose(after[output], value, atol=1e-11 * scale)
        seconds: list[list[float]] = [[], []]
        for _ in range(chosen.repeat):
            for step, found in zip(steps, seconds, strict=True):
                start = time.perf_counter()
                step(**changing)
                found.append(time.perf_counter() - start)
        flops = [program.report["operations"]["sequence"] for program in programs]
        ratio = median(x / y for x, y in zip(*seconds, strict=True))
        print(
            f"| {molecule}, cc-pVDZ | {kind} | {1e3 * min(seconds[0]):.2f} ms "
            f"| {1e3 * min(seconds[1]):.2f} ms | {ratio:.2f} | {flops[0] / flops[1]:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
