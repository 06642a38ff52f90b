"""Element-wise expressions on large arrays: the same lines with NumPy and with lazy arrays.

``python benchmarks/lazy_arrays.py --rows 4000 --columns 1000``: medians, the two called in turn.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tcgen

Work = Callable[[Any], Any]


def softmax(x: Any) -> Any:
    e = np.exp(x)
    return e / e.sum(1, keepdims=True)


WORK: dict[str, Work] = {
    "exp(x)": np.exp,
    "tanh(x)": np.tanh,
    "log(x*x + 1)": lambda x: np.log(x * x + 1),
    "sin(x)**2 + cos(x)**2": lambda x: np.sin(x) ** 2 + np.cos(x) ** 2,
    "softmax of each row": softmax,
    "log of the sum of exp": lambda x: np.log(np.exp(x).sum(1)),
    "sum of exp of chosen elements": lambda x: np.exp(x)[x > 0.5].sum(),
}


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compared(work: Work, x: np.ndarray, repeat: int) -> tuple[float, float, float]:
    """Medians of NumPy's time and of the lazy arrays' in seconds, and the largest deviation."""
    rounds: list[tuple[float, float]] = []
    for _ in range(repeat + 2):  # the first ones compile, and fill the pool of memory
        plain = seconds(lambda: work(x))
        rounds.append((plain, seconds(lambda: np.asarray(work(tcgen.lazy(x))))))
    deviation = float(np.max(np.abs(np.asarray(work(tcgen.lazy(x))) - work(x))))
    numpy_times, lazy_times = zip(*rounds[2:], strict=True)
    return statistics.median(numpy_times), statistics.median(lazy_times), deviation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=9)
    options = parser.parse_args()
    x = np.random.default_rng(0).standard_normal((options.rows, options.columns))
    for name, work in WORK.items():
        plain, lazy, deviation = compared(work, x, options.repeat)
        print(
            f"{name:30s} NumPy {plain * 1e3:7.1f} ms, lazy {lazy * 1e3:7.1f} ms, "
            f"ratio {lazy / plain:.2f}, deviation {deviation:.0e}"
        )


if __name__ == "__main__":
    main()
