"""Attributes, methods and protocols of NumPy's arrays, as lazy arrays have them.

Those of few known elements are NumPy's. Methods of recorded functions are also recorded. Others
compute the values that they need. If NumPy's result is a view, so is that of a lazy array.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from operator import index
from typing import Any, NoReturn

from ..errors import ArgumentError, ShapeError
from .arguments import small_values
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

    def method(self: Methods, *args: Any, **options: Any) -> Any:
        return self._method(name, args, options, recorder)

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
    def T(self) -> Any:  # noqa: N802  (NumPy's name)
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

    def transpose(self, *axes: Any) -> Any:
        """``numpy.ndarray.transpose``."""
        given = axes[0] if len(axes) == 1 else axes or None
        ndim = self.ndim
        order = tuple(range(ndim - 1, -1, -1)) if given is None else axes_of(given, ndim)
        if len(order) != ndim:
            raise ShapeError(f"transpose: {given} does not name each of the {ndim} axes once")
        if self._is_plain():
            return self._plain().transpose(order)
        return self._view((with_axes_of_array, order))

    def swapaxes(self, axis1: Any, axis2: Any) -> Any:
        """``numpy.ndarray.swapaxes``."""
        order = list(range(self.ndim))
        axes = (axis1, axis2)
        if self._is_plain() or any(
            type(a) is not int or a not in range(-len(order), len(order)) for a in axes
        ):
            return self._method("swapaxes", axes, {})
        order[axis1], order[axis2] = order[axis2], order[axis1]
        return self._view((with_axes_of_array, tuple(order)))

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """``numpy.ndarray.reshape``."""
        array = self._known()
        if not options and array is not None and array.flags.c_contiguous and not self._is_plain():
            try:
                return self._view((_reshaped, array.reshape(*shape).shape))
            except (TypeError, ValueError):
                pass  # raised again below
        return self._method("reshape", shape, options)

    def ravel(self, order: Any = "C") -> Any:
        """``numpy.ndarray.ravel``."""
        return self.reshape(-1) if order == "C" else self._method("ravel", (order,), {})

    def copy(self, order: Any = "C") -> Any:
        """``numpy.ndarray.copy``; pending operations stay pending."""
        if self._is_plain():
            return self._method("copy", (order,), {})
        if self._known() is None and order in ("C", "K", "A"):
            return self._of_node(self._as_node())
        return self._of_array(self._values().copy(order), True)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """``numpy.ndarray.to_device``."""
        return self._method("to_device", (device,), {"stream": stream})

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        """``numpy.ndarray.resize``; other arrays keep the memory that they share."""
        if self._root is not None:
            raise ArgumentError("a view cannot be resized: resize the array, or a copy")
        array = self._values().copy()
        del refcheck  # the copy has no other references
        array.resize(*shape, refcheck=False)
        self._array, self._mine, self._open, self._leaf = array, True, None, None

    @property
    def flags(self) -> _Flags:
        """``numpy.ndarray.flags``, which are only read."""
        return _Flags(self._backend.read_only(self._values()).flags)

    def setflags(self, *_: Any, **__: Any) -> None:
        """Refused, as assignments to flags are."""
        _refuse_flags()

    def _is_plain(self) -> bool:
        """True for few known elements, and for numbers, which are computed."""
        if self._number:
            self._values()
        return self._plain() is not None

    def _method(
        self, name: str, args: tuple[Any, ...], options: dict[str, Any], recorder: Any = None
    ) -> Any:
        """The result of a method of NumPy's arrays, or of CuPy's."""
        call = getattr(self._backend.array_type, name)
        if (recorder is None or self._number) and self._is_plain():
            values = small_values((*args, *options.values()))
            if values is not None and "out" not in options:
                named = dict(zip(options, values[len(args) :], strict=True))
                return getattr(self._plain(), name)(*values[: len(args)], **named)
        rest = dict(options)
        out = rest.pop("out", None)
        return self._called(recorder, call, (self, *args), rest, None if out is None else (out,))

    # ---- Python's protocols

    def __len__(self) -> int:
        shape: tuple[int, ...] = self.shape
        if not shape:
            raise ShapeError("an array without axes has no length")
        return shape[0]

    def __contains__(self, value: object) -> bool:
        return value in self._values()

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise ArgumentError("an array without axes has no elements to iterate over")
        plain = self._plain()
        if plain is not None or self.ndim == 1:
            return iter(self._values() if plain is None else plain)
        return (self[n] for n in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self._values())

    def __int__(self) -> int:
        return int(self._values())

    def __index__(self) -> int:
        return index(self._values())

    def __round__(self, digits: int | None = None) -> Any:
        if self.shape:
            raise ArgumentError(f"round takes a number, not shape {self.shape}: use numpy.round")
        number: Any = self._values()[()]
        return round(number, digits)

    def __float__(self) -> float:
        return float(self._values())

    def __complex__(self) -> complex:
        return complex(self._values())

    def __format__(self, form: str) -> str:
        return format(self._values(), form)

    def __str__(self) -> str:
        return str(self._values())

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
            values = self._values()
            plain = self._plain()
            if plain is not None:
                return getattr(plain, name)
            return self._result(getattr(backend.read_only(values), name), getattr, (self, name), {})
        if name in UPDATING_METHODS:
            return lambda *args, **options: self._update(found, args, options)
        return lambda *args, **options: self._method(name, args, options)


def _reshaped(array: Any, shape: tuple[int, ...]) -> Any:
    """The step to another shape, for arrays of NumPy and CuPy."""
    return array.reshape(shape)
