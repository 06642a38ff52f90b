"""Constants of the time model, measured on this processor, beside those that tcgen assumes.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/fit_time_model.py

``flops`` is the rate of a large dgemm and ``bandwidth`` that of a large copy, by NumPy. The half
rates are the m, n and k at which a product with one short side reaches half of that rate: the
least-squares fit of ``time * flops / work - 1 = half / side``. ``pair_copy_flops`` is the time of
an element of a large transposition, in flops. All times are medians. ``call``, ``generated`` and
``cache`` are not measured; neither are constants of a GPU, whose two rates ``gpu_all.py`` prints.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from tcgen.thresholds.time_model import HALF_RATE_MNK, CpuRates, Machine

SIDES = (2, 3, 4, 6, 8, 12, 16, 24, 32)  # short sides of thin products


def seconds(call: Callable[[], object], repeat: int) -> float:
    """Median time of a call, after one that warms up."""
    taken = []
    for _ in range(repeat + 1):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])


def product_seconds(m: int, n: int, k: int, repeat: int) -> float:
    """Time of one matrix product."""
    a, b, c = np.ones((m, k)), np.ones((k, n)), np.empty((m, n))
    return seconds(lambda: np.matmul(a, b, out=c), repeat)


def half_rate(place: int, large: int, flops: float, repeat: int) -> float:
    """The side at which a product with one short side has half of the flops."""
    excess, inverse = [], []
    for side in SIDES:
        mnk = [large] * 3
        mnk[place] = side
        work = 2 * side * large**2
        excess.append(product_seconds(*mnk, repeat) * flops / work - 1)
        inverse.append(1 / side)
    return float(np.dot(excess, inverse) / np.dot(inverse, inverse))


def main() -> None:
    """Print each constant as measured and as assumed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=1500, help="of the large product")
    parser.add_argument("--elements", type=int, default=2**25, help="of the copied array")
    parser.add_argument("--repeat", type=int, default=9)
    given = parser.parse_args()
    flops = 2 * given.side**3 / product_seconds(*[given.side] * 3, given.repeat)
    source = np.ones(given.elements)
    target = np.empty_like(source)
    bandwidth = 16 * source.size / seconds(lambda: np.copyto(target, source), given.repeat)
    rows = source[: int(source.size**0.5) ** 2].reshape(int(source.size**0.5), -1)
    turned = target[: rows.size].reshape(rows.shape)
    copy = seconds(lambda: np.copyto(turned, rows.T), given.repeat) / rows.size
    measured = {
        "flops": (flops, Machine().flops),
        "bandwidth": (bandwidth, Machine().bandwidth),
        "pair_copy_flops": (copy * flops, CpuRates().pair_copy_flops),
    }
    for place, name in enumerate("mnk"):
        half = half_rate(place, given.side, flops, given.repeat)
        measured[f"half rate of {name}"] = (half, HALF_RATE_MNK[place])
    for name, (found, assumed) in measured.items():
        print(f"{name:16s} measured {found:10.3g}   assumed {assumed:10.3g}")


if __name__ == "__main__":
    main()
