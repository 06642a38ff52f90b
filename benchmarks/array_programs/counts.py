"""Numbers of kernels of DelayRepay's programs on lazy arrays, beside the calls of NumPy.

    TCGEN_LAZY_MIN_ELEMENTS=0 python -m benchmarks.array_programs.counts

The calls stand for the kernels of CuPy in Figure 5 of the paper, whose text prints no numbers; CuPy
itself is not run. Functions that have no kernel (``repeat``, copies into a slice) are calls in
both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import tcgen
from tcgen.lazy_arrays.compile import Kernel as Compiled

from .delayrepay import PROGRAMS
from .kernels import Kernel

_FUNCTIONS = (np.dot, np.cumsum, np.repeat, np.roll)


class Counted(np.ndarray):
    """An array of NumPy that counts calls that compute elements, or copy them."""

    calls = 0

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        Counted.calls += 1
        if out is not None:
            options["out"] = tuple(map(_plain, out))
        made = getattr(ufunc, method)(*map(_plain, inputs), **options)
        if out is not None:
            return out[0]
        return made.view(Counted) if isinstance(made, np.ndarray) else made

    def __array_function__(self, func: Any, types: Any, args: Any, options: Any) -> Any:
        Counted.calls += func in _FUNCTIONS
        return super().__array_function__(func, types, args, options)

    def __setitem__(self, key: Any, value: Any) -> None:
        Counted.calls += 1
        super().__setitem__(key, value)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Counted) else value


def calls_of(program: Kernel) -> int:
    """Calls of NumPy that compute elements, or copy them, on small arrays."""
    Counted.calls = 0
    program.run(*(array.view(Counted) for array in program.arguments("S")))
    return Counted.calls


@contextmanager
def kernels_counted() -> Iterator[list[int]]:
    """The list grows by the number of kernels of each evaluation of lazy arrays."""
    counts: list[int] = []
    ran = Compiled.run

    def run(compiled: Compiled, line: Any) -> Any:
        counts.append(len(compiled.program.report["kernels"]))
        return ran(compiled, line)

    Compiled.run = run  # type: ignore[method-assign]
    try:
        yield counts
    finally:
        Compiled.run = ran  # type: ignore[method-assign]


def main() -> None:
    print("| program | calls of NumPy | kernels | ratio |\n|---|---|---|---|")
    for name, program in PROGRAMS.items():
        with kernels_counted() as counts:
            np.asarray(program.run(*map(tcgen.lazy, program.arguments("S"))))
        calls, kernels = calls_of(program), sum(counts)
        print(f"| {name} | {calls} | {kernels} | {kernels / calls:.2f} |")


if __name__ == "__main__":
    main()
