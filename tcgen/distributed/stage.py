"""One program of a distributed run, its tasks, and the elements that each of them reads and writes.

A task runs the program for a range of the iterations of the stage's loops. The driver needs the
rectangles of a range to predict a run, and the workers to load them.

A range of a packed group is not a rectangle: it is rows of a triangle, and a few elements of each
row below them. A program for such a range takes the group as plain axes, one of which has the
range, and a worker fills them from these runs. Elements are read once, though the array holds those
of two equal ranges twice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from .._version import __version__
from ..artifact.folder import Artifact
from ..artifact.manifest import SOURCES
from ..dtypes import BY_NAME
from ..ir.reduction import Reduction
from ..ir.tensor import Packing
from ..records.loops import LoopVar, stored_shape
from ..records.parts import count_iterations
from ..records.tensors import Tensor, element_type
from ..runtime.program import Program
from ..simplices import parity, positions
from .handles import aligned_empty
from .slicing import Restricted, SlicedOutput
from .stored import Rectangle

Array = npt.NDArray[Any]

# The function that combines two values, and its neutral element.
_REDUCED: Mapping[Reduction, tuple[Any, float]] = {
    Reduction.SUM: (np.add, 0.0),
    Reduction.PROD: (np.multiply, 1.0),
    Reduction.MAX: (np.maximum, -np.inf),
    Reduction.MIN: (np.minimum, np.inf),
}


@dataclass(frozen=True, slots=True)
class Task:
    """A half-open range of a stage's iterations or elements; ``number`` orders sums."""

    stage: int
    number: int
    first: int
    last: int
    seconds: float = 0.0  # predicted


@dataclass(frozen=True, slots=True)
class Unpacking:
    """An array with a packed group as one with plain axes and a range on one of them.

    The group is on ``axis`` of the packed array; ``count`` plain axes take its place, whose whole
    extent is ``extent``. Axis ``place`` of the group has the range, from ``first`` to ``last``,
    exclusive. In an antisymmetric group an exchange changes the sign, and equal positions are zero.
    """

    axis: int
    count: int
    antisymmetric: bool
    place: int
    first: int
    last: int
    extent: int

    def rectangles(self, shape: tuple[int, ...]) -> tuple[Rectangle, ...]:
        """Rectangles of the packed array that together hold the range, each within a row.

        So a rectangle is not larger than the array that it fills.
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

    def filled(
        self,
        packed: tuple[int, ...],
        rectangles: tuple[Rectangle, ...],
        read: Callable[[Rectangle], Array],
        dtype: str,
    ) -> Array:
        """The array with plain axes; ``read`` returns the elements of a rectangle."""
        made = aligned_empty(self.shape(packed), dtype)
        # Equal positions of an antisymmetric group are not stored.
        made[...] = 0
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
        inside = np.zeros(stored[0].shape, dtype=bool)
        for axis in stored:
            inside |= (self.first <= axis) & (axis < self.last)
        (where,) = np.nonzero(inside)
        if not where.size:
            return ()
        row = stored[0][where]
        (ends,) = np.nonzero((np.diff(where) > 1) | (np.diff(row) > 0))
        starts = where[np.concatenate(([0], ends + 1))]
        stops = where[np.concatenate((ends, [where.size - 1]))] + 1
        return tuple((int(a), int(b)) for a, b in zip(starts, stops, strict=True))


@dataclass(frozen=True, slots=True)
class Reading:
    """The elements of one array that a task reads.

    ``rectangles`` and ``shape`` are those of the whole array, which is named ``source``. If
    ``shrunk``, the program takes the only rectangle as its array; else it takes an array of the
    whole shape, and reads only the rectangles. ``unpacking`` makes the array of the program from
    the rectangles, if the whole array is packed along the space that is cut.
    """

    name: str
    source: str
    rectangles: tuple[Rectangle, ...]
    shrunk: bool
    shape: tuple[int, ...]
    itemsize: int
    unpacking: Unpacking | None = None

    @property
    def whole(self) -> bool:
        """True if the task reads every element."""
        return any(
            all((s.start, s.stop) == (0, n) for s, n in zip(r, self.shape, strict=True))
            for r in self.rectangles
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the rectangles."""
        return sum(rectangle_bytes(r, self.itemsize) for r in self.rectangles)

    @property
    def whole_bytes(self) -> int:
        """Bytes of the whole array."""
        return self.itemsize * prod(self.shape)

    @property
    def array_bytes(self) -> int:
        """Bytes of the array that a worker makes from the rectangles."""
        if self.unpacking is None:
            return self.nbytes
        return self.itemsize * prod(self.unpacking.shape(self.shape))

    @property
    def pieces(self) -> tuple[tuple[Hashable, int], ...]:
        """Pieces that a worker loads at once: names within the source, and bytes."""
        if self.unpacking is not None:
            return ((self.unpacking, self.nbytes),)
        return tuple((corners(r), rectangle_bytes(r, self.itemsize)) for r in self.rectangles)

    def taken(self, read: Callable[[Rectangle], Array], dtype: str) -> Array:
        """The array that the program takes for a range; ``read`` gives elements of rectangles."""
        if self.unpacking is not None:
            return self.unpacking.filled(self.shape, self.rectangles, read, dtype)
        (rectangle,) = self.rectangles
        return read(rectangle)


