"""One program of a distributed run, its tasks, and what each of them reads and writes.

A stage runs one program for ranges of iterations (``parts``) or for ranges of a space
(``slices``). Driver and workers both ask it for the rectangles of a range: the driver to price a
run before it begins, the workers to load them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .._version import __version__
from ..artifact.folder import Artifact
from ..artifact.manifest import SOURCES, stored_shape
from ..dtypes import BY_NAME
from ..ir.reduction import Reduction
from ..ir.tensor import Packing
from ..records.tensors import Tensor, element_type
from ..runtime.program import Program
from .slicing import Restricted, SlicedOutput
from .stored import Rectangle
from .unpacking import Unpacking

Array = npt.NDArray[Any]

# What combines two values, and the value that changes no other.
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
class Reading:
    """What a task reads of one array.

    Attributes:
        name: of the input of the program.
        source: name of the whole array.
        rectangles: of the whole array.
        shrunk: the program takes the one rectangle as its array; else an array of the whole
            shape, of which it reads the rectangles alone.
        shape: of the whole array.
        itemsize: bytes of an element.
        unpacking: makes the array of the program from the rectangles, where the whole array is
            packed along the space that is cut.
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
        """True where the task reads every element."""
        return any(
            all((s.start, s.stop) == (0, n) for s, n in zip(r, self.shape, strict=True))
            for r in self.rectangles
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the rectangles."""
        return sum(rectangle_bytes(r, self.itemsize) for r in self.rectangles)

    @property
    def kept_bytes(self) -> int:
        """Bytes of the array that a worker makes from the rectangles."""
        if self.unpacking is None:
            return self.nbytes
        return self.itemsize * self.unpacking.elements(self.shape)

    @property
    def pieces(self) -> tuple[tuple[Hashable, int], ...]:
        """What a worker loads at once: its name within the source, and its bytes."""
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
    """What a task gives of one result: blocks that belong at rectangles of the whole."""

    name: str
    rectangles: tuple[Rectangle, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """A program and how it is cut; small, so that workers receive it as it is.

    Attributes:
        artifact: sources and manifest of the program.
        kind: ``parts`` cuts iterations of its outermost loops, ``slices`` cuts a space.
        extents: of the base spaces of the whole.
        along: name of the space that slices cut, or "".
        here: name of the space of one slice in the program, or "".
        inputs: of the program.
        outputs: of the program.
        number: the first stage is 0.
        version: of tcgen that made it.
    """

    artifact: Artifact
    kind: Literal["parts", "slices"]
    extents: tuple[tuple[str, int], ...]
    inputs: tuple[Restricted, ...]
    outputs: tuple[SlicedOutput, ...]
    along: str = ""
    here: str = ""
    number: int = 0
    version: str = __version__

    def extents_of(self, first: int, last: int) -> dict[str, int]:
        """Extents of a call of the program on this range."""
        extents = dict(self.extents)
        return {**extents, self.here: last - first} if self.kind == "slices" else extents

    def entry(self, name: str) -> Tensor:
        """The tensor of the program that has this name."""
        return next(t for t in self.artifact.manifest.tensors if t.name == name)

    def dtype(self, name: str) -> str:
        """Element type of the tensor of the program that has this name."""
        return element_type(self.entry(name), self.artifact.manifest.dtype)

    def readings(self, program: Program, first: int, last: int) -> tuple[Reading, ...]:
        """What the task of this range reads of each input."""
        extents = self.extents_of(first, last)
        touched = program.touches(first, last, extents) if self.kind == "parts" else {}
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
            itemsize = BY_NAME[self.dtype(entry.name)].itemsize
            found.append(
                Reading(
                    given.name,
                    given.source,
                    rectangles,
                    given.axis is not None,
                    tuple(shape),
                    itemsize,
                )
            )
        return tuple(found)

    def _unpacked(
        self, given: Restricted, group: Packing, shape: list[int], first: int, last: int
    ) -> Reading:
        """What the task reads of an array that is packed along the space."""
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
        """Length of the sliced axis of the whole array."""
        extents = dict(self.extents)
        return sum(extents[base] for base in (*given.before, self.along, *given.after))

    def writings(self, program: Program, first: int, last: int) -> tuple[Writing, ...]:
        """What the task of this range gives of each output."""
        extents = self.extents_of(first, last)
        touched = program.touches(first, last, extents) if self.kind == "parts" else {}
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

    def output_shape(self, name: str) -> tuple[int, ...]:
        """Shape of a whole result."""
        extents = dict(self.extents)
        if self.kind == "slices":
            extents[self.here] = extents[self.along]
        return stored_shape(self.entry(name), extents)


def begin(output: SlicedOutput, result: Array) -> None:
    """Fill a whole result with the neutral element of its reduction."""
    result[...] = _REDUCED[output.reduction][1]


def put(output: SlicedOutput, result: Array, rectangle: Rectangle, block: Array) -> None:
    """Combine a block that a task gave with what the result has at its place."""
    combine, _ = _REDUCED[output.reduction]
    where: tuple[Any, ...] = (*rectangle, ...)
    place = result[where]
    combine(place, block, out=place)


def stored_axis(entry: Tensor, axis: int) -> int:
    """The axis of the array that a logical axis, which is in no packed pair, is."""
    return next(k for k, (a, _) in enumerate(entry.stored()) if a == axis)


def distinct(rectangles: Sequence[Rectangle]) -> tuple[Rectangle, ...]:
    """The rectangles, each once."""
    return tuple({corners(r): r for r in rectangles}.values())


def disjoint(rectangles: Sequence[Rectangle]) -> tuple[Rectangle, ...]:
    """Rectangles without common elements that cover these: blocks of a result are added.

    Those that overlap become the smallest one around them; what it has more is zero in a result.

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
    """The artifact without what only readers and other machines need.

    Workers have tcgen, so they need neither the copy of the runtime nor the reports.
    """
    main = SOURCES[artifact.manifest.target]
    kept = tuple(
        (path, text)
        for path, text in artifact.files
        if "/" not in path and (path == main or path.startswith("contract_"))
    )
    return Artifact(artifact.manifest, kept)


def source_names(stages: Mapping[int, Stage] | tuple[Stage, ...]) -> tuple[str, ...]:
    """Names of the whole arrays that stages read, each once."""
    each = stages.values() if isinstance(stages, Mapping) else stages
    return tuple(dict.fromkeys(i.source for stage in each for i in stage.inputs))
