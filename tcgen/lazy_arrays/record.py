"""Nodes of calls of NumPy's universal functions, products and reductions.

A call becomes a node if generated code gives NumPy's result: its operation is known, its arrays
have one element type with kernels, and its numbers do not change that type. For every other call
the functions return None, and NumPy computes it from the values, or raises its error.

Operands of a node are computed first if the graph exceeds its limits. A node has an upper bound of
the operations and arrays below it, counted once for each path. The graph is walked, and the bound
is made exact, only where it is small or has doubled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache, partial
from operator import index, itemgetter
from typing import Any

import numpy as np

from ..errors import TcgenError
from ..frontend.einsum import express
from ..ir.reduction import Reduction, Running
from .backend import BACKENDS
from .dispatch import LIMITS
from .graph import (
    KERNEL_TYPES,
    Array,
    Choice,
    Elementwise,
    Join,
    Labels,
    Leaf,
    Node,
    Product,
    Reduce,
    Scalar,
    Work,
    in_order,
    leaf,
    with_axes,
)
from .run import evaluate
from .ufuncs import COMPARISONS, LOGICAL, OF_COMPLEX, OPERATIONS, REWRITTEN
from .views import viewed

# Beyond these numbers, operands are computed first.
_HEAVIEST = 200  # operations of one kernel
_DEEPEST = 64  # operations on the longest path: each takes several frames of Python's stack
_MOST_ARRAYS = 32  # arrays that one kernel reads: their memory cannot be freed before it runs
_SMALL = 16  # operations and arrays of a graph that is walked in less time than an operation takes
_HELD_BYTES = 2**22  # bytes of arrays held only by operations: about the size of a cache


Recorder = Callable[..., Node | None]


def record(work: Work, shape: tuple[int, ...] | None, dtype: np.dtype[Any]) -> Node | None:
    """A node for the work; its operands are computed first if too many operations are pending.

    The node itself is computed at once if that frees much memory, or if NumPy's arrays can write to
    the memory that it reads. None for operands whose shapes do not fit, and for few elements of
    operations on known values: loops would gain nothing.
    """
    if shape is None:
        return None
    # Joined arrays that are read as a whole, and chosen elements, are computed.
    moved = (Choice,) if type(work) in (Elementwise, Join) else (Choice, Join)
    evaluate([operand for operand in work.operands if type(operand.work) in moved])
    node = Node(work, shape, dtype)
    if node.depth == 1 and type(work) is not Reduce and math.prod(shape) < LIMITS.elements:
        return None
    is_urgent = False
    for operand in work.operands:
        if type(operand.work) is Leaf:
            is_urgent |= operand.work.is_open
            if operand.work.is_borrowed:
                operand.work = Leaf(_unchanging(operand.work.array))
    most = max(operand.weight for operand in work.operands)
    doubled = node.weight.bit_length() > most.bit_length() or node.weight > _HEAVIEST
    if doubled or node.weight < _SMALL or node.depth > _DEEPEST:
        operations, arrays, held = _count(node)
        if node.depth > _DEEPEST or operations > _HEAVIEST or arrays > _MOST_ARRAYS:
            evaluate(work.operands)
            return Node(work, shape, dtype)
        # NumPy would have used them while they were in the cache, and freed them.
        limit = max(_HELD_BYTES, 2 * math.prod(shape) * dtype.itemsize)
        is_urgent |= held >= limit
    if is_urgent:
        evaluate((node,))
    return node


def _count(node: Node) -> tuple[int, int, int]:
    """Operations and arrays below a node, each once, and bytes of arrays that only they hold."""
    found: dict[int, int] = {}
    operations = 0
    for below in in_order((node,)):
        work = below.work
        if not isinstance(work, Leaf):
            operations += type(work) is not Scalar
        elif (whole := id(work.whole or below)) not in found:
            held = work.is_new and not (work.whole or below).has_handle()
            found[whole] = work.array.nbytes if held else 0
    if node.weight > _HEAVIEST:
        node.weight = operations + len(found)
    return operations, len(found), sum(found.values())


_LARGEST_POWER = 16  # largest integer exponent of a recorded power
_BOOL = np.dtype(bool)


def _operand(value: Any, dtype: np.dtype[Any]) -> Node | None:
    """The node of an operand of a kernel of this element type; None if NumPy would promote it."""
    match value:
        case Node():
            return value if _fits(value.dtype, dtype) else None
        case np.generic():
            return Node(Scalar(value.item()), (), dtype) if _fits(value.dtype, dtype) else None
        case int() | float():
            try:
                return Node(Scalar(float(value)), (), dtype)
            except OverflowError:
                return None
        case complex():
            return Node(Scalar(value), (), dtype) if dtype.kind == "c" else None
        case _ if type(value) in BACKENDS and _fits(value.dtype, dtype):
            made = leaf(value)
            made.work = Leaf(value, is_borrowed=True)
            return made
        case _:
            return None


@lru_cache(maxsize=256)
def _fits(given: np.dtype[Any], dtype: np.dtype[Any]) -> bool:
    """True for a type that NumPy promotes to that of the kernel: booleans, integers."""
    if given == dtype:
        return given.isnative
    return given.kind in "biu" and np.result_type(given, dtype) == dtype


def _unchanging(array: Array) -> Array:
    """The array, or a copy of it if its elements may change before they are read."""
    part: Any = array  # a read-only view of a writeable array changes
    while isinstance(part, np.ndarray) and not part.flags.writeable and part.base is not None:
        part = part.base
    if isinstance(part, np.ndarray) and (part.flags.writeable or not part.flags.owndata):
        return array.copy()
    return array if isinstance(part, np.ndarray | bytes) else array.copy()


def _operands(values: Sequence[Any]) -> tuple[np.dtype[Any], tuple[Node, ...]] | None:
    """Kernel type and nodes of operands that one kernel takes; None if NumPy has to compute."""
    types = [v.computes for v in values if isinstance(v, Node) and v.computes is not None]
    if not types or types.count(types[0]) < len(types):
        return None
    nodes = [_operand(v, types[0]) for v in values]
    known = tuple(n for n in nodes if n is not None)
    return (types[0], known) if len(known) == len(nodes) else None


def _same_type_operands(values: Sequence[Any]) -> tuple[np.dtype[Any], tuple[Node, ...]] | None:
    """The same if NumPy's result has the kernel's type, since one operand has it."""
    nodes = tuple([v for v in values if isinstance(v, Node)])
    if len(nodes) == len(values) > 0:  # the usual case is short
        dtype = nodes[0].dtype
        if dtype in KERNEL_TYPES and all(n.dtype is dtype and not _is_number(n) for n in nodes):
            return dtype, nodes
    common = _operands(values)
    if common is None or all(n.dtype != common[0] or _is_number(n) for n in common[1]):
        return None
    return common


def _is_number(node: Node) -> bool:
    return isinstance(node.work, Scalar)


def record_ufunc(ufunc: np.ufunc, *inputs: Any) -> Node | None:
    """Record a call of a universal function."""
    if ufunc is np.matmul:
        return _matmul(*inputs)
    if ufunc in REWRITTEN:
        ufunc, *rest = REWRITTEN[ufunc](*inputs)
        inputs = tuple(rest)
    operation = OPERATIONS.get(ufunc)
    if operation is None:
        return None
    if operation == "pow" and (made := _integer_power(*inputs)) is not None:
        return made
    is_logical = operation in LOGICAL  # arithmetic on 0 and 1 computes these
    common = _operands(inputs) if is_logical else _same_type_operands(inputs)
    if common is None:
        return None
    dtype, nodes = common
    if is_logical and any(n.dtype.kind != "b" for n in nodes):
        return None
    if dtype.kind == "c" and operation not in OF_COMPLEX and not is_logical:
        return None  # its result is real, or NumPy orders complex numbers
    result = _BOOL if is_logical or operation in COMPARISONS else dtype
    return record(Elementwise(operation, nodes), _broadcast(*[n.shape for n in nodes]), result)


def choose(condition: Any, *chosen: Any) -> Node | None:
    """``numpy.where`` with a recorded condition, or with recorded values."""
    if len(chosen) != 2 or getattr(condition, "dtype", None) != _BOOL:
        return None
    kinds = [v.computes.kind for v in chosen if isinstance(v, Node) and v.computes is not None]
    if isinstance(condition, Node) and "c" in kinds:
        # A kernel of any element type reads known values.
        evaluate((condition,))
        assert isinstance(condition.work, Leaf)
        condition = leaf(condition.work.array)
    common = _operands((condition, *chosen))
    if common is None or all(n.dtype != common[0] or _is_number(n) for n in common[1]):
        return None
    shape = _broadcast(*[n.shape for n in common[1]])
    if not shape:  # NumPy gives an array, where operations give numbers
        return None
    return record(Elementwise("where", common[1]), shape, common[0])


def chosen(array: Node, mask: Node) -> Node | None:
    """The elements for which a mask of the same shape is true; None if NumPy has to take them."""
    if not array.has_kernels or mask.dtype != _BOOL or mask.shape != array.shape:
        return None
    evaluate((mask,))
    assert isinstance(mask.work, Leaf)
    count = int(np.count_nonzero(mask.work.array))
    return Node(Choice((array, mask)), (count,), array.dtype)


def clip(array: Any, *bounds: Any, **named: Any) -> Node | None:
    """``numpy.clip`` of real numbers by numbers or arrays, by position or by name."""
    named |= zip(("a_min", "a_max"), bounds, strict=False)
    if not isinstance(array, Node) or array.dtype.kind != "f" or len(bounds) > 2:
        return None
    made: Node | None = array
    for ufunc, names in ((np.maximum, ("a_min", "min")), (np.minimum, ("a_max", "max"))):
        for bound in [named.pop(name) for name in names if name in named]:
            if bound is not None and bound is not np._NoValue and made is not None:
                made = record_ufunc(ufunc, made, bound)
    return None if made is array or named else made


def _integer_power(base: Any, exponent: Any) -> Node | None:
    if not isinstance(base, Node) or not base.has_kernels:
        return None
    if type(exponent) not in (int, float) or abs(exponent) > _LARGEST_POWER:
        return None
    if exponent == 0.5:
        return record_ufunc(np.sqrt, base)
    if not math.isfinite(exponent) or exponent != int(exponent):
        return None
    work = Elementwise("power", (base,), int(exponent))
    return record(work, base.shape, base.dtype)


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    if shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def axes_of(axis: Any, ndim: int) -> tuple[int, ...] | None:
    """Numbers of axes, counted from the front; None for wrong and equal ones."""
    if type(axis) is int and -ndim <= axis < ndim:  # the usual case
        return (axis % ndim,)
    try:
        given = [index(a) for a in (axis if isinstance(axis, tuple) else (axis,))]
    except TypeError:
        return None
    axes = tuple([a % ndim for a in given if -ndim <= a < ndim])
    return axes if len({*axes}) == len(given) else None


def einsum(subscripts: Any, *operands: Any, **options: Any) -> Node | None:
    """``numpy.einsum`` with subscripts as text, in the order that the planner chooses."""
    if not isinstance(subscripts, str) or not set(options) <= {"optimize"}:
        return None
    order = options.get("optimize")  # the planner chooses it; NumPy follows a path
    if order is not None and not isinstance(order, bool) and order not in ("greedy", "optimal"):
        return None
    common = _same_type_operands(operands)
    if common is None:
        return None
    dtype, nodes = common
    try:
        expression = express(subscripts, tuple(n.ndim for n in nodes))
    except TcgenError:
        return None
    if len(nodes) == 1 and set(expression.inputs[0]) == set(expression.output):
        return None  # nothing is summed: NumPy's result is a view
    call = partial(np.einsum, subscripts, optimize=len(nodes) > 1)
    work = Product(nodes, expression.inputs, expression.output, call)
    return _product(work, dtype, {n for axes in expression.inputs for n in axes})


def _product(work: Product, dtype: np.dtype[Any], spread: Collection[int] = ()) -> Node | None:
    """The node of a product; None if an extent differs, other than 1 of a ``spread`` label."""
    extents: dict[int, int] = {}
    for node, axes in zip(work.operands, work.labels, strict=True):
        for label, extent in zip(axes, node.shape, strict=True):
            known = extents.setdefault(label, extent)
            if known != extent and (label not in spread or 1 not in (known, extent)):
                return None
            extents[label] = extent if known == 1 else known
    return record(work, tuple([extents[label] for label in work.output]), dtype)


def _matmul(a: Any, b: Any) -> Node | None:
    common = _same_type_operands((a, b))
    if common is None:
        return None
    dtype, nodes = common
    m, n = (node.ndim for node in nodes)
    if not m or not n:
        return None
    batch = max(m, n, 2) - 2
    return _product(Product(nodes, *_matmul_labels(m, n, batch), np.matmul), dtype, range(batch))


@lru_cache(maxsize=256)
def _matmul_labels(m: int, n: int, batch: int) -> tuple[tuple[Labels, Labels], Labels]:
    """Labels of operands of m and n axes, and of their product, with some axes of a batch.

    Example:
        >>> _matmul_labels(2, 2, 0), _matmul_labels(3, 1, 1)
        ((((0, 2), (2, 1)), (0, 1)), (((0, 1, 3), (3,)), (0, 1)))
    """
    row, column, summed = batch, batch + 1, batch + 2
    left = (*range(batch - m + 2, batch), row, summed) if m > 1 else (summed,)
    right = (*range(batch - n + 2, batch), summed, column) if n > 1 else (summed,)
    output = (*range(batch), *((row,) if m > 1 else ()), *((column,) if n > 1 else ()))
    return (left, right), output


def dot(a: Any, b: Any, out: Any = None) -> Node | None:
    """``numpy.dot`` of vectors and matrices."""
    if out is None and 0 < np.ndim(a) < 3 and 0 < np.ndim(b) < 3:
        return _matmul(a, b)
    return None


def tensordot(a: Any, b: Any, axes: Any = 2) -> Node | None:
    """``numpy.tensordot`` of two arrays; None if NumPy does it, or refuses it."""
    common = _same_type_operands((a, b))
    if common is None:
        return None
    dtype, (one, other) = common
    try:
        count = None if isinstance(axes, tuple | list) else index(axes)
        pair = axes if count is None else (range(one.ndim - count, one.ndim), range(count))
        sides = [tuple(np.atleast_1d(side).tolist()) for side in pair]
        left, right = (axes_of(side, n.ndim) for side, n in zip(sides, (one, other), strict=True))
    except (TypeError, ValueError):
        return None
    if left is None or right is None or len(left) != len(right):
        return None
    first = tuple(range(one.ndim))
    second = tuple(left[right.index(n)] if n in right else one.ndim + n for n in range(other.ndim))
    output = (*(n for n in first if n not in left), *(n for n in second if n >= one.ndim))
    work = Product((one, other), (first, second), output, partial(np.tensordot, axes=axes))
    return _product(work, dtype)


def rolled(array: Any, shift: Any, axis: Any = None) -> Node | None:
    """``numpy.roll`` along axes by integers; None if NumPy does it, or refuses it."""
    if not isinstance(array, Node) or not array.has_kernels or 0 in array.shape:
        return None
    if axis is None and array.ndim != 1:
        return None
    shifts = [0] * array.ndim
    try:
        pairs: Any = [(shift, axis)]
        if type(shift) is not int or type(axis) is not int:
            pairs = np.broadcast(shift, 0 if axis is None else axis)
            pairs = pairs if pairs.ndim < 2 else [(0, None)]
        for step, place in pairs:
            shifts[index(place)] += index(step)
    except (TypeError, ValueError, IndexError):
        return None
    found = tuple(s % n for s, n in zip(shifts, array.shape, strict=True))
    if not any(found):
        return None
    if type(array.work) is not Leaf:
        evaluate((array,))
    return record(_rolled(array, found).work, array.shape, array.dtype)


def _rolled(array: Node, shifts: Sequence[int], axis: int = 0) -> Node:
    """Known values whose elements move along the axes from one on."""
    if axis == array.ndim:
        return array
    if not shifts[axis]:
        return _rolled(array, shifts, axis + 1)
    keys = slice(-shifts[axis], None), slice(None, -shifts[axis])
    pieces = [viewed(array, itemgetter((*(slice(None),) * axis, key))) for key in keys]
    moved = tuple([_rolled(piece, shifts, axis + 1) for piece in pieces if piece is not None])
    return Node(Join(moved, axis), array.shape, array.dtype)


def joined(arrays: Any, axis: Any = 0, *rest: Any, **options: Any) -> Node | None:
    """``numpy.concatenate`` of arrays of one type that has kernels."""
    if rest or options or type(axis) is not int or type(arrays) not in (tuple, list):
        return None
    common = _operands(arrays)
    if common is None or any(
        n.dtype != common[0] or n.ndim != common[1][0].ndim for n in common[1]
    ):
        return None
    dtype, nodes = common
    along = axes_of(axis, nodes[0].ndim)
    if not along:
        return None
    shapes = {(*n.shape[: along[0]], *n.shape[along[0] + 1 :]) for n in nodes}
    if len(shapes) > 1:
        return None
    shape = list(nodes[0].shape)
    shape[along[0]] = sum(n.shape[along[0]] for n in nodes)
    return record(Join(nodes, along[0]), tuple(shape), dtype)


_NEUTRAL = {Reduction.SUM: 0.0, Reduction.PROD: 1.0}


def _reduction(reduction: Reduction, kinds: str) -> Recorder:
    """A reduction of arrays of some kinds over axes; the arguments are those of NumPy."""
    is_total = reduction in _NEUTRAL
    names = (*(("dtype",) if is_total else ()), "out", "keepdims", "initial", "where")

    def recorder(array: Any, axis: Any = None, *rest: Any, **options: Any) -> Node | None:
        if not isinstance(array, Node) or array.computes is None or array.dtype.kind not in kinds:
            return None
        result = array.dtype
        if is_total and result.kind == "b":  # the number of true elements
            if array.computes != np.float64:  # double precision is exact
                return None
            result = np.dtype(np.intp)
        if not is_total and 0 in array.shape:  # NumPy knows what no elements give
            return None
        options |= zip(names, rest, strict=False)
        return _reduced(reduction, array, result, axis, **options)

    return recorder


sum_of, prod_of = _reduction(Reduction.SUM, "fcb"), _reduction(Reduction.PROD, "fc")
max_of, min_of = _reduction(Reduction.MAX, "fb"), _reduction(Reduction.MIN, "fb")
any_of, all_of = _reduction(Reduction.MAX, "b"), _reduction(Reduction.MIN, "b")


def _reduced(
    reduction: Reduction,
    array: Node,
    result: np.dtype[Any],
    axis: Any,
    keepdims: Any = False,
    where: Any = True,
    **others: Any,
) -> Node | None:
    """A reduction, for the arguments of NumPy's functions; None if NumPy has to compute it."""
    if any(given is not None and given is not np._NoValue for given in others.values()):
        return None
    keepdims = keepdims is not np._NoValue and keepdims
    where = where is np._NoValue or where
    chosen = type(array.work) is Choice and not keepdims and where is True
    if chosen and reduction in _NEUTRAL and axis in (None, 0, -1):
        array, where = array.work.operands
        axis = None
    if where is not True:
        whole = choose(where, array, _NEUTRAL[reduction]) if reduction in _NEUTRAL else None
        if whole is None or (whole.shape, whole.dtype) != (array.shape, result):
            return None
        array = whole
    if array.ndim == 0 and axis in (0, -1):  # NumPy lets a number have this axis here
        axis = None
    axes = _axes(axis, array.ndim)
    if axes is None:
        return None
    shape = tuple(n for axis, n in enumerate(array.shape) if axis not in axes)
    total = record(Reduce((array,), axes, reduction), shape, result)
    if total is None or not keepdims:
        return total
    kept = [n for n in range(array.ndim) if n not in axes]
    return with_axes(total, tuple(kept.index(n) if n in kept else None for n in range(array.ndim)))


