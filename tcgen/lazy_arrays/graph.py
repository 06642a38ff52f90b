"""The graph of a lazy array: nodes for recorded operations and for arrays.

Work is not changed after it is made. Its classes are not frozen, since that would take a third of
the time of recording an operation.

A graph is linearized before it runs: its operations in a valid order of execution, and their form.
Another thread may evaluate the same nodes and replace their work by arrays. Linearizing reads the
work of each node once, so the result does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any, ClassVar, TypeAlias
from weakref import ref

import numpy as np
import numpy.typing as npt

from ..errors import VerifyError
from ..ir.reduction import AnyReduction
from ..options import DTYPES
from .backend import HOST, Backend, backend_of, mixed
from .ufuncs import CHEAP

Array: TypeAlias = npt.NDArray[Any]
Shape: TypeAlias = tuple[int, ...]
Labels: TypeAlias = tuple[int, ...]


@dataclass(slots=True, eq=False)
class Leaf:
    """An array whose values are known.

    Attributes:
        whole: the leaf of the lazy array whose memory holds the elements; None for its own memory.
            It lives as long as an operation reads a part, so that an update sees the reader.
        is_new: lazy arrays allocated the memory.
        is_open: NumPy's arrays can write to the memory, so that operations run at once.
        is_borrowed: others can write to the memory, so that recorded operations read a copy.
    """

    operands: ClassVar[tuple[Node, ...]] = ()
    array: Array
    whole: Node | None = None
    is_new: bool = False
    is_open: bool = False
    is_borrowed: bool = False


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
    """The sum, maximum, minimum or product over some axes; the result does not have them.

    A running reduction is along one axis, which its result has.
    """

    operands: tuple[Node, ...]
    axes: tuple[int, ...]
    reduction: AnyReduction


@dataclass(slots=True, eq=False)
class Product:
    """A sum of products as ``einsum`` writes it; an axis of extent 1 broadcasts.

    ``call`` is the function of NumPy that was called on the operands.
    """

    operands: tuple[Node, ...]
    labels: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    call: Callable[..., Any]


@dataclass(slots=True, eq=False)
class Transpose:
    """Axes in another order, with new axes of extent 1.

    ``source`` has the axis of the operand for each axis of the result; None for a new axis.
    """

    operands: tuple[Node, ...]
    source: tuple[int | None, ...]


@dataclass(slots=True, eq=False)
class Join:
    """Arrays one after the other along an axis."""

    operands: tuple[Node, ...]
    axis: int


@dataclass(slots=True, eq=False)
class Part:
    """A view of work on elements, which a function takes of their array.

    When it runs, it becomes work on slices if nothing else needs the operand.
    """

    operands: tuple[Node]
    take: Callable[[Array], Array]


@dataclass(slots=True, eq=False)
class Choice:
    """The elements of an array for which a mask of its shape is true; the mask is known.

    A sum of them is one of the whole array, with zeros; all other work reads the chosen elements.
    """

    operands: tuple[Node, Node]


Work: TypeAlias = Leaf | Scalar | Elementwise | Reduce | Product | Transpose | Join | Part | Choice


class Node:
    """A node of the graph. Its work becomes a leaf once its array is computed.

    Attributes:
        computes: element type in a kernel that computes the result, which may be a boolean or an
            integer; None for an array of another type, which fits any kernel's numbers.
        backend: backend of its arrays; None for a number, which fits any.
        weight: upper bound of the pending operations of this node and below it, and of the arrays
            that they read: shared ones count for each reader until they are counted exactly.
        depth: number of pending operations on the longest path.
        handle: weak reference to the lazy array whose values these are, or None.
        readers: weak references to the operations that read this one, and to parts of its memory.
        ran: the values were computed once, and not stored.
    """

    __slots__ = (
        *("__weakref__", "backend", "computes", "depth", "dtype", "handle", "ran", "readers"),
        *("shape", "weight", "work"),
    )

    backend: Backend | None
    computes: np.dtype[Any] | None
    handle: ref[Any] | None
    ran: bool
    readers: list[ref[Node]]
    weight: int
    depth: int

    def __init__(self, work: Work, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.work, self.shape, self.dtype = work, shape, dtype
        # Once an operand knows its reader, other threads ask that for its own readers.
        self.handle, self.ran, self.readers = None, False, []
        computes = dtype if dtype in KERNEL_TYPES else None
        weight, depth = 1, 0
        backend: Backend | None = None
        if type(work) is Leaf:
            backend = backend_of(work.array)
        elif type(work) is not Scalar:
            for operand in work.operands:
                if computes is None:
                    computes = operand.computes
                if operand.backend is not backend and operand.backend is not None:
                    if backend is not None:
                        raise mixed()
                    backend = operand.backend
                weight += operand.weight
                operand.is_read_by(self)
                if operand.depth > depth:
                    depth = operand.depth
            depth += 1
        self.computes, self.backend = computes, backend
        self.weight, self.depth = weight, depth

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

    def is_read_by(self, reader: Node) -> None:
        """Note an operation that reads the values, or a leaf that shares the memory."""
        work = self.work
        readers = self.readers if type(work) is not Leaf else (work.whole or self).readers
        readers.append(ref(reader, readers.remove))

    def readers_above(self) -> list[Node]:
        """Pending operations that need the values, and lazy arrays that share their memory."""
        found: list[Node] = []
        nodes, seen = [self], {id(self)}
        while nodes:
            for node in [reader() for reader in tuple(nodes.pop().readers)]:
                if node is None or id(node) in seen:
                    continue
                seen.add(id(node))
                work = node.work
                if type(work) is not Leaf or work.whole is not None:
                    nodes.append(node)
                    if type(work) is not Leaf or node.has_handle():
                        found.append(node)
        return found

    def is_held(self, among: Container[Node]) -> bool:
        """True if a lazy array or an operation that is not among these may need the values."""
        if self.has_handle():
            return True
        readers = [reader() for reader in tuple(self.readers)]
        return any(r is not None and r.work.operands and r not in among for r in readers)

    def part(self, array: Array) -> Node:
        """The leaf of a part of the memory of this leaf."""
        work = self.work
        assert isinstance(work, Leaf)
        made = leaf(array)
        whole = work.whole or self
        made.work = Leaf(array, whole, work.is_new, work.is_open, work.is_borrowed)
        return made

    def set_array(self, array: Array, whole: Node | None = None) -> None:
        """Replace the work by its array, so that the memory of its operands can be freed."""
        self.work, self.weight, self.depth = Leaf(array, whole, True), 1, 0
        if whole is not None:
            whole.is_read_by(self)


KERNEL_TYPES = frozenset(map(np.dtype, DTYPES))


def leaf(array: Array) -> Node:
    """The node of an array."""
    return Node(Leaf(array), array.shape, array.dtype)


def with_axes_of_array(array: Array, source: tuple[int | None, ...]) -> Array:
    """Axes in another order, None for a new one."""
    view = array.transpose([a for a in source if a is not None])
    if None not in source:
        return view
    return view[tuple([None if a is None else slice(None) for a in source])]


def with_axes(node: Node, source: tuple[int | None, ...]) -> Node:
    """Axes in another order, None for a new one; a view if the array is known."""
    work = node.work  # another thread may replace it after this line
    if isinstance(work, Leaf):
        return node.part(with_axes_of_array(work.array, source))
    shape = tuple([1 if a is None else node.shape[a] for a in source])
    return Node(Transpose((node,), source), shape, node.dtype)


def in_order(roots: Sequence[Node]) -> tuple[Node, ...]:
    """All nodes that the roots need, each once, operands first."""
    visited: dict[int, Node] = {}
    for root in roots:
        _visit(root, visited)
    return tuple(visited.values())


def _visit(node: Node, visited: dict[int, Node]) -> None:
    if id(node) not in visited:
        for operand in node.work.operands:
            _visit(operand, visited)
        visited[id(node)] = node


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
    def elements(self) -> int:
        """Elements of all operations together, those that sums and products read included."""
        sizes = list(map(prod, self.shapes))
        count = 0
        for place, operands in enumerate(self.operands):
            if operands:
                count += sizes[place]
                if type(self.works[place]) in (Reduce, Product):
                    count += sum([sizes[n] for n in operands])
        return count

    @property
    def is_simple(self) -> bool:
        """True for one cheap operation: a kernel would gain nothing."""
        last = self.works[-1]
        one = sum(map(bool, self.operands)) == 1
        return one and isinstance(last, Elementwise) and last.operation in CHEAP

    @property
    def is_joined(self) -> bool:
        """True if an operation reads joined arrays."""
        return Join in map(type, self.works)

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


_LITTLE_WORK = 5  # two operations on three operands


def linearize(roots: Sequence[Node]) -> Linearized:
    """The linearized graph of nodes that kernels of one element type compute.

    Example:
        >>> import numpy as np
        >>> x = leaf(np.ones(3))
        >>> y = Node(Elementwise("add", (x, x)), x.shape, x.dtype)
        >>> linearize([Node(Elementwise("exp", (y,)), y.shape, y.dtype)]).operands
        [(), (0, 0), (1,)]
    """
    computes = next((r.computes for r in roots if r.computes is not None), roots[0].dtype)
    backend = next((r.backend for r in roots if r.backend is not None), HOST)
    line = Linearized([], [], [], [], [], (), computes, backend)
    places: dict[Hashable, int] = {}
    line.roots = tuple([_place(root, line, places) for root in roots])
    line.shapes += [node.shape for node in line.sources]
    line.dtypes += [node.dtype for node in line.sources]
    return line


def _place(node: Node, line: Linearized, places: dict[Hashable, int]) -> int:
    """The place of a node, appended after the nodes below it; an equal one gives its place."""
    if id(node) in places:
        return places[id(node)]
    work = node.work  # another thread may replace it after this line
    below = tuple([_place(operand, line, places) for operand in work.operands])
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
        case Leaf(array):
            return _leaf_form(array)
        case Scalar():
            return "number"
        case Part() | Choice():
            raise VerifyError("parts are work on slices, or computed, before they are linearized")
        case _:
            names = [name for name in work.__slots__ if name not in ("operands", "call")]
            return (type(work), operands, *[getattr(work, name) for name in names])


def _leaf_form(array: Array) -> Hashable:
    ones = tuple([n == 1 for n in array.shape])
    if array.dtype not in KERNEL_TYPES or array.flags.c_contiguous:
        return (ones, None)  # a kernel reads a copy of other types
    return (ones, layout_of(array))


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
    return _layout(array.shape, array.strides, array.itemsize)


@lru_cache(maxsize=10_000)
def _layout(
    shape: Shape, strides: Shape, itemsize: int
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    axes = [n for n in range(len(shape)) if shape[n] != 1]
    if any(strides[n] <= 0 or not shape[n] for n in axes):
        return None
    axes.sort(key=lambda n: -strides[n])
    longer = []
    inner, length = itemsize, 1  # bytes from element to element of the next axis within
    for place in range(len(axes) - 1, -1, -1):
        whole, rest = divmod(strides[axes[place]], inner)
        if rest or whole < length or (whole > length and place + 1 == len(axes)):
            return None
        if whole > length:
            longer.append(place + 1)
        inner, length = strides[axes[place]], shape[axes[place]]
    return tuple(axes), tuple(sorted(longer))
