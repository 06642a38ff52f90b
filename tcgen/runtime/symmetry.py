"""Does an input keep the symmetry that the equations promise?

A promised symmetry lets the planner read one representative of equal elements, so an input that
breaks it would give wrong numbers silently.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import CheckError

Generator = tuple[tuple[int, ...], int, bool]  # axes permutation, sign, complex conjugate

SAMPLES = 64
TOLERANCE = {"float64": 1e-8, "complex128": 1e-8, "float32": 1e-3}


def check_symmetry(
    name: str,
    array: np.ndarray[Any, Any],
    generators: Iterable[Generator],
    *,
    samples: int | None = None,
) -> None:
    """Compare an array, axes in logical order, with its images under the declared symmetries.

    Args:
        name: of the tensor, for the message.
        array: whole array, not packed.
        generators: (perm, sign, conj): ``A[x[perm[0]], ...] == sign * A[x]``, conjugated if conj.
        samples: compare this many elements, spread evenly; None compares all of them.

    Raises:
        CheckError: naming the tensor, two elements that should agree, and the deviation.

    Example:
        >>> check_symmetry("f", np.eye(3), [((1, 0), 1, False)])
    """
    if array.size == 0:
        return
    scale = float(np.max(np.abs(array))) if samples is None else 0.0
    for perm, sign, conj in generators:
        inverse = tuple(int(k) for k in np.argsort(perm))
        image = array.transpose(inverse)  # image[x] == array[x[perm[0]], ...]
        if samples is None:
            worst, where = _worst(array, image, sign, conj)
        else:
            worst, where, scale = _worst_sample(array, image, sign, conj, samples)
        if worst > TOLERANCE[str(array.dtype)] * max(scale, 1e-300):
            other = tuple(where[p] for p in perm)
            relation = "the conjugate of " if conj else ""
            twin = f"{'' if sign > 0 else 'minus '}{relation}element {_show(where)}"
            wanted = f"should be {twin}, but they deviate by {worst:.3e}"
            if other == where and sign < 0 and not conj:
                wanted = f"should be zero, but is {_value(array[where])}"
            elif other == where and conj:
                part = "real" if sign > 0 else "imaginary"
                wanted = f"should be {part}, but is {_value(array[where])}"
            raise CheckError(
                f"input {name} breaks its declared symmetry: element {_show(other)} {wanted}: "
                f"correct the array or drop the symmetry from the spec"
            )


def _worst(
    array: np.ndarray[Any, Any], image: np.ndarray[Any, Any], sign: int, conj: bool
) -> tuple[float, tuple[int, ...]]:
    """Largest deviation, slice by slice so that no second whole array is formed."""
    worst, where = 0.0, (0,) * array.ndim
    for first in range(array.shape[0]):
        wanted = sign * (np.conj(array[first]) if conj else array[first])
        deviation = np.abs(image[first] - wanted)
        largest = float(np.max(deviation))
        if largest > worst or np.isnan(largest):
            worst = np.inf if np.isnan(largest) else largest
            rest = np.unravel_index(int(np.argmax(deviation)), deviation.shape)
            where = (first, *(int(k) for k in rest))
    return worst, where


def _worst_sample(
    array: np.ndarray[Any, Any], image: np.ndarray[Any, Any], sign: int, conj: bool, samples: int
) -> tuple[float, tuple[int, ...], float]:
    # A stride coprime to the extents walks through all axes, not along one of them.
    step = max(1, array.size // samples)
    while math.gcd(step, array.size) > 1:
        step += 1
    positions = np.arange(0, array.size, step)
    points = np.unravel_index(positions, array.shape)
    values = array[points]
    deviation = np.abs(image[points] - sign * (np.conj(values) if conj else values))
    scale = float(max(np.max(np.abs(values)), np.max(np.abs(image[points]))))
    largest = int(np.argmax(deviation))
    worst = float(deviation[largest])
    return np.inf if np.isnan(worst) else worst, tuple(int(p[largest]) for p in points), scale


def _value(number: np.number[Any]) -> str:
    return f"{number.item():.3e}"


def _show(element: tuple[int, ...]) -> str:
    return f"[{', '.join(str(k) for k in element)}]"
