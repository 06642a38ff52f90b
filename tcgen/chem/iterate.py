"""Fixed-point iteration of amplitude equations, accelerated by DIIS.

Source: P. Pulay, Chem. Phys. Lett. 73, 393 (1980); for coupled cluster: G. E. Scuseria, T. J. Lee
and H. F. Schaefer III, Chem. Phys. Lett. 130, 236 (1986).
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import prod
from typing import Any, Protocol

import numpy as np

from ..errors import ConvergenceError, UnavailableError
from ..ir.layouts import Array

Amplitudes = dict[str, Array]

# Ratio of a diverging residual norm to the first one, or to 1 Hartree if the first one is smaller.
_DIVERGED = 1e3
# Residual norm in Hartree at which single precision ends. Rounding adds about 1e-7 to a norm.
SINGLE_TOLERANCE = 1e-5
# Iterations without a smaller norm after which single precision ends: DIIS may take one back.
_STALLED = 2
_SHOWN = 10  # norms in the message about divergence


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """The results of one evaluation of the equations.

    The ``updated`` amplitudes are not accelerated, ``norms`` are 2-norms of residuals, and
    ``outputs`` are those of the program before the update. A ``single`` step was in single
    precision, and does not converge.
    """

    updated: Amplitudes
    norms: dict[str, float]
    outputs: Mapping[str, Array]
    single: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Iterated:
    """The final amplitudes, their last evaluation, and the number of evaluations."""

    amplitudes: Mapping[str, Any]
    last: Step
    iterations: int
    converged: bool


@dataclass(slots=True, eq=False)
class State:
    """An iteration between two evaluations: all that the later ones depend on.

    Attributes:
        amplitudes: those of the next evaluation.
        norms: the largest residual norm of each evaluation so far.
        vectors: the vectors of DIIS, oldest first.
        errors: their errors.
        overlap: scalar products of the errors.
    """

    amplitudes: Amplitudes
    norms: list[float] = field(default_factory=list)
    vectors: Sequence[Array] = ()
    errors: Sequence[Array] = ()
    overlap: Array = field(default_factory=lambda: np.zeros((0, 0)))


class Keeper(Protocol):
    """Stores the state of an iteration for a later one, at the end or when it is interrupted."""

    def update(self, state: State) -> None:
        """Take the state after an evaluation."""

    def evaluating(self) -> Any:
        """The context of an evaluation, which an interrupt may end."""


class Vectors(Sequence[Array]):
    """The latest ``keep`` vectors of one length, oldest first, in memory or in a temporary file."""

    def __init__(self, keep: int, *, on_disk: bool) -> None:
        self._keep = keep
        self._file: Any = None
        if on_disk:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the last reference)
            weakref.finalize(self, self._file.close)
        self._held: list[Any] = []  # arrays, or their places in the file
        self._like = np.zeros(0)

    def __len__(self) -> int:
        return len(self._held)

    def __getitem__(self, number: Any) -> Any:
        held = self._held[number]
        if self._file is None:
            return held
        self._file.seek(held * self._like.nbytes)
        return np.fromfile(self._file, self._like.dtype, self._like.size)

    def append(self, vector: Array) -> None:
        """Add a vector; the oldest goes if there are ``keep``."""
        place = len(self._held) if len(self._held) < self._keep else self._held.pop(0)
        if self._file is None:
            self._held.append(vector)
            return
        self._like = np.broadcast_to(vector[:1], vector.shape)
        try:
            self._file.seek(place * vector.nbytes)
            vector.tofile(self._file)
        except OSError as error:
            raise UnavailableError(
                f"cannot write the vectors of DIIS to {tempfile.gettempdir()} "
                f"({os.strerror(error.errno) if error.errno else error}): they need "
                f"{2 * self._keep * vector.nbytes:,} bytes there, or set TMPDIR, or use a smaller "
                f"diis="
            ) from error
        self._held.append(place)


class Diis:
    """Direct inversion in the iterative subspace over the last ``keep`` vectors.

    Vectors and errors are in a temporary file if ``on_disk``.

    Example:
        >>> accelerate, x = Diis(), np.array([0.0])
        >>> for _ in range(4):  # x = 1 + x/2 has the solution 2
        ...     new = 1 + x / 2
        ...     x = accelerate(new, new - x)
        >>> bool(abs(x[0] - 2) < 1e-12)
        True
    """

    def __init__(self, keep: int = 8, *, on_disk: bool = False) -> None:
        self._keep = keep
        self.vectors = Vectors(keep, on_disk=on_disk)
        self.errors = Vectors(keep, on_disk=on_disk)
        self.overlap = np.zeros((0, 0))

    def restore(self, state: State) -> None:
        """Continue from the vectors of a state."""
        for vector, error in list(zip(state.vectors, state.errors, strict=True))[-self._keep :]:
            self.vectors.append(vector)
            self.errors.append(error)
        self.overlap = state.overlap[-self._keep :, -self._keep :]

    def __call__(self, vector: Array, error: Array) -> Array:
        """The combination of the vectors so far whose combined error is least."""
        self.vectors.append(vector)
        self.errors.append(error)
        count = len(self.vectors)
        overlap = np.zeros((count, count))
        overlap[:-1, :-1] = self.overlap[1 - count :, 1 - count :] if count > 1 else 0.0
        overlap[-1, :] = overlap[:, -1] = [np.vdot(e, error).real for e in self.errors]
        self.overlap = overlap
        scale = overlap.diagonal().max() or 1.0
        system = np.ones((count + 1, count + 1))
        # Scaled to order 1, so that nothing underflows.
        system[:count, :count] = overlap / scale
        system[count, count] = 0.0
        right = np.zeros(count + 1)
        right[count] = 1.0
        weights = np.linalg.lstsq(system, right, rcond=None)[0][:count]
        result = np.zeros_like(vector)
        for weight, old in zip(weights, self.vectors, strict=True):
            result += weight * old
        return result


def iterate(
    step: Callable[[Amplitudes, Sequence[float]], Step],
    start: State,
    *,
    tolerance: float,
    max_cycle: int,
    diis: int,
    damping: float,
    show: Callable[[int, Step], None],
    diis_on_disk: bool = False,
    keeper: Keeper | None = None,
) -> Iterated:
    """Evaluate and update until the 2-norm of every residual is at most ``tolerance``.

    ``step`` takes the amplitudes, and the largest norm of each step before it. DIIS stores ``diis``
    vectors, in a temporary file with ``diis_on_disk``; below 2 the iteration is
    not accelerated. A fraction ``damping`` of the old amplitudes remains, from 0 to below 1.
    ``show`` is called with the number of each evaluation, up to ``max_cycle``, and its results.
    Those of ``start`` count; its arrays are not written to. ``keeper`` gets the state after each
    update, and is the context of each evaluation.

    Raises:
        ConvergenceError: a residual norm is not finite, or more than 1000 times the first one and
            1000 Hartree.
        UnavailableError: the temporary file cannot be written.
    """
    shapes = {name: array.shape for name, array in start.amplitudes.items()}
    accelerate = Diis(diis, on_disk=diis_on_disk) if diis > 1 else None
    if accelerate is not None:
        accelerate.restore(start)
    norms = list(start.norms)
    now, start = start.amplitudes, State({})  # nothing else holds the first amplitudes
    while True:
        number = len(norms) + 1
        with keeper.evaluating() if keeper is not None else nullcontext():
            last = step(now, norms)
        show(number, last)
        norms.append(max(last.norms.values()))
        if norms[-1] <= tolerance and not last.single:
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
        after = _packed(last.updated)
        change = after - _packed(now)
        del last, now
        if damping:
            after -= damping * change
        if accelerate is not None:
            after = accelerate(after, change)
        del change
        now = _unpacked(after, shapes)
        if keeper is not None:
            made = accelerate or Diis()
            keeper.update(State(now, list(norms), made.vectors, made.errors, made.overlap))


def single_suffices(norms: Sequence[float], tolerance: float) -> bool:
    """True while single precision reduces the norms of the steps so far.

    Example:
        >>> single_suffices([1e-1, 1e-3], 1e-9), single_suffices([1e-1, 1e-6], 1e-9)
        (True, False)
        >>> single_suffices([1e-3, 2e-3], 1e-9), single_suffices([1e-3, 2e-3, 3e-3], 1e-9)
        (True, False)
    """
    least = max(SINGLE_TOLERANCE, tolerance)
    for number, norm in enumerate(norms):
        recent = norms[max(0, number - _STALLED) : number + 1]
        if norm <= least or (len(recent) > _STALLED and min(recent) == recent[0]):
            return False
    return True


def _packed(amplitudes: Amplitudes) -> Array:
    """All amplitudes as one vector."""
    return np.concatenate([array.ravel() for array in amplitudes.values()])


def _unpacked(vector: Array, shapes: Mapping[str, tuple[int, ...]]) -> Amplitudes:
    ends = np.cumsum([prod(shape) for shape in shapes.values()])[:-1]
    parts = np.split(vector, ends)
    return {n: p.reshape(shape) for (n, shape), p in zip(shapes.items(), parts, strict=True)}
