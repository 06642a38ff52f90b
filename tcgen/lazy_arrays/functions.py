"""NumPy's functions that are recorded, those that give views, and those that change an argument."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from inspect import Parameter, signature
from typing import Any

import numpy as np

from ..ir.reduction import Reduction
from .graph import Leaf, Node, Reduce, leaf, with_axes
from .record import (
    axes_of,
    clip,
    dot,
    einsum,
    record,
    record_ufunc,
    rolled,
    tensordot,
    transposed,
)
from .record import where as choose
from .views import sliced

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
    axes = _axes(axis, array.ndim)
    if axes is None:
        return None
    shape = tuple(n for axis, n in enumerate(array.shape) if axis not in axes)
    total = record(Reduce(array, axes, reduction), shape, dtype)
    if total is None or keepdims is np._NoValue or not keepdims:
        return total
    kept = [n for n in range(array.ndim) if n not in axes]
    return with_axes(total, tuple(kept.index(n) if n in kept else None for n in range(array.ndim)))


def _axes(axis: Any, ndim: int) -> tuple[int, ...] | None:
    return tuple(range(ndim)) if axis is None else axes_of(axis, ndim)


def argmax_of(
    array: Any, axis: Any = None, out: Any = None, *, keepdims: Any = np._NoValue
) -> Node | None:
    """``numpy.argmax`` of recorded real numbers over one axis, or over all."""
    return _position(array, axis, out, keepdims, Reduction.MAX)


def argmin_of(
    array: Any, axis: Any = None, out: Any = None, *, keepdims: Any = np._NoValue
) -> Node | None:
    """``numpy.argmin``."""
    return _position(array, axis, out, keepdims, Reduction.MIN)


def _position(array: Any, axis: Any, out: Any, keepdims: Any, extreme: Reduction) -> Node | None:
    """The least place whose element equals the extreme one, counted in C order over the axes.

    NumPy takes the first of several equal elements, and the first NaN if there is one. None for
    known values, of which NumPy finds the place in one pass.
    """
    if not isinstance(array, Node) or not array.has_kernels or array.dtype.kind != "f":
        return None
    if out is not None or not array.ndim or 0 in array.shape or isinstance(axis, tuple | list):
        return None
    if isinstance(array.work, Leaf):
        return None
    axes = _axes(axis, array.ndim)
    if axes is None:
        return None
    dtype = array.dtype
    numbers: Any = np if array.backend is None else array.backend.module
    count = 1
    place: Node | None = None
    for axis in reversed(axes):
        shape = [1] * array.ndim
        shape[axis] = array.shape[axis]
        steps = numbers.arange(shape[axis], dtype=dtype).reshape(shape) * dtype.type(count)
        place = leaf(steps) if place is None else record_ufunc(np.add, leaf(steps), place)
        count *= shape[axis]
    if count > 2 ** (np.finfo(dtype).nmant + 1):  # kernels count less far
        return None
    found = _reduced(extreme, array, dtype, axes, None, True, np._NoValue, True)
    equal = record_ufunc(np.equal, array, found)
    unordered = record_ufunc(np.not_equal, array, array)
    chosen = choose(record_ufunc(np.logical_or, equal, unordered), place, float(count))
    if chosen is None:
        return None
    intp = np.dtype(np.intp)
    return _reduced(Reduction.MIN, chosen, intp, axes, None, keepdims, np._NoValue, True)


def mean_of(array: Any, axis: Any = None, *rest: Any, **options: Any) -> Node | None:
    """``numpy.mean``."""
    if options.get("where", True) is not True:
        return None  # the number of elements is that of the mask
    total = sum_of(array, axis, *rest, **options)
    if total is None or _axes(axis, array.ndim) is None:
        return None
    return record_ufunc(np.divide, total, float(_count(array, axis)))


def _count(array: Node, axis: Any) -> int:
    return math.prod(array.shape[n] for n in _axes(axis, array.ndim) or ())


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
    count = _count(array, axis) - ddof
    if total is None or count <= 0:  # NumPy warns
        return None
    return record_ufunc(np.divide, total, count)


def diff(array: Any, n: Any = 1, axis: Any = -1, **ends: Any) -> Node | None:
    """``numpy.diff`` of neighbours, whose slices can be taken."""
    if not isinstance(array, Node) or not array.has_kernels or type(n) is not int or n != 1 or ends:
        return None
    along = axes_of(axis, array.ndim)
    if along is None:
        return None
    keys = [(*(slice(None),) * along[0], part) for part in (slice(1, None), slice(None, -1))]
    later, earlier = (sliced(array, key) for key in keys)
    return None if None in (later, earlier) else record_ufunc(np.subtract, later, earlier)


def std_of(array: Any, *args: Any, **options: Any) -> Node | None:
    """``numpy.std`` of real numbers."""
    variance = var_of(array, *args, **options)
    return None if variance is None else record_ufunc(np.sqrt, variance)


FUNCTIONS: dict[Any, Callable[..., Node | None]] = {
    np.sum: sum_of,
    np.prod: prod_of,
    np.max: max_of,
    np.amax: max_of,
    np.min: min_of,
    np.amin: min_of,
    np.argmax: argmax_of,
    np.argmin: argmin_of,
    np.any: any_of,
    np.all: all_of,
    np.mean: mean_of,
    np.var: var_of,
    np.std: std_of,
    np.where: choose,
    np.clip: clip,
    np.einsum: einsum,
    np.dot: dot,
    np.tensordot: tensordot,
    np.transpose: transposed,
    np.roll: rolled,
    np.diff: diff,
}
# Methods with the arguments of functions that are recorded.
METHODS = {
    name: FUNCTIONS[getattr(np, name)]
    for name in (
        *("all", "any", "argmax", "argmin", "clip", "dot", "max", "mean", "min", "prod"),
        *("std", "sum", "var"),
    )
}
# Reductions by a universal function.
REDUCES: dict[np.ufunc, Callable[..., Node | None]] = {
    np.add: sum_of,
    np.multiply: prod_of,
}


def _ravel(a: Any, order: Any = "C") -> Any:
    return a.ravel(order)


def _reshape(a: Any, shape: Any, order: Any = "C", **options: Any) -> Any:
    return a.reshape(shape, **({} if order == "C" else {"order": order}), **options)


def _real_if_close(a: Any, *args: Any, **options: Any) -> Any:
    is_complex = np.iscomplexobj(np.real_if_close(a.compute(), *args, **options))
    return a.view() if is_complex else a.real


def _trim_zeros(filt: Any, trim: Any = "fb", **options: Any) -> Any:
    values = filt.compute()
    made = np.trim_zeros(values, trim, **options)
    front = np.trim_zeros(values, "f", **options) if "f" in trim.lower() else values
    starts = [n - left for n, left in zip(values.shape, front.shape, strict=True)]
    return filt[tuple(slice(a, a + n) for a, n in zip(starts, made.shape, strict=True))]


# Functions whose results are views of lazy arrays: methods, slices, and those for which the first
# values decide which part it is.
_BY_METHODS: tuple[Any, ...] = (
    *(np.transpose, np.swapaxes, np.moveaxis, np.flip),
    *(np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit),
)
VIEWS: dict[Any, Callable[..., Any]] = {
    # They take any class with NumPy's methods.
    **{function: function._implementation for function in _BY_METHODS},
    np.ravel: _ravel,
    np.reshape: _reshape,
    np.real_if_close: _real_if_close,
    np.trim_zeros: _trim_zeros,
}

# Functions and methods that change their first argument, which gets a copy of its values.
UPDATES = frozenset(
    (np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask),
)
# Functions and methods that only read, although some require writable memory: they get the values
# themselves, since read-only views take longer, and NumPy copies them for some.
READERS = frozenset(
    (
        *(np.argmax, np.argmin, np.bincount, np.choose, np.concatenate, np.convolve, np.correlate),
        *(np.cumsum, np.flip, np.interp, np.moveaxis, np.repeat, np.roll, np.stack, np.squeeze),
        *(np.take, np.zeros_like, np.expand_dims),
    )
) | {
    getattr(np.ndarray, name)
    for name in (
        *("argmax", "argmin", "astype", "choose", "cumsum", "diagonal", "flatten", "ravel"),
        *("repeat", "reshape", "round", "squeeze", "swapaxes", "take"),
    )
}
UPDATING_METHODS = frozenset(("fill", "partition", "put", "sort"))


def with_named_out(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """Arguments of a NumPy function, the first by position, and ``out``, with what follows it."""
    if "out" not in kwargs and len(args) == 1:  # the usual case
        return args, kwargs, None
    names, first = _positions(function)
    options = dict(kwargs)
    if first < len(args) <= len(names):
        options |= zip(names[first:], args[first:], strict=False)
        args = args[:first]
    if not args and names and names[0] in options:
        args = (options.pop(names[0]),)
    return args, options, options.pop("out", None)


# Parameters of functions in C that have no signature before NumPy 2.4.
_IN_C: dict[Any, tuple[str, ...]] = {
    np.dot: ("a", "b", "out"),
    np.concatenate: ("arrays", "axis", "out"),
}


@lru_cache(maxsize=256)
def _positions(function: Callable[..., Any]) -> tuple[tuple[str, ...], int]:
    """Names of the parameters, and the position of ``out``; their number without it."""
    if function in _IN_C:
        names = _IN_C[function]
        return names, names.index("out")
    try:
        parameters = signature(function).parameters
    except ValueError:  # some functions in C have no signature
        return (), 0
    by_position = [n for n, p in parameters.items() if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    first = by_position.index("out") if "out" in by_position else len(by_position)
    return tuple(by_position), first
