"""The 48 contractions of the TCCG suite on a GPU, at their own sizes, beside cuBLAS and cuTENSOR.

    python benchmarks/gpu_tccg.py prepare FOLDER                  # here: tcgen, no GPU
    python FOLDER/gpu_tccg.py run FOLDER [--cases 1,9] [--json F]  # there: NumPy and CuPy alone

``prepare`` compiles each contraction of tccg48.json for ``target="cuda"`` in double precision.
``run`` first measures the two ceilings of the device: a copy of 2 GiB (bytes read and written), and
a matrix product of 8192 by cuBLAS. Then each contraction: its output is filled with NaN, computed,
and compared with that of ``cupy.einsum`` on the same random arrays; and all programs are timed in
turn by CUDA events, medians of ``--repeat`` rounds after one that warms up. ``einsum`` is CuPy's,
which transposes and calls cuBLAS; ``torch`` is torch.einsum, if PyTorch is there; ``cutensor`` is
cuTENSOR by CuPy, if it is there. Each writes the same C-order array. The exit status is 1 if a
result differs.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import shutil
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gpu_folder import package

SUITE = "tccg48.json"
TOLERANCE = 1e-12  # of the largest absolute difference, relative to the largest value
COPIED = 2**31  # bytes of the array whose copy measures the memory
SIDE = 8192  # of the matrix product that measures the arithmetic
Call = Callable[[], object]


def prepare(folder: Path) -> None:
    """Write the compiled contractions, the suite and this script."""
    import tcgen

    here = Path(__file__).resolve().parent
    (folder / "programs").mkdir(parents=True, exist_ok=True)
    for name in (Path(__file__).name, "gpu_folder.py", SUITE):
        shutil.copy(here / name, folder / name)
    for case in json.loads((here / SUITE).read_text()):
        program = tcgen.compile(case["einsum"], extents=case["extents"], target="cuda")
        program.save(folder / "programs" / f"tccg_{case['number']:02d}")


def medians(calls: dict[str, Call], repeat: int) -> dict[str, float]:
    """Median seconds of each call on the GPU; they take turns, and the first round warms up."""
    import cupy

    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeat + 1):
        for name, call in calls.items():
            first, last = cupy.cuda.Event(), cupy.cuda.Event()
            first.record()
            call()
            last.record()
            last.synchronize()
            times[name].append(cupy.cuda.get_elapsed_time(first, last) / 1e3)
    return {name: statistics.median(seconds[1:]) for name, seconds in times.items()}


def ceilings(repeat: int) -> dict[str, float]:
    """Bytes a second of a copy, and flops a second of a matrix product by cuBLAS."""
    import cupy

    def copy() -> float:
        source = cupy.ones(COPIED // 8)
        target = cupy.zeros_like(source)
        seconds = medians({"copy": lambda: cupy.copyto(target, source)}, repeat)
        return 2 * COPIED / seconds["copy"]

    def dgemm() -> float:
        a = cupy.asarray(np.random.default_rng(0).standard_normal((SIDE, SIDE)))
        product = cupy.empty_like(a)
        seconds = medians({"dgemm": lambda: cupy.matmul(a, a, out=product)}, repeat)
        return 2 * SIDE**3 / seconds["dgemm"]

    return {"copy": copy(), "dgemm": dgemm()}


def cutensor_module() -> Any:
    """CuPy's interface to cuTENSOR, or None where its library is missing."""
    try:
        from cupyx import cutensor
    except (ImportError, RuntimeError):  # the latter from CuPy's search for the library
        return None
    return cutensor


def peers(subscripts: str, a: Any, b: Any, out: Any) -> dict[str, Call]:
    """What else computes the contraction into ``out``."""
    import cupy

    found: dict[str, Call] = {"einsum": lambda: cupy.copyto(out, cupy.einsum(subscripts, a, b))}
    if importlib.util.find_spec("torch"):
        import torch

        x, y, z = (torch.from_dlpack(t) for t in (a, b, out))
        found["torch"] = lambda: z.copy_(torch.einsum(subscripts, x, y))
    if (cutensor := cutensor_module()) is not None:
        inputs, result = subscripts.split("->")
        left, right = inputs.split(",")
        found["cutensor"] = lambda: cutensor.contraction(1.0, a, left, b, right, 0.0, out, result)
    return found


