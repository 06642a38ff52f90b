"""Times array programs with NumPy's arrays and with lazy ones, in turn in one process.

    OMP_NUM_THREADS=1 taskset -c 0 python -m benchmarks.array_programs --size M --repeat 7
    ... --programs delayrepay --memory

Ratios of medians; the first two calls of each are left out and the first one is shown. Compiling
that they started ends before the others. ``--cpu`` counts the processor's time, which other jobs of
a busy machine change less. ``--memory`` shows the peak of NumPy's arrays and of the lazy ones, as
far as Python's tracer sees it, which is all but the stacks of kernels; no memory waits in the pool
then, nor later in this process, so time without it. ``--peers`` adds the
ratios of numexpr and compilers that are installed (:mod:`.peers`).
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import tcgen
from tcgen.lazy_arrays.dispatch import wait_for_background

from . import delayrepay, peers
from .kernels import KERNELS, Kernel

SUITES = {"kernels": KERNELS, "delayrepay": delayrepay.PROGRAMS}


def measured(kernel: Kernel, size: str, repeat: int, clock: Any) -> dict[str, list[float]]:
    """Seconds of each call; values are compared at the first one.

    Raises:
        AssertionError: lazy arrays give other values than NumPy's.
    """
    given = kernel.arguments(size)
    seconds: dict[str, list[float]] = {"numpy": [], "lazy": []}
    wanted: Any = None
    for turn in range(repeat + 2):
        if turn == 2:
            wait_for_background()
        arrays = tuple(a.copy() for a in given)
        start = clock()
        wanted = kernel.run(*arrays)
        seconds["numpy"].append(clock() - start)
        lazy = tuple(tcgen.lazy(a, copy=True) for a in given)
        start = clock()
        found = np.asarray(kernel.run(*lazy))
        seconds["lazy"].append(clock() - start)
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10)
    return seconds


def compiled_seconds(
    kernel: Kernel, compiler: Callable[..., Any], size: str, repeat: int, clock: Any
) -> float | str:
    """The median of the calls from the third on, or the error of a program that is not compiled."""
    given, seconds = kernel.arguments(size), []
    wanted = kernel.run(*(a.copy() for a in given))
    try:
        run = compiler(kernel.run)
        for _ in range(repeat + 2):
            arrays = tuple(a.copy() for a in given)
            start = clock()
            found = run(*arrays)
            seconds.append(clock() - start)
    except Exception as error:  # each compiler has its own errors for what it does not support
        return type(error).__name__
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-8, atol=1e-10)
    return statistics.median(seconds[2:])


def peak(run: Callable[..., Any], arguments: Callable[[], tuple[Any, ...]]) -> float:
    """Megabytes of the arrays of a call, beyond its arguments."""
    tracemalloc.start()  # before the arguments: a call may free them, or move them to a copy
    given = arguments()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    np.asarray(run(*given))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (most - before) / 1e6


def peaks(kernel: Kernel, size: str) -> tuple[float, float]:
    """Megabytes of NumPy's arrays, and of the lazy ones, without the arguments."""
    os.environ["TCGEN_POOL"] = "0"  # memory of earlier calls that waits in the pool would not count
    return peak(kernel.run, lambda: kernel.arguments(size)), peak(
        kernel.run, lambda: tuple(tcgen.lazy(a, copy=True) for a in kernel.arguments(size))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices="SM", default="M")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--programs", choices=list(SUITES), default="kernels")
    parser.add_argument("--only", nargs="*", help="names of programs; all by default")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--cpu", action="store_true", help="the process's time on processors")
    parser.add_argument("--peers", action="store_true", help="ratios of numexpr and compilers, too")
    options = parser.parse_args()
    clock = time.process_time if options.cpu else time.perf_counter
    programs, ratios = SUITES[options.programs], []
    for name in options.only or programs:
        seconds = measured(programs[name], options.size, options.repeat, clock)
        plain, lazy = (statistics.median(seconds[key][2:]) for key in ("numpy", "lazy"))
        ratios.append(lazy / plain)
        first = seconds["lazy"][0] / seconds["numpy"][0]
        memory = ""
        if options.memory:
            memory = ", peak {:6.1f} MB and {:6.1f} MB".format(*peaks(programs[name], options.size))
        others = ""
        if options.peers:
            for peer, compiler in peers.installed().items():
                took = compiled_seconds(
                    programs[name], compiler, options.size, options.repeat, clock
                )
                others += f", {peer} " + (took if isinstance(took, str) else f"{took / plain:.2f}")
        print(
            f"{name:16s} NumPy {plain * 1e3:9.2f} ms, lazy {lazy * 1e3:9.2f} ms, "
            f"ratio {ratios[-1]:5.2f}, first call {first:6.2f}{memory}{others}",
            flush=True,
        )
    print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.2f}")


if __name__ == "__main__":
    main()
