"""Python's operators of lazy arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .calls import NUMBERS, is_little, is_number, settle
from .record import RECORDED, record_ufunc

Binary = Callable[[Any, Any], Any]


def _binary(name: str, ufunc: np.ufunc) -> tuple[Binary, Binary, Binary]:
    """The three methods of a binary operator: forward, reflected, in place."""
    operate: Binary = getattr(operator, name)
    recorder = partial(record_ufunc, ufunc)
    of_elements = ufunc in RECORDED and ufunc is not np.matmul

    def forward(self: Any, other: Any) -> Any:
        array, kind = self._plain(), type(other)
        if array is not None:  # fast path
            if kind in NUMBERS or (kind is type(array) and other.shape == array.shape):
                return operate(array, other)
        elif of_elements and (kind is type(self) or kind is float or kind is int):
            node = recorder(self._node, other._node if kind is type(self) else other)
            if node is not None and not is_little(node):
                return self._of_node(node)
        elif getattr(other, "__array_ufunc__", True) is None:
            return NotImplemented  # its own operators must be called
        return self._called(recorder, operate, (self, other), {})

    def reflected(self: Any, other: Any) -> Any:
        if getattr(other, "__array_ufunc__", True) is None:
            return NotImplemented
        return self._called(recorder, operate, (other, self), {})

    def in_place(self: Any, other: Any) -> Any:
        if self._number:
            return forward(self, other)
        self._owner._settle()  # the evaluation of another array may have computed this one
        if self._known() is not None and is_number(other):
            settle((other,))
        changes = type(other) is type(self) and ufunc in (np.add, np.subtract)
        if changes and self._changed_by(ufunc.__name__, other):
            return self
        return self._called(recorder, ufunc, (self, other), {}, (self,))

    return forward, reflected, in_place


def _unary(name: str, ufunc: np.ufunc) -> Callable[[Any], Any]:
    operate = getattr(operator, name)
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
