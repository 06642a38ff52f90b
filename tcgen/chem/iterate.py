"""Fixed-point iteration of amplitude equations, accelerated by DIIS.

Source: P. Pulay, Chem. Phys. Lett. 73, 393 (1980); for coupled cluster: G. E. Scuseria, T. J. Lee
and H. F. Schaefer III, Chem. Phys. Lett. 130, 236 (1986).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import ConvergenceError
from ..ir.layouts import Array

Amplitudes = dict[str, Array]

# Ratio of a diverging residual norm to the first one, or to 1 Hartree if the first one is smaller.
_DIVERGED = 1e3
_SHOWN = 10  # norms in the message about divergence


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """The results of one evaluation of the equations.

    The ``updated`` amplitudes are not accelerated, ``norms`` are 2-norms of residuals, and
    ``outputs`` are those of the program before the update.
    """

    updated: Amplitudes
    norms: dict[str, float]
    outputs: Mapping[str, Array]


@dataclass(frozen=True, slots=True, eq=False)
class Iterated:
    """The final amplitudes, their last evaluation, and the number of evaluations."""

    amplitudes: Amplitudes
    last: Step
    iterations: int
    converged: bool


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
        self._keep = keep
        self._vectors: list[Array] = []
        self._errors: list[Array] = []
        self._overlap = np.zeros((0, 0))

    def __call__(self, vector: Array, error: Array) -> Array:
        """The combination of the vectors so far whose combined error is least."""
        self._vectors = [*self._vectors, vector][-self._keep :]
        self._errors = [*self._errors, error][-self._keep :]
        count = len(self._vectors)
        overlap = np.zeros((count, count))
        overlap[:-1, :-1] = self._overlap[1 - count :, 1 - count :] if count > 1 else 0.0
        overlap[-1, :] = overlap[:, -1] = [np.vdot(e, error).real for e in self._errors]
        self._overlap = overlap
        scale = overlap.diagonal().max() or 1.0
        system = np.ones((count + 1, count + 1))
        # Scaled to order 1, so that nothing underflows.
        system[:count, :count] = overlap / scale
        system[count, count] = 0.0
        right = np.zeros(count + 1)
        right[count] = 1.0
        weights = np.linalg.lstsq(system, right, rcond=None)[0][:count]
        result = np.zeros_like(vector)
        for weight, old in zip(weights, self._vectors, strict=True):
            result += weight * old
        return result


def iterate(
    step: Callable[[Amplitudes], Step],
    start: Amplitudes,
    *,
    tolerance: float,
    max_cycle: int,
    diis: int,
    damping: float,
    show: Callable[[int, Step], None],
) -> Iterated:
    """Evaluate and update until the 2-norm of every residual is at most ``tolerance``.

    DIIS stores ``diis`` vectors; below 2 the iteration is not accelerated. A fraction ``damping``
    of the old amplitudes remains, from 0 to below 1. ``show`` is called with the number of each
    evaluation, up to ``max_cycle``, and its results. ``start`` is not changed.

    Raises:
        ConvergenceError: a residual norm is not finite, or more than 1000 times the first one and
            1000 Hartree.
    """
    accelerate = Diis(diis) if diis > 1 else None
    now = dict(start)
    norms: list[float] = []
    number = 0
    while True:
        number += 1
        last = step(now)
        show(number, last)
        norms.append(max(last.norms.values()))
        if norms[-1] <= tolerance:
            return Iterated(now, last, number, True)
        if not np.isfinite(norms[-1]) or norms[-1] > _DIVERGED * max(norms[0], 1.0):
            shown = ", ".join(f"{norm:.1e}" for norm in norms[-_SHOWN:])
            raise ConvergenceError(
                f"the amplitudes diverge: the largest residual norms of the last "
                f"{len(norms[-_SHOWN:])} iterations are {shown}; try level_shift=0.3, damping=0.3, "
                f"another number of DIIS vectors, or start from the amplitudes of a near geometry"
            )
        if number >= max_cycle:
            return Iterated(now, last, number, False)
        before, after = _packed(now), _packed(last.updated)
        change = after - before
        after = after - damping * change
        if accelerate is not None:
            after = accelerate(after, change)
        now = _unpacked(after, now)


def _packed(amplitudes: Amplitudes) -> Array:
    """All amplitudes as one vector."""
    return np.concatenate([array.ravel() for array in amplitudes.values()])


def _unpacked(vector: Array, like: Amplitudes) -> Amplitudes:
    ends = np.cumsum([array.size for array in like.values()])[:-1]
    parts = np.split(vector, ends)
    return {n: p.reshape(a.shape) for (n, a), p in zip(like.items(), parts, strict=True)}
