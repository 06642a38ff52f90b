"""Lazy NumPy arrays: operations are recorded, fused, and run when their values are needed.

The design follows Morton et al. (DelayRepay: Delayed Execution for Kernel Fusion in Python, DLS
2020). NumPy computes operations that have no kernel, from the values of their operands.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial, wraps
from operator import methodcaller
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ..compiler.target import kernel_target
from ..errors import ArgumentError
from .backend import BACKENDS, array_on_gpu, sent_to_gpu
from .calls import (
    NUMBERS,
    Calls,
    evaluated,
    is_number,
    refuse_other_arrays,
    settle,
    takes_views,
)
from .compile import kernel_of, lazy_system
from .dispatch import read_limits
from .functions import FUNCTIONS, UPDATING_METHODS, VIEWS
from .graph import in_order, linearize
from .record import record_ufunc
from .run import take_parts
from .ufuncs import RECORDED


def _assigned(name: str) -> Any:
    """An attribute of NumPy's arrays that values can be assigned to."""

    def read(array: LazyArray) -> Any:
        return array.__getattr__(name)

    def write(array: LazyArray, value: Any) -> None:
        array._update(setattr, (name, value), {})

    return property(read, write, doc=f"``numpy.ndarray.{name}``; values can be assigned to it.")


def _of_values(name: str) -> Callable[..., Any]:
    """A method of Python's protocols that takes the values."""
    return lambda array, *args: getattr(array._values(), name)(*args)


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


Binary = Callable[[Any, Any], Any]


def _binary(name: str, ufunc: np.ufunc) -> tuple[Binary, Binary, Binary]:
    """The three methods of a binary operator: forward, reflected, in place."""
    operate: Binary = getattr(operator, name, divmod)
    recorder = partial(record_ufunc, ufunc)
    of_elements = ufunc in RECORDED and ufunc is not np.matmul

    def forward(self: Any, other: Any) -> Any:
        array, kind = self._plain(), type(other)
        if array is not None and kind in NUMBERS:  # the usual cases are short
            return operate(array, other)
        if array is None and of_elements and kind in (type(self), float, int):
            node = recorder(self._node, other._node if kind is type(self) else other)
            if node is not None:
                return self._of_node(node)
        if getattr(other, "__array_ufunc__", True) is None:
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


