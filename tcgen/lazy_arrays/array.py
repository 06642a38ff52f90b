"""Lazy NumPy arrays: operations are recorded, fused, and run when their values are needed.

The design follows Morton et al. (DelayRepay: Delayed Execution for Kernel Fusion in Python, DLS
2020). NumPy computes operations that have no kernel, from the values of their operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from operator import index, setitem
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..compiler.target import kernel_target
from ..errors import ArgumentError, ShapeError
from .equations import lazy_system
from .evaluate import evaluate, program_of
from .graph import Leaf, Node, snapshot
from .record import (
    FUNCTIONS,
    UPDATES,
    UPDATING_METHODS,
    Recorded,
    record_ufunc,
    sum_of,
    transposed,
    with_axes,
    with_named_out,
)


class LazyArray(NDArrayOperatorsMixin):
    """An array whose values are computed when they are needed; it behaves as a NumPy array.

    Operators and NumPy's functions record operations: arithmetic, whole powers, sqrt, exp, log,
    abs, sin, cos, tanh, conj, sums and means over axes, ``einsum``, ``@``, ``dot``, transposes and
    new axes, on arrays of one element type out of float64, float32 and complex128. NumPy computes
    every other operation from the values. Values are computed once, when something asks for them:
    ``x.compute()``, ``numpy.asarray(x)``, ``print(x)``, ``float(x)``, indexing.
    :func:`tcgen.compute` computes several arrays in one program.
    """

    __slots__ = ("__weakref__", "_recorded")

    def __init__(self, record: Recorded) -> None:
        self._recorded = record

    @property
    def _node(self) -> Node:
        return self._recorded.node

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape; it is known without the values."""
        return self._node.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type; it is known without the values."""
        return self._recorded.dtype

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

    @property
    def waiting(self) -> int:
        """Number of operations that are recorded and have not run."""
        return self._node.weight

    def transpose(self, *axes: Any) -> LazyArray:
        """``numpy.ndarray.transpose``."""
        given = axes[0] if len(axes) == 1 else axes or None
        return LazyArray(transposed(self._recorded, given))

    def sum(self, *args: Any, **options: Any) -> Any:
        """``numpy.ndarray.sum``."""
        return np.sum(self, *args, **options)

    def mean(self, *args: Any, **options: Any) -> Any:
        """``numpy.ndarray.mean``."""
        return np.mean(self, *args, **options)

    def explain(self) -> str:
        """The formula sequence and the loop nest of the kernel that would compute the values."""
        (node,) = snapshot([self._node])
        if not node.weight:
            return "no operation waits: the values are known\n"
        lazy = lazy_system([node])
        return program_of(lazy, self.dtype.name, kernel_target()).explain()

    def compute(self) -> npt.NDArray[Any]:
        """The values as a read-only NumPy array; operations that wait run now."""
        return np.asarray(self)

    def _values(self) -> npt.NDArray[Any]:
        evaluate([self._node], self.dtype.name)
        assert isinstance(self._node.work, Leaf)
        return self._node.work.array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = self._values().view()
        values.flags.writeable = False  # recorded operations may read these values
        if not copy and dtype is None:
            return values
        return np.array(values, dtype=dtype, copy=copy)  # refuses a cast without a copy

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        made: Recorded | None = None
        if method == "at" and isinstance(inputs[0], LazyArray):
            return inputs[0]._updated(ufunc.at, inputs[1:], options)
        if method == "__call__" and not options:
            made = record_ufunc(ufunc, _recorded_arguments(inputs))
        elif method == "reduce" and ufunc is np.add:
            options.setdefault("axis", 0)  # the default of reduce, which is not that of sum
            made = sum_of(*_recorded_arguments(inputs), **options)
        return _result_of_call(made, out, getattr(ufunc, method), inputs, options)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        args, kwargs = with_named_out(function, args, kwargs)
        if function in UPDATES and args and isinstance(args[0], LazyArray):
            return args[0]._updated(function, args[1:], kwargs)
        options = {name: value for name, value in kwargs.items() if name != "out"}
        target = kwargs.get("out")
        recorder = FUNCTIONS.get(function)
        made = None if recorder is None else recorder(*_recorded_arguments(args), **options)
        return _result_of_call(made, None if target is None else (target,), function, args, options)

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if all(k is None or k is Ellipsis or k == slice(None) for k in map(_comparable, keys)):
            source = _picked_axes(keys, self.ndim)
            if source is not None:
                return LazyArray(with_axes(self._recorded, source))
        found = self._values()[_evaluated(key)]
        return _as_lazy(found) if type(found) is np.ndarray else found

    def __setitem__(self, key: Any, value: Any) -> None:
        self._updated(setitem, (key, value), {})

    def _updated(self, change: Callable[..., Any], args: Any, options: dict[str, Any]) -> Any:
        """Let a function of NumPy change a copy of the values."""
        values = self._values().copy()  # operations recorded before read the old ones
        made = change(values, *_evaluated(args), **_evaluated(options))
        self._recorded = _as_lazy(values)._recorded
        return made

    @property
    def _data(self) -> Any:
        """``numpy.ma`` reads this attribute, and would then ignore that the array is lazy."""
        raise ArgumentError("a lazy array has no mask: pass array.filled(0) or array.data")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in UPDATING_METHODS:
            change = getattr(np.ndarray, name)
            return lambda *args, **options: self._updated(change, args, options)
        return getattr(np.asarray(self), name)

    def __copy__(self) -> LazyArray:
        return LazyArray(self._recorded)  # an update of one array does not change the other

    def __reduce__(self) -> tuple[Any, ...]:
        return (lazy, (np.asarray(self),))

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("an array without axes has no length")
        return self.shape[0]

    def __contains__(self, value: object) -> bool:
        return value in np.asarray(self)

    def __iter__(self) -> Iterator[Any]:
        return iter(np.asarray(self))

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def __int__(self) -> int:
        return int(np.asarray(self))

    def __index__(self) -> int:
        return index(np.asarray(self))

    def __round__(self, digits: int | None = None) -> Any:
        if self.shape:
            raise ArgumentError(f"round of an array of shape {self.shape}: use numpy.round")
        number: Any = self._values()[()]
        return round(number, digits)

    def __float__(self) -> float:
        return float(np.asarray(self))

    def __complex__(self) -> complex:
        return complex(np.asarray(self))

    def __format__(self, form: str) -> str:
        return format(np.asarray(self), form)

    def __str__(self) -> str:
        return str(np.asarray(self))

    def __repr__(self) -> str:
        return f"<lazy array of shape {self.shape}, {self.dtype}, {self.waiting} operations wait>"


def lazy(array: npt.ArrayLike, *, copy: bool = False) -> LazyArray:
    """A lazy array: its operations are recorded, and run as few fused kernels.

    Args:
        array: neither copied nor written to. Recorded operations read it later: do not change it
            before they have run, or pass ``copy``.
        copy: copy the array; operations that a lazy array waits for run first.

    Example:
        >>> import numpy as np
        >>> x = lazy(np.linspace(0.0, 1.0, 5))
        >>> y = np.sin(x) ** 2 + np.cos(x) ** 2
        >>> y
        <lazy array of shape (5,), float64, 5 operations wait>
        >>> np.asarray(y)
        array([1., 1., 1., 1., 1.])
    """
    if isinstance(array, LazyArray):
        return _as_lazy(np.array(array)) if copy else array
    if hasattr(array, "__cuda_array_interface__"):
        raise ArgumentError("lazy arrays are in host memory: copy the array to NumPy")
    _refuse_other_arrays(array)
    try:
        return _as_lazy(np.array(array, copy=copy or None))
    except ValueError as error:  # rows of different lengths, for example
        raise ArgumentError(f"lazy: this is not an array: {error}") from None


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
    for name in dict.fromkeys(a.dtype.name for a in arrays):
        evaluate([a._node for a in arrays if a.dtype.name == name], name)
    return tuple(a.compute() for a in arrays)


def _as_lazy(array: npt.NDArray[Any]) -> LazyArray:
    return LazyArray(Recorded(Node(Leaf(array), array.shape), array.dtype))


def _evaluated(value: Any) -> Any:
    """The value with every lazy array in it, also in tuples, lists and dicts, as a NumPy array."""
    match value:
        case LazyArray():
            return np.asarray(value)
        case np.ndarray():
            _refuse_other_arrays(value)
            return value
        case tuple() | list():
            return type(value)(map(_evaluated, value)) if type(value) in (tuple, list) else value
        case dict():
            return {k: _evaluated(v) for k, v in value.items()}
        case _:
            return value


def _refuse_other_arrays(value: object) -> None:
    """Refuse arrays that multiply as matrices, masked arrays, and arrays that NumPy cannot read."""
    if isinstance(value, np.matrix):
        raise ArgumentError("lazy arrays multiply by elements: pass numpy.asarray(matrix)")
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentError("a lazy array has no mask: pass array.filled(0) or array.data")
    kind = type(value)  # such as SciPy's sparse arrays, whose operators NumPy calls
    if hasattr(kind, "__array_priority__") and not hasattr(kind, "__array__"):
        raise ArgumentError(
            f"NumPy cannot read a {kind.__name__} as an array: pass its toarray(), or "
            f"numpy.asarray of the lazy array"
        )


def _recorded_arguments(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, lazy arrays replaced by their recorded operations."""
    for value in args:
        _refuse_other_arrays(value)
    return tuple(a._recorded if isinstance(a, LazyArray) else a for a in args)


