"""The graph of a lazy array: nodes for recorded operations and for arrays.

Work is not changed after it is made. Its classes are not frozen, since that would take a third of
the time of recording an operation.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import Any, ClassVar, TypeAlias, assert_never
from weakref import ref

import numpy as np
import numpy.typing as npt

from ..ir.reduction import Reduction
from ..options import DTYPES
from .backend import Backend, backend_of, mixed

Array: TypeAlias = npt.NDArray[Any]
Shape: TypeAlias = tuple[int, ...]


@dataclass(slots=True, eq=False)
class Leaf:
    """An array whose values are known.

    Attributes:
        whole: the leaf of the lazy array whose memory holds the elements; None for its own memory.
            It lives as long as an operation reads a part, so that an update sees the reader.
        is_new: lazy arrays allocated the memory.
        is_open: NumPy's arrays can write to the memory, so that operations run at once.
    """

    operands: ClassVar[tuple[Node, ...]] = ()
    array: Array
    whole: Node | None = None
    is_new: bool = False
    is_open: bool = False


@dataclass(slots=True, eq=False)
class Scalar:
    """A number; its value is an argument of the kernel, which serves other numbers too."""

    operands: ClassVar[tuple[Node, ...]] = ()
    value: complex


@dataclass(slots=True, eq=False)
class Elementwise:
    """An operation on elements, its operands broadcast as in NumPy.

    It is add, subtract, multiply, divide, negative, power, a comparison, an operation on booleans,
    or a function of the language, such as sqrt or maximum. ``exponent`` is 0 for all but powers.
    """

    operation: str
    operands: tuple[Node, ...]
    exponent: int = 0


@dataclass(slots=True, eq=False)
class Reduce:
    """The sum, maximum, minimum or product over some axes; the result does not have them."""

    operand: Node
    axes: tuple[int, ...]
    reduction: Reduction

    @property
    def operands(self) -> tuple[Node, ...]:
        """The operand."""
        return (self.operand,)


@dataclass(slots=True, eq=False)
class Position:
    """The place of the first maximum or minimum over some axes, counted in C order over them.

    ``operands`` are the array; for each axis the numbers that its elements add to the place,
    broadcast as in NumPy; the number of places. The axes, which the result does not have, ascend.
    """

    operands: tuple[Node, ...]
    axes: tuple[int, ...]
    largest: bool


@dataclass(slots=True, eq=False)
class Product:
    """A sum of products as ``einsum`` writes it; an axis of extent 1 broadcasts."""

    operands: tuple[Node, ...]
    labels: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Transpose:
    """Axes in another order, with new axes of extent 1.

    ``source`` has the axis of the operand for each axis of the result; None for a new axis.
    """

    operand: Node
    source: tuple[int | None, ...]

    @property
    def operands(self) -> tuple[Node, ...]:
        """The operand."""
        return (self.operand,)


@dataclass(slots=True, eq=False)
class Roll:
    """An array whose elements move along its axes; those that leave at the end enter at the start.

    Each shift is from 0 to below the extent. The values of the operand are usually known.
    """

    operand: Node
    shifts: tuple[int, ...]

    @property
    def operands(self) -> tuple[Node, ...]:
        """The operand."""
        return (self.operand,)


Work: TypeAlias = Leaf | Scalar | Elementwise | Reduce | Position | Product | Transpose | Roll


class Node:
    """A node of the graph. Its work becomes a leaf once its array is computed.

    Attributes:
        computes: element type in a kernel that computes the result, which may be a boolean or an
            integer; None for an array of another type, which fits any kernel's numbers.
        backend: backend of its arrays; None for a number, which fits any.
        weight: upper bound of the pending operations of this node and below it: shared ones count
            for each reader until they are counted exactly.
        depth: number of pending operations on the longest path.
        reads: number of arrays that these operations read; shared ones count for each reader.
        arrays: upper bound of the number of arrays that these operations read.
        bytes: upper bound of the bytes of these arrays.
        handle: weak reference to the lazy array whose values these are, or None.
        readers: weak references to the pending operations that read this one.
        ran: the values were computed once, and not stored.
    """

    __slots__ = (
        *("__weakref__", "arrays", "backend", "bytes", "computes", "depth", "dtype", "handle"),
        *("ran", "readers", "reads", "shape", "weight", "work"),
    )

    arrays: int
    backend: Backend | None
    bytes: int
    computes: np.dtype[Any] | None
    handle: ref[Any] | None
    ran: bool
    readers: list[ref[Node]]
    weight: int
    depth: int
    reads: int

    def __init__(self, work: Work, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.work, self.shape, self.dtype = work, shape, dtype
        computes = dtype if dtype in KERNEL_TYPES else None
        weight = depth = reads = arrays = count = 0
        backend: Backend | None = None
        if type(work) is Leaf:
            reads = arrays = 1
            count = work.array.nbytes
            backend = backend_of(work.array)
        elif type(work) is not Scalar:
            weight = 1
            for operand in work.operands:
                if computes is None:
                    computes = operand.computes
                if operand.backend is not backend and operand.backend is not None:
                    if backend is not None:
                        raise mixed()
                    backend = operand.backend
                weight += operand.weight
                reads += operand.reads
                arrays += operand.arrays
                count += operand.bytes
                if operand.weight:
                    operand.readers.append(ref(self, operand.readers.remove))
                if operand.depth > depth:
                    depth = operand.depth
            depth += 1
        self.handle, self.ran, self.readers = None, False, []
        self.computes, self.backend = computes, backend
        self.weight, self.depth, self.reads = weight, depth, reads
        self.arrays, self.bytes = arrays, count

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def has_kernels(self) -> bool:
        """True for an element type, in this machine's byte order, that kernels compute with."""
        return self.dtype in KERNEL_TYPES

    def has_handle(self) -> bool:
        """True if a lazy array, whose values these are, is alive."""
        return self.handle is not None and self.handle() is not None

    def is_held(self, among: Container[Node]) -> bool:
        """True if a lazy array or an operation that is not among these may need the values."""
        if self.has_handle():
            return True
        readers = [reader() for reader in tuple(self.readers)]
        return any(reader is not None and reader not in among for reader in readers)

    def part(self, array: Array) -> Node:
        """The leaf of a part of the memory of this leaf."""
        work = self.work
        assert isinstance(work, Leaf)
        made = leaf(array)
        made.work = replace(work, array=array, whole=work.whole or self)
        return made

    def set_array(self, array: Array, whole: Node | None = None) -> None:
        """Replace the work by its array, so that the memory of its operands can be freed."""
        self.work, self.weight, self.depth = Leaf(array, whole, True), 0, 0
        self.reads = self.arrays = 1
        self.bytes = array.nbytes