def _running(reduction: Running, kinds: str) -> Recorder:
    """A running reduction of arrays of some kinds along an axis.

    On a GPU one thread would take the values in order: CuPy computes it.
    """

    def recorder(array: Any, axis: Any = None, *rest: Any, **options: Any) -> Node | None:
        if not isinstance(array, Node) or array.computes is None or array.dtype.kind not in kinds:
            return None
        given = [*rest, *options.values()]
        if any(one is not None for one in given) or (array.backend and array.backend.on_gpu):
            return None
        axes = _axes(axis, array.ndim)
        if isinstance(axis, tuple) or axes is None or len(axes) != 1:
            return None
        result = array.dtype
        if reduction is Running.SUM and result.kind == "b":  # the number of true elements so far
            if array.computes != np.float64:
                return None
            result = np.dtype(np.intp)
        return record(Reduce((array,), axes, reduction), array.shape, result)

    return recorder


cumsum_of, cumprod_of = _running(Running.SUM, "fcb"), _running(Running.PROD, "f")
accumulate_add = _running(Running.SUM, "fc")
cummax_of, cummin_of = _running(Running.MAX, "fb"), _running(Running.MIN, "fb")


def _axes(axis: Any, ndim: int) -> tuple[int, ...] | None:
    return tuple(range(ndim)) if axis is None else axes_of(axis, ndim)


