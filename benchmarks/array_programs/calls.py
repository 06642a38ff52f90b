"""Microseconds of one operation on a few elements, with NumPy's arrays and with lazy ones.

    python -m benchmarks.array_programs.calls --elements 100

The least of many short repetitions, NumPy and lazy in turn.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tcgen

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "a + b": lambda a, b: a + b,
    "a * 2": lambda a, _: a * 2.0,
    "a > b": lambda a, b: a > b,
    "exp(a)": lambda a, _: np.exp(a),
    "maximum(a, b)": lambda a, b: np.maximum(a, b),
    "a[1:]": lambda a, _: a[1:],
    "a[3]": lambda a, _: a[3],
    "a[1:] + b[1:]": lambda a, b: a[1:] + b[1:],
    "a[1:] = b[1:]": lambda a, b: a.__setitem__(slice(1, None), b[1:]),
    "a += 1": lambda a, _: a.__iadd__(1.0),
    "a[1:] += b[1:]": lambda a, b: a[1:].__iadd__(b[1:]),
    "add(a, b, out=a)": lambda a, b: np.add(a, b, out=a),
    "a.sum()": lambda a, _: a.sum(),
    "a.max()": lambda a, _: a.max(),
    "dot(a, b)": lambda a, b: np.dot(a, b),
    "where(a, 1, 0)": lambda a, _: np.where(a, 1.0, 0.0),
    "flip(a)": lambda a, _: np.flip(a),
    "a.reshape(-1, 1)": lambda a, _: a.reshape(-1, 1),
}


def least(call: Callable[[Any, Any], Any], a: Any, b: Any, count: int = 150) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    for _ in range(count):
        call(a, b)
    return (time.perf_counter() - start) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elements", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=60)
    options = parser.parse_args()
    a, b = np.zeros(options.elements), np.zeros(options.elements)
    lazy = tcgen.lazy(a, copy=True), tcgen.lazy(b, copy=True)
    for name, call in CALLS.items():
        pairs = [(least(call, a, b), least(call, *lazy)) for _ in range(options.repeat)]
        plain, more = (1e6 * min(column) for column in zip(*pairs, strict=True))
        print(f"{name:18s} NumPy {plain:5.2f} us, lazy {more:5.2f} us, more {more - plain:5.2f} us")


if __name__ == "__main__":
    main()