# Operations that take less time than reading their operands from memory.
CHEAP = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "negative", "conj", "abs", "power"),
        *("maximum", "minimum", "where", "less", "less_equal", "greater", "greater_equal"),
        *("equal", "not_equal", "and", "or", "xor", "not", "floor", "sign"),
    )
)
KERNEL_TYPES = frozenset(map(np.dtype, DTYPES))


def leaf(array: Array) -> Node:
    """The node of an array."""
    node = Node.__new__(Node)
    node.work, node.shape, node.dtype = Leaf(array), array.shape, array.dtype
    node.computes = array.dtype if array.dtype in KERNEL_TYPES else None
    node.backend = backend_of(array)
    node.handle, node.ran, node.readers = None, False, []
    node.weight = node.depth = 0
    node.reads = node.arrays = 1
    node.bytes = array.nbytes
    return node


def with_axes_of_array(array: Array, source: tuple[int | None, ...]) -> Array:
    """Axes in another order, None for a new one."""
    view = array.transpose([a for a in source if a is not None])
    if None not in source:
        return view
    return view[tuple([None if a is None else slice(None) for a in source])]


def reading(work: Work, operands: Sequence[Node]) -> Work:
    """The work with other operands."""
    match work:
        case Leaf() | Scalar():
            return work
        case Elementwise() | Position() | Product():
            return replace(work, operands=tuple(operands))
        case Reduce() | Transpose() | Roll():
            return replace(work, operand=operands[0])
        case _:
            assert_never(work)


def in_order(roots: Sequence[Node]) -> tuple[Node, ...]:
    """All nodes that the roots need, each once, operands first."""
    visited: dict[int, Node] = {}
    for root in roots:
        if id(root) not in visited:
            _visit(root, visited)
    return tuple(visited.values())


def _visit(node: Node, visited: dict[int, Node]) -> None:
    for operand in node.work.operands:
        if id(operand) not in visited:
            _visit(operand, visited)
    visited[id(node)] = node


def tensordot_axes(first: int, second: int, axes: Any) -> tuple[list[int], list[int]] | None:
    """The axes of two arrays that ``numpy.tensordot`` sums over; None if it refuses them.

    Example:
        >>> tensordot_axes(3, 2, 1), tensordot_axes(3, 2, ((0, -1), (1, 0)))
        (([2], [0]), ([0, 2], [1, 0]))
    """
    try:
        pair: Any = axes
        if not isinstance(axes, tuple | list):
            count = index(axes)
            pair = (range(first - count, first), range(count))
        left, right = ([index(n) for n in np.atleast_1d(side)] for side in pair)
    except (TypeError, ValueError):
        return None
    if len(left) != len(right):
        return None
    for ndim, side in ((first, left), (second, right)):
        if any(not -ndim <= n < ndim for n in side):
            return None
        side[:] = [n % ndim for n in side]
        if len({*side}) < len(side):
            return None
    return left, right