def _position(extreme: Reduction) -> Recorder:
    """The least place along an axis whose element is an extreme one.

    NumPy takes the first of several equal elements, and the first NaN if there is one. The extreme
    is found first, then its place: where other axes are around these loops, the values between them
    are in a cache. None for all elements, and for known values, of which NumPy finds the place in
    one pass.
    """

    def recorder(
        array: Any, axis: Any = None, out: Any = None, *, keepdims: Any = np._NoValue
    ) -> Node | None:
        if not isinstance(array, Node) or not array.has_kernels or array.dtype.kind != "f":
            return None
        axes = None if isinstance(axis, tuple | list) else _axes(axis, array.ndim)
        if out is not None or not axes or 0 in array.shape or isinstance(array.work, Leaf):
            return None
        if len(axes) == array.ndim:
            return None
        dtype, count = array.dtype, array.shape[axes[0]]
        if count > 2 ** (np.finfo(dtype).nmant + 1):  # kernels count less far
            return None
        numbers: Any = np if array.backend is None else array.backend.module
        places = numbers.arange(count, dtype=dtype)
        place = leaf(places.reshape([-1 if n in axes else 1 for n in range(array.ndim)]))
        found = _reduced(extreme, array, dtype, axes, True)
        equal = record_ufunc(np.equal, array, found)
        unordered = record_ufunc(np.not_equal, array, array)
        chosen = choose(record_ufunc(np.logical_or, equal, unordered), place, float(count))
        whole = np.dtype(np.intp)
        return chosen and _reduced(Reduction.MIN, chosen, whole, axes, keepdims)

    return recorder


