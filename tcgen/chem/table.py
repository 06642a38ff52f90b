"""The table that ``solve`` prints: a row for each iteration, energies at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .iterate import Step
from .result import Solution

Show = Callable[[str], None]


class Table:
    """Prints lines through a function; nothing without one.

    Args:
        show: takes one line.
        energy: names of the outputs whose sum stands in the column of energies.
        norms: names of the residuals.
    """

    def __init__(self, show: Show | None, energy: Sequence[str], norms: Sequence[str]) -> None:
        self._show = show or _nothing
        self._energy, self._norms = tuple(energy), tuple(norms)
        self._before = 0.0
        self._clock = time.perf_counter()

    def title(self, name: str, reference: str, extents: Mapping[str, int]) -> None:
        """What is solved, on which reference, over how many orbitals."""
        sizes = ", ".join(f"{space} = {extent}" for space, extent in extents.items())
        self._show(f"{name} on {reference}, {sizes}")

    def header(self) -> None:
        """Names of the columns."""
        energies = f"{'E(corr)':>20}{'dE':>11}" if self._energy else ""
        norms = "".join(f"{f'|{name}|':>11}" for name in self._norms)
        self._show(f"{'cycle':>5}{energies}{norms}{'seconds':>10}")

    def row(self, number: int, step: Step) -> None:
        """One iteration."""
        text = f"{number:5d}"
        if self._energy:
            energy = sum(float(step.outputs[name].real) for name in self._energy)
            text += f"{energy:20.12f}{energy - self._before:11.1e}"
            self._before = energy
        text += "".join(f"{step.norms[name]:11.1e}" for name in self._norms)
        now = time.perf_counter()
        self._show(f"{text}{now - self._clock:10.2f}")
        self._clock = now

    def end(self, solution: Solution) -> None:
        """Whether iteration converged, and the results."""
        if solution.iterations:
            state = "converged" if solution.converged else "NOT converged"
            word = "matrix-vector products" if solution.roots else "iterations"
            self._show(f"{state} after {solution.iterations} {word}")
        rows = [("E(HF)", solution.e_hf)]
        if solution.e_corr is not None:
            rows += [("E(corr)", solution.e_corr), ("E(total)", solution.e_hf + solution.e_corr)]
        if solution.e_corr is None or len(solution.energies) > 1:
            rows += list(solution.energies.items())
        rows += [(f"root {n}", root) for n, root in enumerate(solution.roots, 1)]
        width = max(len(name) for name, _ in rows)
        for name, value in rows:
            self._show(f"{name:<{width}} = {value:18.12f}")
        for name, array in solution.values.items():
            shape = " x ".join(str(n) for n in array.shape)
            self._show(f"{name}  {shape}  norm {np.linalg.norm(array.ravel()):.12f}")


def _nothing(_line: str) -> None:
    """Prints no line."""
