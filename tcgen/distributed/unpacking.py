"""A range of one axis of a packed group: the runs of the packed axis that hold it, and the array.

A range of a triangle is no rectangle: it is rows of the triangle, and of each row below them a few
elements. A program for a range takes the group as plain axes, of which one has the range, and a
worker fills them from these runs. Elements are read once, though the array holds those of two
equal ranges twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..simplices import parity, positions
from .handles import aligned_empty
from .stored import Rectangle

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Unpacking:
    """How an array with a packed group becomes one with plain axes and a range on one of them.

    Attributes:
        axis: of the packed array, which holds the group; the group's plain axes take its place.
        count: axes of the group.
        antisymmetric: an exchange changes the sign, and equal positions are zero.
        place: which axis of the group has the range.
        first: of the range.
        last: of the range, not in it.
        extent: of the whole axes.
    """

    axis: int
    count: int
    antisymmetric: bool
    place: int
    first: int
    last: int
    extent: int

    def rectangles(self, shape: tuple[int, ...]) -> tuple[Rectangle, ...]:
        """Rectangles of the packed array, of this shape, that together hold the range.

        None goes beyond a row of the group, so that none is larger than the array that it fills.
        """
        found = []
        for start, stop in self._runs():
            rectangle = [slice(0, n) for n in shape]
            rectangle[self.axis] = slice(start, stop)
            found.append(tuple(rectangle))
        return tuple(found)

    def shape(self, packed: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the array with plain axes."""
        group = [self.extent] * self.count
        group[self.place] = self.last - self.first
        return (*packed[: self.axis], *group, *packed[self.axis + 1 :])

    def elements(self, packed: tuple[int, ...]) -> int:
        """Number of elements of the array with plain axes."""
        return prod(self.shape(packed))

    def filled(
        self,
        packed: tuple[int, ...],
        rectangles: tuple[Rectangle, ...],
        read: Callable[[Rectangle], Array],
        dtype: str,
    ) -> Array:
        """The array with plain axes, from the elements that ``read`` gives for each rectangle."""
        made = aligned_empty(self.shape(packed), dtype)
        made[...] = 0  # equal positions of an antisymmetric group are not stored
        stored = positions(self.extent, self.count, self.antisymmetric)
        front: tuple[Any, ...] = (slice(None),) * self.axis
        for rectangle in rectangles:
            block = read(rectangle)
            run = [axis[rectangle[self.axis]] for axis in stored]
            for order in permutations(range(self.count)):
                where = [run[k] for k in order]
                inside = (self.first <= where[self.place]) & (where[self.place] < self.last)
                where[self.place] = where[self.place] - self.first
                sign = parity(order) if self.antisymmetric else 1
                place = (*front, *(axis[inside] for axis in where))
                made[place] = sign * block[(*front, inside)]
        return made

    def _runs(self) -> tuple[tuple[int, int], ...]:
        """Ranges of the packed axis, in order, each within a row."""
        stored = positions(self.extent, self.count, self.antisymmetric)
        wanted = np.zeros(stored[0].shape, dtype=bool)
        for axis in stored:
            wanted |= (self.first <= axis) & (axis < self.last)
        (where,) = np.nonzero(wanted)
        if not where.size:
            return ()
        row = stored[0][where]
        (ends,) = np.nonzero((np.diff(where) > 1) | (np.diff(row) > 0))
        starts = where[np.concatenate(([0], ends + 1))]
        stops = where[np.concatenate((ends, [where.size - 1]))] + 1
        return tuple((int(a), int(b)) for a, b in zip(starts, stops, strict=True))
