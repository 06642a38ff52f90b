"""Attributes and methods of NumPy's arrays, as lazy arrays have them.

Methods of recorded functions are also recorded. Others compute the values that they need. If
NumPy's result is a view, so is that of a lazy array.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NoReturn, Self

from ..errors import ArgumentError, ShapeError
from .calls import Calls
from .functions import METHODS, UPDATING_METHODS
from .graph import in_order, with_axes_of_array
from .ufuncs import axes_of


def _assigned(name: str) -> Any:
    """An attribute of NumPy's arrays that values can be assigned to."""

    def read(array: Methods) -> Any:
        return array.__getattr__(name)

    def write(array: Methods, value: Any) -> None:
        array._update(setattr, (name, value), {})

    return property(read, write, doc=f"``numpy.ndarray.{name}``; values can be assigned to it.")


def _recorded_method(name: str) -> Callable[..., Any]:
    """A method with the arguments of a recorded function."""
    recorder = METHODS[name]

    def method(self: Methods, *args: Any, out: Any = None, **options: Any) -> Any:
        call = getattr(self._backend.array_type, name)
        return self._called(recorder, call, (self, *args), options, None if out is None else (out,))

    method.__doc__ = f"``numpy.ndarray.{name}``."
    return method


def _refuse_flags(*_: object) -> NoReturn:
    """Refuse to set flags: the memory to which an array moves would not have them."""
    raise ArgumentError("a lazy array has no flags to set: x.compute() is a read-only array")


class _Flags:
    """The flags of an array's values."""

    __slots__ = ("_flags",)

    def __init__(self, flags: Any) -> None:
        object.__setattr__(self, "_flags", flags)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._flags, name)

    def __getitem__(self, name: str) -> Any:
        return self._flags[name]

    def __repr__(self) -> str:
        return repr(self._flags)

    __setattr__ = __setitem__ = _refuse_flags


class Methods(Calls):
    """Attributes and methods; other names are looked up in NumPy's class."""

    __slots__ = ()

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def T(self) -> Self:  # noqa: N802  (NumPy's name)
        """The axes in reverse order."""
        return self.transpose()

    flat = _assigned("flat")
    real = _assigned("real")
    imag = _assigned("imag")

    @property
    def pending(self) -> int:
        """Number of operations that are recorded and have not run."""
        return sum(bool(node.work.operands) for node in in_order((self._node,)))

    @property
    def waiting(self) -> int:
        """The former name of ``pending``."""
        text = "LazyArray.waiting is now LazyArray.pending; the old name goes in version 0.3"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return self.pending

    all, any = _recorded_method("all"), _recorded_method("any")
    argmax, argmin = _recorded_method("argmax"), _recorded_method("argmin")
    max, min = _recorded_method("max"), _recorded_method("min")
    sum, prod, mean = _recorded_method("sum"), _recorded_method("prod"), _recorded_method("mean")
    std, var = _recorded_method("std"), _recorded_method("var")
    clip, dot = _recorded_method("clip"), _recorded_method("dot")

    def transpose(self, *axes: Any) -> Self:
        """``numpy.ndarray.transpose``."""
        given = axes[0] if len(axes) == 1 else axes or None
        ndim = self.ndim
        if given is None:
            return self._view((with_axes_of_array, tuple(range(ndim - 1, -1, -1))))
        order = axes_of(given, ndim)
        if len(order) != ndim:
            raise ShapeError(f"transpose: {given} does not name each of the {ndim} axes once")
        return self._view((with_axes_of_array, order))

    def swapaxes(self, axis1: Any, axis2: Any) -> Any:
        """``numpy.ndarray.swapaxes``."""
        ndim = self.ndim
        for axis in (axis1, axis2):
            if type(axis) is not int or not -ndim <= axis < ndim:
                return self._method("swapaxes", axis1, axis2)
        order = list(range(ndim))
        order[axis1], order[axis2] = order[axis2], order[axis1]
        return self._view((with_axes_of_array, tuple(order)))

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """``numpy.ndarray.reshape``."""
        if not options and self._is_flat():
            try:
                made = self._known().reshape(*shape)  # type: ignore[union-attr]
            except (TypeError, ValueError):
                pass  # raised again below
            else:
                return self._view((_reshaped, made.shape))
        return self._method("reshape", *shape, **options)

    def ravel(self, order: Any = "C") -> Any:
        """``numpy.ndarray.ravel``."""
        if order == "C" and self._is_flat():
            return self._view((_reshaped, (-1,)))
        return self._method("ravel", order)

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        """``numpy.ndarray.astype``."""
        array = None if args or options else self._known()
        if array is None:
            return self._method("astype", dtype, *args, **options)
        return self._of_array(array.astype(dtype), True)

    def copy(self, order: Any = "C") -> Self:
        """``numpy.ndarray.copy``; pending operations stay pending."""
        if self._known() is None and order in ("C", "K", "A"):
            return self._of_node(self._node)
        return self._of_array(self._values().copy(order), True)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """``numpy.ndarray.to_device``."""
        return self._method("to_device", device, stream=stream)

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        """``numpy.ndarray.resize``; other arrays keep the memory that they share."""
        if self._root is not None:
            raise ArgumentError("a view cannot be resized: resize the array, or a copy")
        array = self._values().copy()
        del refcheck  # the copy has no other references
        array.resize(*shape, refcheck=False)
        self._array, self._mine = array, True

    @property
    def flags(self) -> _Flags:
        """``numpy.ndarray.flags``, which are only read."""
        return _Flags(self._backend.read_only(self._values()).flags)

    def setflags(self, *_: Any, **__: Any) -> None:
        """Refused, as assignments to flags are."""
        _refuse_flags()

    def _is_flat(self) -> bool:
        """True for known values in C order, of which every other shape is a view."""
        array = self._known()
        return array is not None and array.flags.c_contiguous and not self._is_number()

    def _method(self, name: str, *args: Any, **options: Any) -> Any:
        """The result of a method of NumPy's arrays, or of CuPy's."""
        out = options.pop("out", None)
        call = getattr(self._backend.array_type, name)
        return self._called(None, call, (self, *args), options, None if out is None else (out,))

    @property
    def _data(self) -> Any:
        """``numpy.ma`` reads this attribute, and would then ignore that the array is lazy."""
        raise ArgumentError("a lazy array has no mask: pass array.filled(0) or array.data")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        backend = self._backend
        found = getattr(backend.array_type, name)
        if not callable(found):
            values = backend.read_only(self._values())
            return self._result(getattr(values, name), getattr, (self, name), {})
        if name in UPDATING_METHODS:
            return lambda *args, **options: self._update(found, args, options)
        return lambda *args, **options: self._method(name, *args, **options)


def _reshaped(array: Any, shape: tuple[int, ...]) -> Any:
    """The step to another shape, for arrays of NumPy and CuPy."""
    return array.reshape(shape)
