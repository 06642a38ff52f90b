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
from ..ir.reduction import Reduction
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
from .views import blocks_of, part_of


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
                # Kernels only read arrays of the operations that they compute.
                if all(line.operands[place] for place in line.roots):
                    _evaluate(line)
                    break


_HEAVIEST = 1000  # operations and arrays of one program; more take long to plan


def _groups(nodes: Sequence[Node]) -> Iterator[list[Node]]:
    """The nodes in groups that are not too large for one program."""
    group: list[Node] = []
    weight = 0
    for node in nodes:
        weight += node.weight
        if group and weight > _HEAVIEST:
            yield group
            group, weight = [], node.weight
        group.append(node)
    if group:
        yield group


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
    """Slices of pending work become work on slices, unless something else needs that work.

    Chosen elements are computed.
    """
    for node in in_order(nodes):
        work = node.work
        if type(work) is Choice:
            evaluate(work.operands)
            array, mask = (o.work.array for o in work.operands if isinstance(o.work, Leaf))
            node.set_array(array[mask])
        elif type(work) is Part:
            (operand,) = work.operands
            made = None if operand.is_held((node,)) else part_of(operand, work.picks)
            if made is None:
                evaluate((operand,))
                made = part_of(operand, work.picks)
            assert made is not None, "values have all parts"
            if isinstance(made.work, Leaf):
                node.set_array(made.work.array, made.work.whole)
            else:
                node.work = made.work


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
    if line.joins:
        return _run_joined(line)
    if LIMITS.kernels_only:
        run = partial(_run_kernel, line)
        return run(line.backend.target()) if line.backend.on_gpu else with_kernels(run)
    if (line.is_simple and not line.change) or line.largest < LIMITS.elements:
        return run_in_numpy(line)
    form = form_of(line.key)
    times = form.of_size(line.elements)
    kernel = form.kernel if times.prefers_kernel(LIMITS.trials) else None
    run = partial(run_in_numpy if kernel is None else kernel.run, line)
    if line.backend.on_gpu and form.requested and not times.is_open(LIMITS.trials):
        # A measurement would synchronize with the queue.
        return run()
    made, seconds = _measured(run, line.backend)
    if kernel is not None:
        times.record_kernel(seconds)
        return made
    times.record_numpy(seconds)
    form.spent += seconds
    if not form.requested and (seconds >= LIMITS.large or form.spent >= LIMITS.spent):
        form.requested = True
        # The thread gets the system and no arrays, which would stay in memory.
        target = line.backend.target()
        in_background(partial(_compile, form, lazy_system(line), line.dtype.name, target))
    return made


def _run_joined(line: Linearized) -> list[Array]:
    """The arrays of the roots if joined arrays are read: block by block if that is possible.

    Several roots, sums and products read joined arrays that are computed first.
    """
    nodes = [line.sources[place] for place in line.roots]
    target = line.target
    blocks = blocks_of(nodes[0]) if len(nodes) == 1 else None
    if blocks is not None:
        if target is None:
            target = line.backend.empty(nodes[0].shape, nodes[0].dtype)
        for block, part in blocks:
            evaluate_into(part, target[block], line.change)
        return [target]
    for node in line.sources:
        work = node.work
        if type(work) is Join:
            evaluate(work.operands)
            arrays = [o.work.array for o in work.operands if isinstance(o.work, Leaf)]
            node.set_array(line.backend.module.concatenate(arrays, work.axis))
    made = {node: node.work.array for node in nodes if isinstance(node.work, Leaf)}
    pending = [node for node in nodes if node not in made]
    if pending:
        rest = linearize(pending)
        rest.target, rest.change = target, line.change
        made.update(zip(pending, _run(rest), strict=True))
    elif target is not None:
        _write(target, made[nodes[0]], line.change)
        return [target]
    return [made[node] for node in nodes]


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


_REDUCED: dict[Reduction, Callable[..., Any]] = {
    Reduction.SUM: np.sum,
    Reduction.MAX: np.max,
    Reduction.MIN: np.min,
    Reduction.PROD: np.prod,
}


