"""The functions of the array API standard for lazy arrays: NumPy's, whose results are lazy.

NumPy's own functions also take lazy arrays, but functions without array arguments, such as
``zeros``, make NumPy's arrays. Code that takes the namespace of an array expects arrays of its
kind.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from types import ModuleType
from typing import Any

import numpy as np


class ArrayNamespace:
    """NumPy, or a part of it, whose functions return lazy arrays.

    ``made_lazy`` makes a lazy array of a function's result and arguments.
    """

    def __init__(self, module: ModuleType, made_lazy: Callable[[Any, Any], Any]) -> None:
        self._module, self._made_lazy = module, made_lazy
        self._wrapped = cache(self._function)  # equal functions at each access

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._module) if not name.startswith("_")]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and not name.startswith("__array_"):
            raise AttributeError(name)
        found = getattr(self._module, name)
        if isinstance(found, ModuleType):
            return ArrayNamespace(found, self._made_lazy)
        if isinstance(found, type) or not callable(found):
            return found
        return self._wrapped(found)

    def _function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function, updated=())
        def called(*args: Any, **options: Any) -> Any:
            return self._lazy(function(*args, **options), args)

        return called

    def _lazy(self, made: Any, args: tuple[Any, ...]) -> Any:
        """A result with its arrays lazy, also in tuples, which may have named fields."""
        if isinstance(made, np.ndarray | np.generic):
            return self._made_lazy(np.asarray(made), args)
        if type(made) is list:
            return [self._lazy(part, args) for part in made]
        if isinstance(made, tuple):
            parts = [self._lazy(part, args) for part in made]
            return type(made)(*parts) if hasattr(made, "_fields") else tuple(parts)
        return made