argmax_of, argmin_of = _position(Reduction.MAX), _position(Reduction.MIN)


def mean_of(array: Any, axis: Any = None, *rest: Any, **options: Any) -> Node | None:
    """``numpy.mean``."""
    if options.get("where", True) is not True:
        return None  # the number of elements is that of the mask
    total = sum_of(array, axis, *rest, **options)
    if total is None or _axes(axis, array.ndim) is None:
        return None
    return record_ufunc(np.divide, total, float(_terms(array, axis)))


def _terms(array: Node, axis: Any) -> int:
    return math.prod(array.shape[n] for n in _axes(axis, array.ndim) or ())


def var_of(
    array: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = np._NoValue,
    **rest: Any,
) -> Node | None:
    """``numpy.var`` of real numbers: as in NumPy, the mean is subtracted before the squares."""
    if not isinstance(array, Node) or array.dtype.kind != "f" or rest or type(ddof) is not int:
        return None
    mean = mean_of(array, axis, dtype, out, True)
    count = _terms(array, axis) - ddof
    if mean is None or count <= 0:  # NumPy warns
        return None
    apart = record_ufunc(np.subtract, array, mean)
    total = sum_of(record_ufunc(np.multiply, apart, apart), axis, keepdims=keepdims)
    return total and record_ufunc(np.divide, total, count)


def diff(array: Any, n: Any = 1, axis: Any = -1, **ends: Any) -> Node | None:
    """``numpy.diff`` of neighbours, whose slices can be taken."""
    if not isinstance(array, Node) or not array.has_kernels or type(n) is not int or n != 1 or ends:
        return None
    along = axes_of(axis, array.ndim)
    if along is None:
        return None
    keys = [(*(slice(None),) * along[0], part) for part in (slice(1, None), slice(None, -1))]
    later, earlier = (viewed(array, itemgetter(key)) for key in keys)
    return later and earlier and record_ufunc(np.subtract, later, earlier)


def std_of(array: Any, *args: Any, **options: Any) -> Node | None:
    """``numpy.std`` of real numbers."""
    variance = var_of(array, *args, **options)
    return variance and record_ufunc(np.sqrt, variance)
