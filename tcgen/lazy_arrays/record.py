"""Which calls of NumPy's functions can be noted, and what they note.

A call becomes a node where generated code gives what NumPy would give: known operations, on arrays
of one element type that has kernels, with numbers that do not change it. For all else the answer
is None, and NumPy gets the values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import Parameter, signature
from operator import index
from typing import Any

import numpy as np

from ..errors import ArgumentError, AxisError, EinsumError, ShapeError
from ..frontend.einsum.equation import extents_of
from ..frontend.einsum.path import check_order_name
from ..frontend.einsum.subscripts import express
from ..options import DTYPES
from .evaluate import settle
from .graph import (
    Array,
    Elementwise,
    Leaf,
    Node,
    Product,
    Scalar,
    SumAxes,
    Transpose,
    Work,
    in_order,
    operands_of,
)

# What waits for more is run in parts.
_HEAVIEST = 200  # operations that one kernel may hold
_DEEPEST = 64  # operations that wait one for the other: each takes several frames of Python's stack
_MOST_ARRAYS = 32  # that one kernel may read: until it runs, nobody can give their memory back
_LARGEST_POWER = 16
_OPERATIONS: dict[Any, str] = {
    np.add: "add",
    np.subtract: "subtract",
    np.multiply: "multiply",
    np.divide: "divide",
    np.negative: "negative",
    np.sqrt: "sqrt",
    np.exp: "exp",
    np.log: "log",
    np.absolute: "abs",
    np.sin: "sin",
    np.cos: "cos",
    np.tanh: "tanh",
    np.conjugate: "conj",
}


@dataclass(frozen=True, slots=True, eq=False)
class Noted:
    """A node and its element type: what a delayed array stands for."""

    node: Node
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array to come."""
        return self.node.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.node.shape)

    @property
    def has_kernels(self) -> bool:
        """True for an element type, in this machine's byte order, that kernels compute with."""
        return self.dtype.isnative and self.dtype.name in DTYPES


