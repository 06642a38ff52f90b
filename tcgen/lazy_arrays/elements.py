"""Elements and slices of lazy arrays, and their updates in place."""

from __future__ import annotations

import math
from collections.abc import Callable
from dis import opname
from operator import getitem, setitem
from sys import _getframe, getrefcount
from typing import Any, Self

import numpy as np

from ..errors import ArgumentError
from .arguments import PLAIN, evaluated, is_basic, settle
from .backend import BACKENDS
from .dispatch import LIMITS
from .evaluate import evaluate_into
from .graph import Product
from .memory import Memory
from .slices import sliced

_PLACES = frozenset((int, slice, type(None), type(Ellipsis)))  # types in keys without arrays


def _is_called_by_c() -> bool:
    """True if code in C, not a statement of Python, calls the caller's assignment."""
    frame = _getframe(2)
    return opname[frame.f_code.co_code[frame.f_lasti]] != "STORE_SUBSCR"


class _Probe:
    """Counts the references to a value that only an assignment holds."""

    def __setitem__(self, key: Any, value: Any) -> None:
        self.count = getrefcount(value)

    @classmethod
    def references(cls) -> int:
        probe = cls()
        probe[0] = object()
        return probe.count


_PASSED = _Probe.references()


class Elements(Memory):
    """Indexing, assignments, and what changes an array by a function of NumPy."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        for part in key if type(key) is tuple else (key,):
            if type(part) not in _PLACES:
                key = evaluated(key)
                break
        values = self._array if self._root is None else self._known()
        if values is None:
            part = sliced(self._node, key)
            small = part is None or math.prod(part.shape) < LIMITS.elements
            if part is not None and (self._number or not small):
                dots = key is Ellipsis or (type(key) is tuple and Ellipsis in key)
                is_view = (part.ndim or dots) and not self._number
                if is_view:
                    return self._view((getitem, key))
                made = self._of_node(part)
                made._number = made._number and not dots  # an array of a number, as in NumPy
                return made
            values = self._values()
        found = values[()][key] if self._number else values[key]
        if type(found) not in BACKENDS:
            return found
        base = found.base
        if base is None:
            return self._of_array(found, True)
        if base is values or base is values.base or np.may_share_memory(found, values):
            return self._view((getitem, key))
        return self._of_array(found, True)

    def __setitem__(self, key: Any, value: Any) -> None:
        kind = type(value)
        if kind is type(self):
            if value._root is not None and self._is_part(key, value):
                return  # ``x[1:] += 1`` ends so: the part has been updated
            if type(key) is int and self._is_row(value) and _is_called_by_c():
                raise ArgumentError(
                    "rows of a lazy array are views: code in C that swaps them, such as "
                    "numpy.random.shuffle, would lose some: take x[rng.permutation(len(x))], or "
                    "assign a copy of the row"
                )
            if value._known() is None:
                if getrefcount(value) <= _PASSED and self._written_by(key, value):
                    return
                settle((value,))
        elif kind not in BACKENDS and kind not in PLAIN:
            self._update(setitem, (key, value), {})
            return
        if not (
            type(key) in _PLACES or (type(key) is tuple and _PLACES.issuperset(map(type, key)))
        ):
            settle((key,))
            key = evaluated(key)
        target = self._writable()
        target[key] = value._known() if kind is type(self) else value

    def _written_by(self, key: Any, value: Self) -> bool:
        """Let the operations of a value that nobody else has write to a slice of the array."""
        if not (is_basic(key) and self._is_unshared()):
            return False
        node, target = value._node, self._known()
        part = target[key]  # type: ignore[index]
        if type(part) not in BACKENDS or part.shape != node.shape or part.dtype != node.dtype:
            return False
        if not node.has_kernels:
            return False
        evaluate_into(node, part)
        return True

    def _changed_by(self, operation: str, other: Self) -> bool:
        """Let the operations of a value that nobody else has change the array where it is.

        For a whole array, only a product is not deferred: later operations may join other loops.
        """
        if other._known() is not None:
            return False
        node = other._node
        if self.shape != node.shape or self.dtype != node.dtype or not node.has_kernels:
            return False
        if self._root is None:
            if not isinstance(node.work, Product):
                return False
            self._values()
        if not self._is_unshared():
            return False
        target = self._known()
        if type(target) not in BACKENDS:
            return False
        assert target is not None
        evaluate_into(node, target, operation)
        return True

    def _is_part(self, key: Any, part: Self) -> bool:
        """True if the part is this slice of the array."""
        root, steps = (self, ()) if self._root is None else (self._root, self._steps)
        if part._root is not root or len(part._steps) != len(steps) + 1:
            return False
        step, argument = part._steps[-1]
        if step is not getitem or part._steps[:-1] != steps:
            return False
        return is_basic(key) and is_basic(argument) and bool(key == argument)

    def _is_row(self, value: Self) -> bool:
        """True if the value is the view of one index of the first axis of the array."""
        root, steps = (self, ()) if self._root is None else (self._root, self._steps)
        if value._root is not root or value._steps[:-1] != steps:
            return False
        step, argument = value._steps[-1]
        return step is getitem and type(argument) is int

    def _update(
        self, change: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """Let a function of NumPy change the values, where nobody but views can see it."""
        settle((args, options))
        self._writable()
        values, named = evaluated(args), evaluated(options)
        array = self._known()
        made = change(array, *values, **named)
        return self if made is array else made
