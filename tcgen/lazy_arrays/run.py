"""Runs recorded operations: each becomes an array, by NumPy or by a kernel of its form.

NumPy, or CuPy, runs them one by one, as the user's program would have.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from math import prod
from time import perf_counter
from typing import Any, assert_never

import numpy as np

from ..compiler.target import with_kernels
from ..errors import VerifyError
from ..ir.reduction import AnyReduction, Reduction, Running
from .backend import Backend
from .compile import LazySystem, kernel_of, lazy_system
from .dispatch import LIMITS, Form, form_of, in_background
from .graph import (
    Array,
    Choice,
    Elementwise,
    Join,
    Leaf,
    Linearized,
    Node,
    Part,
    Product,
    Reduce,
    Scalar,
    Shape,
    Transpose,
    Work,
    in_order,
    linearize,
    with_axes_of_array,
)
from .ufuncs import UFUNCS
from .views import blocks_of, part_of, viewed


def evaluate(nodes: Sequence[Node]) -> None:
    """Compute nodes, those of kernels of one type together; each becomes a leaf with its array.

    The same holds for nodes below them that other objects hold, which are computed on the way.
    Several threads may evaluate a node at the same time.
    """
    for kind in {(node.computes, node.backend): None for node in nodes}:
        for group in _groups([n for n in nodes if (n.computes, n.backend) == kind]):
            take_parts(group)
            while pending := [node for node in group if node.work.operands]:
                line = linearize(pending)
                if line.is_joined and (held := line.held()):  # blocks give one result
                    evaluate([line.sources[place] for place in held])
                    continue
                # Kernels only read arrays of the operations that they compute.
                if all(line.operands[place] for place in line.roots):
                    _evaluate(line)
                    break


_HEAVIEST = 1000  # operations and arrays of one program; more take long to plan


def _groups(nodes: Sequence[Node]) -> Iterator[Sequence[Node]]:
    """The nodes in groups that are not too large for one program."""
    if len(nodes) > 1 and sum(node.weight for node in nodes) > _HEAVIEST:
        half = len(nodes) // 2
        yield from _groups(nodes[:half])
        yield from _groups(nodes[half:])
    else:
        yield nodes


def _evaluate(line: Linearized) -> None:
    line.roots = tuple(dict.fromkeys(line.roots))
    line.roots += tuple(line.held())
    for place, array in zip(line.roots, _run(line), strict=True):
        line.sources[place].set_array(array)
    for node, place in line.twins:
        work = line.sources[place].work
        if isinstance(work, Leaf):
            node.set_array(work.array, line.sources[place])


def take_parts(nodes: Sequence[Node]) -> None:
    """Make nodes ready to be linearized.

    Slices of pending work become work on slices, unless something else needs that work. Chosen
    elements are computed, and so are joined arrays, unless one result is computed by blocks.
    """
    joined = []
    for node in in_order(nodes):
        work = node.work
        if type(work) is Choice:
            array, mask = _arrays(work.operands)
            node.set_array(array[mask])
        elif type(work) is Part:
            (operand,) = work.operands
            made = None if operand.is_held((node,)) else part_of(operand, work.take)
            if made is None:
                evaluate((operand,))
                made = viewed(operand, work.take)
            assert made is not None, "values have all parts"
            if isinstance(made.work, Leaf):
                node.set_array(made.work.array, made.work.whole)
            else:
                node.work = made.work
        elif type(work) is Join:
            joined.append((node, work))
    (root, *more), one = nodes, nodes[0].work
    copies = type(one) is Join and all(type(operand.work) is Leaf for operand in one.operands)
    if joined and (more or copies or blocks_of(root) is None):
        for node, work in joined:
            arrays = _arrays(work.operands)
            assert node.backend is not None
            node.set_array(node.backend.module.concatenate(arrays, work.axis))


def _arrays(nodes: Sequence[Node]) -> list[Array]:
    """The arrays of nodes, computed if need be."""
    evaluate(nodes)
    return [node.work.array for node in nodes if isinstance(node.work, Leaf)]


def evaluate_into(node: Node, target: Array, change: str = "") -> None:
    """Write the values of a node, which stays pending, into memory that no operation reads.

    ``target`` has its shape and type. ``change`` is ``add`` or ``subtract`` if the values change
    the target, else "".
    """
    take_parts((node,))
    line = linearize((node,))
    held = [line.sources[place] for place in line.held()]
    if held:
        evaluate(held)
        line = linearize((node,))
    known = line.works[line.roots[0]]
    if isinstance(known, Leaf):  # a slice of an array that something else needs
        _write(target, known.array, change)
        return
    line.target, line.change = target, change
    _run(line)


def _write(target: Array, array: Array, change: str) -> None:
    if change:
        UFUNCS[change](target, array, out=target)
    else:
        target[...] = array


def _run(line: Linearized) -> list[Array]:
    """The arrays of the roots."""
    if line.is_joined:
        return [_run_blocks(line)]
    if LIMITS.kernels_only:
        run = partial(_run_kernel, line)
        return run(line.backend.target()) if line.backend.on_gpu else with_kernels(run)
    largest = max(map(prod, line.shapes))
    if (line.is_simple and not line.change) or largest < LIMITS.elements:
        return run_in_numpy(line)
    form = form_of(line.key)
    times = form.of_size(line.elements)
    kernel = form.kernel if times.prefers_kernel() else None
    run = partial(run_in_numpy if kernel is None else kernel.run, line)
    if line.backend.on_gpu and form.requested and times.is_settled:
        # A measurement would synchronize with the queue.
        return run()
    made, seconds = _measured(run, line.backend)
    times.record(kernel is not None, seconds)
    if kernel is not None:
        return made
    form.spent += seconds
    if not form.requested and (seconds >= LIMITS.large or form.spent >= LIMITS.spent):
        form.requested = True
        # The thread gets the system and no arrays, which would stay in memory.
        target = line.backend.target()
        in_background(partial(_compile, form, lazy_system(line), line.dtype.name, target))
    return made


def _run_blocks(line: Linearized) -> Array:
    """The array of the root, block by block: in each, a joined array is a slice."""
    root, target = line.sources[line.roots[0]], line.target
    if target is None:
        target = line.backend.empty(root.shape, root.dtype)
    for block, part in blocks_of(root) or ():
        evaluate_into(part, target[block], line.change)
    return target


def _measured(run: Callable[[], list[Array]], backend: Backend) -> tuple[list[Array], float]:
    """Arrays, and the seconds that the backend needs for them."""
    backend.wait()
    start = perf_counter()
    made = run()
    backend.wait()
    return made, perf_counter() - start


def _run_kernel(line: Linearized, target: str) -> list[Array]:
    form = form_of((target, line.key))
    if form.kernel is None:
        form.kernel = kernel_of(lazy_system(line), line.dtype.name, target)
    return form.kernel.run(line)


def _compile(form: Form, lazy: LazySystem, dtype: str, target: str) -> None:
    """Give a form its kernel, unless NumPy would run that."""
    if target == "numpy":
        return
    try:
        kernel = kernel_of(lazy, dtype, target)
        kernel.program.build()
    except Exception as error:  # nobody catches it in this thread
        warnings.warn(
            f"NumPy computes these lazy arrays, since their kernel cannot be made: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
    else:
        form.kernel = kernel


_REDUCED: dict[AnyReduction, Callable[..., Any]] = {
    Reduction.SUM: np.sum,
    Reduction.MAX: np.max,
    Reduction.MIN: np.min,
    Reduction.PROD: np.prod,
}
_RUNNING = {
    Running.SUM: np.add,
    Running.MAX: np.maximum,
    Running.MIN: np.minimum,
    Running.PROD: np.multiply,
}


@np.errstate(all="ignore")
def run_in_numpy(line: Linearized) -> list[Array]:
    """The arrays of the roots.

    An operation may write to the memory of an operand that nobody reads after it, as NumPy does
    with the temporary arrays of an expression. Like kernels, it gives no floating-point warnings:
    the ``numpy.errstate`` around the code that recorded an operation has ended by now.
    """
    backend, roots = line.backend, line.roots
    # The last operation that reads a value.
    last = {n: place for place, operands in enumerate(line.operands) for n in operands}
    last |= dict.fromkeys(roots, len(line.works))
    values: list[Any] = []
    free: set[int] = set()  # places of new arrays that have no views
    for place, (work, operands) in enumerate(zip(line.works, line.operands, strict=True)):
        kind = line.shapes[place], line.dtypes[place]
        given = [values[n] for n in operands]
        out: Array | None = None
        if type(work) is Elementwise:
            ending = [n for n in operands if n in free and last[n] == place]
            reused = [n for n in ending if (line.shapes[n], line.dtypes[n]) == kind]
            if line.target is not None and place in roots and not line.change:
                out = line.target
            else:
                out = values[reused[0]] if reused else _memory(backend, *kind, given)
        elif type(work) is Product:
            out = _memory(backend, *kind, ())
        values.append(_value(work, given, out, backend))
        if type(work) is Transpose:
            free.difference_update(operands)  # its result is a view
        elif _is_new(work) and kind[0]:
            free.add(place)
        del given, out
        for n in operands:
            if last[n] == place:
                values[n] = None
    if line.target is not None:
        if values[roots[0]] is not line.target:
            _write(line.target, values[roots[0]], line.change)
        return [line.target]
    made = [backend.module.asarray(values[root], line.dtypes[root]) for root in roots]
    return [
        array if _is_new(line.works[root]) or array.base is None else array.copy()
        for root, array in zip(roots, made, strict=True)
    ]


def _is_new(work: Work) -> bool:
    """True for work on elements, and for a product of several arrays; of one, it may be a view."""
    return type(work) is Elementwise or (type(work) is Product and len(work.operands) > 1)


def _memory(
    backend: Backend, shape: Shape, dtype: np.dtype[Any], given: Sequence[Any]
) -> Array | None:
    """Memory of the pool for a large result; None where NumPy chooses another order of axes."""
    if prod(shape) * dtype.itemsize < backend.least_pooled:
        return None
    strides = [getattr(array, "strides", ()) for array in given]
    if any(one < other for own in strides for one, other in pairwise(own)):
        return None
    return backend.pooled(shape, dtype)


def _value(work: Work, given: list[Any], out: Array | None, backend: Backend) -> Any:
    """The result of an operation, in memory that may be that of an operand."""
    match work:
        case Leaf(array):
            return array
        case Scalar(value):
            return value
        case Reduce(_, (axis,), Running() as running):
            return _RUNNING[running].accumulate(given[0], axis)
        case Reduce(_, axes, reduction):
            return _REDUCED[reduction](given[0], axis=axes)
        case Transpose(_, source):
            return with_axes_of_array(backend.module.asarray(given[0]), source)
        case Product(_, _, _, call):
            return call(*given, out=out) if isinstance(call, np.ufunc) else call(*given)
        case Elementwise("where"):
            condition, one, other = given
            return _where(condition, one, other, out)
        case Elementwise("power", _, 2):
            return np.square(given[0], out=out)
        case Elementwise("power", _, exponent):
            return np.power(given[0], exponent, out=out)
        case Elementwise(operation):
            return UFUNCS[operation](*given, out=out)
        case Join() | Part() | Choice():
            raise VerifyError("joined arrays are slices, or computed, before a line runs")
        case _:
            assert_never(work)


def _where(condition: Any, one: Any, other: Any, target: Array | None) -> Any:
    """``numpy.where`` into memory that may be that of one of the values."""
    if target is None:
        return np.where(condition, one, other)
    if target is one:
        np.copyto(target, other, where=np.logical_not(condition))
        return target
    if target is not other:
        np.copyto(target, other)
    np.copyto(target, one, where=condition)
    return target
