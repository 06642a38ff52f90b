"""Programs of the objective ``time`` without a memory limit beside unfused ones, in the same run.

    python benchmarks/fused_for_speed.py mp2_df:o=30,v=80,x=80 sosmp2_laplace_df:o=20,v=60,x=60,q=8

For each spec and extents it prints the predicted and the measured time of the fused program,
divided by that of the unfused one (median of the ratios of neighbouring calls), or that nothing is
fused.
"""

from __future__ import annotations

import argparse
import statistics
import time

import tcgen
from tcgen.compiler.documents import read_artifact_system, read_plan
from tcgen.fusion.solver.time_cost import plan_picoseconds
from tcgen.testing import random_arrays, split_starts
from tcgen.thresholds.time_model import Machine


def main() -> None:
    """Time both programs of each case in turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="+", metavar="SPEC:SPACE=N,...")
    parser.add_argument("--rounds", type=int, default=31)
    given = parser.parse_args()
    for case in given.cases:
        name, _, sizes = case.partition(":")
        extents = {s: int(n) for s, n in (part.split("=") for part in sizes.split(","))}
        path = tcgen.spec_path(name)
        whole, fused = (tcgen.compile(path, extents=extents, objective=o) for o in ("none", "time"))
        plans = [read_plan(program.artifact) for program in (whole, fused)]
        if not plans[1].loops:
            print(f"{case}: nothing is fused")
            continue
        one, other = (plan_picoseconds(plan, Machine(), "float64", {}) for plan in plans)
        system = read_artifact_system(whole.artifact)
        inputs = split_starts(system, random_arrays(system, extents, dtype="float64", seed=0))[0]
        ratios = []
        for number in range(given.rounds + 1):
            seconds = []
            for program in (whole, fused):
                start = time.perf_counter()
                program(**inputs)
                seconds.append(time.perf_counter() - start)
            if number:  # the first round compiles
                ratios.append(seconds[1] / seconds[0])
        print(f"{case}: predicted {other / one:.2f}, measured {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
