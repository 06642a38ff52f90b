"""Arguments of NumPy's functions with lazy arrays among them: their values, and refusals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from operator import matmul
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..runtime.dlpack import on_a_gpu
from .backend import BACKENDS, backend_of, mixed
from .dispatch import LIMITS
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
    if kind in (int, float, slice, str, bool) or value is None:
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


PLAIN = frozenset(
    (
        int,
        float,
        complex,
        bool,
        str,
        slice,
        type,
        type(None),
        np.float64,
        np.int64,
        type(np._NoValue),
    )
)


def small_values(args: Iterable[Any], *, large: bool = False) -> list[Any] | None:
    """Arguments with lazy arrays as NumPy's; None if one is pending or large, or not an array.

    ``large`` allows large arrays, which the caller only reads.
    """
    values: list[Any] = []
    for value in args:
        kind = type(value)
        if issubclass(kind, Memory):
            plain = value._plain()
            value = value._known() if large and plain is None else plain
            if value is None:
                return None
        elif kind in BACKENDS:
            if value.size >= LIMITS.elements and not large:
                return None
        elif kind is list or kind is tuple:
            parts = small_values(value, large=large)
            if parts is None:
                return None
            value = kind(parts)
        elif kind not in PLAIN:
            return None
        values.append(value)
    return values


def gives_little(call: Any, values: list[Any], options: dict[str, Any]) -> bool:
    """True if an operation that is recorded gives few elements: NumPy then computes them at once.

    The factors of a product may have many: a kernel's loops would gain nothing.
    """
    size = None
    if call in PRODUCTS:
        axes = None
        if call is np.tensordot:
            axes = values[2] if len(values) > 2 else options.get("axes", 2)
        size = product_size(values[:2], axes)
        if size is None and any(np.size(value) >= LIMITS.elements for value in values[:2]):
            return False
    return broadcasts_little(values, LIMITS.elements) if size is None else size < LIMITS.elements


PRODUCTS = frozenset((np.matmul, matmul, np.dot, np.ndarray.dot, np.tensordot))


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
