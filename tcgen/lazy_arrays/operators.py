"""Python's operators of lazy arrays.

Those on few elements take a fast path to NumPy's own operators, all others the slow path of
``calls``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import zip_longest
from math import prod
from sys import getrefcount
from typing import Any

import numpy as np

from .arguments import product_size
from .backend import BACKENDS
from .dispatch import LIMITS
from .memory import Memory
from .ufuncs import record_operator

_ORDERED = frozenset((int, float, np.float64, np.float32, np.int64, np.ndarray))
_NUMBERS = frozenset((bool, int, float, complex, np.float64, np.float32, np.complex128, np.int64))


def _other(value: Any) -> Any:
    """An operand of NumPy's operators on the fast path; None if it takes the slow path."""
    if type(value) in _NUMBERS or type(value) in BACKENDS:
        return value
    return value._known() if isinstance(value, Memory) else None


def _is_small(one: Any, other: Any, most: float) -> bool:
    """True if a result that broadcasts the two has fewer elements, as the first one has."""
    if type(other) not in BACKENDS or one.shape == other.shape:
        return True
    if one.size * other.size < most:
        return True
    longest = zip_longest(reversed(one.shape), reversed(other.shape), fillvalue=1)
    return bool(prod([max(pair) for pair in longest]) < most)


def _is_small_product(one: Any, other: Any, most: float) -> bool:
    size = product_size((one, other))
    return size is not None and size < most


def _is_number(value: Any) -> bool:
    return type(value) in _NUMBERS or (isinstance(value, Memory) and value._number)


def disables_ufuncs(value: Any) -> bool:
    """True for a type whose own operators must be called."""
    return getattr(value, "__array_ufunc__", True) is None


# Operators that are recorded on a fast path.
_RECORDED = {
    np.add: "add",
    np.subtract: "subtract",
    np.multiply: "multiply",
    np.divide: "divide",
}
Binary = Callable[[Any, Any], Any]


def _binary(name: str, ufunc: Any) -> tuple[Binary, Binary, Binary]:
    """The three methods of a binary operator: forward, reflected, in place."""
    operate: Any = getattr(operator, name)
    change: Any = getattr(operator, f"i{name.strip('_')}", None)
    operation = _RECORDED.get(ufunc)

    is_product, is_power = ufunc is np.matmul, ufunc is np.power
    is_small = _is_small_product if is_product else _is_small

    # Attributes are read here where a call would do: small operations take few microseconds.
    def forward(self: Any, other: Any) -> Any:
        array = self._array if self._root is None else self._known()
        kind = type(other)
        if array is not None and (array.size < LIMITS.elements or is_product):
            if kind is type(self):
                value = other._array if other._root is None else other._known()
            else:
                value = _other(other)
            if is_power and self._number:
                array = array[()]  # the square of a boolean array has another type
            if value is not None and is_small(array, value, LIMITS.elements):
                try:
                    made = operate(array, value)
                except (TypeError, ValueError):
                    pass  # the slow path reports the error
                else:
                    if type(made) is np.ndarray:
                        return self._of_array(made, True)
                    return self._wrapped(made)
        if operation is not None and (kind is type(self) or kind is float or kind is int):
            value = other if kind is not type(self) else other._as_node()
            node = record_operator(operation, self._as_node(), value)
            if node is not None:
                return self._of_node(node)
        if disables_ufuncs(other):
            return NotImplemented
        is_number = kind in _NUMBERS or isinstance(other, np.generic)
        if is_power and is_number and self._number and self.dtype.kind == "b":
            return operate(self._values()[()], other)
        return self._call(ufunc, (self, other), operate=operate)

    def reflected(self: Any, other: Any) -> Any:
        array = self._array if self._root is None else self._known()
        if array is not None and array.size < LIMITS.elements and type(other) in _NUMBERS:
            try:
                return self._wrapped(operate(other, array))
            except (TypeError, ValueError):
                pass
        elif operation is not None and (type(other) is float or type(other) is int):
            node = record_operator(operation, self._as_node(), other, reflected=True)
            if node is not None:
                return self._of_node(node)
        if disables_ufuncs(other):
            return NotImplemented
        return self._call(ufunc, (other, self), operate=operate)

    def in_place(self: Any, other: Any) -> Any:
        if self._number:
            return forward(self, other)
        root = self if self._root is None else self._root
        root._settle()  # the evaluation of another array may have computed this one
        array = self._known()
        if array is not None and array.size < LIMITS.elements and array.ndim:
            small = type(other) in _NUMBERS
            if not small:
                value = _other(other)
                small = value is not None and _is_small(array, value, LIMITS.elements)
                value = None
            if small:
                array = None
                target = self._writable()
                try:
                    change(target, _other(other))
                    return self
                except (TypeError, ValueError):
                    pass
        is_known = array is not None and array.ndim
        array = target = value = None  # references would keep updates from writing to the memory
        if is_known and operation is not None and _is_number(other):
            # Recording it would need this memory and as much again for the result.
            value = _other(other) if type(other) in _NUMBERS else other._values()
            if self._is_unshared():
                try:
                    change(self._known(), value)
                    return self
                except (TypeError, ValueError):
                    pass  # the slow path reports the error
        changes = operation in ("add", "subtract") and type(other) is type(self)
        if changes and getrefcount(other) <= _PASSED and self._changed_by(operation, other):
            return self
        return self._call(ufunc, (self, other), (self,))

    return forward, reflected, in_place