@dataclass(frozen=True, slots=True)
class Writing:
    """Rectangles of a whole result that a task returns as blocks."""

    name: str
    rectangles: tuple[Rectangle, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """A program and the loops whose iterations its tasks divide; small enough to be sent.

    The loops are the program's own outermost ones, or the one over the space that the program has a
    range of. ``here`` names the space of a range in a program that was compiled for ranges, or is
    "". ``extents`` are those of the whole, by base space. ``inputs`` are ranges of whole arrays.
    Numbers of stages start from 0. ``version`` is that of the tcgen that made it.
    """

    artifact: Artifact
    extents: tuple[tuple[str, int], ...]
    loops: tuple[LoopVar, ...]
    inputs: tuple[Restricted, ...]
    outputs: tuple[SlicedOutput, ...]
    here: str = ""
    number: int = 0
    version: str = __version__

    @property
    def along(self) -> str:
        """Name of the space whose ranges the program is compiled for, or ""."""
        return self.loops[0].space.name if self.here else ""

    @property
    def iterations(self) -> int:
        """Number of iterations, which tasks divide; at least 1."""
        return max(1, count_iterations(self.loops, dict(self.extents)))

    def extents_of(self, first: int, last: int) -> dict[str, int]:
        """Extents of a call of the program on this range."""
        extents = dict(self.extents)
        return {**extents, self.here: last - first} if self.here else extents

    def seconds(self, program: Program, first: int, last: int) -> float:
        """Predicted seconds of the task of this range."""
        extents = self.extents_of(first, last)
        numbers = (0, program.parts(extents)) if self.here else (first, last)
        return program.seconds(*numbers, extents)

    def touched(
        self, program: Program, first: int, last: int
    ) -> Mapping[str, tuple[Rectangle, ...]]:
        """Rectangles of the whole arrays that some iterations of the program's own loops touch."""
        return {} if self.here else program.touches(first, last, self.extents_of(first, last))

    def entry(self, name: str) -> Tensor:
        """The tensor of the program that has this name."""
        return next(t for t in self.artifact.manifest.tensors if t.name == name)

    def dtype(self, name: str) -> str:
        """Element type of the tensor of the program that has this name."""
        return element_type(self.entry(name), self.artifact.manifest.dtype)

    def readings(self, program: Program, first: int, last: int) -> tuple[Reading, ...]:
        """The elements of each input that the task of this range reads."""
        extents = self.extents_of(first, last)
        touched = self.touched(program, first, last)
        found = []
        for given in self.inputs:
            entry = self.entry(given.name)
            shape = list(stored_shape(entry, extents))
            if given.packed is not None:
                found.append(self._unpacked(given, given.packed, shape, first, last))
                continue
            rectangle = [slice(0, n) for n in shape]
            if given.axis is not None:
                axis = stored_axis(entry, given.axis)
                before = sum(extents[base] for base in given.before)
                rectangle[axis] = slice(before + first, before + last)
                shape[axis] = self._whole_length(given)
            rectangles = distinct(touched.get(given.name, (tuple(rectangle),)))
            itemsize, shrunk = BY_NAME[self.dtype(entry.name)].itemsize, given.axis is not None
            found.append(
                Reading(given.name, given.source, rectangles, shrunk, tuple(shape), itemsize)
            )
        return tuple(found)

    def _unpacked(
        self, given: Restricted, group: Packing, shape: list[int], first: int, last: int
    ) -> Reading:
        """The elements that the task reads of an array that is packed along the space."""
        assert given.axis is not None
        entry = self.entry(given.name)
        length = self._whole_length(given)
        axis = stored_axis(entry, group.first)
        packed = (*shape[:axis], group.values(length), *shape[axis + group.count :])
        before = sum(dict(self.extents)[base] for base in given.before)
        unpacking = Unpacking(
            axis,
            group.count,
            group.antisymmetric,
            given.axis - group.first,
            before + first,
            before + last,
            length,
        )
        itemsize = BY_NAME[self.dtype(entry.name)].itemsize
        rectangles = unpacking.rectangles(packed)
        return Reading(given.name, given.source, rectangles, True, packed, itemsize, unpacking)

    def _whole_length(self, given: Restricted) -> int:
        """Length of the cut axis of the whole array."""
        extents = dict(self.extents)
        return sum(extents[base] for base in (*given.before, self.along, *given.after))

    def writings(self, program: Program, first: int, last: int) -> tuple[Writing, ...]:
        """The rectangles of each output that the task of this range returns."""
        extents = self.extents_of(first, last)
        touched = self.touched(program, first, last)
        found = []
        for output in self.outputs:
            entry = self.entry(output.name)
            rectangle = [slice(0, n) for n in stored_shape(entry, extents)]
            if output.how == "place" and output.axis is not None:
                rectangle[stored_axis(entry, output.axis)] = slice(first, last)
                found.append(Writing(output.name, (tuple(rectangle),)))
            elif output.how == "same":
                rectangles = (tuple(rectangle),) if first == 0 else ()
                found.append(Writing(output.name, rectangles))
            else:
                written = disjoint(touched.get(output.name, (tuple(rectangle),)))
                found.append(Writing(output.name, written))
        return tuple(found)

    def result_bytes(self, program: Program, first: int, last: int) -> int:
        """Bytes of the blocks that the task of this range returns."""
        return sum(
            rectangle_bytes(rectangle, BY_NAME[self.dtype(writing.name)].itemsize)
            for writing in self.writings(program, first, last)
            for rectangle in writing.rectangles
        )

    def output_shape(self, name: str) -> tuple[int, ...]:
        """Shape of a whole result."""
        extents = dict(self.extents)
        if self.here:
            extents[self.here] = extents[self.along]
        return stored_shape(self.entry(name), extents)


def begin(output: SlicedOutput, result: Array) -> None:
    """Fill a whole result with the neutral element of its reduction."""
    result[...] = _REDUCED[output.reduction][1]


def put(output: SlicedOutput, result: Array, rectangle: Rectangle, block: Array) -> None:
    """Combine a block with the elements of the result at its place."""
    combine, _ = _REDUCED[output.reduction]
    where: tuple[Any, ...] = (*rectangle, ...)
    place = result[where]
    combine(place, block, out=place)


def stored_axis(entry: Tensor, axis: int) -> int:
    """The axis of the array for a logical axis that is not packed."""
    return next(k for k, (a, _) in enumerate(entry.stored()) if a == axis)


def distinct(rectangles: Sequence[Rectangle]) -> tuple[Rectangle, ...]:
    """The rectangles, each once."""
    return tuple({corners(r): r for r in rectangles}.values())


def disjoint(rectangles: Sequence[Rectangle]) -> tuple[Rectangle, ...]:
    """Rectangles without common elements that cover these: blocks of a result are added.

    Those that overlap become the smallest one around them; its other elements are zero.

    Example:
        >>> disjoint([(slice(0, 3),), (slice(2, 5),), (slice(7, 8),)])
        ((slice(0, 5, None),), (slice(7, 8, None),))
    """
    found: list[Rectangle] = []
    for rectangle in distinct(rectangles):
        around = rectangle
        while overlapping := [r for r in found if _overlap(r, around)]:
            found = [r for r in found if not _overlap(r, around)]
            both = [around, *overlapping]
            around = tuple(
                slice(min(a.start for a in axis), max(a.stop for a in axis))
                for axis in zip(*both, strict=True)
            )
        found.append(around)
    return tuple(found)


def _overlap(one: Rectangle, other: Rectangle) -> bool:
    return all(a.start < b.stop and b.start < a.stop for a, b in zip(one, other, strict=True))


def corners(rectangle: Rectangle) -> tuple[tuple[int, int], ...]:
    """Start and end of each axis: a key, which slices are not."""
    return tuple((axis.start, axis.stop) for axis in rectangle)


def rectangle_bytes(rectangle: Rectangle, itemsize: int) -> int:
    """Bytes of the elements of a rectangle."""
    count = itemsize
    for axis in rectangle:
        count *= max(0, axis.stop - axis.start)
    return count


def lean(artifact: Artifact) -> Artifact:
    """The artifact without its copy of the runtime and its reports, which workers do not need."""
    main = SOURCES[artifact.manifest.target]
    files = tuple(
        (path, text)
        for path, text in artifact.files
        if "/" not in path and (path == main or path.startswith("contract_"))
    )
    return Artifact(artifact.manifest, files)


def source_names(stages: Mapping[int, Stage] | tuple[Stage, ...]) -> tuple[str, ...]:
    """Names of the whole arrays that stages read, each once."""
    each = stages.values() if isinstance(stages, Mapping) else stages
    return tuple(dict.fromkeys(i.source for stage in each for i in stage.inputs))
