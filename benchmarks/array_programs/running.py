"""Programs of running sums, one of them P5 of Henriksen and Oancea in O(n), beside NumPy.

    python -m benchmarks.array_programs.running

takes the processor time of NumPy and of lazy arrays in turn: medians of nine from the third call
on, with one thread and 10,000,000 elements.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import tcgen
from tcgen.lazy_arrays.dispatch import wait_for_background

_ELEMENTS = 10_000_000
_CALLS = 9


def maximum_segment_sum(x: Any) -> Any:
    """The largest sum of neighbours, or 0: a sum less the least sum of what is before it."""
    sums = np.cumsum(x)
    return np.max(sums - np.minimum(np.minimum.accumulate(sums), 0.0))


def drawdown(x: Any) -> Any:
    """The largest loss since the best value of a series with these growth rates."""
    value = np.cumprod(1.0 + x / 1000)
    return np.max(1.0 - value / np.maximum.accumulate(value))


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "maximum segment sum": maximum_segment_sum,
    "largest drawdown": drawdown,
    "running mean of squares": lambda x: np.sqrt(np.cumsum(x * x) / np.cumsum(x * 0.0 + 1.0)).sum(),
}
ALONE: dict[str, Callable[[Any], Any]] = {
    "cumsum": np.cumsum,
    "cumsum of a product": lambda x: np.cumsum(2.0 * x) / 3.0,
}


def _seconds(work: Callable[[Any], Any], x: Any) -> float:
    start = time.process_time()
    np.asarray(work(x))
    return time.process_time() - start


def main() -> None:
    x = np.random.default_rng(0).standard_normal(_ELEMENTS)
    lazy = tcgen.lazy(x)
    print("| program | NumPy, ms | lazy, ms | ratio |\n|---|---|---|---|")
    for name, work in {**ALONE, **PROGRAMS}.items():
        for array in (x, lazy, x, lazy):
            _seconds(work, array)
            wait_for_background()
        times = [(_seconds(work, x), _seconds(work, lazy)) for _ in range(_CALLS)]
        numpy, ours = (1000 * median(each) for each in zip(*times, strict=True))
        print(f"| {name} | {numpy:.1f} | {ours:.1f} | {ours / numpy:.2f} |")


if __name__ == "__main__":
    main()
