"""Programs of the default planning beside those of ``--objective none --byte-weight 1``.

    OMP_NUM_THREADS=1 python benchmarks/planning.py --json out.json
    OMP_NUM_THREADS=1 python benchmarks/planning.py t_closed_shell:o=6,v=40 mp2_df:o=12,v=70,x=250

Each shipped spec, or each case, is planned both ways without the cache of plans, then for other
extents, where the default may begin with the sequences that it has found. Both programs are then
called in turn with the same random inputs. A row shows processor seconds of the planning (plain,
default, default at other extents), the executed flops of a call of the default divided by those of
the plain plan, bytes that each allocates, and the median of the ratios of neighbouring calls: below
1, the default is faster. Inputs that are constant are bound before.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import tcgen
from tcgen.compiler.documents import read_artifact_system
from tcgen.resources import shipped_specs
from tcgen.testing import random_arrays, split_starts

# Extents by kind of space, at which no shipped spec runs longer than some seconds.
EXTENTS = {"occupied": 8, "virtual": 36, "auxiliary": 120}
OTHER = {"occupied": 10, "virtual": 50, "auxiliary": 150}
SMALL = 8  # of a space of another kind
PLAIN = {"objective": "none", "byte_weight": 1.0}


def chosen_extents(name: str, by_kind: dict[str, int]) -> dict[str, int]:
    """Extents of a shipped spec by the kinds of its spaces."""
    spaces = tcgen.read_spec_file(tcgen.spec_path(name)).spaces
    return {s.name: by_kind.get(s.kind, SMALL) for s in spaces if not s.parts}


def planned(name: str, extents: dict[str, int], **options: Any) -> tuple[tcgen.Program, float]:
    """A program without its C compiler's time, and the processor seconds of its planning."""
    start = time.process_time()
    program = tcgen.compile(tcgen.spec_path(name), extents=extents, **options)
    return program, time.process_time() - start


def in_turn(programs: list[tcgen.Program], inputs: dict[str, Any], seconds: float) -> float:
    """The median ratio of the second program's time to that of the first one."""
    changing = {t.name for t in programs[0].manifest.tensors if t.is_input and t.volatile}
    constants = {n: a for n, a in inputs.items() if n not in changing}
    inputs = {n: a for n, a in inputs.items() if n in changing}
    bound = [program.bind(**constants) for program in programs]
    first = [program(**inputs) for program in bound]
    for name, value in first[0].items():
        scale = float(np.abs(value).max(initial=0.0))
        np.testing.assert_allclose(first[1][name], value, rtol=0, atol=1e-10 * scale)
    ratios: list[float] = []
    end = time.perf_counter() + seconds
    while len(ratios) < 5 or (time.perf_counter() < end and len(ratios) < 201):
        times = []
        for program in bound if len(ratios) % 2 else bound[::-1]:
            start = time.perf_counter()
            program(**inputs)
            times.append(time.perf_counter() - start)
        plain, default = times if len(ratios) % 2 else times[::-1]
        ratios.append(default / plain)
    return statistics.median(ratios)


def row(name: str, extents: dict[str, int], other: dict[str, int], seconds: float) -> Any:
    """One line of the table."""
    plain, plain_cpu = planned(name, extents, **PLAIN)
    default, cpu = planned(name, extents)
    _, again = planned(name, other)
    system = read_artifact_system(plain.artifact)
    inputs = split_starts(system, random_arrays(system, extents, dtype="float64", seed=0))[0]
    reports = [program.report for program in (plain, default)]
    peaks = [program.peak_bytes(extents) for program in (plain, default)]
    flops = [report["operations"]["executed_per_call"] for report in reports]
    return {
        "case": f"{name} " + ",".join(f"{s}={n}" for s, n in extents.items()),
        "cpu": [plain_cpu, cpu, again],
        "flops": flops[1] / flops[0] if flops[0] else 1.0,
        "peak": peaks,
        "time": in_turn([plain, default], inputs, seconds),
    }


def main() -> None:
    """Print a row for each case, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="SPEC[:SPACE=N,...]")
    parser.add_argument("--seconds", type=float, default=3.0, help="of calls in turn a case")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = []
    print("| case | plain s | default s | other extents s | flops | peak bytes | time |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TCGEN_CACHE_DIR"] = folder
        for case in given.cases or list(shipped_specs()):
            name, _, sizes = case.partition(":")
            own = {s: int(n) for s, n in (part.split("=") for part in sizes.split(",") if part)}
            extents = chosen_extents(name, EXTENTS) | own
            found = row(name, extents, chosen_extents(name, OTHER), given.seconds)
            rows.append(found)
            cpu = " | ".join(f"{x:.2f}" for x in found["cpu"])
            peaks = " / ".join(f"{x:,}" for x in found["peak"])
            print(
                f"| {found['case']} | {cpu} | {found['flops']:.3f} | {peaks} "
                f"| {found['time']:.3f} |",
                flush=True,
            )
    plain, default, again = (sum(r["cpu"][k] for r in rows) for k in range(3))
    mean = math.exp(statistics.fmean(math.log(r["time"]) for r in rows))
    print(
        f"planning {plain:.1f}, {default:.1f} and {again:.1f} CPU s; "
        f"geometric mean of the times {mean:.3f}, largest {max(r['time'] for r in rows):.3f}; "
        f"larger peaks: {sum(r['peak'][1] > r['peak'][0] for r in rows)}"
    )
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
