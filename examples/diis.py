"""Fixed-point iteration of amplitude equations, accelerated by DIIS. Needs NumPy alone.

Source: P. Pulay, Chem. Phys. Lett. 73, 393 (1980); for coupled cluster: G. E. Scuseria, T. J. Lee
and H. F. Schaefer III, Chem. Phys. Lett. 130, 236 (1986).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Amplitudes = dict[str, np.ndarray]


class Diis:
    """Direct inversion in the iterative subspace over the last ``keep`` vectors.

    Example:
        >>> accelerate, x = Diis(), np.array([0.0])
        >>> for _ in range(4):  # x = 1 + x/2 has the solution 2
        ...     new = 1 + x / 2
        ...     x = accelerate(new, new - x)
        >>> bool(abs(x[0] - 2) < 1e-12)
        True
    """

    def __init__(self, keep: int = 8) -> None:
        self.keep = keep
        self.vectors: list[np.ndarray] = []
        self.errors: list[np.ndarray] = []

    def __call__(self, vector: np.ndarray, error: np.ndarray) -> np.ndarray:
        """The combination of the vectors so far whose combined error is least."""
        self.vectors = [*self.vectors, vector][-self.keep :]
        self.errors = [*self.errors, error][-self.keep :]
        count = len(self.vectors)
        overlap = np.array([[a @ b for b in self.errors] for a in self.errors])
        scale = overlap.diagonal().max() or 1.0
        system = np.ones((count + 1, count + 1))
        system[:count, :count] = overlap / scale  # of order 1, so that nothing underflows
        system[count, count] = 0.0
        right = np.zeros(count + 1)
        right[count] = 1.0
        weights = np.linalg.lstsq(system, right, rcond=None)[0][:count]
        return sum(w * x for w, x in zip(weights, self.vectors, strict=True))


@dataclass(frozen=True, slots=True)
class Converged:
    """Energy and amplitudes at the end, and the number of iterations."""

    energy: float
    amplitudes: Amplitudes
    iterations: int


def iterate(
    step: Callable[..., Mapping[str, np.ndarray]],
    start: Amplitudes,
    *,
    tolerance: float = 1e-10,
    limit: int = 60,
    show: Callable[[int, float, float], None] | None = None,
) -> Converged:
    """Solve t = step(t) to ``|t_new - t| < tolerance``.

    Args:
        step: takes the amplitudes by name; returns ``e``, the energy at these amplitudes, and
            ``<name>_new`` for each of them.
        start: first amplitudes by name; each is left as it is.
        tolerance: on the 2-norm of the change of all amplitudes.
        limit: most iterations.
        show: called with the number, energy and norm of the change of each iteration.

    Raises:
        ArithmeticError: not converged within ``limit`` iterations.
    """
    names, shapes = tuple(start), tuple(a.shape for a in start.values())
    ends = np.cumsum([a.size for a in start.values()])[:-1]
    flat, accelerate, change = pack(start, names), Diis(), np.inf
    for number in range(1, limit + 1):
        parts = np.split(flat, ends)
        now = {n: p.reshape(s) for n, p, s in zip(names, parts, shapes, strict=True)}
        out = step(**now)
        new = pack({n: np.asarray(out[f"{n}_new"]) for n in names}, names)
        change = float(np.linalg.norm(new - flat))
        energy = float(out["e"])
        if show is not None:
            show(number, energy, change)
        if change < tolerance:
            return Converged(energy, now, number)
        flat = accelerate(new, new - flat)
    raise ArithmeticError(f"no convergence in {limit} iterations: the last change was {change:.1e}")


def pack(amplitudes: Amplitudes, names: tuple[str, ...]) -> np.ndarray:
    """All amplitudes as one vector, in the order of ``names``."""
    return np.concatenate([amplitudes[n].ravel() for n in names])


def denominators(e_o: np.ndarray, e_v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """D1[i,a] = e_i - e_a and D2[i,j,a,b] = e_i + e_j - e_a - e_b, negative for a ground state."""
    d1 = e_o[:, None] - e_v
    return d1, d1[:, None, :, None] + d1[None, :, None, :]


def updating(
    residuals: Callable[..., Mapping[str, np.ndarray]], d1: np.ndarray, d2: np.ndarray
) -> Callable[..., Mapping[str, np.ndarray]]:
    """A ``step`` for :func:`iterate` from a program that returns r2 (and r1): t + r/D."""

    def step(**amplitudes: np.ndarray) -> Mapping[str, np.ndarray]:
        out = residuals(**amplitudes)
        new = {"e": out["e"], "t2_new": amplitudes["t2"] + out["r2"] / d2}
        if "t1" in amplitudes:
            new["t1_new"] = amplitudes["t1"] + out["r1"] / d1
        return new

    return step
