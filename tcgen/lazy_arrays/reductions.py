"""Sums, maxima, their positions and other reductions of recorded arrays over axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.reduction import Reduction
from .graph import Node, Position, Reduce, Scalar, leaf
from .recording import record
from .ufuncs import axes_of, record_ufunc, with_axes
from .ufuncs import where as choose

Recorder = Callable[..., Node | None]


def _totals(reduction: Reduction) -> Recorder:
    """``numpy.sum`` or ``prod`` over axes, all of them for None; the arguments are NumPy's."""

    def recorder(
        array: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = np._NoValue,
        initial: Any = np._NoValue,
        where: Any = True,
    ) -> Node | None:
        if not isinstance(array, Node) or dtype is not None:
            return None
        result = array.dtype
        if reduction is Reduction.SUM and result.kind == "b" and array.computes == np.float64:
            result = np.dtype(np.intp)  # the number of true elements: double precision is exact
        elif not array.has_kernels:
            return None
        return _reduced(reduction, array, result, axis, out, keepdims, initial, where)

    return recorder


def _extremes(reduction: Reduction, kinds: str) -> Recorder:
    """``numpy.max`` or ``min``, or of booleans ``any`` or ``all``."""

    def recorder(
        array: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = np._NoValue,
        initial: Any = np._NoValue,
        where: Any = True,
    ) -> Node | None:
        if not isinstance(array, Node) or array.computes is None or array.dtype.kind not in kinds:
            return None
        if 0 in array.shape:  # NumPy knows what no elements give
            return None
        return _reduced(reduction, array, array.dtype, axis, out, keepdims, initial, where)

    return recorder


sum_of, prod_of = _totals(Reduction.SUM), _totals(Reduction.PROD)
max_of, min_of = _extremes(Reduction.MAX, "fb"), _extremes(Reduction.MIN, "fb")
any_of, all_of = _extremes(Reduction.MAX, "b"), _extremes(Reduction.MIN, "b")
_NEUTRAL = {Reduction.SUM: 0.0, Reduction.PROD: 1.0}


def _reduced(
    reduction: Reduction,
    array: Node,
    dtype: np.dtype[Any],
    axis: Any,
    out: Any,
    keepdims: Any,
    initial: Any,
    where: Any,
) -> Node | None:
    """A reduction, for the arguments of NumPy's functions; None if NumPy has to compute it."""
    if out is not None or initial is not np._NoValue:
        return None
    if where is not True and where is not np._NoValue:
        whole = choose(where, array, _NEUTRAL[reduction]) if reduction in _NEUTRAL else None
        if whole is None or (whole.shape, whole.dtype) != (array.shape, dtype):
            return None
        array = whole
    if array.ndim == 0 and axis in (0, -1):  # NumPy lets a number have this axis here
        axis = None
    axes = tuple(range(array.ndim)) if axis is None else axes_of(axis, array.ndim)
    shape = tuple(n for axis, n in enumerate(array.shape) if axis not in axes)
    total = record(Reduce(array, axes, reduction), shape, dtype)
    return _with_kept_axes(total, array.ndim, axes, keepdims)


def argmax_of(
    array: Any, axis: Any = None, out: Any = None, *, keepdims: Any = np._NoValue
) -> Node | None:
    """``numpy.argmax`` of real numbers over one axis, or over all."""
    return _position(array, axis, out, keepdims, largest=True)


def argmin_of(
    array: Any, axis: Any = None, out: Any = None, *, keepdims: Any = np._NoValue
) -> Node | None:
    """``numpy.argmin``."""
    return _position(array, axis, out, keepdims, largest=False)


def _position(array: Any, axis: Any, out: Any, keepdims: Any, *, largest: bool) -> Node | None:
    if not isinstance(array, Node) or not array.has_kernels or array.dtype.kind != "f":
        return None
    if out is not None or not array.ndim or 0 in array.shape or isinstance(axis, tuple | list):
        return None
    axes = tuple(range(array.ndim)) if axis is None else axes_of(axis, array.ndim)
    node = position_node(array, axes, largest=largest)
    if node is None:
        return None
    return _with_kept_axes(record(node.work, node.shape, node.dtype), array.ndim, axes, keepdims)


def position_node(array: Node, axes: tuple[int, ...], *, largest: bool) -> Node | None:
    """The node of the position over axes, counted in C order; None if kernels count less far.

    The array has real numbers, at least one of them; the axes ascend.

    Example:
        >>> node = position_node(leaf(np.eye(3)), (0, 1), largest=True)
        >>> [part.work.array.ravel().tolist() for part in node.work.operands[1:3]]
        [[0.0, 3.0, 6.0], [0.0, 1.0, 2.0]]
    """
    dtype = array.dtype
    numbers: Any = np if array.backend is None else array.backend.module
    count = 1
    places: list[Node] = []
    for axis in reversed(axes):
        extent = array.shape[axis]
        shape = [1] * array.ndim
        shape[axis] = extent
        places.insert(
            0, leaf(numbers.arange(extent, dtype=dtype).reshape(shape) * dtype.type(count))
        )
        count *= extent
    if count > 2 ** (np.finfo(dtype).nmant + 1):
        return None
    kept = tuple(n for axis, n in enumerate(array.shape) if axis not in axes)
    end = Node(Scalar(float(count)), (), dtype)
    return Node(Position((array, *places, end), axes, largest), kept, np.dtype(np.intp))


def _with_kept_axes(made: Node, ndim: int, axes: tuple[int, ...], keepdims: Any) -> Node:
    """The result of a reduction, with its axes at extent 1 for ``keepdims``."""
    if keepdims is np._NoValue or not keepdims:
        return made
    kept = [n for n in range(ndim) if n not in axes]
    return with_axes(made, tuple(kept.index(n) if n in kept else None for n in range(ndim)))


def mean_of(array: Any, axis: Any = None, *rest: Any, **options: Any) -> Node | None:
    """``numpy.mean``."""
    if options.get("where", True) is not True:
        return None  # the number of elements is that of the mask
    total = sum_of(array, axis, *rest, **options)
    if total is None:
        return None
    axes = range(array.ndim) if axis is None else axes_of(axis, array.ndim)
    count = float(math.prod(array.shape[n] for n in axes))
    return record_ufunc(np.divide, total, count)


def var_of(
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
    mean = mean_of(array, axis, dtype, out, True)
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


def std_of(array: Any, *args: Any, **options: Any) -> Node | None:
    """``numpy.std`` of real numbers."""
    variance = var_of(array, *args, **options)
    return None if variance is None else record_ufunc(np.sqrt, variance)
