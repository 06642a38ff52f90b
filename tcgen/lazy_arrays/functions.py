"""NumPy's functions that are recorded, and those that change their first argument."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from inspect import Parameter, signature
from typing import Any

import numpy as np

from .graph import Node
from .reductions import (
    all_of,
    any_of,
    argmax_of,
    argmin_of,
    max_of,
    mean_of,
    min_of,
    prod_of,
    std_of,
    sum_of,
    var_of,
)
from .ufuncs import clip, dot, einsum, rolled, tensordot, transposed, where

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
    np.where: where,
    np.clip: clip,
    np.einsum: einsum,
    np.dot: dot,
    np.tensordot: tensordot,
    np.transpose: transposed,
    np.roll: rolled,
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


def _transpose(a: Any, axes: Any = None) -> Any:
    return a.transpose(axes)


def _swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    return a.swapaxes(axis1, axis2)


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


# Functions whose results are views of lazy arrays: methods, and those for which the first values
# decide which part it is.
VIEWS: dict[Any, Callable[..., Any]] = {
    np.transpose: _transpose,
    np.swapaxes: _swapaxes,
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


def with_first_by_position(
    function: Callable[..., Any], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a NumPy function that are all given by name, the first by position."""
    names, _ = _positions(function)
    if not names or names[0] not in kwargs:
        return (), kwargs
    rest = dict(kwargs)
    return (rest.pop(names[0]),), rest


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
