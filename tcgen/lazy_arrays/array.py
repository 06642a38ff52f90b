"""Delayed NumPy arrays: operations are noted, fused, and run when their values are needed.

After Morton et al. (DelayRepay: Delayed Execution for Kernel Fusion in Python, DLS 2020). What has
no kernel is left to NumPy, which gets the values it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from operator import index, setitem
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..errors import ArgumentError, ShapeError
from .equations import delayed_system
from .evaluate import program_of, settle
from .graph import Leaf, Node, snapshot
from .record import (
    FUNCTIONS,
    UPDATES,
    UPDATING_METHODS,
    Noted,
    called,
    total_of,
    transposed,
    turned,
    with_named_out,
)


class LazyArray(NDArrayOperatorsMixin):
    """An array whose values may still wait for operations; it behaves as a NumPy array.

    Operators and the functions of NumPy on it note what is to be done: arithmetic, whole powers,
    sqrt, exp, log, abs, sin, cos, tanh, conj, sums and means over axes, ``einsum``, ``@``, ``dot``,
    transposes and new axes, on arrays of one element type out of float64, float32 and complex128.
    Everything else takes the values first and is NumPy's. Values are computed once, when something
    asks for them: ``numpy.asarray(x)``, ``print(x)``, ``float(x)``, indexing,
    :func:`tcgen.evaluate`.
    """

    __slots__ = ("__weakref__", "_noted")

    def __init__(self, noted: Noted) -> None:
        self._noted = noted

    @property
    def _node(self) -> Node:
        return self._noted.node

    @property
    def shape(self) -> tuple[int, ...]:
        """Known without the values."""
        return self._node.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Known without the values."""
        return self._noted.dtype

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
        """Operations that have been noted and not run."""
        return self._node.weight

    def transpose(self, *axes: Any) -> LazyArray:
        """``numpy.ndarray.transpose``."""
        given = axes[0] if len(axes) == 1 else axes or None
        return LazyArray(transposed(self._noted, given))

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
            return "nothing waits: the values are there\n"
        return program_of(delayed_system([node]), self.dtype.name).explain()

    def _values(self) -> npt.NDArray[Any]:
        settle([self._node], self.dtype.name)
        assert isinstance(self._node.work, Leaf)
        return self._node.work.array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = self._values().view()
        values.flags.writeable = False  # others may wait for these values
        if not copy and dtype is None:
            return values
        return np.array(values, dtype=dtype, copy=copy)  # refuses a cast without a copy

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        made: Noted | None = None
        if method == "at" and isinstance(inputs[0], LazyArray):
            return inputs[0]._updated(ufunc.at, inputs[1:], options)
        if method == "__call__" and not options:
            made = called(ufunc, _notes(inputs))
        elif method == "reduce" and ufunc is np.add:
            options.setdefault("axis", 0)  # the default of reduce, which is not that of sum
            made = total_of(*_notes(inputs), **options)
        return _delivered(made, out, getattr(ufunc, method), inputs, options)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        args, kwargs = with_named_out(function, args, kwargs)
        if function in UPDATES and args and isinstance(args[0], LazyArray):
            return args[0]._updated(function, args[1:], kwargs)
        options = {name: value for name, value in kwargs.items() if name != "out"}
        target = kwargs.get("out")
        noting = FUNCTIONS.get(function)
        made = None if noting is None else noting(*_notes(args), **options)
        return _delivered(made, None if target is None else (target,), function, args, options)

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if all(k is None or k is Ellipsis or k == slice(None) for k in map(_plain_key, keys)):
            source = _picked(keys, self.ndim)
            if source is not None:
                return LazyArray(turned(self._noted, source))
        found = self._values()[_given(key)]
        return _there(found) if type(found) is np.ndarray else found

    def __setitem__(self, key: Any, value: Any) -> None:
        self._updated(setitem, (key, value), {})

    def _updated(self, change: Callable[..., Any], args: Any, options: dict[str, Any]) -> Any:
        """Let a function of NumPy change the values."""
        values = self._values().copy()  # what was noted before keeps the old ones
        made = change(values, *_given(args), **_given(options))
        self._noted = _there(values)._noted
        return made

    @property
    def _data(self) -> Any:
        """What ``numpy.ma`` asks an operand for before it drops everything that is not NumPy's."""
        raise ArgumentError("a lazy array has no mask: pass array.filled(0) or array.data")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in UPDATING_METHODS:
            change = getattr(np.ndarray, name)
            return lambda *args, **options: self._updated(change, args, options)
        return getattr(np.asarray(self), name)

    def __copy__(self) -> LazyArray:
        return LazyArray(self._noted)  # an update of one does not reach the other

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
    """A delayed array: operations on it are noted, and run as few fused kernels.

    Args:
        array: is not copied and never written to. What waits reads it later: do not change it
            before, or pass ``copy``.
        copy: take a copy; what a lazy array waits for is computed for it.

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
        return _there(np.array(array)) if copy else array
    if hasattr(array, "__cuda_array_interface__"):
        raise ArgumentError("lazy arrays live on the CPU: copy the array to NumPy")
    _refuse_other_arrays(array)
    try:
        return _there(np.array(array, copy=copy or None))
    except ValueError as error:  # rows of different lengths, for example
        raise ArgumentError(f"lazy: this is no array: {error}") from None


def evaluate(*arrays: LazyArray) -> None:
    """Compute several delayed arrays together, so that what they share is computed once.

    Raises:
        ArgumentError: an argument is no delayed array.

    Example:
        >>> import numpy as np
        >>> x = lazy(np.ones(3))
        >>> e = np.exp(x)
        >>> a, b = e + 1, e - 1
        >>> evaluate(a, b)
        >>> a.waiting, b.waiting
        (0, 0)
    """
    for array in arrays:
        if not isinstance(array, LazyArray):
            raise ArgumentError(f"evaluate: a {type(array).__name__} is no lazy array")
    for name in dict.fromkeys(a.dtype.name for a in arrays):
        settle([a._node for a in arrays if a.dtype.name == name], name)


def _there(array: npt.NDArray[Any]) -> LazyArray:
    return LazyArray(Noted(Node(Leaf(array), array.shape), array.dtype))


def _given(value: Any) -> Any:
    """Delayed arrays, also inside tuples, lists and dicts, as NumPy arrays."""
    match value:
        case LazyArray():
            return np.asarray(value)
        case np.ndarray():
            _refuse_other_arrays(value)
            return value
        case tuple() | list():
            return type(value)(map(_given, value)) if type(value) in (tuple, list) else value
        case dict():
            return {k: _given(v) for k, v in value.items()}
        case _:
            return value


def _refuse_other_arrays(value: object) -> None:
    """Refuse the classes with another product than that of arrays, and with elements left out."""
    if isinstance(value, np.matrix):
        raise ArgumentError("lazy arrays multiply by elements: pass numpy.asarray(matrix)")
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentError("a lazy array has no mask: pass array.filled(0) or array.data")
    kind = type(value)  # with operators that NumPy's arrays leave the work to: SciPy's sparse ones
    if hasattr(kind, "__array_priority__") and not hasattr(kind, "__array__"):
        raise ArgumentError(
            f"a {kind.__name__} is no array to NumPy: pass its elements as one (toarray), or "
            f"numpy.asarray of the lazy array"
        )


def _notes(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with what delayed arrays stand for in their places."""
    for value in args:
        _refuse_other_arrays(value)
    return tuple(a._noted if isinstance(a, LazyArray) else a for a in args)


