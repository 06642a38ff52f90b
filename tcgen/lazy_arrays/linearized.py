"""A linearized graph: its operations in a valid order of execution, and their form.

Another thread may evaluate the same nodes and replace their work by arrays. Linearizing reads the
work of each node once, so the result does not change.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, assert_never

import numpy as np

from ..ir.reduction import Reduction
from .backend import HOST, Backend
from .graph import (
    CHEAP,
    KERNEL_TYPES,
    Array,
    Elementwise,
    Leaf,
    Node,
    Position,
    Product,
    Reduce,
    Roll,
    Scalar,
    Shape,
    Transpose,
    Work,
    reading,
)


@dataclass(slots=True, eq=False)
class Linearized:
    """The work of some nodes and of all below them.

    Attributes:
        works: arrays, numbers and operations, operands first; equal ones stand once.
        twins: further nodes of an operation, and the place of the first.
        operands: places of the works that each one reads.
        dtypes: element types of the results: booleans and integers are computed as numbers.
        roots: places of the requested nodes.
        dtype: element type of the kernels' arithmetic.
        target: the array into which the result of the only root is written, or None.
        change: ``add`` or ``subtract`` if the target is changed by the result, else empty.
    """

    sources: list[Node]
    works: list[Work]
    operands: list[tuple[int, ...]]
    shapes: list[Shape]
    dtypes: list[Any]
    roots: tuple[int, ...]
    dtype: Any
    backend: Backend = HOST
    target: Array | None = None
    change: str = ""
    twins: list[tuple[Node, int]] = field(default_factory=list)

    @property
    def key(self) -> Hashable:
        """Equal for graphs that one kernel serves."""
        target = None if self.target is None else _leaf_form(self.target)
        form = tuple(map(_form, self.works, self.operands))
        return (self.backend, self.dtype, self.roots, target, self.change, form)

    @property
    def rolls(self) -> bool:
        """True if rolled arrays are read."""
        return any(type(work) is Roll for work in self.works)

    @property
    def elements(self) -> int:
        """Elements of all operations together, those that sums and products read included."""
        sizes = list(map(prod, self.shapes))
        count = 0
        for place, operands in enumerate(self.operands):
            if operands:
                count += sizes[place]
                if type(self.works[place]) in _REDUCING:
                    count += sum([sizes[n] for n in operands])
        return count

    @property
    def is_simple(self) -> bool:
        """True for one cheap operation or one position: a kernel would gain nothing."""
        last = self.works[-1]
        if sum(map(bool, self.operands)) != 1:
            return False
        return isinstance(last, Position) or (
            isinstance(last, Elementwise) and last.operation in CHEAP
        )

    @property
    def largest(self) -> int:
        """Elements of the largest array or result."""
        return max(map(prod, self.shapes))

    def arrays(self) -> list[Array]:
        """The arrays that it reads."""
        return [work.array for work in self.works if type(work) is Leaf]

    def numbers(self) -> list[complex]:
        """The numbers that it reads."""
        return [work.value for work in self.works if type(work) is Scalar]

    def held(self) -> list[int]:
        """Places of operations, other than roots, that an array or an operation elsewhere needs.

        They would then be computed twice. A little arithmetic may be, since it takes less time than
        a pass over memory.
        """
        among = frozenset(self.sources)
        found = []
        for place, work in enumerate(self.works):
            if not self.operands[place] or type(work) is Transpose or place in self.roots:
                continue
            source = self.sources[place]
            cheap = type(work) is Elementwise and work.operation in CHEAP
            if (not cheap or source.weight > _LITTLE_WORK) and source.is_held(among):
                found.append(place)
        return found

    def nodes(self) -> tuple[Node, ...]:
        """New nodes for the roots, which other threads do not share."""
        made: list[Node] = []
        for work, operands, shape, dtype in zip(
            self.works, self.operands, self.shapes, self.dtypes, strict=True
        ):
            below = [made[n] for n in operands]
            if isinstance(work, Position):
                made.append(as_reductions(work, below))
            else:
                made.append(Node(reading(work, below), shape, dtype))
        roots = tuple(made[n] for n in self.roots)
        if self.change != "subtract":
            return roots
        return tuple(Node(Elementwise("negative", (r,)), r.shape, r.dtype) for r in roots)


_BOOL = np.dtype(bool)
_REDUCING = frozenset((Reduce, Position, Product))
_LITTLE_WORK = 2  # operations


def as_reductions(work: Position, operands: Sequence[Node]) -> Node:
    """The node of a position in operations that kernels have.

    The first reduction finds the maximum, the second one the least position whose element equals
    it. NumPy takes the first one of several equal elements, and the first NaN if there is one.
    """
    array, *places, end = operands
    dtype, shape = array.dtype, array.shape
    kept = [axis for axis in range(array.ndim) if axis not in work.axes]
    below = tuple(shape[axis] for axis in kept)
    first = Reduction.MAX if work.largest else Reduction.MIN
    extreme = Node(Reduce(array, work.axes, first), below, dtype)
    source = tuple(kept.index(axis) if axis in kept else None for axis in range(array.ndim))
    aligned = tuple(1 if axis is None else below[axis] for axis in source)
    extreme = Node(Transpose(extreme, source), aligned, dtype)
    equal = Node(Elementwise("equal", (array, extreme)), shape, _BOOL)
    unordered = Node(Elementwise("not_equal", (array, array)), shape, _BOOL)
    found = Node(Elementwise("or", (equal, unordered)), shape, _BOOL)
    place = places[0]
    for other in places[1:]:
        broadcast = np.broadcast_shapes(place.shape, other.shape)
        place = Node(Elementwise("add", (place, other)), broadcast, dtype)
    chosen = Node(Elementwise("where", (found, place, end)), shape, dtype)
    return Node(Reduce(chosen, work.axes, Reduction.MIN), below, np.dtype(np.intp))


def linearize(roots: Sequence[Node]) -> Linearized:
    """The linearized graph of nodes that kernels of one element type compute.

    Example:
        >>> import numpy as np
        >>> from tcgen.lazy_arrays.graph import leaf
        >>> x = leaf(np.ones(3))
        >>> y = Node(Elementwise("add", (x, x)), x.shape, x.dtype)
        >>> linearize([Node(Elementwise("exp", (y,)), y.shape, y.dtype)]).operands
        [(), (0, 0), (1,)]
    """
    computes = next((r.computes for r in roots if r.computes is not None), roots[0].dtype)
    backend = next((r.backend for r in roots if r.backend is not None), HOST)
    line = Linearized([], [], [], [], [], (), computes, backend)
    places: dict[Hashable, int] = {}
    line.roots = tuple(
        [places[id(r)] if id(r) in places else _place(r, line, places) for r in roots]
    )
    line.shapes += [node.shape for node in line.sources]
    line.dtypes += [node.dtype for node in line.sources]
    return line


def _place(node: Node, line: Linearized, places: dict[Hashable, int]) -> int:
    """Append a node without a place, after the nodes below it; an equal one gives its place."""
    work = node.work  # another thread may replace it after this line
    below = tuple(
        [places[id(o)] if id(o) in places else _place(o, line, places) for o in work.operands]
    )
    match work:
        case Leaf(array):
            value: Hashable = id(array)
        case Scalar(number):
            value = repr(number)  # tells -0.0 from 0.0
        case _:
            value = (_form(work, below), node.shape)
    place = places.setdefault(value, len(line.works))
    places[id(node)] = place
    if place < len(line.works):
        if below:
            line.twins.append((node, place))
        return place
    line.sources.append(node)
    line.works.append(work)
    line.operands.append(below)
    return place


def _form(work: Work, operands: tuple[int, ...]) -> Hashable:
    """The key of a kernel: it depends neither on extents other than 1 nor on numbers."""
    match work:
        case Elementwise():
            return (work.operation, operands, work.exponent)
        case Leaf(array):
            return _leaf_form(array)
        case Scalar():
            return "number"
        case Reduce():
            return (work.reduction, operands, work.axes)
        case Position():
            return ("largest" if work.largest else "least", operands, work.axes)
        case Product():
            return ("product", operands, work.labels, work.output)
        case Transpose():
            return ("axes", operands, work.source)
        case Roll():
            return ("roll", operands, work.shifts)
        case _:
            assert_never(work)


_LEAF_FORMS: dict[Hashable, Hashable] = {}
_MOST_LEAF_FORMS = 10_000


def _leaf_form(array: Array) -> Hashable:
    if array.dtype not in KERNEL_TYPES:
        return (tuple([n == 1 for n in array.shape]), None)  # a kernel reads a copy
    key = (array.shape, array.strides, array.itemsize)
    form = _LEAF_FORMS.get(key)
    if form is None:
        flat = array.flags.c_contiguous
        form = (tuple([n == 1 for n in array.shape]), None if flat else layout_of(array))
        if len(_LEAF_FORMS) >= _MOST_LEAF_FORMS:
            _LEAF_FORMS.clear()
        _LEAF_FORMS[key] = form
    return form


def layout_of(array: Array) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The layout of an array within a larger one in C order; None if a kernel reads a copy.

    It has the axes other than those of extent 1, outermost first, and the places in this list of
    axes that are longer in the larger array.

    Example:
        >>> import numpy as np
        >>> x = np.ones((4, 5))
        >>> layout_of(x), layout_of(x.T), layout_of(x[:, 1:]), layout_of(x[:, ::2])
        (((0, 1), ()), ((1, 0), ()), ((0, 1), (1,)), None)
    """
    shape, strides = array.shape, array.strides
    axes = [n for n in range(array.ndim) if shape[n] != 1]
    if any(strides[n] <= 0 or not shape[n] for n in axes):
        return None
    axes.sort(key=lambda n: -strides[n])
    longer = []
    inner, length = array.itemsize, 1  # bytes from element to element of the next axis within
    for place in range(len(axes) - 1, -1, -1):
        whole, rest = divmod(strides[axes[place]], inner)
        if rest or whole < length or (whole > length and place + 1 == len(axes)):
            return None
        if whole > length:
            longer.append(place + 1)
        inner, length = strides[axes[place]], shape[axes[place]]
    return tuple(axes), tuple(sorted(longer))
