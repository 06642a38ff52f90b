"""The table that ``solve`` prints: a row for each iteration, energies at the end."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from math import ceil, log

import numpy as np

from .iterate import Step
from .result import Solution

Show = Callable[[str], None]
_CYCLE, _ENERGY, _CHANGE, _NORM, _SECONDS = 5, 20, 11, 11, 10  # characters of the columns


def _window() -> int:
    """Characters of a line of the terminal; no limit without a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize


class Table:
    """A table that is printed line by line; None for ``show`` prints nothing.

    The sum of the outputs ``energy`` is the energy of a row. If the columns do not fit into
    ``width`` characters, seconds are left out, then changes of the energy; if the norms do not fit,
    one column has the largest of them.
    """

    def __init__(
        self,
        show: Show | None,
        energy: Sequence[str],
        norms: Sequence[str],
        width: int | None = None,
    ) -> None:
        self._show = show or _nothing
        self._energy, self._norms = tuple(energy), tuple(norms)
        room = _window() if width is None else width
        least = _CYCLE + _ENERGY * bool(energy)
        self._together = least + _NORM * len(self._norms) > room
        needed = least + _NORM * (1 if self._together else len(self._norms))
        self._changes = bool(energy) and needed + _CHANGE <= room
        self._seconds = needed + _CHANGE * bool(energy) + _SECONDS <= room
        self._before = 0.0
        self._single = False
        self._clock = time.perf_counter()

    def title(self, name: str, reference: str, extents: Mapping[str, int]) -> None:
        """Name of the equations, reference, and numbers of orbitals."""
        sizes = ", ".join(f"{space} = {extent}" for space, extent in extents.items())
        self._show(f"{name} on {reference}, {sizes}")

    def note(self, text: str) -> None:
        """A line between title and header."""
        self._show(text)

    def header(self) -> None:
        """Names of the columns."""
        text = f"{'cycle':>{_CYCLE}}"
        text += f"{'E(corr)':>{_ENERGY}}" if self._energy else ""
        text += f"{'dE':>{_CHANGE}}" if self._changes else ""
        names = ["max |r|"] if self._together else [f"|{name}|" for name in self._norms]
        text += "".join(f"{name:>{_NORM}}" for name in names)
        self._show(text + (f"{'seconds':>{_SECONDS}}" if self._seconds else ""))

    def row(self, number: int, step: Step, read: float = 0, waited: float = 0) -> None:
        """One iteration, after a line if another element type begins.

        If ``read`` bytes were read from a file, which took ``waited`` seconds, a line says so.
        """
        if step.single != self._single:
            self._single = step.single
            self._show(f"in {'single' if step.single else 'double'} precision:")
        text = f"{number:{_CYCLE}d}"
        if self._energy:
            energy = sum(float(step.outputs[name].real) for name in self._energy)
            text += f"{energy:{_ENERGY}.12f}"
            text += f"{energy - self._before:{_CHANGE}.1e}" if self._changes else ""
            self._before = energy
        norms = [step.norms[name] for name in self._norms]
        text += "".join(f"{n:{_NORM}.1e}" for n in ([max(norms)] if self._together else norms))
        now = time.perf_counter()
        self._show(text + (f"{now - self._clock:{_SECONDS}.2f}" if self._seconds else ""))
        if read:
            self._show(f"{'':{_CYCLE}} read {read:,.0f} bytes in {waited:.2f} s")
        self._clock = now

    def end(self, solution: Solution) -> None:
        """State of the iteration, and the results."""
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
        for line in solution.states.lines() if solution.states else ():
            self._show(line)
        for name, array in solution.values.items():
            shape = " x ".join(str(n) for n in array.shape)
            self._show(f"{name}  {shape}  norm {np.linalg.norm(array.ravel()):.12f}")


def stage(number: int, worst: float, first: float, tolerance: float, seconds: float) -> str:
    """An iteration in words, with an estimate of those that remain, of so many seconds each.

    Example:
        >>> stage(3, 1e-3, 1e-1, 1e-9, seconds=2.0)
        'iteration 3, residual 1.0e-03, about 6 more, 12 s left'
    """
    text = f"iteration {number}, residual {worst:.1e}"
    if number < 3 or not tolerance < worst < first:
        return text
    rate = log(first / worst) / (number - 1)
    more = ceil(log(worst / tolerance) / rate)
    return f"{text}, about {more} more, {ceil(more * seconds)} s left"


def _nothing(_line: str) -> None:
    """Prints no line."""
