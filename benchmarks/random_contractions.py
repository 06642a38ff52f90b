"""Contractions of two arrays with random indices and extents, against other programs.

    taskset -c 0 python benchmarks/random_contractions.py --count 200 --seed 1 --json out.json
    taskset -c 0 python benchmarks/random_contractions.py "abcd,cdab-> a20 b20 c100 d100"
    taskset -c 0 python benchmarks/random_contractions.py --beside 10 "abcd,cd->ab a90 b90 c90 d90"

Each contraction has up to three indices of each kind (m, n and k, and in one case of four a batch
index), in any order, with extents from 2 to 1000; matrix times vector, outer and batched products
occur too. Every program writes a C-contiguous result; tcgen and NumPy write to an existing array.
Rounds of all programs run in turn after one that is not counted; the benchmark compares medians,
and values with NumPy's. On several threads leave PyTorch out: its waiting threads disturb the
others. The table has the factor by which tcgen is faster than the fastest peer: the geometric mean,
quantiles, and the contractions with the least. Contractions given on the command line, each with
its extents, replace random ones. With ``--beside`` arrays are slices of larger ones; with ``--add``
results are added to the array of the result.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import peers

EXTENTS = (2, 3, 4, 5, 7, 8, 13, 16, 24, 31, 32, 48, 64, 100, 150, 256, 500, 1000)
MOST = 6 * 10**7  # elements of the three arrays
NAMES = ("numpy", "torch", "pytblis")


def contraction(choice: random.Random, least: float, most: float) -> tuple[str, dict[str, int]]:
    """Labels, and an extent for each letter, with as many flops as asked for."""
    while True:
        counts = [choice.choice((0, 0, 0, 1)), *(choice.randint(0, 3) for _ in range(3))]
        letters = iter("abcdefghij")
        shared, left, right, summed = ([next(letters) for _ in range(n)] for n in counts)
        extents = {c: choice.choice(EXTENTS) for c in (*shared, *left, *right, *summed)}
        terms = [shared + left + summed, shared + right + summed, shared + left + right]
        held = sum(math.prod(extents[c] for c in term) for term in terms)
        if least <= 2 * math.prod(extents.values()) < most and held < MOST and extents:
            for term in terms:
                choice.shuffle(term)
            first, second, result = map("".join, terms)
            return f"{first},{second}->{result}", extents


def written(text: str) -> tuple[str, dict[str, int]]:
    """Labels and extents of ``abc,cb->a a20 b30 c7``."""
    labels, *sizes = text.split()
    extents = {size[0]: int(size[1:]) for size in sizes}
    if "->" not in labels or set(labels) - {*",->"} != set(extents):
        raise argparse.ArgumentTypeError("an extent for each letter, as in 'ab,bc->ac a20 b30 c7'")
    return labels, extents


def programs(
    names: list[str], labels: str, a, b, out, threads: int, add: bool
) -> dict[str, Callable]:
    """What is timed."""
    import numpy as np

    import tcgen

    beta = int(add)
    found: dict[str, Callable] = {
        "tcgen": lambda: (
            tcgen.contract(labels, a, b, 1, beta, out)
            if add
            else tcgen.einsum(labels, a, b, out=out)
        )
    }
    if "numpy" in names:
        store = np.add if add else lambda _, made, out: np.copyto(out, made)
        found["numpy"] = lambda: store(out, np.einsum(labels, a, b, optimize=True), out=out)
    if "torch" in names:
        import torch

        torch.set_num_threads(threads)
        x, y, z = (torch.from_numpy(array) for array in (a, b, out))
        finish = z.add_ if add else torch.Tensor.contiguous
        found["torch"] = lambda: finish(torch.einsum(labels, x, y))
    if "pytblis" in names:
        import pytblis

        pytblis.set_num_threads(threads)
        found["pytblis"] = lambda: pytblis.contract(labels, a, b, beta=beta, out=out)
    return found


def sliced(array, beside: int):
    """The array, or a copy behind so many elements of a larger array on each axis."""
    import numpy as np

    if not beside:
        return array
    whole = np.zeros([n + beside for n in array.shape], array.dtype)
    part = whole[(..., *(slice(beside, None) for _ in array.shape))]
    part[...] = array
    return part


def measure(labels: str, extents: dict[str, int], options: argparse.Namespace) -> dict:
    """One row: seconds of each program."""
    import numpy as np

    rng = np.random.default_rng(0)
    terms = labels.replace("->", ",").split(",")
    shapes = [[extents[c] for c in term] for term in terms]
    a, b = (rng.standard_normal(s) for s in shapes[:2])
    if options.dtype.startswith("complex"):
        a, b = (x + 1j * rng.standard_normal(x.shape) for x in (a, b))
    out = np.zeros(shapes[2])
    a, b, out = (sliced(x.astype(options.dtype), options.beside) for x in (a, b, out))
    timed = programs(options.peers, labels, a, b, out, options.threads, options.add)
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    expected = np.einsum(labels, a, b, optimize=True)
    timed["tcgen"]()
    close = 1e-3 if a.dtype.itemsize // (1 + (a.dtype.kind == "c")) == 4 else 1e-10
    assert np.abs(out - expected).max() <= close * max(1, np.abs(expected).max()), labels
    flops = 2 * math.prod(extents.values())
    rounds = options.repeat if flops > 2e8 else 2 * options.repeat
    for _ in range(rounds + 1):
        for name, run in timed.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    best = {name: statistics.median(values[1:]) for name, values in seconds.items()}
    return {"labels": labels, "extents": extents, "flops": flops, "seconds": best}


def factor(row: dict) -> float:
    """How many times as fast as the fastest peer tcgen is."""
    times = row["seconds"]
    return min(t for name, t in times.items() if name != "tcgen") / times["tcgen"]


def table(rows: list[dict], worst: int) -> str:
    """Markdown: a summary, and the contractions with the least factors."""
    rows = sorted(rows, key=factor)
    factors = [factor(row) for row in rows]
    names = list(rows[0]["seconds"])
    lines = [
        "| contraction | extents | Mflop | " + " | ".join(f"{n} ms" for n in names) + " | factor |",
        "|---" * (len(names) + 4) + "|",
    ]
    for row in rows[:worst]:
        extents = " ".join(f"{c}{n}" for c, n in row["extents"].items())
        times = " | ".join(f"{1e3 * row['seconds'][n]:.3f}" for n in names)
        cells = f"`{row['labels']}` | {extents} | {row['flops'] / 1e6:.1f} | {times}"
        lines.append(f"| {cells} | {factor(row):.2f} |")
    if len(factors) == 1:
        return "\n".join(lines)
    tenths = statistics.quantiles(factors, n=10)
    slower = sum(f < 0.8 for f in factors) / len(factors)
    lines.append(
        f"\n{len(rows)} contractions: {statistics.geometric_mean(factors):.2f} times as fast as "
        f"the fastest peer (geometric mean); tenths {tenths[0]:.2f}, {tenths[4]:.2f} (median), "
        f"{tenths[8]:.2f}; slower by a fifth or more: {100 * slower:.0f} %"
    )
    return "\n".join(lines)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    peers.add_options(parser)
    parser.set_defaults(coretype="")  # the BLAS of NumPy's wheels knows recent processors
    parser.add_argument(
        "given", nargs="*", type=written, help="instead: labels and extents, a20 b30"
    )
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--least", type=float, default=4e6, help="flops")
    parser.add_argument("--most", type=float, default=2e9, help="flops")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--peers", default="numpy,torch", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--beside", type=int, default=0, help="elements of the larger arrays")
    parser.add_argument("--add", action="store_true", help="to the result's array")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--worst", type=int, default=10, help="rows to show")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.peers = options.peers.split(",")
    os.environ["OPENBLAS_THREAD_TIMEOUT"] = "4"  # its threads rest at once, and disturb nobody
    peers.set_environment(options)
    choice = random.Random(options.seed)
    chosen = options.given or [
        contraction(choice, options.least, options.most) for _ in range(options.count)
    ]
    rows = []
    for number, (labels, extents) in enumerate(chosen, 1):
        rows.append(measure(labels, extents, options))
        if number % 20 == 0:
            print(f"{number} of {len(chosen)}", file=sys.stderr, flush=True)
    print(table(rows, options.worst))
    if options.json:
        made = {n: getattr(options, n) for n in ("seed", "dtype", "threads", "least", "most")}
        machine = {"processor": peers.processors(), **made}
        options.json.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
