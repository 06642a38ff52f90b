"""What delayed arrays are made of: nodes of operations that have not been run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, assert_never

import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """An array that is there."""

    array: Array


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number; its value is an argument of the kernel and no part of it."""

    value: complex


@dataclass(frozen=True, slots=True)
class Elementwise:
    """An operation on elements, its operands broadcast as in NumPy.

    Attributes:
        operation: add, subtract, multiply, divide, negative, power, or a function of the
            language (sqrt, exp, ...).
        operands: its arguments.
        exponent: of a power, else 0.
    """

    operation: str
    operands: tuple[Node, ...]
    exponent: int = 0


@dataclass(frozen=True, slots=True)
class SumAxes:
    """The sum over some axes, which are gone afterwards."""

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
        operand: whose axes they are.
        source: axis of the operand for each axis; None is a new one.
    """

    operand: Node
    source: tuple[int | None, ...]


Work: TypeAlias = Leaf | Scalar | Elementwise | SumAxes | Product | Transpose


@dataclass(slots=True, eq=False)
class Node:
    """A place in the graph. What it waits for is replaced by its array once that is there.

    Attributes:
        work: how its elements come to be.
        shape: of its array.
        weight: operations that wait for it and below it, those read twice counted twice.
        depth: operations that wait one for the other.
        reads: arrays that these operations read, those read twice counted twice.
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

    def settle(self, array: Array) -> None:
        """Put the array in the place of the work; what that read is free to go."""
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
    """Nodes as they are now, with all below them: other threads may settle the originals.

    Args:
        roots: nodes; one that is given twice has one copy.
    """
    copies: dict[Node, Node] = {}
    return tuple(_copied(root, copies) for root in roots)


# No function inside another one that calls itself: such a pair would keep the arrays until Python
# looks for cycles.
def _copied(node: Node, copies: dict[Node, Node]) -> Node:
    if node not in copies:
        work = node.work  # read once: it may be another one the next time
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
    found: dict[int, Node] = {}
    for root in roots:
        _visit(root, found)
    return tuple(found.values())


def _visit(node: Node, found: dict[int, Node]) -> None:
    if id(node) not in found:
        for operand in operands_of(node):
            _visit(operand, found)
        found[id(node)] = node
