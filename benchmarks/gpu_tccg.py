"""The 48 contractions of the TCCG suite on a GPU, at their own sizes, beside cuBLAS and cuTENSOR.

    python benchmarks/gpu_tccg.py prepare FOLDER                  # here: tcgen, no GPU
    python FOLDER/gpu_tccg.py run FOLDER [--cases 1,9] [--json F]  # there: NumPy and CuPy alone

``prepare`` compiles each contraction of tccg48.json for ``target="cuda"`` in double precision. It
does so twice: ``tcgen`` leaves products to cuBLAS where a model says so, ``generated`` none.
``run`` first measures the two ceilings of the device: a copy of 2 GiB (bytes read and written), and
a matrix product of 8192 by cuBLAS. Then each contraction: its output is filled with NaN, computed,
and compared with that of ``cupy.einsum`` on the same random arrays; and all programs are timed in
turn by CUDA events, medians of ``--repeat`` rounds after one that warms up. ``einsum`` is CuPy's,
which transposes and calls cuBLAS; ``torch`` is torch.einsum, if PyTorch is there; ``cutensor`` is
cuTENSOR by CuPy, if it is there. Each writes the same C-order array, and ``x NAME`` is the factor
by which tcgen is faster. The exit status is 1 if a
result differs.
"""

from __future__ import annotations

import importlib.util
import json
import math
import statistics
import sys
from functools import partial
from pathlib import Path
from typing import Any

import gpu_measure
import numpy as np
from gpu_measure import WAYS, Call, ceilings, medians, package

SUITE = "tccg48.json"
TOLERANCE = 1e-12  # of the largest absolute difference, relative to the largest value


def prepare(folder: Path) -> None:
    """Write the compiled contractions, the suite and this script."""
    import tcgen

    here = Path(__file__).resolve().parent
    gpu_measure.copy_scripts(folder, __file__, here / SUITE)
    for case in json.loads((here / SUITE).read_text()):
        options = {"extents": case["extents"], "target": "cuda"}
        for way, more in WAYS.items():
            program = tcgen.compile(case["einsum"], **options, **more)
            program.save(folder / "programs" / f"tccg_{case['number']:02d}_{way}")


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
    programs = {
        way: package(folder / "programs" / f"tccg_{case['number']:02d}_{way}").program
        for way in WAYS
    }
    others = peers(subscripts, a, b, out)
    others["einsum"]()
    wanted = out.copy()
    calls: dict[str, Call] = {}
    differences = []
    for way, program in programs.items():
        calls[way] = partial(program, x0=a, x1=b, out={"y": out})
        out.fill(math.nan)
        calls[way]()
        differences.append(gpu_measure.difference(out, wanted))
    del wanted
    host: dict[str, float] = {}
    return {
        "number": case["number"],
        "group": case["group"],
        "einsum": subscripts,
        "flops": 2 * math.prod(extents.values()),
        "bytes": a.nbytes + b.nbytes + out.nbytes,
        "difference": max(differences, key=lambda d: math.inf if math.isnan(d) else d),
        "seconds": medians(calls | others, repeat, host),
        "host": host,
    }


def table(rows: list[dict[str, Any]], roof: dict[str, float]) -> str:
    """The rows as Markdown: Tflop/s, the share of what the two ceilings allow, and factors."""
    names = list(rows[0]["seconds"])
    others = [name for name in names if name != "tcgen"]
    heads = [
        "case",
        *(f"{n} TF" for n in names),
        *(f"{w} % of roof" for w in WAYS),
        *(f"x {n}" for n in others),
    ]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    columns: list[list[float]] = [[] for _ in heads[1:]]
    for row in rows:
        seconds = row["seconds"]
        least = max(row["flops"] / roof["dgemm"], row["bytes"] / roof["copy"])
        figures = [1e-12 * row["flops"] / seconds[name] for name in names]
        figures += [100 * least / seconds[way] for way in WAYS]
        figures += [seconds[name] / seconds["tcgen"] for name in others]
        for column, figure in zip(columns, figures, strict=True):
            column.append(figure)
        lines.append(_line(f"{row['number']:02d} `{row['einsum']}`", figures))
    means = [statistics.geometric_mean(column) for column in columns]
    return "\n".join([*lines, _line("geometric mean", means)])


def _line(name: str, figures: list[float]) -> str:
    cells = (f"{x:.0f}" if x >= 20 else f"{x:.1f}" if x >= 4 else f"{x:.2f}" for x in figures)
    return f"| {name} | {' | '.join(cells)} |"


def run(folder: Path, cases: set[int] | None, repeat: int, report: Path | None) -> int:
    """Compare and measure; 1 if a result differs."""
    import cupy

    roof = ceilings(repeat)
    print(gpu_measure.ceilings_in_words(roof))
    rows: list[dict[str, Any]] = []
    for case in json.loads((folder / SUITE).read_text()):
        if cases is None or case["number"] in cases:
            rows.append(measure(folder, case, repeat))
            print(table(rows[-1:], roof).splitlines()[2], file=sys.stderr, flush=True)
            cupy.get_default_memory_pool().free_all_blocks()
            if report is not None:
                gpu_measure.write(report, roof, rows)
    print(table(rows, roof))
    return gpu_measure.complaints(rows, TOLERANCE, key="number")


def main() -> int:
    """Prepare or run."""
    options = gpu_measure.parser(__doc__ or "").parse_args()
    if options.what == "prepare":
        prepare(options.folder)
        return 0
    cases = {int(n) for n in options.cases.split(",")} if options.cases else None
    return run(options.folder, cases, options.repeat, options.json)


if __name__ == "__main__":
    sys.exit(main())