def _comparison(name: str, ufunc: Any) -> Binary:
    operate: Any = getattr(operator, name)
    operation: str = ufunc.__name__

    def compared(self: Any, other: Any) -> Any:
        array = self._known()
        kind = type(other)
        if array is None or array.size >= LIMITS.elements:
            if kind is float or kind is int or kind is type(self):
                value = other if kind is not type(self) else other._as_node()
                node = record_operator(operation, self._as_node(), value, compares=True)
                if node is not None:
                    return self._of_node(node)
            if kind in _ORDERED or isinstance(other, Memory):
                return self._call(ufunc, (self, other), operate=operate)
        value = self._operand(other)
        return self._wrapped(operate(self._values(), value))

    return compared


def _unary(name: str, ufunc: Any) -> Callable[[Any], Any]:
    operate: Any = getattr(operator, name)

    def unary(self: Any) -> Any:
        array = self._known()
        if array is not None and array.size < LIMITS.elements:
            return self._wrapped(operate(array))
        return self._call(ufunc, (self,))

    return unary


class _Probe:
    """Counts the references to a value that only a change in place holds."""

    def __iadd__(self, other: Any) -> _Probe:
        self.count = getrefcount(other)
        return self


def _passed() -> int:
    probe = _Probe()
    probe += object()
    return probe.count


_PASSED = _passed()


class Operators:
    """The operators; a class that has them knows ``_call``, ``_operand`` and ``_wrapped``."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # arrays can change

    __add__, __radd__, __iadd__ = _binary("add", np.add)
    __sub__, __rsub__, __isub__ = _binary("sub", np.subtract)
    __mul__, __rmul__, __imul__ = _binary("mul", np.multiply)
    __truediv__, __rtruediv__, __itruediv__ = _binary("truediv", np.divide)
    __floordiv__, __rfloordiv__, __ifloordiv__ = _binary("floordiv", np.floor_divide)
    __mod__, __rmod__, __imod__ = _binary("mod", np.remainder)
    __pow__, __rpow__, __ipow__ = _binary("pow", np.power)
    __and__, __rand__, __iand__ = _binary("and_", np.bitwise_and)
    __or__, __ror__, __ior__ = _binary("or_", np.bitwise_or)
    __xor__, __rxor__, __ixor__ = _binary("xor", np.bitwise_xor)
    __lshift__, __rlshift__, __ilshift__ = _binary("lshift", np.left_shift)
    __rshift__, __rrshift__, __irshift__ = _binary("rshift", np.right_shift)
    __matmul__, __rmatmul__, __imatmul__ = _binary("matmul", np.matmul)

    def __divmod__(self, other: Any) -> Any:
        return self._call(np.divmod, (self, other))  # type: ignore[attr-defined]

    def __rdivmod__(self, other: Any) -> Any:
        return self._call(np.divmod, (other, self))  # type: ignore[attr-defined]

    __eq__ = _comparison("eq", np.equal)
    __ne__ = _comparison("ne", np.not_equal)
    __lt__, __le__ = _comparison("lt", np.less), _comparison("le", np.less_equal)
    __gt__, __ge__ = _comparison("gt", np.greater), _comparison("ge", np.greater_equal)
    __neg__, __pos__ = _unary("neg", np.negative), _unary("pos", np.positive)
    __abs__, __invert__ = _unary("abs", np.absolute), _unary("invert", np.invert)
