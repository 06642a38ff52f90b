"""Calls of NumPy's functions on lazy arrays: recorded operations, or results of NumPy.

NumPy computes calls on few known elements, and its results leave as they are. Other calls are
recorded. NumPy also computes those that cannot be, and large results of it are lazy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError
from ..runtime.arguments import overlaps_itself
from ..runtime.dlpack import on_a_gpu
from .backend import BACKENDS, backend_of, mixed
from .dispatch import LIMITS
from .functions import BY_VALUES, FUNCTIONS, READERS, REDUCES, UPDATES, VIEWS, with_named_out
from .graph import Node
from .memory import Memory, Step
from .record import chosen, record_ufunc
from .run import evaluate
from .ufuncs import RECORDED

Recorder = Callable[..., Any]


def _arrays_in(values: Iterable[Any]) -> Iterator[Any]:
    """The arrays, lazy ones and others, also in tuples, lists and dicts."""
    for value in values:
        if isinstance(value, Memory) or type(value) in BACKENDS:
            yield value
        elif type(value) in (tuple, list, dict):
            yield from _arrays_in(value.values() if type(value) is dict else value)


def _lazy_in(values: Iterable[Any]) -> list[Memory]:
    """The lazy arrays, also in tuples, lists and dicts."""
    return [array for array in _arrays_in(values) if isinstance(array, Memory)]


def settle(values: Iterable[Any]) -> None:
    """Compute all lazy arrays in the values, those of kernels of one element type together."""
    roots = [array._owner for array in _lazy_in(values) if array._owner._array is None]
    evaluate([root._pending for root in roots if root._pending is not None])
    for root in roots:
        root._settle()


def evaluated(value: Any, *, only_read: bool = False) -> Any:
    """The value with every lazy array in it, also in tuples, lists and dicts, as a NumPy array.

    Large arrays are read-only views: a function that changes them refuses. A function that is known
    to read them only gets the arrays themselves.
    """
    if isinstance(value, Memory):
        values = value._values()
        plain = value._plain()
        if plain is not None:
            return plain
        return values if only_read else backend_of(values).read_only(values)
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind in (tuple, list):
        return kind([evaluated(part, only_read=only_read) for part in value])
    if kind is dict:
        return {k: evaluated(v) for k, v in value.items()} if value else value
    refuse_other_arrays(value)
    return value


def refuse_other_arrays(value: object) -> None:
    """Refuse arrays that multiply as matrices, masked arrays, and arrays that NumPy cannot read."""
    kind = type(value)
    if kind in BACKENDS or kind in (int, float) or issubclass(kind, Memory):
        return
    # The type is known if lazy arrays are on this GPU. Tensors of torch and arrays of JAX have the
    # same type in the memory of the CPU.
    if on_a_gpu(value):
        raise mixed()
    if isinstance(value, np.matrix):
        raise ArgumentError("lazy arrays multiply by elements: pass numpy.asarray(matrix)")
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentError("a lazy array has no mask: pass array.filled(0) or array.data")
    # such as SciPy's sparse arrays, whose operators NumPy calls
    if hasattr(kind, "__array_priority__") and not hasattr(kind, "__array__"):
        raise ArgumentError(
            f"NumPy cannot read a {kind.__name__} as an array: pass its toarray(), or "
            f"numpy.asarray of the lazy array"
        )


def is_foreign(kind: type) -> bool:
    """True for a class that replaces functions of NumPy; arrays of a GPU are refused later."""
    return not issubclass(kind, (Memory, np.ndarray)) and not hasattr(
        kind, "__cuda_array_interface__"
    )


PLAIN = frozenset(
    (int, float, complex, bool, str, slice, type, type(None), np.float64, np.int64)
) | {type(np._NoValue)}


NUMBERS = frozenset((bool, int, float, complex, np.float64, np.float32, np.complex128, np.int64))
# Types of values that are assigned to NumPy's arrays as they are.
_VALUES = frozenset((int, float, complex, bool, np.float64, np.ndarray))
# Elements that are evaluated or copied in the time in which an operation on a lazy view is recorded
# and run, about 30 microseconds.
_VIEW = 2**15


def is_number(value: Any) -> bool:
    """True for numbers, those of Python and NumPy and lazy ones."""
    return type(value) in NUMBERS or (isinstance(value, Memory) and value._number)


def takes_views(args: Sequence[Any], options: dict[str, Any]) -> bool:
    """True unless arguments of a view have an order of elements, or arrays, which may change."""
    ordered = "order" in options or any(type(value) is str for value in args)
    return not ordered and not [*_arrays_in((args, options))]


# Types in keys without arrays.
_PLACES = frozenset((int, slice, type(None), type(Ellipsis)))


def _has_places(key: Any) -> bool:
    """True for a key without arrays."""
    kind = type(key)
    return kind in _PLACES or (kind is tuple and _PLACES.issuperset(map(type, key)))


class Calls(Memory):
    """NumPy's hooks of lazy arrays, and their elements."""

    __slots__ = ()

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        if method == "__call__":
            recorded = ufunc in RECORDED and not options
            recorder = partial(record_ufunc, ufunc) if recorded else None
            return self._called(recorder, ufunc, inputs, options, out)
        call = getattr(ufunc, method)
        if method == "at" and isinstance(inputs[0], Calls):
            return inputs[0]._update(call, inputs[1:], options)
        if (ufunc, method) in REDUCES:
            named = {"axis": 0, **options}  # the default of reduce, which is not that of sum
            return self._called(REDUCES[ufunc, method], call, inputs, named, out)
        return self._called(None, call, inputs, options, out)

    def __array_function__(
        self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if len(types) > 1 and any(map(is_foreign, types)):
            return NotImplemented  # NumPy then tries the class of another library
        args, options, target = with_named_out(func, args, kwargs)
        out = None if target is None else (target,)
        first = args[0] if args else None
        if out is None and isinstance(first, Calls) and first._plain() is None:
            if func in VIEWS and takes_views(args[1:], options):
                rest, named = evaluated(args[1:]), evaluated(options)  # lists may change later
                made = first._views(lambda array: func(array, *rest, **named))
                if made is not None:
                    return made
            updates = func in UPDATES
            if func is np.nan_to_num:
                updates = not (args[1] if len(args) > 1 else options.get("copy", True))
            if updates:
                return first._update(func, args[1:], options)
        return self._called(FUNCTIONS.get(func), func, args, options, out)

    # ---- elements

    def __getitem__(self, key: Any) -> Any:
        plain = self._open
        if plain is None:
            plain = self._numpys()
        if plain is not None:
            found = plain[key]
            if type(found) not in BACKENDS:
                return found
            # New axes are for a broadcast, whose result may be large.
            if found.size < LIMITS.elements and found.ndim <= plain.ndim:
                return found
            if found.base is None:  # the elements of a key of arrays
                return found if found.size < LIMITS.elements else self._of_array(found, True)
        if type(key) is type(self) and not self._number and not key._number:
            node = chosen(self._node, key._node)
            if node is not None and node.shape[0] >= LIMITS.elements:
                return self._of_node(node)
        return self._lazy_part(key if _has_places(key) else evaluated(key))

    def _lazy_part(self, key: Any) -> Any:
        """``self[key]`` for a key of numbers, slices and arrays of NumPy."""
        take, root = itemgetter(key), self._owner
        if root._array is None:
            part = self._views(take) if _has_places(key) else None
            if part is not None:
                return part
            self._values()
            return self[key]
        lent = root._open  # another thread may change it after this line
        array = self._part_of(root._array if lent is None else lent)
        found = array[key]
        is_element = type(found) not in BACKENDS
        few = is_element or (found.size < LIMITS.elements and found.ndim <= array.ndim)
        if few and lent is not None:
            return found
        is_view = is_element or (found.base is not None and np.may_share_memory(found, array))
        if few and is_view and type(array) is np.ndarray and array.dtype.kind in "biufc":
            root._taken += 0 if is_element else _VIEW
            if (root._mine and not root._is_read()) or root._taken >= array.size:
                return self._lent()[key]
        if is_view:
            return found if is_element else self._view(take)
        if not found.size:
            # To NumPy no memory is shared without elements, but the view may be read-only.
            found = found.copy()
        return found if found.size < LIMITS.elements else self._of_array(found, True)

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self._open
        if target is None:
            target = self._numpys()
        if type(target) is np.ndarray and type(value) in _VALUES:
            target[key] = value
            return
        is_lazy = type(value) is type(self)
        if is_lazy and target is None and _has_places(key) and self._filled(key, value):
            return
        settle((key, value))
        if target is None or type(target) is not np.ndarray:
            target = self._writable()
        target[evaluated(key)] = evaluated(value, only_read=True)

    def _update(
        self, change: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """Let a function of NumPy change the values, where nobody but views can see it."""
        settle((args, options))
        array = self._writable()
        made = change(array, *evaluated(args), **evaluated(options))
        return self if made is array else made

    # ---- calls

    @classmethod
    def _called(
        cls,
        recorder: Recorder | None,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
        out: tuple[Any, ...] | None = None,
    ) -> Any:
        """The result of a call: NumPy's of few elements, a recorded operation, or NumPy's."""
        try:
            arrays = _lazy_in((*args, options))
            few = all(array._plain() is not None for array in arrays)
            # The result may have many elements if shapes differ.
            shapes = {getattr(value, "shape", ()) for value in args} - {()}
            if few and (recorder is None or len(shapes) < 2):
                targets = () if out is None else cls._plain_targets(out)
                if targets is not None:
                    named = evaluated(options)
                    if targets:
                        named = {**named, "out": targets if len(targets) > 1 else targets[0]}
                    made = call(*evaluated(args), **named)
                    return made if out is None else out[0] if len(out) == 1 else out
            elif recorder is not None and (out is None or cls._takes_node(out[0], args)):
                made = cls._recorded(recorder, args, options)
                if made is not None:
                    if out is None:
                        return cls._of_node(made)
                    if (made.shape, made.dtype) == (out[0].shape, out[0].dtype):
                        out[0]._replace(made)
                        return out[0]
            settle((args, options))
            if out is not None:
                return cls._call_with_out(out, call, args, options)
            only_read = recorder is not None or call in READERS
            operands = evaluated(args, only_read=only_read)
            return cls._result(call(*operands, **evaluated(options)), call, args, options)
        except TypeError as error:
            found = _arrays_in((args, options))
            if len({getattr(array, "_backend", backend_of(array)) for array in found}) > 1:
                raise mixed() from error
            raise

    @classmethod
    def _recorded(cls, recorder: Recorder, args: tuple[Any, ...], options: Any) -> Node | None:
        for value in args:
            refuse_other_arrays(value)
        named = {name: a._node if type(a) is cls else a for name, a in options.items()}
        made: Node | None = recorder(*[a._node if type(a) is cls else a for a in args], **named)
        return made

    @classmethod
    def _plain_targets(cls, out: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Small lazy arrays that a call writes to, as NumPy's; None if there are others."""
        found = tuple([t._plain() if type(t) is cls and not t._number else None for t in out])
        return None if any(t is None for t in found) else found

    @classmethod
    def _takes_node(cls, target: Any, args: tuple[Any, ...]) -> bool:
        """True for a target that can take operations in place of its values."""
        if type(target) is not cls or target._root is not None or target._number:
            return False
        if target._plain() is not None or target._lends():
            return False
        # Results are in C order, and views of the target have its order of axes.
        if target._array is not None and not target._array.flags.c_contiguous:
            return False
        # Operations on known values and numbers would need this memory and as much for the result.
        known = target._array is not None and not target._is_read()
        return not known or any(a is not target and not is_number(a) for a in args)

    @classmethod
    def _result(
        cls, made: Any, call: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """A result of NumPy with lazy arrays: views of a lazy operand share its memory."""
        if type(made) in BACKENDS:
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
    ) -> Any:
        if call in BY_VALUES:
            made = made.copy()
        is_new = made.base is None and made.flags.owndata
        lazy = [n for n, source in enumerate(args) if type(source) is cls]
        if not is_new or any(made is args[n]._known() for n in lazy):
            # of broadcast_arrays(x, x), the second result is of the second argument
            lazy.sort(key=lambda n: n != place)
            sharing = [n for n in lazy if np.may_share_memory(made, args[n]._values())]
            for n in sharing:
                if args[n]._plain() is not None:
                    return made
                others = list(map(evaluated, (*args[:n], None, *args[n + 1 :])))
                return args[n]._view(_call_step(call, n, others, evaluated(options), place))
        if made.size < LIMITS.elements or any(made is value for value in args):
            return made
        return cls._of_array(made, is_new)

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
        values, named = evaluated(args), evaluated(options)
        made = call(*values, out=places if len(places) > 1 else places[0], **named)
        if len(out) == 1:
            return out[0]
        return tuple(
            cls._result(result, call, args, options) if target is None else target
            for target, result in zip(out, made, strict=True)
        )


def _call_step(
    call: Callable[..., Any], place: int, args: list[Any], options: Any, part: int | None
) -> Step:
    """The step to a view that a function of NumPy takes of the argument at a place."""

    def take(array: Any) -> Any:
        made = call(*args[:place], array, *args[place + 1 :], **options)
        return made if part is None else made[part]

    return take