class LazyArray(Calls):
    """An array whose values are computed when they are needed; it behaves as a NumPy array.

    Operators and NumPy's functions record operations on large arrays: arithmetic, powers,
    functions, comparisons, ``where``, ``clip``, reductions over axes, ``einsum``, ``@``, ``dot``,
    slices, transposes and new axes, on arrays of one element type out of float64, float32 and
    complex128, with booleans and integers among them. NumPy computes every other operation from the
    values. Values are computed once, when they are needed: ``x.compute()``, ``numpy.asarray(x)``,
    ``print(x)``, ``float(x)``. :func:`tcgen.compute` computes several arrays in one program.
    """

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
        return self.__getattr__("transpose")()

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

    def copy(self, order: Any = "C") -> Any:
        """``numpy.ndarray.copy``; pending operations stay pending."""
        if self._is_plain():
            return self._method("copy", (order,), {})
        if self._known() is None and order in ("C", "K", "A"):
            return self._of_node(self._node)
        return self._of_array(self._values().copy(order), True)

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
        if self._number:
            self._values()
            call, recorder = getattr(type(self._plain()), name), None
        elif getattr(np, name, None) in VIEWS and takes_views(args, options):
            made = self._views(methodcaller(name, *evaluated(args), **options))
            if made is not None:
                return made
        rest = dict(options)
        out = rest.pop("out", None)
        return self._called(recorder, call, (self, *args), rest, None if out is None else (out,))

    def explain(self) -> str:
        """The formula sequence and the loop nest of the kernel that would compute the values."""
        node = self._node
        take_parts((node,))
        line = linearize((node,))
        if not line.operands[-1]:
            return "nothing pending: already evaluated\n"
        lazy = lazy_system(line)
        return kernel_of(lazy, line.dtype.name, kernel_target()).program.explain()

    def compute(self) -> npt.NDArray[Any]:
        """The values as a read-only NumPy array, or as CuPy's; runs pending operations."""
        return self._handed_out()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if self._backend.on_gpu:
            raise ArgumentError(
                "the array is in the memory of a GPU: x.compute() is CuPy's array, and "
                "cupy.asnumpy(x.compute()) one of NumPy"
            )
        values = self._handed_out()
        if not copy and dtype is None:
            return values
        return np.array(values, dtype=dtype, copy=copy)  # refuses a cast without a copy

    # ---- Python's protocols

    def __len__(self) -> int:
        shape: tuple[int, ...] = self.shape
        return shape[0] if shape else len(self._values())

    __bool__, __int__, __index__ = map(_of_values, ("__bool__", "__int__", "__index__"))
    __float__, __complex__ = _of_values("__float__"), _of_values("__complex__")
    __format__, __str__ = _of_values("__format__"), _of_values("__str__")
    __contains__, __dlpack_device__ = _of_values("__contains__"), _of_values("__dlpack_device__")

    def __iter__(self) -> Iterator[Any]:
        plain = self._plain()
        if plain is not None or self.ndim < 2:
            return iter(self._values() if plain is None else plain)
        return (self[n] for n in range(len(self)))

    def __round__(self, digits: int | None = None) -> Any:
        number: Any = self._values()[()]
        return round(number, digits)

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
        recorder = FUNCTIONS.get(getattr(np, name, None))
        return lambda *args, **options: self._method(name, args, options, recorder)

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        if self._backend.on_gpu:
            raise ArgumentError(
                "lazy arrays of a GPU have no namespace of the array API: NumPy's functions take "
                "them, and cupy makes new arrays for tcgen.lazy"
            )
        np.empty(0).__array_namespace__(api_version=api_version)  # refuses unknown versions
        return NAMESPACE

    def __dlpack__(self, *, copy: bool | None = None, **options: Any) -> Any:
        if copy is not False:
            return self._values().copy().__dlpack__(**options)
        array = self._writable()
        return (array if self._backend.on_gpu else self._lent()).__dlpack__(**options)

    def __copy__(self) -> LazyArray:
        return lazy(self, copy=True)

    def __deepcopy__(self, memo: Any) -> LazyArray:
        return lazy(self, copy=True)

    def __reduce__(self) -> tuple[Any, ...]:
        return (lazy, (self.compute(),))

    # ---- operators

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

    __divmod__, __rdivmod__ = _binary("divmod", np.divmod)[:2]

    (__eq__, *_), (__ne__, *_) = _binary("eq", np.equal), _binary("ne", np.not_equal)
    (__lt__, *_), (__le__, *_) = _binary("lt", np.less), _binary("le", np.less_equal)
    (__gt__, *_), (__ge__, *_) = _binary("gt", np.greater), _binary("ge", np.greater_equal)
    __neg__, __pos__ = _unary("neg", np.negative), _unary("pos", np.positive)
    __abs__, __invert__ = _unary("abs", np.absolute), _unary("invert", np.invert)

    def __repr__(self) -> str:
        count = self.pending
        operations = f"{count} pending operation{'' if count == 1 else 's'}"
        return f"<lazy array of shape {self.shape}, {self.dtype}, {operations}>"