def noted(work: Work, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Noted:
    """Work as a node; where too much would wait, what it reads is computed first."""
    node = Node(work, shape)
    if _is_too_much(node):
        settle([o for o in operands_of(node) if o.weight], dtype.name)
        node = Node(work, shape)
    return Noted(node, dtype)


def _is_too_much(node: Node) -> bool:
    if node.weight > _HEAVIEST or node.depth > _DEEPEST:
        return True
    if node.reads <= _MOST_ARRAYS:
        return False
    return sum(isinstance(n.work, Leaf) for n in in_order([node])) > _MOST_ARRAYS


def turned(array: Noted, source: tuple[int | None, ...]) -> Noted:
    """Axes in another order, None for a new one; a view where the array is there."""
    shape = tuple(1 if a is None else array.shape[a] for a in source)
    if isinstance(array.node.work, Leaf):
        view = array.node.work.array.transpose([a for a in source if a is not None])
        return Noted(Node(Leaf(view.reshape(shape)), shape), array.dtype)
    return noted(Transpose(array.node, source), shape, array.dtype)


def _operand(value: Any, dtype: np.dtype[Any]) -> Node | None:
    """What an operation of this element type reads; None where NumPy would promote it."""
    match value:
        case Noted():
            return value.node if value.dtype == dtype else None
        case bool() | np.bool_():
            return None
        case np.generic():
            return Node(Scalar(value.item()), ()) if value.dtype == dtype else None
        case np.ndarray():
            if value.dtype != dtype or type(value) is not np.ndarray:
                return None
            return Node(Leaf(_held(value)), value.shape)
        case int() | float():
            try:
                return Node(Scalar(float(value)), ())
            except OverflowError:
                return None
        case complex():
            return Node(Scalar(value), ()) if dtype.kind == "c" else None
        case _:
            return None


def _held(array: Array) -> Array:
    """The array, or a copy of it where its elements may change before they are read."""
    if _is_fixed(array):
        return array
    axes = zip(array.strides, array.shape, strict=True)
    repeated = [stride == 0 and extent > 1 for stride, extent in axes]  # broadcast: kept once
    once = array[tuple(slice(1 if again else None) for again in repeated)].copy()
    return np.broadcast_to(once, array.shape) if any(repeated) else once


def _is_fixed(array: Array) -> bool:
    """True where nobody can write to the memory: a read-only view may be of a writeable array."""
    part: Any = array
    while isinstance(part, np.ndarray):
        if part.flags.writeable:
            return False
        if part.base is None:
            return part.flags.owndata
        part = part.base
    return isinstance(part, bytes)


def _common(values: Sequence[Any]) -> tuple[np.dtype[Any], tuple[Node, ...]] | None:
    """Element type and nodes of operands that a kernel takes; None where NumPy has to do it."""
    first = next((v for v in values if isinstance(v, Noted)), None)
    if first is None:  # only the place of the result is a delayed array
        return None
    nodes = [_operand(v, first.dtype) for v in values]
    found = tuple(n for n in nodes if n is not None)
    return (first.dtype, found) if first.has_kernels and len(found) == len(nodes) else None


def called(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Noted | None:
    """A call of a universal function."""
    if ufunc is np.matmul:
        return _matmul(*inputs)
    if ufunc is np.square:
        ufunc, inputs = np.power, (*inputs, 2)
    if ufunc is np.power:
        return _power(*inputs)
    operation = _OPERATIONS.get(ufunc)
    common = None if operation is None else _common(inputs)
    if operation is None or common is None:
        return None
    dtype, nodes = common
    if operation == "abs" and dtype.kind == "c":
        return None  # its result is real
    return noted(Elementwise(operation, nodes), _broadcast(nodes), dtype)


def _power(base: Any, exponent: Any) -> Noted | None:
    if not isinstance(base, Noted) or not base.has_kernels:
        return None
    if isinstance(exponent, bool) or not isinstance(exponent, int | float):
        return None
    if type(exponent) not in (int, float) or abs(exponent) > _LARGEST_POWER:
        return None
    if exponent == 0.5:
        return called(np.sqrt, (base,))
    if not math.isfinite(exponent) or exponent != int(exponent):
        return None
    work = Elementwise("power", (base.node,), int(exponent))
    return noted(work, base.shape, base.dtype)


def _broadcast(nodes: Sequence[Node]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*(n.shape for n in nodes))
    except ValueError:
        shapes = " and ".join(str(n.shape) for n in nodes)
        raise ShapeError(f"operands of shapes {shapes} cannot be broadcast together") from None


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Numbers of axes, counted from the front.

    Raises:
        ArgumentError: one is no whole number.
        AxisError: one does not exist.
        ShapeError: one is named twice.
    """
    try:
        given = [index(a) for a in (axis if isinstance(axis, tuple | list) else (axis,))]
    except TypeError:
        raise ArgumentError(f"axis {axis!r}: give a whole number or a tuple of them") from None
    wrong = next((a for a in given if not -ndim <= a < ndim), None)
    if wrong is not None:
        raise AxisError(f"axis {axis} does not exist in an array of {ndim} axes", wrong, ndim)
    axes = tuple(a % ndim for a in given)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axis {axis} names an axis twice")
    return axes


def total_of(
    array: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = np._NoValue,
    initial: Any = np._NoValue,
    where: Any = True,
) -> Noted | None:
    """``numpy.sum`` over axes, all of them for None; the order of arguments is NumPy's."""
    if (
        not isinstance(array, Noted)
        or not array.has_kernels
        or dtype is not None
        or out is not None
        or initial is not np._NoValue
        or (where is not True and where is not np._NoValue)
    ):
        return None
    if array.ndim == 0 and axis in (0, -1):  # NumPy lets a number have this axis here
        axis = None
    axes = tuple(range(array.ndim)) if axis is None else axes_of(axis, array.ndim)
    kept = [n for n in range(array.ndim) if n not in axes]
    total = noted(SumAxes(array.node, axes), tuple(array.shape[n] for n in kept), array.dtype)
    if keepdims is not np._NoValue and keepdims:
        return turned(total, tuple(kept.index(n) if n in kept else None for n in range(array.ndim)))
    return total


def _mean(array: Any, axis: Any = None, *rest: Any, **options: Any) -> Noted | None:
    total = total_of(array, axis, *rest, **options)
    if total is None:
        return None
    axes = range(array.ndim) if axis is None else axes_of(axis, array.ndim)
    return called(np.divide, (total, math.prod(array.shape[n] for n in axes)))


def _einsum(subscripts: Any, *operands: Any, **options: Any) -> Noted | None:
    if not isinstance(subscripts, str) or not set(options) <= {"optimize"}:
        return None
    if not _is_free_order(options.get("optimize"), len(operands)):
        return None
    common = _common(operands)
    if common is None:
        return None
    dtype, nodes = common
    expression = express(subscripts, tuple(len(n.shape) for n in nodes))
    extents = extents_of(expression, tuple(n.shape for n in nodes))
    work = Product(nodes, expression.inputs, expression.output)
    return noted(work, tuple(extents[n] for n in expression.output), dtype)


def _is_free_order(optimize: Any, count: int) -> bool:
    """True where the order of contraction is left to the planner; NumPy follows a path.

    Raises:
        PathNameError: the name of an unknown order.
    """
    if isinstance(optimize, str):
        check_order_name(optimize, count)
        return True
    return optimize is None or isinstance(optimize, bool | np.bool_)


def _matmul(a: Any, b: Any) -> Noted | None:
    m, n = np.ndim(a), np.ndim(b)
    if not m or not n:
        raise EinsumError("@ needs operands with axes: use * for numbers")
    summed = np.shape(a)[-1], np.shape(b)[-2 if n > 1 else 0]
    if summed[0] != summed[1]:  # an extent of 1 does not broadcast here, as it does in einsum
        raise ShapeError(f"@ sums over axes of extents {summed[0]} and {summed[1]}, which differ")
    left, right = ("j", "j") if n == 1 else ("j", "jk")
    left = left if m == 1 else f"i{left}"
    output = ("i" if m > 1 else "") + ("k" if n > 1 else "")
    if m > 2 or n > 2:
        left, right, output = f"...{left}", f"...{right}", f"...{output}"
    return _einsum(f"{left},{right}->{output}", a, b)


def _dot(a: Any, b: Any, out: Any = None) -> Noted | None:
    return _matmul(a, b) if out is None and 0 < np.ndim(a) < 3 and 0 < np.ndim(b) < 3 else None


def with_named_out(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a function of NumPy, those from ``out`` on by name."""
    names, first = _positions(function)
    if not first < len(args) <= len(names):
        return args, kwargs
    return args[:first], {**dict(zip(names[first:], args[first:], strict=False)), **kwargs}


@lru_cache(maxsize=256)
def _positions(function: Callable[..., Any]) -> tuple[tuple[str, ...], int]:
    """Names of the parameters, and which of them is ``out``, where that may come by position."""
    try:
        found = signature(function).parameters
    except ValueError:  # nothing is known of some functions in C
        return (), 0
    if "out" not in found or found["out"].kind is not Parameter.POSITIONAL_OR_KEYWORD:
        return (), 0
    return tuple(found), list(found).index("out")


def transposed(array: Noted, axes: Any = None) -> Noted:
    """``numpy.transpose`` of a delayed array."""
    if axes is None:
        return turned(array, tuple(reversed(range(array.ndim))))
    order = axes_of(axes, array.ndim)
    if len(order) != array.ndim:
        raise ShapeError(f"transpose: axes {axes} of an array of {array.ndim} axes")
    return turned(array, order)


FUNCTIONS: dict[Any, Callable[..., Noted | None]] = {
    np.sum: total_of,
    np.mean: _mean,
    np.einsum: _einsum,
    np.dot: _dot,
    np.transpose: transposed,
}

# What changes its first argument: it gets values of its own.
UPDATES = frozenset(
    (np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask),
)
UPDATING_METHODS = frozenset(("fill", "partition", "put", "resize", "sort"))