def _wrapped(made: Any) -> Any:
    if isinstance(made, Noted):
        return LazyArray(made)
    return _there(made) if type(made) is np.ndarray and made.ndim else made


def _delivered(
    made: Noted | None,
    out: tuple[Any, ...] | None,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
) -> Any:
    """The result of a call: what was noted for it, or else what NumPy makes of the values."""
    if out is None:
        return _wrapped(call(*_given(args), **_given(options)) if made is None else made)
    if made is None or not _fits(made, out[0]):
        return _computed_into(out, call, args, options)
    if isinstance(out[0], LazyArray):
        out[0]._noted = made  # it changes what it waits for
    else:
        np.copyto(out[0], np.asarray(LazyArray(made)))
    return out[0]


def _fits(made: Noted, target: Any) -> bool:
    """The target takes what was noted as it is; NumPy casts, broadcasts and refuses the rest."""
    return (
        (isinstance(target, LazyArray) or type(target) is np.ndarray)
        and target.shape == made.shape
        and target.dtype == made.dtype
    )


def _computed_into(
    out: tuple[Any, ...], call: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """NumPy's results in their places: it alone knows which elements a call leaves as they are."""
    places = tuple(_place(target, options) for target in out)
    values, named = _given(args), _given(options)
    try:
        made = call(*values, out=places if len(places) > 1 else places[0], **named)
    except (TypeError, ValueError) as error:
        if type(error) is not ValueError and not isinstance(error, TypeError):
            raise  # says more than that something does not fit: an AxisError, for example
        cast = isinstance(error, TypeError)
        targets = [t for t in out if hasattr(t, "shape")]
        said = " and ".join(f"{t.dtype}" if cast else f"shape {t.shape}" for t in targets)
        kind = ArgumentError if cast else ShapeError
        raise kind(f"an array of {said} as out: {error}") from None
    results = []
    for target, place, result in zip(
        out, places, made if isinstance(made, tuple) else (made,), strict=True
    ):
        if isinstance(target, LazyArray):
            target._noted = _there(place)._noted
        results.append(_wrapped(result) if target is None else target)
    return results[0] if len(results) == 1 else tuple(results)


def _place(target: Any, options: dict[str, Any]) -> Any:
    """Memory that NumPy writes to for a target: new for a delayed one, of which others may know."""
    _refuse_other_arrays(target)
    if not isinstance(target, LazyArray):
        return target
    if options.get("where", True) is True:
        return np.empty(target.shape, target.dtype)
    return target._values().copy()  # elements that the mask leaves out stay


def _picked(keys: tuple[Any, ...], ndim: int) -> tuple[int | None, ...] | None:
    """Axes that a key of whole slices, new axes and an ellipsis picks; None for a wrong key."""
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


def _plain_key(key: Any) -> Any:
    """A key that may be compared with others: arrays may not."""
    return key if key is None or key is Ellipsis or isinstance(key, slice) else 0
