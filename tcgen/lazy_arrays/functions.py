"""NumPy's functions that are recorded, those that give views, and those that change an argument."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from inspect import Parameter, signature
from typing import Any

import numpy as np

from . import record
from .record import Recorder

FUNCTIONS: dict[Any, Recorder] = {
    np.sum: record.sum_of,
    np.prod: record.prod_of,
    np.max: record.max_of,
    np.amax: record.max_of,
    np.min: record.min_of,
    np.amin: record.min_of,
    np.argmax: record.argmax_of,
    np.argmin: record.argmin_of,
    np.any: record.any_of,
    np.all: record.all_of,
    np.cumsum: record.cumsum_of,
    np.cumprod: record.cumprod_of,
    np.mean: record.mean_of,
    np.var: record.var_of,
    np.std: record.std_of,
    np.where: record.choose,
    np.clip: record.clip,
    np.einsum: record.einsum,
    np.dot: record.dot,
    np.tensordot: record.tensordot,
    np.concatenate: record.joined,
    np.roll: record.rolled,
    np.diff: record.diff,
}
# Methods of universal functions: reductions, and running ones.
REDUCES: dict[tuple[np.ufunc, str], Recorder] = {
    (np.add, "reduce"): record.sum_of,
    (np.multiply, "reduce"): record.prod_of,
    (np.add, "accumulate"): record.accumulate_add,
    (np.multiply, "accumulate"): record.cumprod_of,
    (np.maximum, "accumulate"): record.cummax_of,
    (np.minimum, "accumulate"): record.cummin_of,
}


# Functions whose results are views of an array, which part of it does not depend on values.
VIEWS = frozenset(
    (
        *(np.transpose, np.swapaxes, np.moveaxis, np.rollaxis, np.reshape, np.ravel, np.squeeze),
        *(np.expand_dims, np.flip, np.fliplr, np.flipud, np.rot90, np.atleast_1d, np.atleast_2d),
        *(np.atleast_3d, np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit),
    )
)
# Functions whose results are views, of which part depends on the values: copies here.
BY_VALUES = frozenset((np.real_if_close, np.trim_zeros))

# Functions and methods that change their first argument, which gets a copy of its values.
UPDATES = frozenset(
    (np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask),
)
# Functions and methods for which NumPy would copy a read-only array.
READERS = frozenset(
    (np.argmax, np.argmin, np.bincount, np.choose, np.convolve, np.correlate, np.interp, np.repeat)
) | {np.ndarray.argmax, np.ndarray.argmin, np.ndarray.choose, np.ndarray.repeat}
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
