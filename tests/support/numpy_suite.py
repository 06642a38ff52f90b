"""A plugin of pytest that runs NumPy's own tests on lazy arrays.

The modules of tests get NumPy with functions whose arrays are lazy. What the assertions of
``numpy.testing`` compare becomes arrays of NumPy first, since they ask for their class.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcgen

_MAKING = (
    *("array", "asarray", "ascontiguousarray", "copy", "arange", "linspace", "logspace"),
    *("geomspace", "eye", "identity", "tri", "diag", "zeros", "ones", "empty", "full"),
    *("zeros_like", "ones_like", "empty_like", "full_like"),
)
_NUMBERS = "biufc"  # kinds of element types; there are no lazy arrays of objects and texts here


class LazyNumpy:
    """NumPy; the functions that make arrays make lazy ones."""

    def __init__(self) -> None:
        for name in _MAKING:
            setattr(self, name, _making(getattr(np, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def _making(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def made(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        lazy = type(result) is np.ndarray and result.dtype.kind in _NUMBERS
        return tcgen.lazy(result, copy=True) if lazy else result

    return made


def _plain(value: Any) -> Any:
    if isinstance(value, tcgen.LazyArray):
        return np.array(value)
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


def _comparing(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def compare(*args: Any, **options: Any) -> Any:
        return function(*map(_plain, args), **{n: _plain(v) for n, v in options.items()})

    return compare


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Change the modules of the tests that were collected."""
    for module in {item.module for item in items}:
        module.np = LazyNumpy()
        for name, function in list(vars(module).items()):
            compares = name.startswith("assert_") and "raises" not in name and "warn" not in name
            if compares and isinstance(function, types.FunctionType):
                setattr(module, name, _comparing(function))
