"""Computes recorded operations: each becomes an array, by NumPy or by a kernel of its form."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter

from ..compiler.target import with_kernels
from .backend import Backend
from .dispatch import LIMITS, Form, form_of, in_background
from .equations import LazySystem, lazy_system
from .graph import Array, Leaf, Node, Roll, in_order
from .in_numpy import UFUNCS, run_in_numpy, run_single
from .kernels import kernel_of
from .linearized import Linearized, linearize
from .rolls import blocks_of, rolled_array


def evaluate(nodes: Sequence[Node]) -> None:
    """Compute nodes of kernels of one type together; each becomes a leaf with its array.

    The same holds for nodes below them that other objects hold, which are computed on the way.
    Several threads may evaluate a node at the same time.
    """
    if len(nodes) == 1 and not LIMITS.kernels_only:
        array = run_single(nodes[0])
        if array is not None:
            nodes[0].set_array(array)
            return
    line = linearize(nodes)
    while not all(line.operands[place] for place in line.roots):
        # Kernels only read arrays of the operations that they compute.
        nodes = [n for n, place in zip(nodes, line.roots, strict=True) if line.operands[place]]
        if not nodes:
            return
        line = linearize(nodes)
    line.roots = tuple(dict.fromkeys(line.roots))
    line.roots += tuple(line.held())
    for place, array in zip(line.roots, _run(line), strict=True):
        line.sources[place].set_array(array)
    for node, place in line.twins:
        work = line.sources[place].work
        if isinstance(work, Leaf):
            node.set_array(work.array, line.sources[place])


def evaluate_into(node: Node, target: Array, change: str = "") -> None:
    """Write the values of a node, which stays pending, into memory that no operation reads.

    ``target`` has its shape and type. ``change`` is ``add`` or ``subtract`` if the values change
    the target, else "".
    """
    line = linearize((node,))
    held = [line.sources[place] for place in line.held()]
    if held:
        evaluate(held)
        line = linearize((node,))
    line.target, line.change = target, change
    _run(line)


def _run(line: Linearized) -> list[Array]:
    """The arrays of the roots."""
    if line.rolls:
        return _run_rolled(line)
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
        in_background(partial(_compile, form, _system(line), line.dtype.name, target))
    return made


def _run_rolled(line: Linearized) -> list[Array]:
    """The arrays of the roots if rolled arrays are read: block by block if that is possible.

    Several roots, sums and products read rolled arrays that are computed first.
    """
    nodes = replace(line, change="").nodes()  # not shared with other threads
    target = line.target
    blocks = blocks_of(nodes[0]) if len(nodes) == 1 else None
    if blocks is not None:
        (root,) = nodes
        if target is None:
            target = line.backend.empty(root.shape, root.dtype)
        for block, part in blocks:
            evaluate_into(part, target[block], line.change)
        return [target]
    for node in in_order(nodes):
        work = node.work
        if type(work) is Roll and isinstance(work.operand.work, Leaf):
            node.set_array(rolled_array(work.operand.work.array, work.shifts))
    pending = tuple(n for n in nodes if type(n.work) is not Leaf)
    if pending:
        rest = linearize(pending)
        rest.target, rest.change = target, line.change
        for node, array in zip(pending, _run(rest), strict=True):
            node.set_array(array)
    elif target is not None:
        (array,) = (n.work.array for n in nodes if isinstance(n.work, Leaf))
        change = UFUNCS[line.change] if line.change else None
        target[...] = array if change is None else change(target, array)
        return [target]
    return [n.work.array for n in nodes if isinstance(n.work, Leaf)]


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
        form.kernel = kernel_of(_system(line), line.dtype.name, target)
    return form.kernel.run(line)


def _system(line: Linearized) -> LazySystem:
    return lazy_system(line.nodes(), line.target, accumulate=bool(line.change))


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
