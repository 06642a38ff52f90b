"""Contractions on a GPU beside cuBLAS and cuTENSOR: the 48 of the TCCG suite, and random ones.

Those of tccg48.json have their own extents, in double precision; the others are drawn by
``random_contractions.py`` from a fixed seed. ``einsum`` is CuPy's, which transposes and calls
cuBLAS; ``torch`` is torch.einsum, if PyTorch is there; ``cutensor`` is cuTENSOR by
``cupyx.cutensor``, if it is there. All write to the same array.
"""

from __future__ import annotations

import importlib.util
import json
import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gpu_measure
import numpy as np
from gpu_measure import Call, medians

SUITE = "tccg48.json"
CONTRACTIONS = "contractions.json"
RANDOM, SEED = 16, 61
FLOPS = 2e10, 1e12
# Largest difference relative to the largest value.
TOLERANCE = 1e-12


def contractions() -> list[dict[str, Any]]:
    """Name, group, labels and extents of each."""
    import random_contractions

    suite = json.loads(Path(__file__).with_name(SUITE).read_text())
    found = [{"case": f"tccg_{c['number']:02d}", **c} for c in suite]
    choice = random.Random(SEED)
    for number in range(RANDOM):
        labels, extents = random_contractions.contraction(choice, *FLOPS)
        name = f"random_{number:02d}"
        found.append({"case": name, "group": "random", "einsum": labels, "extents": extents})
    return found


def prepare(folder: Path) -> None:
    """Save the compiled contractions."""
    import tcgen

    found = contractions()
    for case in found:
        options = {"extents": case["extents"], "target": "cuda"}
        compiled = partial(tcgen.compile, case["einsum"], **options)
        name = case["case"]
        gpu_measure.once(folder, name, partial(gpu_measure.save_ways, folder, name, compiled))
    (folder / CONTRACTIONS).write_text(json.dumps(found, indent=1) + "\n")


def names(folder: Path) -> list[str]:
    """The contractions that were prepared, those of the suite first."""
    return [case["case"] for case in json.loads((folder / CONTRACTIONS).read_text())]


def cutensor_module() -> tuple[Any, str]:
    """CuPy's interface to cuTENSOR and its version, or None and why it cannot be loaded."""
    try:
        from tcgen.errors import UnavailableError
        from tcgen.runtime.gpu.cuda_libraries import load_cutensor
    except ImportError as error:
        return None, str(error)
    try:
        return load_cutensor()
    except UnavailableError as error:
        return None, str(error)


def peers(subscripts: str, a: Any, b: Any, out: Any) -> dict[str, Call]:
    """What else computes the contraction into ``out``."""
    import cupy

    found: dict[str, Call] = {"einsum": lambda: cupy.copyto(out, cupy.einsum(subscripts, a, b))}
    if importlib.util.find_spec("torch"):
        import torch

        x, y, z = (torch.from_dlpack(t) for t in (a, b, out))
        found["torch"] = lambda: z.copy_(torch.einsum(subscripts, x, y))
    cutensor, _ = cutensor_module()
    if cutensor is not None:
        inputs, result = subscripts.split("->")
        left, right = inputs.split(",")
        found["cutensor"] = lambda: cutensor.contraction(1.0, a, left, b, right, 0.0, out, result)
    return found


def measure(folder: Path, name: str, repeat: int) -> dict[str, Any]:
    """One row: the largest relative difference, and the median seconds of each program."""
    import cupy

    every = json.loads((folder / CONTRACTIONS).read_text())
    (number, case) = next((n, c) for n, c in enumerate(every) if c["case"] == name)
    subscripts, extents = case["einsum"], case["extents"]
    inputs, result = subscripts.split("->")
    values = np.random.default_rng(number)  # CuPy's needs cuRAND
    a, b = (
        cupy.asarray(values.standard_normal([extents[c] for c in text]))
        for text in inputs.split(",")
    )
    out = cupy.full([extents[c] for c in result], math.nan)
    programs = gpu_measure.ways(folder, name)
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
        "case": name,
        "group": case["group"],
        "einsum": subscripts,
        "flops": 2 * math.prod(extents.values()),
        "bytes": a.nbytes + b.nbytes + out.nbytes,
        "difference": max(differences, key=lambda d: math.inf if math.isnan(d) else d),
        "seconds": medians(calls | others, repeat, host),
        "host": host,
    }


def table(rows: Sequence[Mapping[str, Any]], roof: Mapping[str, float]) -> str:
    """Geometric means of each group as Markdown, as in RESULTS.md.

    Tflop/s of each program, what ``tcgen`` reaches of what the two ceilings allow, and the factor
    by which it is faster than the fastest of the others.
    """
    others = [n for n in ("einsum", "torch", "cutensor") if all(n in r["seconds"] for r in rows)]
    heads = ["group", "generated TF", "tcgen TF", *(f"{n} TF" for n in others)]
    heads += ["of the roof", "factor over the fastest", *(f"x {n}" for n in others)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    groups = {group: [r for r in rows if r["group"] == group] for group in _groups(rows)}
    suite = [r for r in rows if r["group"] != "random"]
    if suite:
        groups["all of the suite"] = suite
    for group, own in groups.items():
        lines.append(f"| {group} | {' | '.join(_means(own, others, roof))} |")
    return "\n".join(lines)


def _groups(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["group"] for row in rows))


def _means(
    rows: Sequence[Mapping[str, Any]], others: list[str], roof: Mapping[str, float]
) -> list[str]:
    """The figures of a line, as text."""

    def mean(figure: Callable[[Mapping[str, Any], Mapping[str, float]], float]) -> float:
        return statistics.geometric_mean(figure(row, _seconds(row)) for row in rows)

    names = ["generated", "tcgen", *others]
    cells = [f"{mean(lambda r, s, n=n: 1e-12 * r['flops'] / s[n]):.1f}" for n in names]
    share = mean(
        lambda r, s: max(r["flops"] / roof["dgemm"], r["bytes"] / roof["copy"]) / s["tcgen"]
    )
    cells.append(f"{100 * share:.0f} %")
    cells.append(f"{mean(lambda _, s: min(s[n] for n in others) / s['tcgen']):.2f}")
    return cells + [f"{mean(lambda _, s, n=n: s[n] / s['tcgen']):.2f}" for n in others]


def _seconds(row: Mapping[str, Any]) -> dict[str, float]:
    """Seconds by program; without products of the library both programs are one."""
    return {"tcgen": row["seconds"]["generated"], **row["seconds"]}
