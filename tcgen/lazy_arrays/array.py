"""Lazy NumPy arrays: operations are recorded, fused, and run when their values are needed.

The design follows Morton et al. (DelayRepay: Delayed Execution for Kernel Fusion in Python, DLS
2020). NumPy computes operations that have no kernel, from the values of their operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import getitem, setitem
from sys import getrefcount
from typing import Any

import numpy as np
import numpy.typing as npt

from ..compiler.target import kernel_target
from ..errors import ArgumentError, ShapeError
from .arguments import (
    PLAIN,
    are_plain,
    broadcasts_little,
    evaluated,
    is_basic,
    is_foreign,
    known_values,
    on_both,
    refuse_other_arrays,
    settle,
    values_of_one_shape,
)
from .array_api import ArrayNamespace
from .backend import BACKENDS, HOST, array_on_gpu, mixed
from .equations import lazy_system
from .evaluate import evaluate_into
from .functions import (
    FUNCTIONS,
    METHODS,
    READERS,
    REDUCES,
    UPDATES,
    UPDATING_METHODS,
    with_named_out,
)
from .graph import Node, Product, with_axes_of_array
from .kernels import kernel_of
from .line import line_of
from .memory import Memory, Step
from .operators import Operators
from .protocols import Protocols
from .record import axes_of, is_recorded, record_ufunc
from .slices import sliced
from .worth import LIMITS, read_limits

_PLACES = frozenset((int, slice, type(None), type(Ellipsis)))  # of keys without arrays


def _assigned(name: str) -> Any:
    """An attribute of NumPy's arrays to which values can be assigned."""

    def read(array: LazyArray) -> Any:
        return array.__getattr__(name)

    def write(array: LazyArray, value: Any) -> None:
        array._update(setattr, (name, value), {})

    return property(read, write, doc=f"``numpy.ndarray.{name}``; values can be assigned to it.")


