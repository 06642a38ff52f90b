"""Calls of NumPy's functions on lazy arrays: recorded operations, or results of NumPy.

Calls on few elements with known values take a fast path to NumPy. All others, and those that NumPy
refuses, take the slow path, which records operations and reports errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import matmul
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, ShapeError
from ..runtime.arguments import overlaps_itself
from .arguments import (
    are_plain,
    broadcasts_little,
    evaluated,
    is_foreign,
    known_values,
    on_both,
    product_size,
    refuse_other_arrays,
    settle,
    small_values,
)
from .backend import BACKENDS, mixed
from .dispatch import LIMITS
from .elements import Elements
from .functions import (
    FUNCTIONS,
    READERS,
    REDUCES,
    UPDATES,
    VIEWS,
    with_first_by_position,
    with_named_out,
)
from .memory import Memory
from .ufuncs import RECORDED, record_ufunc

Recorder = Callable[..., Any]
_PRODUCTS = frozenset((np.matmul, matmul, np.dot, np.ndarray.dot))


class Calls(Elements):
    """NumPy's hooks of lazy arrays."""

    __slots__ = ()

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        if method == "__call__":
            return self._call(ufunc, inputs, out, options)
        if method == "at":
            if isinstance(inputs[0], Elements):
                return inputs[0]._update(ufunc.at, inputs[1:], options)
        elif method == "reduce" and ufunc in REDUCES:
            named = {"axis": 0, **options}  # the default of reduce, which is not that of sum
            return self._called(REDUCES[ufunc], getattr(ufunc, method), inputs, named, out)
        return self._called(None, getattr(ufunc, method), inputs, options, out)

    @classmethod
    def _call(
        cls,
        ufunc: np.ufunc,
        inputs: tuple[Any, ...],
        out: tuple[Any, ...] | None = None,
        options: Any = None,
        operate: Callable[..., Any] | None = None,
    ) -> Any:
        """The result of a universal function, or of Python's operator, which NumPy computes."""
        if options:
            return cls._called(None, ufunc, inputs, options, out)
        if out is None:
            values = cls._few(ufunc, inputs)
            if values is not None:
                try:
                    return cls._wrapped((operate or ufunc)(*values))
                except (TypeError, ValueError):
                    pass  # the slow path reports the error
                values = None  # a reference to memory would keep updates from writing there
        elif len(out) == 1 and cls._computes_into(out[0], ufunc, inputs):
            return out[0]
        if ufunc not in RECORDED:
            return cls._called(None, operate or ufunc, inputs, {}, out)
        if out is None and cls._is_recorded(inputs):
            made = record_ufunc(ufunc, *[i._as_node() if type(i) is cls else i for i in inputs])
            if made is not None:
                return cls._of_node(made)
        recorder = partial(record_ufunc, ufunc)
        return cls._called(recorder, operate or ufunc, inputs, {}, out)

    @classmethod
    def _few(cls, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> list[Any] | None:
        """The values of inputs with a result of few elements, which NumPy computes at once."""
        if ufunc is np.matmul:
            values = [i._known() if type(i) is cls else i for i in inputs]
            size = product_size(values)
            if size is not None:
                return values if size < LIMITS.elements else None
        return small_values(inputs, LIMITS.elements)

    @classmethod
    def _computes_into(cls, target: Any, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> bool:
        """Let NumPy write to a target of few elements; False if the call takes the slow path."""
        if type(target) is not cls:
            return False
        array = target._known()
        if array is None or array.size >= LIMITS.elements or target._is_number():
            return False
        array = None  # a reference to memory would keep the update from writing there
        target._writable()
        values = small_values(inputs, LIMITS.elements)
        if values is None:
            return False
        try:
            ufunc(*values, out=target._known())
        except (TypeError, ValueError):
            return False  # the slow path reports the error
        return True

    def __array_function__(
        self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if len(types) > 1 and any(map(is_foreign, types)):
            return NotImplemented  # NumPy then tries the class of another library
        if not args:
            args, kwargs = with_first_by_position(func, kwargs)
        if func in VIEWS and args and type(args[0]) is type(self):
            return VIEWS[func](*args, **kwargs)
        args, kwargs = with_named_out(func, args, kwargs)
        updates = func in UPDATES
        if func is np.nan_to_num:
            updates = not (args[1] if len(args) > 1 else kwargs.get("copy", True))
        if updates and args and isinstance(args[0], Elements):
            return args[0]._update(func, args[1:], kwargs)
        options = kwargs
        target = kwargs.get("out")
        if "out" in kwargs:
            options = {name: value for name, value in kwargs.items() if name != "out"}
        out = None if target is None else (target,)
        return self._called(FUNCTIONS.get(func), func, args, options, out)

    @staticmethod
    def _operand(value: Any) -> Any:
        refuse_other_arrays(value)
        return value._values() if isinstance(value, Memory) else value

    @classmethod
    def _wrapped(cls, made: Any) -> Any:
        """A result of NumPy; its arrays are new."""
        if type(made) in BACKENDS:
            return cls._of_array(made, True)
        return tuple(map(cls._wrapped, made)) if type(made) is tuple else made

    @classmethod
    def _is_recorded(cls, inputs: tuple[Any, ...]) -> bool:
        """True for lazy arrays and numbers, if an array is pending or large: the usual case."""
        recorded = False
        for value in inputs:
            kind = type(value)
            if kind is cls:
                array = value._known()
                recorded = recorded or array is None or array.size >= LIMITS.elements
            elif kind is not float and kind is not int:
                return False
        return recorded

    @classmethod
    def _called(
        cls,
        recorder: Recorder | None,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
        out: tuple[Any, ...] | None = None,
    ) -> Any:
        """The result of a call: its recorded operation, or NumPy's result if there is none."""
        most = math.inf if recorder is None else LIMITS.elements
        only_read = recorder is not None or call in READERS
        values: Any = known_values(args, most, only_read=only_read)
        if values is not None and recorder is not None:
            size = None
            if call in _PRODUCTS:
                size = product_size(values)
            elif call is np.tensordot:
                axes = values[2] if len(values) > 2 else options.get("axes", 2)
                size = product_size(values[:2], axes)
            if not (broadcasts_little(values, most) if size is None else size < most):
                values = None
        recorded = recorder is not None and values is None
        if values is not None and out is None and (not options or are_plain(options.values())):
            try:
                made = call(*values, **options)
                if any(made is value for value in values):
                    made = made.view()
                return cls._result(made, call, args, options)
            except (TypeError, ValueError, LookupError):
                pass  # raised again below
        values = None  # a reference to memory would keep updates from writing there
        if recorder is not None and recorded:
            if out is None:
                made = cls._recorded(recorder, args, options)
                if made is not None:
                    return cls._of_node(made)
            elif cls._takes_node(out[0]):
                made = cls._recorded(recorder, args, options)
                target = out[0]
                if made is not None and made.shape == target.shape and made.dtype == target.dtype:
                    target._replace(made)
                    return target
        settle((args, options))
        if out is not None:
            return cls._call_with_out(out, call, args, options)
        try:
            values = known_values(args, math.inf, only_read=True) if only_read else None
            values = evaluated(args) if values is None else values
            made = call(*values, **evaluated(options))
            if any(made is value for value in values):
                made = made.view()
        except (TypeError, ValueError, LookupError) as error:
            if isinstance(error, TypeError) and on_both((args, options)):
                raise mixed() from error
            if recorder is not None and not recorded:
                cls._recorded(recorder, args, options)  # raises an error that says what to do
            raise
        return cls._result(made, call, args, options)

    @classmethod
    def _recorded(cls, recorder: Recorder, args: tuple[Any, ...], options: Any) -> Any:
        for value in args:
            refuse_other_arrays(value)
        return recorder(*[a._as_node() if type(a) is cls else a for a in args], **options)

    @classmethod
    def _takes_node(cls, target: Any) -> bool:
        """True for a target that can take operations in place of its values."""
        return type(target) is cls and target._root is None and not target._number

    @classmethod
    def _result(
        cls, made: Any, call: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """A result of NumPy with lazy arrays: views of a lazy operand share its memory."""
        if type(made) in BACKENDS:
            if made.base is None and made.flags.owndata and not _is_read_only(made):
                return cls._of_array(made, True)
            return cls._array_result(made, call, args, options, None)
        if type(made) in (tuple, list):
            return type(made)(
                cls._array_result(m, call, args, options, n) if type(m) in BACKENDS else m
                for n, m in enumerate(made)
            )
        return made

    @classmethod
    def _array_result(
        cls,
        made: npt.NDArray[Any],
        call: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
        place: int | None,
    ) -> Self:
        if made.base is not None or not made.flags.owndata or _is_read_only(made):
            lazy = [n for n, source in enumerate(args) if type(source) is cls]
            # of broadcast_arrays(x, x), the second result is of the second argument
            lazy.sort(key=lambda n: n != place)
            sharing = [n for n in lazy if np.may_share_memory(made, args[n]._values())]
            # zeros that NumPy returns as the imaginary part of real numbers, and parts without
            # elements, share nothing and stay read-only
            for n in sharing or (lazy if _is_read_only(made) else ()):
                source: Self = args[n]
                if source._number:
                    return cls._of_array(made.copy(), True)  # NumPy's numbers have no views
                others = (*map(evaluated, args[:n]), None, *map(evaluated, args[n + 1 :]))
                again = (call, n, others, evaluated(options), place)
                return source._view((_call_again, again))
        return cls._of_array(made, made.flags.owndata)

    @classmethod
    def _call_with_out(
        cls,
        out: tuple[Any, ...],
        call: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        """NumPy's call with ``out``; only NumPy knows which elements of a target it leaves."""
        for target in out:
            if type(target) is cls:
                target._writable()
            else:
                refuse_other_arrays(target)
                if hasattr(target, "strides") and overlaps_itself(target):
                    raise ArgumentError("elements of out share memory: pass a copy of it")
        places = tuple([t._known() if type(t) is cls else t for t in out])
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
            cls._result(result, call, args, options) if target is None else target
            for target, result in zip(out, made, strict=True)
        )


def _is_read_only(array: Any) -> bool:
    """True for an array of NumPy that cannot be written to; those of a GPU always can."""
    return type(array) is np.ndarray and not array.flags.writeable


def _call_again(array: npt.NDArray[Any], call: Any) -> Any:
    """The step to a view that a function of NumPy takes."""
    function, place, args, options, part = call
    made = function(*args[:place], array, *args[place + 1 :], **options)
    return made if part is None else made[part]
