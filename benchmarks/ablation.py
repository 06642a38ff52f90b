"""Worth of each path of the contraction kernel: each is switched off, in turn with the kernel.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/ablation.py --reduce 6 --repeat 5
    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/ablation.py --trees OLD,NEW --reduce 20

Every variant is a process of its own that calls ``tcgen.einsum`` on the cases of the TCCG suite
(``tccg_cpu.py`` explains ``--reduce`` and ``--minus-one``). In each round all variants compute the
same case one after the other, in an order that rotates, so that they meet the same machine. The
ratio of a variant is its time divided by the time of the whole kernel in the same round: above 1,
the path that it lacks is worth something. A row shows the geometric mean over the cases of the
median ratios. ``--trees`` compares checkouts of tcgen in place of switches; a ratio above 1 means
that the first one is faster. ``--compile`` only compiles, so that the timed run finds all kernels
in the cache; do that first.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from tccg_cpu import SUITE, extents_of

ROOT = Path(__file__).parents[1]
# Paths by the bits of TC_WITHOUT in templates/c/contract/element.h.
SWITCHES = {
    "nothing, a control": 0,
    "staging with A in place": 1,
    "staging with B in place": 2,
    "non-temporal stores": 4,
    "buffered non-temporal stores": 8,
    "prefetch of packed operands": 16,
    "prefetch of staged operands": 32,
    "prefetch from alternating pages": 64,
    "sums over k in parts": 128,
}
WHOLE = "whole kernel"


def serve() -> None:
    """One variant: reads cases as JSON lines, answers each with its seconds."""
    import time

    import numpy as np
    from tccg_cpu import aligned

    import tcgen

    operands: tuple[Any, ...] = ()
    numbers = np.random.default_rng(0).standard_normal(99991)
    for line in sys.stdin:
        request = json.loads(line)
        if request:
            labels, extents = request
            inputs, output = labels.split("->")
            shapes = ([extents[c] for c in text] for text in inputs.split(","))
            operands = tuple(np.resize(numbers, shape) for shape in shapes)
            out = aligned(np, [extents[c] for c in output])
        start = time.perf_counter()
        tcgen.einsum(labels, *operands, out=out)
        print(time.perf_counter() - start, float(np.linalg.norm(out)) if request else 0, flush=True)


class Variant:
    """A process with its own checkout and its own flags of the compiler."""

    def __init__(self, tree: Path, flags: str) -> None:
        compiler = os.environ.get("TCGEN_CC", "cc")
        environment = os.environ | {
            "TCGEN_CC": f"{compiler} {flags}",
            "PYTHONPATH": f"{tree}:{Path(__file__).parent}",
        }
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, request: Any) -> tuple[float, float]:
        """Seconds of one call, and the norm of its result where the request is a case."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        seconds, norm = self.process.stdout.readline().split()
        return float(seconds), float(norm)


def measure(
    case: dict[str, Any], variants: dict[str, Variant], options: argparse.Namespace
) -> dict[str, Any]:
    """Seconds of each variant, by round."""
    extents = extents_of(case, options.reduce, options.minus_one)
    norms = {n: v.ask((case["einsum"], extents))[1] for n, v in variants.items()}
    for name, norm in norms.items():
        assert math.isclose(norm, norms[next(iter(norms))], rel_tol=1e-10), (name, case["einsum"])
    names = list(variants)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(options.repeat):
        for name in names:
            seconds[name].append(variants[name].ask(None)[0])
        names.append(names.pop(0))
    return {"number": case["number"], "einsum": case["einsum"], "seconds": seconds}


def ratio(row: dict[str, Any], name: str, base: str) -> float:
    """Median over the rounds of the time of a variant divided by that of the base."""
    pairs = zip(row["seconds"][name], row["seconds"][base], strict=True)
    return statistics.median(one / other for one, other in pairs)


def table(rows: list[dict[str, Any]], base: str) -> str:
    """Markdown: one row for each variant."""
    names = [n for n in rows[0]["seconds"] if n != base]
    lines = [
        "| without | geometric mean | largest ratio (case) | cases above 1.05 |",
        "|---|---|---|---|",
    ]
    for name in names:
        ratios = {r["number"]: ratio(r, name, base) for r in rows}
        largest = max(ratios, key=lambda n: ratios[n])
        above = [f"{n}: {x:.2f}" for n, x in ratios.items() if x > 1.05]
        mean = statistics.geometric_mean(ratios.values())
        lines.append(
            f"| {name} | {mean:.3f} | {ratios[largest]:.2f} ({largest}) | {', '.join(above)} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--cases", help="numbers such as 1,3,31; default all")
    parser.add_argument("--switches", help="names of paths, separated by commas; default all")
    parser.add_argument("--trees", help="checkouts to compare, separated by commas")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--reduce", type=float, default=6.0, help="GFlop")
    parser.add_argument("--minus-one", action="store_true")
    parser.add_argument("--compile", action="store_true", help="only compile")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    if options.trees:
        given = {tree: (Path(tree), "") for tree in options.trees.split(",")}
    else:
        asked = options.switches.split(",") if options.switches else list(SWITCHES)
        given = {WHOLE: (ROOT, "")} | {
            name: (ROOT, f"-DTC_WITHOUT={SWITCHES[name]}") for name in asked
        }
    variants = {name: Variant(*args) for name, args in given.items()}
    base = next(iter(variants))
    wanted = {int(n) for n in options.cases.split(",")} if options.cases else None
    options.repeat = 0 if options.compile else options.repeat
    rows = []
    for case in SUITE:
        if wanted is None or case["number"] in wanted:
            rows.append(measure(case, variants, options))
            if options.repeat:
                cells = " ".join(f"{ratio(rows[-1], n, base):.3f}" for n in variants)
                print(f"{case['number']:02d} {case['einsum']} {cells}", file=sys.stderr, flush=True)
    if options.repeat:
        print(table(rows, base))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
