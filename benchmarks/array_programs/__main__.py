"""Times array programs with NumPy's arrays and with lazy ones, in turn in one process.

    OMP_NUM_THREADS=1 python -m benchmarks.array_programs --size M --repeat 7

Ratios of medians; the first two calls of each are left out and the first one is shown. ``--cpu``
counts the processor's time, which other jobs of a busy machine change less.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from typing import Any

import numpy as np

import tcgen

from .kernels import KERNELS, Kernel


def measured(kernel: Kernel, size: str, repeat: int, clock: Any) -> dict[str, list[float]]:
    """Seconds of each call; values are compared at the first one.

    Raises:
        AssertionError: lazy arrays give other values than NumPy's.
    """
    given = kernel.arguments(size)
    seconds: dict[str, list[float]] = {"numpy": [], "lazy": []}
    wanted: Any = None
    for _ in range(repeat + 2):
        arrays = tuple(a.copy() for a in given)
        start = clock()
        wanted = kernel.run(*arrays)
        seconds["numpy"].append(clock() - start)
        arrays = tuple(a.copy() for a in given)
        start = clock()
        found = np.asarray(kernel.run(*map(tcgen.lazy, arrays)))
        seconds["lazy"].append(clock() - start)
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices="SM", default="M")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--only", nargs="*", default=list(KERNELS))
    parser.add_argument("--cpu", action="store_true", help="this thread's processor time")
    options = parser.parse_args()
    clock = time.thread_time if options.cpu else time.perf_counter
    ratios = []
    for name in options.only:
        seconds = measured(KERNELS[name], options.size, options.repeat, clock)
        plain, lazy = (statistics.median(seconds[key][2:]) for key in ("numpy", "lazy"))
        ratios.append(lazy / plain)
        first = seconds["lazy"][0] / seconds["numpy"][0]
        print(
            f"{name:16s} NumPy {plain * 1e3:9.2f} ms, lazy {lazy * 1e3:9.2f} ms, "
            f"ratio {ratios[-1]:5.2f}, first call {first:6.2f}",
            flush=True,
        )
    print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.2f}")


if __name__ == "__main__":
    main()
