"""Declared symmetries of inputs: their check, and the packing of symmetric axes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from ..dtypes import NAMES
from ..errors import ArgumentError, AxisError, CheckError, DtypeError, ShapeError
from ..records.tensors import Packing, Tensor
from ..simplices import positions

Array = npt.NDArray[Any]

Generator = tuple[tuple[int, ...], int, bool]  # axes permutation, sign, complex conjugate

SAMPLES = 64  # elements that a call compares for each generator
# Relative to the largest element.
TOLERANCE = {"float64": 1e-8, "complex128": 1e-8, "float32": 1e-3}
# Absolute deviation that rounding may leave in arrays of zeros, such as T3 of two electrons.
ROUNDING = {"float64": 1e-14, "complex128": 1e-14, "float32": 1e-6}


def check_symmetry(
    name: str, array: Array, generators: Iterable[Generator], *, samples: int | None = None
) -> None:
    """Compare an array, axes in logical order, with its images under the declared symmetries.

    The array is whole, not packed. A generator (perm, sign, conj) says that
    ``A[x[perm[0]], ...] == sign * A[x]``, conjugated if conj. ``samples`` is the number of elements
    to compare, spread evenly; None compares all. Deviations pass if they are at most TOLERANCE
    times the largest element, or at most ROUNDING; else CheckError names the tensor, two elements
    that should agree, and the deviation.

    Example:
        >>> check_symmetry("f", np.eye(3), [((1, 0), 1, False)])
    """
    if array.size == 0:
        return
    kind = str(array.dtype)
    for perm, sign, conj in generators:
        inverse = tuple(int(k) for k in np.argsort(perm))
        image = array.transpose(inverse)  # image[x] == array[x[perm[0]], ...]
        if samples is None:
            worst, where, scale = *_worst(array, image, sign, conj), 0.0
        else:
            worst, where, scale = _worst_sample(array, image, sign, conj, samples)
        if worst > max(ROUNDING[kind], TOLERANCE[kind] * scale):
            # The samples may all be zeros of point-group symmetry, which have no scale.
            if worst <= TOLERANCE[kind] * max(map(_scale, array)):
                continue
            other = tuple(where[p] for p in perm)
            relation = "the conjugate of " if conj else ""
            twin = f"{'' if sign > 0 else 'minus '}{relation}element {_show(where)}"
            expected = f"should be {twin}, but they deviate by {worst:.3e}"
            if other == where and sign < 0 and not conj:
                expected = f"should be zero, but is {_value(array[where])}"
            elif other == where and conj:
                part = "real" if sign > 0 else "imaginary"
                expected = f"should be {part}, but is {_value(array[where])}"
            raise CheckError(
                f"input {name} breaks its declared symmetry: element {_show(other)} {expected}: "
                f"correct the array or drop the symmetry from the spec"
            )


def packed_generators(tensor: Tensor) -> list[Generator]:
    """The declared symmetries of a packed tensor as they act on the axes of the caller's array.

    The exchange within a packed pair holds by construction. Generators that do not map packed pairs
    to packed pairs are left out.
    """
    stored = tensor.stored()
    place = {axis: n for n, (axis, _) in enumerate(stored)}
    pairs = {axis: pair for axis, pair in stored if pair is not None}
    generators = []
    for s in tensor.symmetry:
        images = [s.perm[axis] for axis, _ in stored]
        maps_pairs = all(
            image in place
            and ((axis in pairs) == (image in pairs))
            and (axis not in pairs or _maps(pairs[axis], pairs[image], s.perm))
            for (axis, _), image in zip(stored, images, strict=True)
        )
        if maps_pairs:
            generators.append((tuple(place[image] for image in images), s.sign, s.conj))
    return generators


def _maps(pair: Packing, image: Packing, perm: tuple[int, ...]) -> bool:
    """True if a permutation maps packed axes to others, each to the one at its place."""
    alike = (pair.antisymmetric, pair.count) == (image.antisymmetric, image.count)
    return alike and [perm[axis] for axis in pair.axes] == list(image.axes)


def _worst(array: Array, image: Array, sign: int, conj: bool) -> tuple[float, tuple[int, ...]]:
    """Largest deviation; slice by slice, so that no second array of this size is made."""
    worst, where = 0.0, (0,) * array.ndim
    for first in range(array.shape[0]):
        wanted = sign * (np.conj(array[first]) if conj else array[first])
        deviation = _deviation(image[first], wanted)
        largest = float(np.max(deviation))
        if largest > worst:
            worst = largest
            rest = np.unravel_index(int(np.argmax(deviation)), deviation.shape)
            where = (first, *(int(k) for k in rest))
    return worst, where


def _worst_sample(
    array: Array, image: Array, sign: int, conj: bool, samples: int
) -> tuple[float, tuple[int, ...], float]:
    # A step coprime to the extents visits all axes, not only one of them.
    step = max(1, array.size // samples)
    while math.gcd(step, array.size) > 1:
        step += 1
    positions = np.arange(0, array.size, step)
    points = np.unravel_index(positions, array.shape)
    values = array[points]
    deviation = _deviation(image[points], sign * (np.conj(values) if conj else values))
    scale = max(_scale(values), _scale(image[points]))
    largest = int(np.argmax(deviation))
    return float(deviation[largest]), tuple(int(p[largest]) for p in points), scale


def _deviation(given: Array, wanted: Array) -> Array:
    """Absolute differences; equal infinities and two NaNs agree, one of them deviates by inf."""
    with np.errstate(invalid="ignore"):
        deviation: Array = np.abs(given - wanted)
    unclear = np.isnan(deviation)
    if unclear.any():
        equal = (given == wanted) | (np.isnan(given) & np.isnan(wanted))
        deviation = np.where(unclear, np.where(equal, 0.0, np.inf), deviation)
    return deviation


def _scale(values: Array) -> float:
    sizes = np.abs(values)
    return float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))


def _value(number: np.number[Any]) -> str:
    return f"{number.item():.3e}"


def _show(element: tuple[int, ...]) -> str:
    return f"[{', '.join(str(k) for k in element)}]"


def pack_pairs(array: npt.ArrayLike, *pairs: tuple[int, ...], antisymmetric: bool = False) -> Array:
    """The array with each pair of neighbouring axes as one axis of n(n+1)/2 elements.

    It holds the lower triangle row by row, (p,q) with p >= q at p(p+1)/2 + q, as inputs declared
    ``packed`` are stored and as PySCF stores pairs. An antisymmetric pair has p > q at
    p(p-1)/2 + q. More than two axes are packed alike: (p,q,r) with p > q > r is at C(p,3) + C(q,2)
    + r. PySCF's packed t3 has as many rows in another order: pack ``tamps_tri2full(t3)``.

    Args:
        array: symmetric under the exchange of the axes of each pair.
        pairs: groups of neighbouring axes, such as (0, 1), (2, 3) or (0, 1, 2).
        antisymmetric: the exchange changes the sign, and diagonals are not stored.

    Raises:
        DtypeError: the array is not float64, float32 or complex128.
        AxisError: there is no such axis.
        ArgumentError: a group is not a tuple of axes, two axes are not neighbours, or two pairs
            share an axis.
        ShapeError: the axes of a pair differ in length.
        CheckError: elements that should agree do not.

    Example:
        >>> pack_pairs([[1.0, 2.0], [2.0, 5.0]], (0, 1))
        array([1., 2., 5.])
    """
    dense = np.asarray(array)
    if dense.dtype.name not in NAMES:
        raise DtypeError(f"the array is {dense.dtype}: convert it to {' or '.join(NAMES)}")
    try:
        axes = [index(axis) for pair in pairs for axis in pair]
    except TypeError:
        raise ArgumentError(
            f"{', '.join(map(repr, pairs))} are not groups of axes, such as (0, 1), (2, 3)"
        ) from None
    for axis in axes:
        if not 0 <= axis < dense.ndim:
            raise AxisError(f"axis {axis}: the array has {dense.ndim} axes", axis, dense.ndim)
    if len(set(axes)) != len(axes):
        raise ArgumentError(f"pairs {', '.join(map(str, pairs))} share an axis")
    for group in pairs:
        if len(group) < 2:
            raise ArgumentError(f"{group}: pack two axes or more")
        if any(second != first + 1 for first, second in pairwise(group)):
            raise ArgumentError(f"pair {group}: the axes must be neighbours")
        if len({dense.shape[axis] for axis in group}) > 1:
            raise ShapeError(
                f"pair {group}: the axes must have the same length, found shape {dense.shape}"
            )
        for first, second in pairwise(group):
            perm = list(range(dense.ndim))
            perm[first], perm[second] = second, first
            check_symmetry("array", dense, [(tuple(perm), -1 if antisymmetric else 1, False)])
    for group in sorted(pairs, reverse=True):
        held = positions(dense.shape[group[0]], len(group), antisymmetric)
        front: tuple[Any, ...] = (slice(None),) * group[0]
        dense = dense[(*front, *held)]
    return dense