def _wrapped(made: Any) -> Any:
    if isinstance(made, Recorded):
        return LazyArray(made)
    return _as_lazy(made) if type(made) is np.ndarray and made.ndim else made


def _result_of_call(
    made: Recorded | None,
    out: tuple[Any, ...] | None,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
) -> Any:
    """The result of a call: its recorded operation, or NumPy's result if there is none."""
    if out is None:
        return _wrapped(call(*_evaluated(args), **_evaluated(options)) if made is None else made)
    if made is None or not _fits(made, out[0]):
        return _call_numpy_with_out(out, call, args, options)
    if isinstance(out[0], LazyArray):
        out[0]._recorded = made  # the target takes the new operation
    else:
        np.copyto(out[0], np.asarray(LazyArray(made)))
    return out[0]


def _fits(made: Recorded, target: Any) -> bool:
    """True if the target has the shape and type of the result; NumPy handles every other target."""
    return (
        (isinstance(target, LazyArray) or type(target) is np.ndarray)
        and target.shape == made.shape
        and target.dtype == made.dtype
    )


def _call_numpy_with_out(
    out: tuple[Any, ...], call: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """NumPy's call with ``out``: only NumPy knows which elements of a target it leaves alone."""
    places = tuple(_memory_for(target, options) for target in out)
    values, named = _evaluated(args), _evaluated(options)
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
    results = []
    for target, place, result in zip(
        out, places, made if isinstance(made, tuple) else (made,), strict=True
    ):
        if isinstance(target, LazyArray):
            target._recorded = _as_lazy(place)._recorded
        results.append(_wrapped(result) if target is None else target)
    return results[0] if len(results) == 1 else tuple(results)


def _memory_for(target: Any, options: dict[str, Any]) -> Any:
    """Memory that NumPy writes for a target; new for a lazy one, whose values others may read."""
    _refuse_other_arrays(target)
    if not isinstance(target, LazyArray):
        return target
    if options.get("where", True) is True:
        return np.empty(target.shape, target.dtype)
    return target._values().copy()  # elements outside the mask keep their values


def _picked_axes(keys: tuple[Any, ...], ndim: int) -> tuple[int | None, ...] | None:
    """Axes that a key of whole slices, new axes and an ellipsis selects; None for a wrong key."""
    taken = sum(k is not None and k is not Ellipsis for k in keys)
    dots = [n for n, k in enumerate(keys) if k is Ellipsis]
    if taken > ndim or len(dots) > 1:
        return None
    place = dots[0] if dots else len(keys)
    rest = (slice(None),) * (ndim - taken)
    axes = iter(range(ndim))
    return tuple(
        None if k is None else next(axes) for k in (*keys[:place], *rest, *keys[place + 1 :])
    )


def _comparable(key: Any) -> Any:
    """The key, or 0 in place of an array, which cannot be compared with others."""
    return key if key is None or key is Ellipsis or isinstance(key, slice) else 0
