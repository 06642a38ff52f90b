"""Python's operators of lazy arrays: NumPy's on few known elements, and recorded operations."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .backend import BACKENDS, backend_of
from .calls import gives_little, is_little
from .dispatch import LIMITS
from .memory import Memory
from .record import RECORDED, record_ufunc

_NUMBERS = frozenset((bool, int, float, complex, np.float64, np.float32, np.complex128, np.int64))
Binary = Callable[[Any, Any], Any]


def _few(operate: Any, array: Any, other: Any) -> Any:
    """An operand as NumPy's if it and the result have few elements, else None."""
    if type(other) in _NUMBERS:
        return other
    known = type(other) in BACKENDS
    value = other._plain() if isinstance(other, Memory) else other if known else None
    if value is None or value.size >= LIMITS.elements or backend_of(value) is not backend_of(array):
        return None
    return value if gives_little(operate, [array, value]) else None


def _binary(name: str, ufunc: Any) -> tuple[Binary, Binary, Binary]:
    """The three methods of a binary operator: forward, reflected, in place."""
    operate: Any = getattr(operator, name)
    change: Any = getattr(operator, f"i{name.strip('_')}", None)
    recorder = partial(record_ufunc, ufunc)
    of_elements = ufunc in RECORDED and ufunc is not np.matmul

    def recorded(self: Any, *operands: Any, other: Any) -> Any:
        kind = type(other)
        if of_elements and (kind is type(self) or kind is float or kind is int):
            node = record_ufunc(ufunc, *[x._node if type(x) is type(self) else x for x in operands])
            if node is not None and not is_little(node):
                return self._of_node(node)
        if getattr(other, "__array_ufunc__", True) is None:
            return NotImplemented  # its own operators must be called
        return self._called(recorder, operate, operands, {})

    def forward(self: Any, other: Any) -> Any:
        array = self._plain()
        if array is not None:
            value = _few(operate, array, other)
            if value is not None:
                return operate(array, value)
        return recorded(self, self, other, other=other)

    def reflected(self: Any, other: Any) -> Any:
        array = self._plain()
        if array is not None and type(other) in _NUMBERS:
            return operate(other, array)
        return recorded(self, other, self, other=other)

    def in_place(self: Any, other: Any) -> Any:
        if self._number:
            return forward(self, other)
        array = self._plain()
        if array is not None:
            value = _few(operate, array, other)
        else:
            root = self._owner
            root._settle()  # the evaluation of another array may have computed this one
            # Recording a number would need this memory and as much again for the result.
            known = of_elements and root._array is not None and _is_number(other)
            value = None
            if known:
                number = other if type(other) in _NUMBERS else other._values()
                if not root._is_read():
                    value, array = number, self._writable()
        if value is not None:
            change(array, value)
            return self
        changes = type(other) is type(self) and ufunc in (np.add, np.subtract)
        if changes and self._changed_by(ufunc.__name__, other):
            return self
        return self._called(recorder, ufunc, (self, other), {}, (self,))

    return forward, reflected, in_place


def _is_number(value: Any) -> bool:
    return type(value) in _NUMBERS or (isinstance(value, Memory) and value._number)


def _unary(name: str, ufunc: Any) -> Callable[[Any], Any]:
    operate: Any = getattr(operator, name)
    recorder = partial(record_ufunc, ufunc)
    return lambda self: self._called(recorder, operate, (self,), {})


class Operators:
    """The operators; a class that has them knows ``_called`` and the life of its values."""

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

    def __divmod__(self: Any, other: Any) -> Any:
        return self._called(None, np.divmod, (self, other), {})

    def __rdivmod__(self: Any, other: Any) -> Any:
        return self._called(None, np.divmod, (other, self), {})

    (__eq__, *_), (__ne__, *_) = _binary("eq", np.equal), _binary("ne", np.not_equal)
    (__lt__, *_), (__le__, *_) = _binary("lt", np.less), _binary("le", np.less_equal)
    (__gt__, *_), (__ge__, *_) = _binary("gt", np.greater), _binary("ge", np.greater_equal)
    __neg__, __pos__ = _unary("neg", np.negative), _unary("pos", np.positive)
    __abs__, __invert__ = _unary("abs", np.absolute), _unary("invert", np.invert)
