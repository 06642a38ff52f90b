"""Overhead of a call of ``tcgen.einsum`` over ``numpy.einsum`` for small arrays.

    taskset -c 0 python benchmarks/einsum_overhead.py --json out.json

Small calls are delegated to NumPy, so the difference is the dispatch. Matrix products of growing
extent follow, which run generated code (``kernel``) from some extent on; calls for which NumPy's
own loop is slow (``out=`` gives the array for the result); and, under TCGEN_EINSUM_MIN_FLOPS=0,
kernels with almost no work, whose time is the overhead of any call. Rounds of the programs run in
turn; the table shows the least time in microseconds. The difference is that from NumPy's plain
call. The last columns have libraries (NumPy with ``optimize=True``), each with arrays of its own
type and without an array for the result.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import einsums
import numpy as np
from peers import add_options, machine, markdown, set_environment

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
PAIRS = (
    ("dab,cd->bac", (48, 16, 16), (64, 48)),
    ("efad,bcfed->bca", (48, 7, 2, 3), (100, 2, 7, 48, 3)),
    ("dea,caedb->cab", (16, 8, 24), (2, 24, 8, 16, 24)),
)
KERNELS = (
    ("ij,j->i", (4, 3), (3,)),
    ("abc,cdb->da", (4, 3, 5), (5, 6, 3)),
    ("ab,bc,cd->ad", (4, 3), (3, 4), (4, 3)),
)


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


def library_call(
    used: einsums.Library, labels: str, arrays: list[np.ndarray]
) -> Callable[[], np.ndarray]:
    """A call of a library on arrays of its own, until the result is there."""
    product = used.compiled(functools.partial(used.einsum, labels))
    own = [used.own(a) for a in arrays]
    return lambda: used.back(product(*own))


def measure(
    labels: str, shapes: tuple[tuple[int, ...], ...], options: argparse.Namespace, *, into: bool
) -> dict:
    """One row: the programs on the same arrays; ``into`` an array that is given."""
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape) for shape in shapes]
    out = np.empty(np.shape(np.einsum(labels, *arrays))) if into else None
    tcgen.einsum_report(reset=True)
    programs: dict[str, Callable[[], object]] = {
        "tcgen": lambda: tcgen.einsum(labels, *arrays, out=out),
        "plain": lambda: np.einsum(labels, *arrays, out=out),
    }
    for name in () if into else options.libraries:
        programs[name] = library_call(einsums.load(name, options.threads), labels, arrays)
    for run in programs.values():
        run()
    calls = max(1, min(options.calls, 10**7 // max(a.size for a in arrays)))
    row = least(programs, options.rounds, calls)
    route = tcgen.einsum_report().rows[0]
    return {"labels": labels, "shapes": shapes, "out": into, "route": route.route, **row}


def first_calls(rounds: int) -> dict[str, float]:
    """Microseconds of a call of shapes that were not there before: the median of many."""
    seconds: dict[str, list[float]] = {"plain": [], "tcgen": []}
    for n, m, k in list(itertools.product(range(1, rounds + 1), range(1, 9), range(1, 9))):
        arrays = np.ones((n, m)), np.ones((m, k))
        for name, run in (("plain", np.einsum), ("tcgen", tcgen.einsum)):
            start = time.perf_counter()
            run("nm,mk->nk", *arrays)
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) * 1e6 for name, values in seconds.items()}


def line(row: dict, libraries: list[str]) -> list[str]:
    """The cells of a row of the table."""
    shapes = ", ".join("x".join(map(str, s)) for s in row["shapes"])
    call = f"`{row['labels']}`{', out=' if row['out'] else ''}"
    times = [f"{row[name]:.2f}" if name in row else "" for name in ("tcgen", "plain", *libraries)]
    times.insert(2, f"{row['tcgen'] - row['plain']:+.2f}")
    return [call, shapes, row["route"], *times]


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--peers", default=",".join(einsums.LIBRARIES), help="names with commas")
    parser.add_argument("--json", type=Path)
    add_options(parser)
    options = parser.parse_args()
    set_environment(options)
    tcgen.set_threads(options.threads)
    options.libraries, missing = einsums.installed(options.peers)
    products = tuple(("ij,kj->ki", (n, n), (n, n)) for n in EXTENTS)
    rows = [
        measure(labels, tuple(shapes), options, into=into)
        for cases, ways in (((*SMALL, *products), (False,)), (PAIRS, (False, True)))
        for labels, *shapes in cases
        for into in ways
    ]
    new = first_calls(options.rounds)
    os.environ["TCGEN_EINSUM_MIN_FLOPS"] = "0"
    rows += [
        measure(labels, tuple(shapes), options, into=into)
        for labels, *shapes in KERNELS
        for into in (False, True)
    ]
    heads = ("call", "shapes", "route", "tcgen us", "plain", "difference", *options.libraries)
    print(f"not installed: {', '.join(missing) or 'none'}\n")
    print(markdown(heads, [line(row, options.libraries) for row in rows]))
    print(f"\nNew shapes with each call: tcgen {new['tcgen']:.1f} us, plain {new['plain']:.1f}")
    if options.json:
        result = {"machine": machine(options), "not_installed": missing}
        result |= {"microseconds": rows, "microseconds_new_shapes": new}
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
