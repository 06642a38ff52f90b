"""The 48 contractions of the TCCG suite on the CPU, against dgemm and other programs.

    taskset -c 0 python benchmarks/tccg_cpu.py --reduce 40 --repeat 5 --json out.json
    taskset -c 0 python benchmarks/tccg_cpu.py --cases 1,3,6,31 --minus-one --peers numpy,pytblis

Every program writes the same C-order result into an existing array, packing and permuting included.
Each round times all programs and dgemm (2000 cubed) in turn, so that they run under the same
conditions; a row shows medians, the fraction of dgemm's median, and the factor over the best peer.
Results are compared with each other. Sizes are those of the suite (HPAC/tccg, double precision;
index strings reversed, since arrays are in C order). ``--reduce G``: a case of more than G GFlop
has all extents scaled by (G/its GFlop)^(1/number of indices) to a multiple of 4. ``--minus-one``:
every extent one less.

OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE, which some machine images set and which slow OpenBLAS down,
are removed before NumPy is loaded. TBLIS does not know all recent processors: BLIS_ARCH_TYPE is set
to ``skx`` where the processor has AVX-512, unless it is set already. ``--avx2``: generated code and
dgemm without AVX-512 (TCGEN_CC with -mno-avx512f, OPENBLAS_CORETYPE=Haswell). ``--tune``: also the
same contractions with the measured variants, as the program ``tuned``. ``--threads N``:
also on one thread, in the same rounds. OPENBLAS_THREAD_TIMEOUT is set to 4: otherwise threads of
OpenBLAS keep the processors busy for a tenth of a second after each dgemm.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import operator
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import peers

REMOVED = {n: os.environ.pop(n, None) for n in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
if peers.WIDE:
    os.environ.setdefault("BLIS_ARCH_TYPE", "skx")
if any(REMOVED.values()):
    os.execv(sys.executable, [sys.executable, *sys.argv])  # so that the linked BLAS sees it too

if "--avx2" in sys.argv:
    os.environ |= {
        "OPENBLAS_CORETYPE": "Haswell",
        "BLIS_ARCH_TYPE": "haswell",
        "TCGEN_CC": os.environ.get("TCGEN_CC", "cc") + " -mno-avx512f",
    }

SUITE = json.loads(Path(__file__).with_name("tccg48.json").read_text())
YARDSTICKS = ("dgemm", "copy")  # the bound is the lesser of dgemm and of each byte moved once
COPIED = 2**28  # bytes read and written by the copy that measures the memory
NOTED = ("BLIS_ARCH_TYPE", "OMP_NUM_THREADS", "OPENBLAS_THREAD_TIMEOUT")
OURS = ("tuned", "one thread")  # the same contractions, computed otherwise by tcgen
PEERS = ("numpy", "opt_einsum", "pytblis", "torch", "jax")


def extents_of(case: dict, reduce: float | None, minus_one: bool) -> dict[str, int]:
    """Extents of a case after the rules of this page."""
    extents = dict(case["extents"])
    gflop = 2 * math.prod(extents.values()) / 1e9
    if reduce is not None and gflop > reduce:
        factor = (reduce / gflop) ** (1 / len(extents))
        extents = {c: max(4, round(n * factor / 4) * 4) for c, n in extents.items()}
    return {c: n - minus_one for c, n in extents.items()}


def aligned(np, shape: list[int]):
    """Zeros that start on a cache line."""
    memory = np.empty(math.prod(shape) * 8 + 64, np.uint8)
    start = -memory.ctypes.data % 64
    array = memory[start : start + math.prod(shape) * 8].view(np.float64).reshape(shape)
    array[...] = 0
    return array


def programs(names: list[str], labels: str, a, b, out, threads: int) -> dict[str, Callable]:
    """What is timed: each writes ``labels`` of a and b to ``out``."""
    import numpy as np

    import tcgen

    def tuned() -> None:
        os.environ["TCGEN_EINSUM_TUNE"] = "1"
        tcgen.einsum(labels, a, b, out=out)
        del os.environ["TCGEN_EINSUM_TUNE"]

    def one_thread() -> None:
        tcgen.set_threads(1)
        tcgen.einsum(labels, a, b, out=out)
        tcgen.set_threads(threads)

    found: dict[str, Callable] = {"tcgen": lambda: tcgen.einsum(labels, a, b, out=out)}
    if "tuned" in names:
        found["tuned"] = tuned
    if "one thread" in names:
        found["one thread"] = one_thread
    if "numpy" in names:
        found["numpy"] = lambda: np.copyto(out, np.einsum(labels, a, b, optimize=True))
    if "opt_einsum" in names:
        import opt_einsum

        found["opt_einsum"] = lambda: np.copyto(out, opt_einsum.contract(labels, a, b))
    if "pytblis" in names:
        import pytblis

        pytblis.set_num_threads(threads)
        found["pytblis"] = lambda: pytblis.contract(labels, a, b, out=out)
    if "torch" in names:
        import torch

        torch.set_num_threads(threads)
        x, y, z = (torch.from_numpy(t) for t in (a, b, out))
        found["torch"] = lambda: z.copy_(torch.einsum(labels, x, y))
    if "jax" in names:
        import jax

        jax.config.update("jax_enable_x64", True)
        left, right = jax.device_put(a), jax.device_put(b)
        product = jax.jit(functools.partial(jax.numpy.einsum, labels))
        found["jax"] = lambda: np.copyto(out, product(left, right))
    return found


def measure(case: dict, options: argparse.Namespace) -> dict:
    """One row: seconds of each program and of dgemm, by round."""
    import numpy as np

    clock = time.process_time if options.cpu_time else time.perf_counter
    extents = extents_of(case, options.reduce, options.minus_one)
    inputs, output = case["einsum"].split("->")
    random = np.random.default_rng(0)
    a, b = (random.standard_normal([extents[c] for c in text]) for text in inputs.split(","))
    out = aligned(np, [extents[c] for c in output])
    square = random.standard_normal((2000, 2000))
    product = np.empty_like(square)
    timed = programs(options.peers, case["einsum"], a, b, out, options.threads)
    timed["dgemm"] = lambda: np.matmul(square, square, out=product)
    large = np.ones(COPIED // 16)
    other = np.zeros_like(large)
    timed["copy"] = lambda: np.copyto(other, large)
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    sums: dict[str, tuple[float, float]] = {}
    weights = random.standard_normal(out.shape[-1])
    names = list(timed)
    for _ in range(options.repeat + 1):  # the first round compiles and warms up
        if names[0] in OURS or names[1] in OURS:  # before it and tcgen came something else, in turn
            names[:2] = reversed(names[:2])
        for name in names:
            start = clock()
            timed[name]()
            seconds[name].append(clock() - start)
            if name not in sums and name not in YARDSTICKS:
                sums[name] = (float((out @ weights).sum()), float(np.linalg.norm(out)))
                out[...] = 0
    for name, (total, norm) in sums.items():
        assert math.isclose(norm, sums["tcgen"][1], rel_tol=1e-10), (name, case["einsum"])
        assert abs(total - sums["tcgen"][0]) < 1e-8 * norm * math.sqrt(out.size), name
    return {
        "number": case["number"],
        "einsum": case["einsum"],
        "extents": extents,
        "gflop": 2 * math.prod(extents.values()) / 1e9,
        "bytes": a.nbytes + b.nbytes + out.nbytes,
        "first_call_seconds": seconds["tcgen"][0],
        "seconds": {name: values[1:] for name, values in seconds.items()},
    }


def rates(row: dict) -> dict[str, float]:
    """GFlop/s of each program, by median, of dgemm, and what bytes at the rate of a copy allow."""
    medians = {n: statistics.median(s) for n, s in row["seconds"].items()}
    of = {n: row["gflop"] / s for n, s in medians.items()}
    bandwidth = COPIED / medians["copy"]
    return of | {"dgemm": 16 / medians["dgemm"], "copy": row["gflop"] * bandwidth / row["bytes"]}


def factor(rows: list[dict], slow: str, fast: str) -> float:
    """Geometric mean of how much faster a program is, by times of the same round."""
    return statistics.geometric_mean(
        statistics.median(map(operator.truediv, r["seconds"][slow], r["seconds"][fast]))
        for r in rows
    )


def table(rows: list[dict]) -> str:
    """The rows as Markdown."""
    names = [n for n in rows[0]["seconds"] if n not in ("tcgen", *OURS, *YARDSTICKS)]
    others = [n for n in OURS if n in rows[0]["seconds"]] + names
    heads = ["case", "GFlop", "tcgen GF/s", "% of dgemm", "% of bound", *others, "x best peer"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    fractions, factors = [], []
    for row in rows:
        rate = rates(row)
        best = max((rate[n] for n in names), default=math.nan)
        fractions.append(rate["tcgen"] / rate["dgemm"])
        factors.append(rate["tcgen"] / best)
        cells = [f"{row['number']:02d} `{row['einsum']}`", f"{row['gflop']:.2f}"]
        bound = min(rate["dgemm"], rate["copy"])
        cells += [f"{rate['tcgen']:.1f}", f"{100 * fractions[-1]:.0f}"]
        cells += [f"{100 * rate['tcgen'] / bound:.0f}"]
        cells += [f"{rate[n]:.1f}" for n in others] + [f"{factors[-1]:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    lines.append(
        f"\nGeometric means: {100 * statistics.geometric_mean(fractions):.0f} % of dgemm"
        + (f", {statistics.geometric_mean(factors):.2f} times the best peer" if names else "")
        + f"; least {100 * min(fractions):.0f} %"
        + (f" and {min(factors):.2f}" if names else "")
    )
    if "tuned" in others:
        lines[-1] += f"; tuned {factor(rows, 'tcgen', 'tuned'):.3f} times as fast"
    if "one thread" in others:
        lines[-1] += f"; {factor(rows, 'one thread', 'tcgen'):.2f} times one thread"
    return "\n".join(lines)


def main() -> None:
    """Run the cases asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", help="numbers such as 1,3,31; default all")
    parser.add_argument("--peers", default="numpy,opt_einsum", help=f"of {', '.join(PEERS)}")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--reduce", type=float, default=40.0, help="GFlop")
    parser.add_argument("--minus-one", action="store_true")
    parser.add_argument("--avx2", action="store_true", help="without AVX-512")
    parser.add_argument("--tune", action="store_true", help="also in measured ways")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpu-time", action="store_true", help="on a shared machine")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.peers = [p for p in options.peers.split(",") if p]
    options.peers += ["tuned"] * options.tune + ["one thread"] * (options.threads > 1)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(options.threads)
    os.environ["OPENBLAS_THREAD_TIMEOUT"] = "4"  # its threads rest at once, and disturb nobody
    wanted = {int(n) for n in options.cases.split(",")} if options.cases else None
    rows = []
    for case in SUITE:
        if wanted is None or case["number"] in wanted:
            rows.append(measure(case, options))
            print(table(rows[-1:]).splitlines()[2], file=sys.stderr, flush=True)
    machine = {
        "processor": peers.processors(),
        "python": platform.python_version(),
        "threads": options.threads,
        "clock": "CPU time" if options.cpu_time else "wall time",
        "removed": REMOVED,
        "avx512": peers.WIDE and not options.avx2,
        "environment": {n: os.environ.get(n) for n in NOTED},
        "load": os.getloadavg(),
    }
    print(table(rows))
    if options.json:
        text = json.dumps({"machine": machine, "rows": rows}, indent=1)
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
