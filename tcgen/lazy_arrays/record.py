"""Which calls of NumPy's functions are recorded, and as which nodes.

A call becomes a node if generated code gives NumPy's result: its operation is known, its arrays
have one element type, for which there are kernels, and its numbers do not change that type. For
every other call the functions return None, and NumPy computes it from the values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from inspect import Parameter, signature
from operator import index
from typing import Any

import numpy as np

from ..errors import ArgumentError, AxisError, EinsumError, ShapeError
from ..frontend.einsum.equation import extents_of
from ..frontend.einsum.path import check_order_name
from ..frontend.einsum.subscripts import express
from .evaluate import evaluate
from .graph import (
    KERNEL_TYPES,
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
    leaf,
    operands_of,
    with_axes_of_array,
)
from .in_numpy import UFUNCS

# Beyond these numbers, operands are computed first.
_HEAVIEST = 200  # operations of one kernel
_DEEPEST = 64  # operations on the longest path: each takes several frames of Python's stack
_MOST_ARRAYS = 32  # arrays that one kernel reads: their memory cannot be freed before it runs
_LARGEST_POWER = 16  # whole exponent up to which a power is recorded
_OPERATIONS: dict[Any, str] = {ufunc: name for name, ufunc in UFUNCS.items()}


def record(work: Work, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Node:
    """A node for the work; its operands are computed first if too many operations wait."""
    node = Node(work, shape, dtype)
    if _is_too_much(node):
        evaluate(operands_of(work))
        node = Node(work, shape, dtype)
    return node


def record_operator(
    operation: str, one: Node, other: Node | float, *, reflected: bool = False
) -> Node | None:
    """Record an operator on operands of one type, or on a number: the usual case.

    Args:
        operation: of an :class:`Elementwise`.
        one: an operand.
        other: the second one.
        reflected: it is the first one.

    Returns:
        None if the types differ, or if no kernel computes with them.

    Raises:
        ShapeError: the operands cannot be broadcast together.
    """
    dtype = one.dtype
    if dtype not in KERNEL_TYPES:
        return None
    if not isinstance(other, Node):
        try:
            other = Node(Scalar(float(other)), (), dtype)
        except OverflowError:
            return None
    elif other.dtype is not dtype:
        return None
    operands = (other, one) if reflected else (one, other)
    shape = one.shape
    if other.shape != shape and other.shape:
        shape = _broadcast(operands)
    return record(Elementwise(operation, operands), shape, dtype)


def _is_too_much(node: Node) -> bool:
    if node.weight > _HEAVIEST or node.depth > _DEEPEST:
        return True
    if node.reads <= _MOST_ARRAYS:
        return False
    return sum(isinstance(n.work, Leaf) for n in in_order([node])) > _MOST_ARRAYS


def with_axes(array: Node, source: tuple[int | None, ...]) -> Node:
    """Axes in another order, None for a new one; a view if the array is known."""
    shape = tuple([1 if a is None else array.shape[a] for a in source])
    work = array.work
    if isinstance(work, Leaf):
        return leaf(with_axes_of_array(work.array, source))
    return record(Transpose(array, source), shape, array.dtype)


def _operand(value: Any, dtype: np.dtype[Any]) -> Node | None:
    """The node of an operand of this element type; None if NumPy would promote it."""
    match value:
        case Node():
            return value if value.dtype == dtype else None
        case bool() | np.bool_():
            return None
        case np.generic():
            return Node(Scalar(value.item()), (), dtype) if value.dtype == dtype else None
        case np.ndarray():
            if value.dtype != dtype or type(value) is not np.ndarray:
                return None
            return leaf(_unchanging(value))
        case int() | float():
            try:
                return Node(Scalar(float(value)), (), dtype)
            except OverflowError:
                return None
        case complex():
            return Node(Scalar(value), (), dtype) if dtype.kind == "c" else None
        case _:
            return None


def _unchanging(array: Array) -> Array:
    """The array, or a copy of it if its elements may change before they are read."""
    if _is_read_only(array):
        return array
    axes = zip(array.strides, array.shape, strict=True)
    repeated = [
        stride == 0 and extent > 1 for stride, extent in axes
    ]  # broadcast: one copy is enough
    once = array[tuple(slice(1 if again else None) for again in repeated)].copy()
    return np.broadcast_to(once, array.shape) if any(repeated) else once


def _is_read_only(array: Array) -> bool:
    """True if nobody can write to the memory; a read-only view of a writeable array changes."""
    part: Any = array
    while isinstance(part, np.ndarray):
        if part.flags.writeable:
            return False
        if part.base is None:
            return part.flags.owndata
        part = part.base
    return isinstance(part, bytes)


def _same_type_operands(values: Sequence[Any]) -> tuple[np.dtype[Any], tuple[Node, ...]] | None:
    """Element type and nodes of operands that a kernel takes; None if NumPy has to compute."""
    first = next((v for v in values if isinstance(v, Node)), None)
    if first is None:  # only ``out`` is a lazy array
        return None
    nodes = [_operand(v, first.dtype) for v in values]
    known = tuple(n for n in nodes if n is not None)
    return (first.dtype, known) if first.has_kernels and len(known) == len(nodes) else None


def is_recorded(ufunc: np.ufunc) -> bool:
    """True for a universal function of which some calls are recorded."""
    return ufunc in _OPERATIONS or ufunc in (np.matmul, np.square, np.power)


def record_ufunc(ufunc: np.ufunc, *inputs: Any) -> Node | None:
    """Record a call of a universal function."""
    if ufunc is np.matmul:
        return _matmul(*inputs)
    if ufunc is np.square:
        ufunc, inputs = np.power, (*inputs, 2)
    if ufunc is np.power:
        return _power(*inputs)
    operation = _OPERATIONS.get(ufunc)
    common = None if operation is None else _same_type_operands(inputs)
    if operation is None or common is None:
        return None
    dtype, nodes = common
    if operation == "abs" and dtype.kind == "c":
        return None  # its result is real
    return record(Elementwise(operation, nodes), _broadcast(nodes), dtype)


def _power(base: Any, exponent: Any) -> Node | None:
    if not isinstance(base, Node) or not base.has_kernels:
        return None
    if isinstance(exponent, bool) or not isinstance(exponent, int | float):
        return None
    if type(exponent) not in (int, float) or abs(exponent) > _LARGEST_POWER:
        return None
    if exponent == 0.5:
        return record_ufunc(np.sqrt, base)
    if not math.isfinite(exponent) or exponent != int(exponent):
        return None
    work = Elementwise("power", (base,), int(exponent))
    return record(work, base.shape, base.dtype)


def _broadcast(nodes: Sequence[Node]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*(n.shape for n in nodes))
    except ValueError:
        shapes = " and ".join(str(n.shape) for n in nodes)
        raise ShapeError(f"operands of shapes {shapes} cannot be broadcast together") from None


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Numbers of axes, counted from the front.

    Raises:
        ArgumentError: an axis is not a whole number.
        AxisError: an axis does not exist.
        ShapeError: an axis is named twice.
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


def sum_of(
    array: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = np._NoValue,
    initial: Any = np._NoValue,
    where: Any = True,
) -> Node | None:
    """``numpy.sum`` over axes, all of them for None; the order of arguments is NumPy's."""
    if (
        not isinstance(array, Node)
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
    total = record(SumAxes(array, axes), tuple(array.shape[n] for n in kept), array.dtype)
    if keepdims is not np._NoValue and keepdims:
        return with_axes(
            total, tuple(kept.index(n) if n in kept else None for n in range(array.ndim))
        )
    return total


def _mean(array: Any, axis: Any = None, *rest: Any, **options: Any) -> Node | None:
    total = sum_of(array, axis, *rest, **options)
    if total is None:
        return None
    axes = range(array.ndim) if axis is None else axes_of(axis, array.ndim)
    return record_ufunc(np.divide, total, math.prod(array.shape[n] for n in axes))


def _var(
    array: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = np._NoValue,
    **rest: Any,
) -> Node | None:
    """``numpy.var`` of real numbers: as in NumPy, the mean is subtracted before the squares."""
    if not isinstance(array, Node) or array.dtype.kind != "f" or rest or type(ddof) is not int:
        return None
    mean = _mean(array, axis, dtype, out, True)
    if mean is None:
        return None
    apart = record_ufunc(np.subtract, array, mean)
    squares = record_ufunc(np.multiply, apart, apart)
    total = sum_of(squares, axis, keepdims=keepdims)
    axes = range(array.ndim) if axis is None else axes_of(axis, array.ndim)
    count = math.prod(array.shape[n] for n in axes) - ddof
    if total is None or count <= 0:  # NumPy warns
        return None
    return record_ufunc(np.divide, total, count)


def _std(array: Any, *args: Any, **options: Any) -> Node | None:
    variance = _var(array, *args, **options)
    return None if variance is None else record_ufunc(np.sqrt, variance)


def _einsum(subscripts: Any, *operands: Any, **options: Any) -> Node | None:
    if not isinstance(subscripts, str) or not set(options) <= {"optimize"}:
        return None
    if not _is_free_order(options.get("optimize"), len(operands)):
        return None
    common = _same_type_operands(operands)
    if common is None:
        return None
    dtype, nodes = common
    expression = express(subscripts, tuple(len(n.shape) for n in nodes))
    if len(nodes) == 1 and len(expression.output) == len(nodes[0].shape):
        return None  # NumPy's result is a view
    extents = extents_of(expression, tuple(n.shape for n in nodes))
    work = Product(nodes, expression.inputs, expression.output)
    return record(work, tuple(extents[n] for n in expression.output), dtype)


def _is_free_order(optimize: Any, count: int) -> bool:
    """True if the planner chooses the order of contraction; NumPy follows a path.

    Raises:
        PathNameError: the name of an unknown order.
    """
    if isinstance(optimize, str):
        check_order_name(optimize, count)
        return True
    return optimize is None or isinstance(optimize, bool | np.bool_)


def _matmul(a: Any, b: Any) -> Node | None:
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


def _dot(a: Any, b: Any, out: Any = None) -> Node | None:
    return _matmul(a, b) if out is None and 0 < np.ndim(a) < 3 and 0 < np.ndim(b) < 3 else None


def with_named_out(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a NumPy function, those from ``out`` on by name."""
    names, first = _positions(function)
    if not first < len(args) <= len(names):
        return args, kwargs
    return args[:first], {**dict(zip(names[first:], args[first:], strict=False)), **kwargs}


# Parameters of functions in C that have no signature before NumPy 2.4.
_IN_C: dict[Any, tuple[str, ...]] = {
    np.dot: ("a", "b", "out"),
    np.concatenate: ("arrays", "axis", "out"),
}


@lru_cache(maxsize=256)
def _positions(function: Callable[..., Any]) -> tuple[tuple[str, ...], int]:
    """Names of the parameters, and the position of ``out`` if it may be passed by position."""
    if function in _IN_C:
        names = _IN_C[function]
        return names, names.index("out")
    try:
        parameters = signature(function).parameters
    except ValueError:  # some functions in C have no signature
        return (), 0
    if "out" not in parameters or parameters["out"].kind is not Parameter.POSITIONAL_OR_KEYWORD:
        return (), 0
    return tuple(parameters), list(parameters).index("out")


def transposed(array: Node, axes: Any = None) -> Node:
    """``numpy.transpose`` of a lazy array."""
    if axes is None:
        return with_axes(array, tuple(reversed(range(array.ndim))))
    order = axes_of(axes, array.ndim)
    if len(order) != array.ndim:
        raise ShapeError(f"transpose: axes {axes} of an array of {array.ndim} axes")
    return with_axes(array, order)


FUNCTIONS: dict[Any, Callable[..., Node | None]] = {
    np.sum: sum_of,
    np.mean: _mean,
    np.var: _var,
    np.std: _std,
    np.einsum: _einsum,
    np.dot: _dot,
    np.transpose: transposed,
}

# Functions and methods that change their first argument, which gets a copy of its values.
UPDATES = frozenset(
    (np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask),
)
UPDATING_METHODS = frozenset(("fill", "partition", "put", "resize", "sort"))
