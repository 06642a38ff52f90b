"""What a call of ``tcgen.einsum`` costs beyond ``numpy.einsum`` where there is little to compute.

    taskset -c 0 python benchmarks/einsum_overhead.py

Small calls are delegated to NumPy, so the difference is the way there. Then matrix products of
growing extent, which run generated code (``kernel``) from some extent on.
Rounds of both programs take turns; the least of all rounds counts, in microseconds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tcgen

SMALL = (
    ("ij,jk->ik", (2, 2), (2, 2)),
    ("ij,jk->ik", (8, 8), (8, 8)),
    ("ijk,jk->i", (4, 4, 4), (4, 4)),
    ("abcd,cd->ab", (2, 2, 2, 8), (2, 8)),
    ("i,i->", (64,), (64,)),
    ("ij->ji", (8, 8)),
)
EXTENTS = (16, 32, 64, 128, 256)


def least(programs: dict[str, Callable[[], object]], rounds: int, calls: int) -> dict[str, float]:
    """Microseconds of one call of each program."""
    best = dict.fromkeys(programs, float("inf"))
    for _ in range(rounds):
        for name, run in programs.items():
            start = time.perf_counter()
            for _ in range(calls):
                run()
            best[name] = min(best[name], (time.perf_counter() - start) / calls * 1e6)
    return best


def measure(labels: str, shapes: tuple[tuple[int, ...], ...], options: argparse.Namespace) -> dict:
    """One row: both programs on the same arrays."""
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape) for shape in shapes]
    tcgen.einsum_report(reset=True)
    programs: dict[str, Callable[[], object]] = {
        "numpy": lambda: np.einsum(labels, *arrays),
        "tcgen": lambda: tcgen.einsum(labels, *arrays),
    }
    programs["tcgen"]()
    calls = max(1, min(options.calls, 10**7 // max(a.size for a in arrays)))
    row = least(programs, options.rounds, calls)
    route = tcgen.einsum_report().rows[0]
    return {"labels": labels, "shapes": shapes, "route": route.route, **row}


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    cases = [(labels, shapes) for labels, *shapes in SMALL]
    cases += [("ij,kj->ki", ((n, n), (n, n))) for n in EXTENTS]
    rows = [measure(labels, tuple(shapes), options) for labels, shapes in cases]
    print("| call | shapes | route | numpy us | tcgen us | difference |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        shapes = ", ".join("x".join(map(str, s)) for s in row["shapes"])
        print(
            f"| `{row['labels']}` | {shapes} | {row['route']} | {row['numpy']:.2f} "
            f"| {row['tcgen']:.2f} | {row['tcgen'] - row['numpy']:+.2f} |"
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
