"""Arguments of NumPy's functions with lazy arrays among them: their values, and refusals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..runtime.dlpack import on_a_gpu
from .backend import BACKENDS, backend_of, mixed
from .evaluate import evaluate
from .graph import tensordot_axes
from .memory import Memory


def _collect(values: Iterable[Any], pending: list[Memory]) -> None:
    """Collect the lazy arrays, also in tuples, lists and dicts, whose values are not known."""
    for value in values:
        kind = type(value)
        if issubclass(kind, Memory):
            root = value if value._root is None else value._root
            if root._array is None:
                root._settle()
                if root._pending is not None:
                    pending.append(root)
        elif kind is tuple or kind is list:
            _collect(value, pending)
        elif kind is dict:
            _collect(value.values(), pending)


def settle(values: Iterable[Any]) -> None:
    """Compute all lazy arrays in the values, those of kernels of one element type together."""
    pending: list[Memory] = []
    _collect(values, pending)
    nodes = [root._pending for root in pending if root._pending is not None]
    for kind in {(node.computes, node.backend): None for node in nodes}:
        evaluate([node for node in nodes if (node.computes, node.backend) == kind])
    for root in pending:
        root._settle()


def evaluated(value: Any) -> Any:
    """The value with every lazy array in it, also in tuples, lists and dicts, as a NumPy array."""
    if isinstance(value, Memory):
        values = value._values()
        return backend_of(values).read_only(values)
    kind = type(value)
    if kind in (int, float, slice, str, bool) or value is None:
        return value
    if kind in (tuple, list):
        return kind(map(evaluated, value))
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


def on_both(value: Any) -> bool:
    """True if arrays of the CPU and of a GPU are in the value, also in tuples, lists and dicts."""
    return len(_places(value)) > 1


def _places(value: Any) -> set[bool]:
    """Whether arrays are on a GPU."""
    if isinstance(value, Memory):
        return {value._backend.on_gpu}
    kind = type(value)
    if kind in BACKENDS:
        return {BACKENDS[kind].on_gpu}
    if kind is dict:
        return _places(list(value.values()))
    return set().union(*map(_places, value)) if kind in (tuple, list) else set()


def is_basic(key: Any) -> bool:
    """True for a key of numbers, slices and new axes, which can be compared."""
    if type(key) is tuple:
        return all(map(is_basic, key))
    return key is None or key is Ellipsis or type(key) in (int, slice)


def are_plain(values: Iterable[Any]) -> bool:
    """True for numbers, texts and the like, without arrays."""
    return all(type(value) in PLAIN for value in values)


PLAIN = frozenset(
    (int, float, complex, bool, str, slice, type(None), np.float64, np.int64, type(np._NoValue))
)


def known_values(args: Iterable[Any], most: float, *, only_read: bool = False) -> list[Any] | None:
    """Arguments with lazy arrays as values, or None if one is pending or has ``most`` elements.

    Arrays are read-only views: a function that changes them refuses. Those of a function that is
    known to read them only are the arrays themselves.
    """
    values = []
    for value in args:
        kind = type(value)
        if issubclass(kind, Memory):
            value = value._known()
            if value is None or value.size >= most:
                return None
            value = value if only_read else backend_of(value).read_only(value)
        elif kind in BACKENDS:
            if value.size >= most:
                return None
        elif kind is list or kind is tuple:
            parts = known_values(value, most, only_read=only_read)
            if parts is None:
                return None
            value = kind(parts)
        elif kind not in PLAIN:
            return None
        values.append(value)
    return values


def small_values(args: Iterable[Any], most: float) -> list[Any] | None:
    """Lazy arrays as values, and numbers: the usual case of a few elements.

    None if one is pending, if an array or the broadcast of all has ``most`` elements or more, and
    for other arguments. The values are the arrays themselves, for a function that only reads them.
    """
    values: list[Any] = []
    shape = None
    count = 0  # elements of the broadcast, at most
    for value in args:
        kind = type(value)
        if kind is float or kind is int:
            values.append(value)
            continue
        array = value._known() if issubclass(kind, Memory) else None
        if array is None or array.size >= most:
            return None
        if shape is None:
            shape = array.shape
            count = array.size
        elif array.shape != shape:
            count *= array.size
        values.append(array)
    return values if count < most or broadcasts_little(values, most) else None


def broadcasts_little(values: list[Any], most: float) -> bool:
    """True if the arrays broadcast to fewer elements, or not at all.

    Example:
        >>> x, y = np.ones((20, 1)), np.ones(30)
        >>> broadcasts_little([x, y, 1.0], 600), broadcasts_little([x, y, 1.0], 601)
        (False, True)
    """
    shapes = [value.shape for value in values if type(value) in BACKENDS]
    if len(shapes) < 2:
        return True
    first = shapes[0]
    if shapes.count(first) == len(shapes) or math.prod(map(math.prod, shapes)) < most:
        return True
    count = 1
    for extents in zip_longest(*map(reversed, shapes), fillvalue=1):
        longest = max(extents)
        if any(extent != longest and extent != 1 for extent in extents):
            return True  # numpy.broadcast_shapes takes longer, mostly for its error
        count *= longest
    return count < most


def product_size(values: Sequence[Any], axes: Any = None) -> int | None:
    """Elements of a product of two arrays; None for other values.

    A product of known values with few elements runs at once: a kernel's loops over it gain nothing.
    ``axes`` is that of ``numpy.tensordot``; None for a product of a vector or matrix each.
    """
    if len(values) != 2 or any(type(value) not in BACKENDS for value in values):
        return None
    one, other = values
    if axes is None:
        if not (0 < one.ndim < 3 and 0 < other.ndim < 3):
            return None
        size: int = math.prod(one.shape[:-1]) * math.prod(other.shape[1:])
        return size
    summed = tensordot_axes(one.ndim, other.ndim, axes)
    if summed is None:
        return None
    count = 1
    for array, side in zip((one, other), summed, strict=True):
        count *= math.prod(n for k, n in enumerate(array.shape) if k not in side)
    return count