@np.errstate(all="ignore")
def run_in_numpy(line: Linearized) -> list[Array]:
    """The arrays of the roots.

    An operation may write to the memory of an operand that nobody reads after it, as NumPy does
    with the temporary arrays of an expression. Like kernels, it gives no floating-point warnings:
    the ``numpy.errstate`` around the code that recorded an operation has ended by now.
    """
    works, shapes, dtypes = line.works, line.shapes, line.dtypes
    last = [0] * len(works)  # place of the last operation that reads a value
    for place, operands in enumerate(line.operands):
        for operand in operands:
            last[operand] = place
    for root in line.roots:
        last[root] = len(works)
    values: list[Any] = []
    free: set[int] = set()  # places of new arrays that have no views
    for place, operands in enumerate(line.operands):
        work = works[place]
        if not operands:
            values.append(_value(work, [], line, place))
            continue
        given = [values[n] for n in operands]
        shape = shapes[place]
        if type(work) is Elementwise:
            target = line.target if place in line.roots and not line.change else None
            if target is None:
                for n in operands:
                    same = shapes[n] == shape and dtypes[n] == dtypes[place]
                    if same and n in free and last[n] == place:
                        target = values[n]
                        break
                else:
                    target = _memory(line.backend, shape, dtypes[place], given)
            values.append(_elementwise(work, given, target))
            if shape:
                free.add(place)
        else:
            values.append(_value(work, given, line, place))
            if type(work) is Transpose:
                free.difference_update(operands)  # its result is a view
            elif shape and _is_new(work):
                free.add(place)
        del given
        for n in operands:
            if last[n] == place:
                values[n] = None
    if line.target is not None:
        root = line.roots[0]
        if line.change or type(line.works[root]) is not Elementwise:
            _write(line.target, values[root], line.change)
        return [line.target]
    results = []
    for root in line.roots:
        made = line.backend.module.asarray(values[root], line.dtypes[root])
        work = line.works[root]
        is_new = type(work) is Elementwise or _is_new(work) or made.base is None
        results.append(made if is_new else made.copy())
    return results


def _is_new(work: Work) -> bool:
    """True for a product of several arrays; of one, it may be a view."""
    return type(work) is Product and len(work.operands) > 1


def _memory(
    backend: Backend, shape: Shape, dtype: np.dtype[Any], given: Sequence[Any]
) -> Array | None:
    """Memory of the pool for a large result; None where NumPy chooses another order of axes."""
    if prod(shape) * dtype.itemsize < backend.least_pooled:
        return None
    for array in given:
        strides = getattr(array, "strides", ())
        if any(one < other for one, other in pairwise(strides)):
            return None
    return backend.pooled(shape, dtype)


def _elementwise(work: Elementwise, given: list[Any], target: Array | None) -> Any:
    if work.operation == "where":
        condition, one, other = given
        return _where(condition, one, other, target)
    if work.operation != "power":
        return UFUNCS[work.operation](*given, out=target)
    if work.exponent == 2:
        return np.square(given[0], out=target)
    return np.power(given[0], work.exponent, out=target)


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


def _value(work: Work, given: list[Any], line: Linearized, place: int) -> Any:
    match work:
        case Leaf(array):
            return array
        case Scalar(value):
            return value
        case Reduce(_, axes, reduction):
            return _REDUCED[reduction](given[0], axis=axes)
        case Transpose(_, source):
            return with_axes_of_array(line.backend.module.asarray(given[0]), source)
        case Join() | Part() | Choice():
            raise VerifyError("joined arrays are slices, or computed, before a line runs")
        case Product():
            return _product(work, given, line, place)
        case Elementwise():
            return _elementwise(work, given, None)
        case _:
            assert_never(work)


def _product(work: Product, given: list[Any], line: Linearized, place: int) -> Any:
    if not isinstance(work.call, np.ufunc):  # matmul
        return work.call(*given)
    return work.call(*given, out=_memory(line.backend, line.shapes[place], line.dtypes[place], ()))
