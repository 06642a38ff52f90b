"""Runs recorded operations in NumPy or CuPy, one by one, as the user's program would have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias, assert_never

import numpy as np

from ..errors import VerifyError
from ..ir.reduction import Reduction
from .backend import HOST, Backend
from .graph import (
    CHEAP,
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
    with_axes_of_array,
)
from .linearized import Linearized

Labels: TypeAlias = tuple[int, ...]
UFUNCS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "negative": np.negative,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "abs": np.absolute,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "conj": np.conjugate,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "arctan": np.arctan,
    "floor": np.floor,
    "sign": np.sign,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "arctan2": np.arctan2,
    "pow": np.power,
    "mod": np.remainder,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
    "not": np.logical_not,
}
_REDUCED: dict[Reduction, Callable[..., Any]] = {
    Reduction.SUM: np.sum,
    Reduction.MAX: np.max,
    Reduction.MIN: np.min,
    Reduction.PROD: np.prod,
}


def run_in_numpy(line: Linearized) -> list[Array]:
    """The arrays of the roots.

    Like kernels, it gives no floating-point warnings: the ``numpy.errstate`` around the code that
    recorded an operation has ended by now.
    """
    with np.errstate(all="ignore"):
        return _run(line)


def run_single(node: Node) -> Array | None:
    """The array of one cheap operation on known values; None for other nodes."""
    work = node.work  # another thread may replace it after this line
    if type(work) is not Elementwise or work.operation not in CHEAP:
        return None
    given: list[Any] = []
    for operand in work.operands:
        read = operand.work
        if type(read) is Leaf:
            given.append(read.array)
        elif type(read) is Scalar:
            given.append(read.value)
        else:
            return None
    backend = HOST if node.backend is None else node.backend
    with np.errstate(all="ignore"):
        made = _elementwise(work, given, _memory(backend, node.shape, node.dtype, given))
    array: Array = backend.module.asarray(made, node.dtype)
    return array


def _run(line: Linearized) -> list[Array]:
    """Run a line; an operation may write to the memory of an operand that nobody reads after it.

    NumPy does the same with the temporary arrays of an expression.
    """
    works, shapes, dtypes = line.works, line.shapes, line.dtypes
    last = [0] * len(works)  # place of the last operation that reads a value
    for place, operands in enumerate(line.operands):
        for operand in operands:
            last[operand] = place
    for root in line.roots:
        last[root] = len(works)
    values: list[Any] = []
    free: set[int] = set()  # places of new arrays that have no views
    for place, operands in enumerate(line.operands):
        work = works[place]
        if not operands:
            values.append(_value(work, [], line, place))
            continue
        given = [values[n] for n in operands]
        shape = shapes[place]
        if type(work) is Elementwise:
            target = line.target if place in line.roots and not line.change else None
            if target is None:
                for n in operands:
                    same = shapes[n] == shape and dtypes[n] == dtypes[place]
                    if same and n in free and last[n] == place:
                        target = values[n]
                        break
                else:
                    target = _memory(line.backend, shape, dtypes[place], given)
            values.append(_elementwise(work, given, target))
            if shape:
                free.add(place)
        else:
            values.append(_value(work, given, line, place))
            if type(work) is Transpose:
                free.difference_update(operands)  # its result is a view
            elif shape and _is_new(work):
                free.add(place)
        del given
        for n in operands:
            if last[n] == place:
                values[n] = None
    if line.target is not None:
        root = line.roots[0]
        if line.change:
            UFUNCS[line.change](line.target, values[root], out=line.target)
        elif type(line.works[root]) is not Elementwise:
            line.target[...] = values[root]
        return [line.target]
    results = []
    for root in line.roots:
        made = line.backend.module.asarray(values[root], line.dtypes[root])
        work = line.works[root]
        is_new = type(work) is Elementwise or _is_new(work) or made.base is None
        results.append(made if is_new else made.copy())
    return results


def _is_new(work: Work) -> bool:
    """True for a product of several arrays; of one, it may be a view."""
    return type(work) is Product and len(work.operands) > 1


def _memory(
    backend: Backend, shape: Shape, dtype: np.dtype[Any], given: Sequence[Any]
) -> Array | None:
    """Memory of the pool for a large result; None where NumPy chooses another order of axes."""
    if prod(shape) * dtype.itemsize < backend.least_pooled:
        return None
    for array in given:
        strides = getattr(array, "strides", ())
        if any(one < other for one, other in pairwise(strides)):
            return None
    return backend.pooled(shape, dtype)


def _elementwise(work: Elementwise, given: list[Any], target: Array | None) -> Any:
    if work.operation == "where":
        condition, one, other = given
        return _where(condition, one, other, target)
    if work.operation != "power":
        return UFUNCS[work.operation](*given, out=target)
    if work.exponent == 2:
        return np.square(given[0], out=target)
    return np.power(given[0], work.exponent, out=target)


def _where(condition: Any, one: Any, other: Any, target: Array | None) -> Any:
    """``numpy.where`` into memory that may be that of one of the values."""
    if target is None:
        return np.where(condition, one, other)
    if target is one:
        np.copyto(target, other, where=np.logical_not(condition))
        return target
    if target is not other:
        np.copyto(target, other)
    np.copyto(target, one, where=condition)
    return target


def _value(work: Work, given: list[Any], line: Linearized, place: int) -> Any:
    match work:
        case Leaf(array):
            return array
        case Scalar(value):
            return value
        case Reduce(_, axes, reduction):
            return _REDUCED[reduction](given[0], axis=axes)
        case Position():
            return _position(work, given[0])
        case Transpose(_, source):
            return with_axes_of_array(line.backend.module.asarray(given[0]), source)
        case Roll():
            raise VerifyError("rolled arrays are slices, or computed, before a line runs")
        case Product():
            return _product(work, given, line, place)
        case Elementwise():
            return _elementwise(work, given, None)
        case _:
            assert_never(work)


def _position(work: Position, array: Array) -> Any:
    find = np.argmax if work.largest else np.argmin
    if len(work.axes) == 1:
        return find(array, axis=work.axes[0])
    return find(array)  # over all axes


def _product(work: Product, given: list[Any], line: Linearized, place: int) -> Any:
    if len(given) == 2 and _is_matmul(work.labels[0], work.labels[1], work.output):
        multiply: Any = np.matmul
        out = _memory(line.backend, line.shapes[place], line.dtypes[place], ())
        return multiply(*given, out=out)
    if len(given) == 2 and (summed := _summed_axes(work)) is not None:
        multiplied: Any = np.tensordot
        made = multiplied(*given, axes=summed)
        free = [n for labels in work.labels for n in labels if n in work.output]
        return made.transpose([free.index(n) for n in work.output])
    parts: list[Any] = []
    for operand, axes in zip(given, work.labels, strict=True):
        parts += [operand, list(axes)]
    return np.einsum(*parts, list(work.output), optimize=len(given) > 2)


def _summed_axes(work: Product) -> tuple[list[int], list[int]] | None:
    """The axes of two operands that ``tensordot`` sums over; None for other products."""
    left, right = work.labels
    both = [n for n in left if n in right]
    once = all(len({*labels}) == len(labels) for labels in (left, right, work.output))
    if not both or not once or {*both} & {*work.output}:
        return None
    if len(work.output) + 2 * len(both) != len(left) + len(right):
        return None  # an index of one operand is also summed
    return [left.index(n) for n in both], [right.index(n) for n in both]


def _is_matmul(left: Labels, right: Labels, output: Labels) -> bool:
    """True for products that ``@`` computes."""
    if not left or not right or len({*left, *right}) > len(output) + 1:
        return False
    summed = left[-1]
    rows, columns = left[-2:-1], right[-1:] if len(right) > 1 else ()
    batch = output[: len(output) - len(rows) - len(columns)]
    return (
        summed not in output
        and right[-2 if len(right) > 1 else 0] == summed
        and output == (*batch, *rows, *columns)
        and len(set(output)) == len(output)
        and all(part == batch[len(batch) - len(part) :] for part in (left[:-2], right[:-2]))
    )