class LazyArray(Operators, Protocols, Memory):
    """An array whose values are computed when they are needed; it behaves as a NumPy array.

    Operators and NumPy's functions record operations on large arrays: arithmetic, powers,
    functions, comparisons, ``where``, ``clip``, reductions over axes, ``einsum``, ``@``, ``dot``,
    slices, transposes and new axes, on arrays of one element type out of float64, float32 and
    complex128, with truth values and whole numbers among them. NumPy computes every other operation
    from the values. Values are computed once, when something asks for them: ``x.compute()``,
    ``numpy.asarray(x)``, ``print(x)``, ``float(x)``. :func:`tcgen.compute` computes several arrays
    in one program.
    """

    __slots__ = ()

    @staticmethod
    def _of_array(array: npt.NDArray[Any], mine: bool) -> LazyArray:
        made = LazyArray.__new__(LazyArray)
        made._root = made._waits = None
        made._array, made._mine, made._number = array, mine, False
        return made

    @staticmethod
    def _of_node(node: Node) -> LazyArray:
        made = LazyArray.__new__(LazyArray)
        made._root = None
        made._number = not node.shape and node.backend is HOST
        made._replace(node)
        return made

    def _view(self, step: Step) -> LazyArray:
        made = LazyArray.__new__(LazyArray)
        made._array = made._waits = made._seen = None
        made._number = False
        if self._root is None:
            made._root, made._steps = self, (step,)
        else:
            made._root, made._steps = self._root, (*self._steps, step)
        return made

    @property
    def _node(self) -> Node:
        return self._as_node()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape; it is known without the values."""
        array = self._known()
        return self._node.shape if array is None else array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type; it is known without the values."""
        array = self._known()
        return self._node.dtype if array is None else array.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def T(self) -> LazyArray:  # noqa: N802  (NumPy's name)
        """The axes in reverse order."""
        return self.transpose()

    flat = _assigned("flat")
    real = _assigned("real")
    imag = _assigned("imag")

    @property
    def waiting(self) -> int:
        """Number of operations that are recorded and have not run."""
        return self._node.weight

    def transpose(self, *axes: Any) -> LazyArray:
        """``numpy.ndarray.transpose``."""
        given = axes[0] if len(axes) == 1 else axes or None
        ndim = self.ndim
        if given is None:
            return self._view((with_axes_of_array, tuple(range(ndim - 1, -1, -1))))
        order = axes_of(given, ndim)
        if len(order) != ndim:
            raise ShapeError(f"transpose: {given} does not name each of the {ndim} axes once")
        return self._view((with_axes_of_array, order))

    def copy(self, order: Any = "C") -> LazyArray:
        """``numpy.ndarray.copy``; operations that wait go on waiting."""
        if self._known() is None and order in ("C", "K", "A"):
            return LazyArray._of_node(self._node)
        return LazyArray._of_array(self._values().copy(order), True)

    def explain(self) -> str:
        """The formula sequence and the loop nest of the kernel that would compute the values."""
        line = line_of((self._node,))
        if not line.operands[-1]:
            return "no operation waits: the values are known\n"
        lazy = lazy_system(line.nodes())
        return kernel_of(lazy, line.dtype.name, kernel_target()).program.explain()

    def compute(self) -> npt.NDArray[Any]:
        """The values as a read-only NumPy array, or as CuPy's; operations that wait run now."""
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

    # ---- calls of NumPy's functions

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        if method == "__call__":
            return self._call(ufunc, inputs, out, options)
        if method == "at":
            if isinstance(inputs[0], LazyArray):
                return inputs[0]._update(ufunc.at, inputs[1:], options)
        elif method == "reduce" and ufunc in REDUCES:
            named = {"axis": 0, **options}  # the default of reduce, which is not that of sum
            return _called(REDUCES[ufunc], getattr(ufunc, method), inputs, named, out)
        return _called(None, getattr(ufunc, method), inputs, options, out)

    def _call(
        self,
        ufunc: np.ufunc,
        inputs: tuple[Any, ...],
        out: tuple[Any, ...] | None = None,
        options: Any = None,
        operate: Callable[..., Any] | None = None,
    ) -> Any:
        """The result of a universal function, or of Python's operator, which NumPy computes."""
        if options:
            return _called(None, ufunc, inputs, options, out)
        if out is None:
            values = values_of_one_shape(inputs, LIMITS.elements)
            if values is not None:
                try:
                    return LazyArray._wrapped((operate or ufunc)(*values))
                except (TypeError, ValueError):
                    pass  # said below
                values = None  # a reference to memory would keep updates from writing there
        recorder = partial(record_ufunc, ufunc) if is_recorded(ufunc) else None
        if recorder is not None and out is None and _is_noted(inputs):
            made = recorder(*[i._as_node() if type(i) is LazyArray else i for i in inputs])
            if made is not None:
                return LazyArray._of_node(made)
        return _called(recorder, operate or ufunc, inputs, {}, out)

    def __array_function__(
        self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if len(types) > 1 and any(map(is_foreign, types)):
            return NotImplemented  # the class of another library, which NumPy asks next
        args, kwargs = with_named_out(func, args, kwargs)
        if args and isinstance(args[0], LazyArray):
            if func in UPDATES:
                return args[0]._update(func, args[1:], kwargs)
            if func is np.transpose:
                return args[0].transpose(*args[1:], **kwargs)
        options = kwargs
        target = kwargs.get("out")
        if "out" in kwargs:
            options = {name: value for name, value in kwargs.items() if name != "out"}
        out = None if target is None else (target,)
        return _called(FUNCTIONS.get(func), func, args, options, out)

    @staticmethod
    def _operand(value: Any) -> Any:
        refuse_other_arrays(value)
        return value._values() if type(value) is LazyArray else value

    @staticmethod
    def _wrapped(made: Any) -> Any:
        """A result of NumPy; its arrays are new."""
        if type(made) in BACKENDS:
            return LazyArray._of_array(made, True)
        return tuple(map(LazyArray._wrapped, made)) if type(made) is tuple else made

    # ---- elements, slices and updates

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
                made = LazyArray._of_node(part)
                made._number = made._number and not dots  # an array of a number, as in NumPy
                return made
            values = self._values()
        found = values[()][key] if self._number else values[key]
        if type(found) not in BACKENDS:
            return found
        if found.base is None or not np.may_share_memory(found, values):
            return LazyArray._of_array(found, True)
        return self._view((getitem, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        kind = type(value)
        if kind is LazyArray:
            if value._root is not None and self._is_part(key, value):
                return  # ``x[1:] += 1`` ends so: the part has been updated
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
        target[key] = value._known() if kind is LazyArray else value

    def _written_by(self, key: Any, value: LazyArray) -> bool:
        """Let the operations of a value that nobody else has write to a slice of the array."""
        if not (is_basic(key) and self._alone()):
            return False
        node, target = value._node, self._known()
        part = target[key]  # type: ignore[index]
        if type(part) not in BACKENDS or part.shape != node.shape or part.dtype != node.dtype:
            return False
        if not node.has_kernels:
            return False
        evaluate_into(node, part)
        return True

    def _changed_by(self, operation: str, other: LazyArray) -> bool:
        """Let the operations of a value that nobody else has change the array where it is.

        A whole array waits for other work than a product: later operations may join its loops.
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
        if not self._alone():
            return False
        target = self._known()
        if type(target) not in BACKENDS:
            return False
        assert target is not None
        evaluate_into(node, target, operation)
        return True

    def _is_part(self, key: Any, part: LazyArray) -> bool:
        """True if the part is this slice of the array."""
        root, steps = (self, ()) if self._root is None else (self._root, self._steps)
        if part._root is not root or len(part._steps) != len(steps) + 1:
            return False
        step, argument = part._steps[-1]
        if step is not getitem or part._steps[:-1] != steps:
            return False
        return is_basic(key) and is_basic(argument) and bool(key == argument)

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
            return _result(getattr(values, name), getattr, (self, name), {})
        if name == "resize":
            return self._resize
        if name in UPDATING_METHODS:
            return lambda *args, **options: self._update(found, args, options)
        return _Method(self, found)

    def _resize(self, *shape: Any, refcheck: bool = True) -> None:
        """``numpy.ndarray.resize``; other arrays keep the memory that they share."""
        if self._root is not None:
            raise ArgumentError("a view cannot be resized: resize the array, or a copy")
        array = self._values().copy()
        del refcheck  # the copy has no other references
        array.resize(*shape, refcheck=False)
        self._array, self._mine = array, True

    # ---- Python's protocols

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        if self._backend.on_gpu:
            raise ArgumentError(
                "lazy arrays of a GPU have no namespace of the array API: NumPy's functions take "
                "them, and cupy makes new arrays for tcgen.lazy"
            )
        np.empty(0).__array_namespace__(api_version=api_version)  # refuses unknown versions
        return NAMESPACE

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        asked = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
        options = {name: value for name, value in asked.items() if value is not None}
        if copy is not False:
            return self._values().copy().__dlpack__(**options)
        if max_version is not None and max_version[0] >= 1:  # a capsule says that it is read-only
            return self._backend.read_only(self._values()).__dlpack__(**options)
        return self._update(lambda array: array.__dlpack__(**options), (), {})

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """``numpy.ndarray.to_device``."""
        return _Method(self, self._backend.array_type.to_device)(device, stream=stream)

    def __dlpack_device__(self) -> tuple[Any, Any]:
        return self._values().__dlpack_device__()

    def __copy__(self) -> LazyArray:
        return self.copy("K")

    def __deepcopy__(self, memo: Any) -> LazyArray:
        return self.copy("K")

    def __reduce__(self) -> tuple[Any, ...]:
        return (lazy, (self.compute(),))

    def __repr__(self) -> str:
        return f"<lazy array of shape {self.shape}, {self.dtype}, {self.waiting} operations wait>"


class _Probe:
    """Counts the references to a value that an assignment alone holds."""

    def __setitem__(self, key: Any, value: Any) -> None:
        self.count = getrefcount(value)

    @classmethod
    def references(cls) -> int:
        probe = cls()
        probe[0] = object()
        return probe.count


_PASSED = _Probe.references()


class _Method:
    """A function of NumPy with its first argument: a method of a lazy array."""

    __slots__ = ("array", "function")

    def __init__(self, array: LazyArray, function: Any) -> None:
        self.array, self.function = array, function

    def __call__(self, *args: Any, **options: Any) -> Any:
        function, array = self.function, self.array
        target = options.pop("out", None)
        out = None if target is None else (target,)
        recorder = METHODS.get(function.__name__)
        return _called(recorder, function, (array, *args), options, out)


def lazy(array: npt.ArrayLike, *, copy: bool = False) -> LazyArray:
    """A lazy array: its operations are recorded, and later run as a few fused kernels.

    Args:
        array: neither copied nor written to; of the CPU's memory or, by CuPy, torch or JAX, of a
            GPU's. Recorded operations read it later: do not change it before they have run, or
            pass ``copy``.
        copy: copy the array; operations that a lazy array waits for run first.

    Raises:
        ArgumentError: ``array`` is not an array, or is on another GPU than the current one.
        UnavailableError: ``array`` is on a GPU, and CuPy cannot be used.

    Example:
        >>> import numpy as np
        >>> x = lazy(np.linspace(0.0, 1.0, 100_000))
        >>> y = np.sin(x) ** 2 + np.cos(x) ** 2
        >>> y
        <lazy array of shape (100000,), float64, 5 operations wait>
        >>> np.asarray(y)
        array([1., 1., 1., ..., 1., 1., 1.], shape=(100000,))
    """
    read_limits()
    if isinstance(array, LazyArray):
        return LazyArray._of_array(array._values().copy(), True) if copy else array
    own = array_on_gpu(array)
    if own is not None:
        return LazyArray._of_array(own.copy() if copy else own, copy)
    refuse_other_arrays(array)
    try:
        return LazyArray._of_array(np.array(array, copy=copy or None), copy)
    except ValueError as error:  # rows of different lengths, for example
        raise ArgumentError(f"tcgen.lazy cannot make an array of this: {error}") from None


def _made_lazy(array: npt.NDArray[Any], args: tuple[Any, ...]) -> LazyArray:
    """A result of NumPy as a lazy array; an array that NumPy passed on stays itself."""
    first = args[0] if args else None
    if isinstance(first, LazyArray) and first.dtype == array.dtype and first.shape == array.shape:
        own = first._values()
        if own.ctypes.data == array.ctypes.data and own.strides == array.strides:
            return first
    read_limits()
    return LazyArray._of_array(array, mine=array.flags.owndata)


NAMESPACE = ArrayNamespace(np, _made_lazy)


def compute(*arrays: LazyArray) -> tuple[npt.NDArray[Any], ...]:
    """Values of several lazy arrays, computed in one program, common parts once.

    Returns:
        A read-only NumPy array for each argument.

    Raises:
        ArgumentError: an argument is not a lazy array.

    Example:
        >>> import numpy as np
        >>> x = lazy(np.zeros(2))
        >>> e = np.exp(x)
        >>> compute(e + 1, e - 1)
        (array([2., 2.]), array([0., 0.]))
    """
    for array in arrays:
        if not isinstance(array, LazyArray):
            raise ArgumentError(f"compute: a {type(array).__name__} is not a lazy array")
    settle(arrays)
    return tuple(a.compute() for a in arrays)


# ---- calls


def _recorded(recorder: Callable[..., Any], args: tuple[Any, ...], options: Any) -> Any:
    for value in args:
        refuse_other_arrays(value)
    return recorder(*[a._as_node() if type(a) is LazyArray else a for a in args], **options)


def _called(
    recorder: Callable[..., Any] | None,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
    out: tuple[Any, ...] | None = None,
) -> Any:
    """The result of a call: its recorded operation, or NumPy's result if there is none."""
    most = math.inf if recorder is None else LIMITS.elements
    only_read = call in READERS
    values = known_values(args, most, only_read=only_read)
    if values is not None and recorder is not None and not broadcasts_little(values, most):
        values = None
    noted = recorder is not None and values is None
    if values is not None and out is None and are_plain(options.values()):
        try:
            return _result(call(*values, **options), call, args, options)
        except (TypeError, ValueError, LookupError):
            pass  # raised again below
    values = None  # a reference to memory would keep updates from writing there
    if recorder is not None and noted:
        if out is None:
            made = _recorded(recorder, args, options)
            if made is not None:
                return LazyArray._of_node(made)
        elif _takes_node(out[0]):
            made = _recorded(recorder, args, options)
            target = out[0]
            if made is not None and made.shape == target.shape and made.dtype == target.dtype:
                target._replace(made)
                return target
    settle((args, options))
    if out is not None:
        return _call_with_out(out, call, args, options)
    try:
        values = known_values(args, math.inf, only_read=True) if only_read else None
        made = call(*(evaluated(args) if values is None else values), **evaluated(options))
    except (TypeError, ValueError, LookupError) as error:
        if isinstance(error, TypeError) and on_both((args, options)):
            raise mixed() from error
        if recorder is not None and not noted:
            _recorded(recorder, args, options)  # raises an error that says what to do
        raise
    return _result(made, call, args, options)


def _has_no_arrays(key: Any) -> bool:
    """True for a tuple of numbers, slices and new axes."""
    return type(key) is tuple and _PLACES.issuperset(map(type, key))


def _is_noted(inputs: tuple[Any, ...]) -> bool:
    """True for lazy arrays and numbers, if an array waits or is large: the usual case."""
    noted = False
    for value in inputs:
        kind = type(value)
        if kind is LazyArray:
            array = value._known()
            noted = noted or array is None or array.size >= LIMITS.elements
        elif kind is not float and kind is not int:
            return False
    return noted


def _takes_node(target: Any) -> bool:
    """True for a target that can take operations in place of its values."""
    return type(target) is LazyArray and target._root is None and not target._number


def _result(
    made: Any, call: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """What NumPy made, its arrays as lazy ones: views of a lazy operand share its memory."""
    if type(made) in BACKENDS:
        if made.base is None and made.flags.owndata:
            return LazyArray._of_array(made, True)
        return _array_result(made, call, args, options, None)
    if type(made) in (tuple, list):
        return type(made)(
            _array_result(m, call, args, options, n) if type(m) in BACKENDS else m
            for n, m in enumerate(made)
        )
    return made


def _array_result(
    made: npt.NDArray[Any],
    call: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
    place: int | None,
) -> LazyArray:
    if made.base is not None or not made.flags.owndata:
        for n, source in enumerate(args):
            if type(source) is LazyArray and np.may_share_memory(made, source._values()):
                if source._number:
                    return LazyArray._of_array(made.copy(), True)  # NumPy's numbers have no views
                others = (*map(evaluated, args[:n]), None, *map(evaluated, args[n + 1 :]))
                again = (call, n, others, evaluated(options), place)
                return source._view((_call_again, again))
    return LazyArray._of_array(made, made.flags.owndata)


def _call_again(array: npt.NDArray[Any], call: Any) -> Any:
    """The step to a view that a function of NumPy takes."""
    function, place, args, options, part = call
    made = function(*args[:place], array, *args[place + 1 :], **options)
    return made if part is None else made[part]


def _call_with_out(
    out: tuple[Any, ...], call: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """NumPy's call with ``out``: only NumPy knows which elements of a target it leaves alone."""
    for target in out:
        if type(target) is LazyArray:
            target._writable()
        else:
            refuse_other_arrays(target)
    places = tuple([t._known() if type(t) is LazyArray else t for t in out])
    values = known_values(args, math.inf) or evaluated(args)
    named = evaluated(options)
    try:
        made = call(*values, out=places if len(places) > 1 else places[0], **named)
    except (TypeError, ValueError) as error:
        if type(error) is not ValueError and not isinstance(error, TypeError):
            raise  # a more precise error, such as an AxisError
        cast = isinstance(error, TypeError)
        targets = [t for t in out if hasattr(t, "shape")]
        said = " and ".join(f"{t.dtype}" if cast else f"shape {t.shape}" for t in targets)
        kind = ArgumentError if cast else ShapeError
        raise kind(f"out has {said}: {error}") from None
    if len(out) == 1:
        return out[0]
    return tuple(
        _result(result, call, args, options) if target is None else target
        for target, result in zip(out, made, strict=True)
    )
