"""Times of the programs of Kristensen et al. on lazy arrays, with the kernels of each search.

    OMP_NUM_THREADS=1 TCGEN_LAZY_MIN_ELEMENTS=0 python -m benchmarks.array_programs.searches

Each entry is the median of the processor's time of three runs after the first, which compiles,
divided by that of NumPy, and the number of kernels. ``--share 0.1`` takes a tenth of the elements.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import tcgen
from tcgen.compiler.program_cache import ProgramCache
from tcgen.fusion.kernels import objective
from tcgen.fusion.kernels.partition import Partitioned
from tcgen.lazy_arrays import compile as kernels
from tcgen.lazy_arrays import dispatch
from tcgen.runtime.program import Program

from .bohrium import PROGRAMS
from .cost_models import partitioned
from .counts import kernels_counted

SEARCHES = ("optimal", "greedy", "linear", "singleton")
# About a million elements in each array.
_SIZES = {
    **{name: {"count": 1_000_000} for name in ("black_scholes", "leibnitz_pi", "rosenbrock")},
    "monte_carlo_pi": {"count": 1_000_000},
    "stencil_27_points": {"side": 100},
    "n_body": {"count": 1000},
    "n_body_nice": {"planets": 4, "asteroids": 200_000},
    "lattice_boltzmann": {"side": 60},
}


class Make:
    """Makes the arrays of a program, the same ones at each run."""

    def __init__(self, lazy: Callable[[Any], Any]) -> None:
        self.lazy, self.rng = lazy, np.random.default_rng(7)

    def given(self, *shape: int) -> Any:
        return self.lazy(self.rng.random(shape) + 0.5)

    random = given

    def zeros(self, *shape: int) -> Any:
        return self.lazy(np.zeros(shape))

    def arange(self, count: int) -> Any:
        return self.lazy(np.arange(float(count)))


def results(
    program: Callable[..., Any], size: dict[str, int], lazy: Callable[[Any], Any]
) -> list[Any]:
    """The values of the arrays that a program returns."""
    made = program(Make(lazy), **size)
    return list(tcgen.compute(*(made if type(made) is tuple else (made,))))


@contextmanager
def searched_by(algorithm: str) -> Iterator[None]:
    """Lazy arrays are divided among kernels by a search of the paper, in the model ``bytes``."""

    def found(operations: Any, most_blocks: int) -> Partitioned:
        return partitioned(operations, algorithm, "bytes", most_blocks)

    usual = objective.partition, kernels.PROGRAMS
    objective.partition = found
    kernels.PROGRAMS = ProgramCache(Program, lambda: 99)
    dispatch.FORMS.clear()
    try:
        yield
    finally:
        objective.partition, kernels.PROGRAMS = usual
        dispatch.FORMS.clear()


def seconds(run: Callable[[], Any]) -> float:
    """The median of the processor's time of three runs after the first."""
    found = []
    for _ in range(4):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return statistics.median(found[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", default=list(PROGRAMS))
    options = parser.parse_args()
    os.environ["TCGEN_LAZY_MIN_ELEMENTS"] = "0"
    print(f"| program | NumPy, s | {' | '.join(SEARCHES)} |")
    print(f"|---|---|{'---|' * len(SEARCHES)}", flush=True)
    for name in options.only:
        program = PROGRAMS[name]
        full = _SIZES.get(name, {"side": 1000})
        size = {n: max(9, int(most * options.share)) for n, most in full.items()}
        numpys = seconds(partial(results, program, size, lambda array: array))
        entries = []
        for algorithm in SEARCHES:
            # A cache of its own: programs are cached whichever search made them.
            with TemporaryDirectory() as os.environ["TCGEN_CACHE_DIR"], searched_by(algorithm):
                with kernels_counted() as counts:
                    results(program, size, partial(tcgen.lazy, copy=True))
                lazy = seconds(partial(results, program, size, partial(tcgen.lazy, copy=True)))
            entries.append(f"{lazy / numpys:.2f} ({sum(counts)})")
        print(f"| {name} | {numpys:.3f} | {' | '.join(entries)} |", flush=True)


if __name__ == "__main__":
    main()
