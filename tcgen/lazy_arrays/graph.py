"""The graph of a lazy array: nodes for recorded operations and for arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, assert_never

import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """An array whose values are known."""

    array: Array


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number; its value is an argument of the kernel, which serves other numbers too."""

    value: complex


@dataclass(frozen=True, slots=True)
class Elementwise:
    """An operation on elements, its operands broadcast as in NumPy.

    Attributes:
        operation: add, subtract, multiply, divide, negative, power, or a function of the
            language (sqrt, exp, ...).
        operands: the arguments.
        exponent: of a power; otherwise 0.
    """

    operation: str
    operands: tuple[Node, ...]
    exponent: int = 0


@dataclass(frozen=True, slots=True)
class SumAxes:
    """The sum over some axes; the result does not have them."""

    operand: Node
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """A sum of products as ``einsum`` writes it.

    Attributes:
        operands: the tensors.
        labels: of the axes of each operand; an axis of extent 1 broadcasts.
        output: labels of the result.
    """

    operands: tuple[Node, ...]
    labels: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Transpose:
    """Axes in another order, with new axes of extent 1.

    Attributes:
        operand: the array that is transposed.
        source: axis of the operand for each axis of the result; None for a new axis.
    """

    operand: Node
    source: tuple[int | None, ...]


Work: TypeAlias = Leaf | Scalar | Elementwise | SumAxes | Product | Transpose


@dataclass(slots=True, eq=False)
class Node:
    """A node of the graph. Its work becomes a leaf once its array is computed.

    Attributes:
        work: the operation, array or number.
        shape: of the result.
        weight: operations that wait, of this node and below it; shared ones count for each reader.
        depth: operations that wait, on the longest path.
        reads: arrays that these operations read; shared ones count for each reader.
    """

    work: Work
    shape: Shape
    weight: int = 0
    depth: int = 0
    reads: int = 0

    def __post_init__(self) -> None:
        below = operands_of(self)
        self.weight = sum(o.weight for o in below) + 1 if below else 0
        self.depth = max(o.depth for o in below) + 1 if below else 0
        self.reads = sum(o.reads for o in below) if below else isinstance(self.work, Leaf)

    def set_array(self, array: Array) -> None:
        """Replace the work by its array, so that the memory of its operands can be freed."""
        self.work, self.weight, self.depth, self.reads = Leaf(array), 0, 0, 1


def operands_of(node: Node) -> tuple[Node, ...]:
    """The nodes that a node reads."""
    match node.work:
        case Leaf() | Scalar():
            return ()
        case Elementwise(_, operands) | Product(operands):
            return operands
        case SumAxes(operand) | Transpose(operand):
            return (operand,)
        case _:
            assert_never(node.work)


def snapshot(roots: Sequence[Node]) -> tuple[Node, ...]:
    """Copies of the nodes and of all below them: other threads may evaluate the originals.

    Args:
        roots: nodes; one that is given twice has one copy.
    """
    copies: dict[Node, Node] = {}
    return tuple(_copied(root, copies) for root in roots)


# These are two functions, since a recursive function inside another one is a reference cycle, which
# would keep the arrays until Python's garbage collection.
def _copied(node: Node, copies: dict[Node, Node]) -> Node:
    if node not in copies:
        work = node.work  # another thread may replace it after this line
        copies[node] = Node(_reading(work, copies), node.shape)
    return copies[node]


def _reading(work: Work, copies: dict[Node, Node]) -> Work:
    """Work that reads copies of its operands."""
    match work:
        case Leaf() | Scalar():
            return work
        case Elementwise(_, operands) | Product(operands):
            return replace(work, operands=tuple(_copied(o, copies) for o in operands))
        case SumAxes(operand) | Transpose(operand):
            return replace(work, operand=_copied(operand, copies))
        case _:
            assert_never(work)


def in_order(roots: Sequence[Node]) -> tuple[Node, ...]:
    """All nodes that the roots need, each once, operands first."""
    visited: dict[int, Node] = {}
    for root in roots:
        _visit(root, visited)
    return tuple(visited.values())


def _visit(node: Node, visited: dict[int, Node]) -> None:
    if id(node) not in visited:
        for operand in operands_of(node):
            _visit(operand, visited)
        visited[id(node)] = node