def lazy(array: npt.ArrayLike, *, copy: bool = False, device: str | None = None) -> LazyArray:
    """A lazy array: its operations are recorded, and later run as a few fused kernels.

    Args:
        array: neither copied nor written to; of the CPU's memory or, by CuPy, torch or JAX, of a
            GPU's. Recorded operations read it later: do not change it before they have run, or
            pass ``copy``.
        copy: copy the array; pending operations of a lazy array run first.
        device: ``"cuda"`` sends an array of the CPU's memory to the current GPU; None leaves it.

    Raises:
        ArgumentError: ``array`` is not an array, or is on another GPU than the current one, or
            ``device`` is another one.
        UnavailableError: ``array`` is or goes to a GPU, and CuPy cannot be used.

    Example:
        >>> import numpy as np
        >>> x = lazy(np.linspace(0.0, 1.0, 200_000))
        >>> y = np.sin(x) ** 2 + np.cos(x) ** 2
        >>> y
        <lazy array of shape (200000,), float64, 5 pending operations>
        >>> np.asarray(y)
        array([1., 1., 1., ..., 1., 1., 1.], shape=(200000,))
    """
    read_limits()
    if device not in (None, "cuda"):
        raise ArgumentError(f'lazy: {device!r} is not a device: give "cuda", or None')
    if isinstance(array, LazyArray) and (device is None or array._backend.on_gpu):
        return LazyArray._of_array(array._values().copy(), True) if copy else array
    own = array_on_gpu(array)
    if own is None and device is not None:
        refuse_other_arrays(array)
        return LazyArray._of_array(sent_to_gpu(np.asarray(array)), True)
    if own is not None:
        return LazyArray._of_array(own.copy() if copy else own, copy)
    refuse_other_arrays(array)
    try:
        return LazyArray._of_array(np.array(array, copy=copy or None), copy)
    except ValueError as error:
        raise ArgumentError(f"tcgen.lazy cannot make an array of this: {error}") from None


_PASSING = (np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray)


class _Namespace:
    """NumPy, or a part of it, whose functions return lazy arrays.

    NumPy's own functions also take lazy arrays, but functions without array arguments, such as
    ``zeros``, make NumPy's arrays. Code that takes the namespace of an array expects its kind.
    """

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._module) if not name.startswith("_")]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and not name.startswith("__array_"):
            raise AttributeError(name)
        found = getattr(self._module, name)
        if isinstance(found, ModuleType):
            return _Namespace(found)
        return found if isinstance(found, type) or not callable(found) else _wrapped(found)


@cache  # equal functions at each access
def _wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function, updated=())
    def called(*args: Any, **options: Any) -> Any:
        made = function(*args, **options)
        first = args[0] if args else None
        if function in _PASSING and isinstance(first, LazyArray) and not options.get("copy"):
            own = first._values()  # an argument that NumPy passes on stays itself
            if (own.dtype, own.strides) == (made.dtype, made.strides):
                return first
        return _lazy(made, args)

    return called


def _lazy(made: Any, args: tuple[Any, ...]) -> Any:
    """A result with its arrays lazy, also in tuples, which may have named fields."""
    if isinstance(made, np.ndarray | np.generic):
        read_limits()
        array = np.asarray(made)
        is_new = array.flags.owndata and not any(array is given for given in args)
        return LazyArray._of_array(array, mine=is_new)
    if isinstance(made, tuple | list):
        parts = [_lazy(part, args) for part in made]
        return type(made)(*parts) if hasattr(made, "_fields") else type(made)(parts)
    return made


NAMESPACE = _Namespace(np)


def compute(*arrays: LazyArray | npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
    """Values of several lazy arrays, computed in one program, common parts once.

    Returns:
        A read-only NumPy array for each lazy array; NumPy's arrays and numbers as they are.

    Raises:
        ArgumentError: an argument is neither a lazy array nor one of NumPy.

    Example:
        >>> import numpy as np
        >>> x = lazy(np.zeros(2))
        >>> e = np.exp(x)
        >>> compute(e + 1, e - 1)
        (array([2., 2.]), array([0., 0.]))
    """
    for array in arrays:
        if not isinstance(array, LazyArray | np.generic) and type(array) not in BACKENDS:
            raise ArgumentError(f"compute: a {type(array).__name__} is not a lazy array")
    settle(arrays)
    return tuple(a.compute() if isinstance(a, LazyArray) else a for a in arrays)