def measure(folder: Path, case: dict[str, Any], repeat: int) -> dict[str, Any]:
    """One row: the largest relative difference, and the median seconds of each program."""
    import cupy

    subscripts, extents = case["einsum"], case["extents"]
    inputs, result = subscripts.split("->")
    random = np.random.default_rng(case["number"])
    a, b = (
        cupy.asarray(random.standard_normal([extents[c] for c in text]))
        for text in inputs.split(",")
    )
    out = cupy.full([extents[c] for c in result], math.nan)
    program = package(folder / "programs" / f"tccg_{case['number']:02d}").program
    others = peers(subscripts, a, b, out)
    others["einsum"]()
    wanted = out.copy()
    out.fill(math.nan)
    program(x0=a, x1=b, out={"y": out})
    difference = float(cupy.max(cupy.abs(out - wanted)) / cupy.max(cupy.abs(wanted)))
    del wanted
    calls = {"tcgen": lambda: program(x0=a, x1=b, out={"y": out}), **others}
    return {
        "number": case["number"],
        "group": case["group"],
        "einsum": subscripts,
        "flops": 2 * math.prod(extents.values()),
        "bytes": a.nbytes + b.nbytes + out.nbytes,
        "difference": difference,
        "seconds": medians(calls, repeat),
    }


def table(rows: list[dict[str, Any]], roof: dict[str, float]) -> str:
    """The rows as Markdown: Tflop/s, and the share of what the two ceilings allow."""
    names = list(rows[0]["seconds"])
    heads = ["case", *(f"{n} TF" for n in names), "% of roof", "x best peer"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    rates: dict[str, list[float]] = {name: [] for name in names}
    shares, factors = [], []
    for row in rows:
        for name in names:
            rates[name].append(1e-12 * row["flops"] / row["seconds"][name])
        least = max(row["flops"] / roof["dgemm"], row["bytes"] / roof["copy"])
        shares.append(least / row["seconds"]["tcgen"])
        best = min(s for n, s in row["seconds"].items() if n != "tcgen")
        factors.append(best / row["seconds"]["tcgen"])
        cells = [f"{row['number']:02d} `{row['einsum']}`", *(f"{rates[n][-1]:.1f}" for n in names)]
        cells += [f"{100 * shares[-1]:.0f}", f"{factors[-1]:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    mean = statistics.geometric_mean
    cells = ["geometric mean", *(f"{mean(rates[n]):.1f}" for n in names)]
    cells += [f"{100 * mean(shares):.0f}", f"{mean(factors):.2f}"]
    return "\n".join([*lines, "| " + " | ".join(cells) + " |"])


def run(folder: Path, cases: set[int] | None, repeat: int, report: Path | None) -> int:
    """Compare and measure; 1 if a result differs."""
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    roof = ceilings(repeat)
    print(f"{name}: copy {1e-9 * roof['copy']:.0f} GB/s, dgemm {1e-12 * roof['dgemm']:.1f} TF")
    rows: list[dict[str, Any]] = []
    for case in json.loads((folder / SUITE).read_text()):
        if cases is None or case["number"] in cases:
            rows.append(measure(folder, case, repeat))
            print(table(rows[-1:], roof).splitlines()[2], file=sys.stderr, flush=True)
            cupy.get_default_memory_pool().free_all_blocks()
            if report is not None:
                figures = {"device": name, "ceilings": roof, "rows": rows}
                report.write_text(json.dumps(figures, indent=1) + "\n")
    print(table(rows, roof))
    wrong = [r for r in rows if not r["difference"] < TOLERANCE]
    for row in wrong:
        print(f"case {row['number']} differs by {row['difference']:.1e}", file=sys.stderr)
    return 1 if wrong or not rows else 0


def main() -> int:
    """Prepare or run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("what", choices=("prepare", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", help="numbers such as 1,3,31; default all")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write the figures, after each case")
    options = parser.parse_args()
    if options.what == "prepare":
        prepare(options.folder)
        return 0
    cases = {int(n) for n in options.cases.split(",")} if options.cases else None
    return run(options.folder, cases, options.repeat, options.json)


if __name__ == "__main__":
    sys.exit(main())
