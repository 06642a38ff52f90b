"""Runs what delayed arrays wait for: generated kernels, compiled once for each form of work.

The form leaves out extents (other than 1) and the values of numbers, so a loop that computes the
same with other numbers compiles once. Work on few elements goes to NumPy, whose calls cost less
than a kernel's: operation by operation, as it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..artifact.folder import Artifact
from ..compiler.driver import compile_system
from ..compiler.program_cache import ProgramCache
from ..compiler.target import kernel_target
from ..environment import lazy_min_elements
from ..options import Options
from ..runtime.program import Program
from .equations import Delayed, delayed_system
from .graph import (
    Array,
    Elementwise,
    Leaf,
    Node,
    Product,
    Scalar,
    SumAxes,
    Transpose,
    in_order,
    snapshot,
)

_MOST_PROGRAMS = 256  # compiled forms of work that a process keeps
PROGRAMS = ProgramCache(Program, lambda: _MOST_PROGRAMS)
_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "negative": np.negative,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "abs": np.absolute,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "conj": np.conjugate,
}


def settle(nodes: Sequence[Node], dtype: str) -> None:
    """Compute nodes together and put their arrays in their places.

    Args:
        nodes: of one element type.
        dtype: that element type.
    """
    # Threads may settle nodes at the same time: each computes from a copy that stays as it is.
    waiting = {n: c for n, c in zip(nodes, snapshot(nodes), strict=True) if c.weight}
    roots = tuple(waiting.values())
    if not roots:
        return
    most = max(_elements(node) for node in in_order(roots))
    if most < lazy_min_elements():
        arrays: dict[int, Any] = {}
        for node in in_order(roots):
            arrays[id(node)] = _by_numpy(node, arrays)
        made = [_owned(np.asarray(arrays[id(root)], dtype)) for root in roots]
    else:
        delayed = delayed_system(roots)
        made = _by_kernel(delayed, dtype)
    for node, array in zip(waiting, made, strict=True):
        array.flags.writeable = False  # so that operations may read it later without a copy
        node.settle(array.reshape(node.shape))


def program_of(delayed: Delayed, dtype: str) -> Program:
    """The program of a form of work, compiled where it is not kept."""
    key = (delayed.system, dtype, kernel_target())
    return PROGRAMS.program(key, lambda: _compiled(delayed, dtype, key[2]))


def _compiled(delayed: Delayed, dtype: str, target: str) -> Artifact:
    # Products stay matrix products; without them intermediates shrink to elements of fused loops.
    products = any(len(t.factors) > 1 for e in delayed.system.equations for t in e.terms)
    options = Options(
        extents=tuple(sorted((name, max(1, n)) for name, n in delayed.extents.items())),
        target=target,
        dtype=dtype,
        objective="none" if products or len(delayed.system.equations) == 1 else "memory",
        round_each=True,
    )
    return compile_system(delayed.system, options).artifact


def _by_kernel(delayed: Delayed, dtype: str) -> list[Array]:
    arrays: dict[str, Any] = {
        name: array.reshape([n for n in array.shape if n != 1])
        for name, array in delayed.inputs.items()
    }
    arrays |= {name: np.asarray(value, dtype) for name, value in delayed.numbers.items()}
    made = program_of(delayed, dtype)(**arrays)
    return [np.asarray(made[name]) for name in delayed.outputs]


def _owned(array: Array) -> Array:
    """The array; a copy where it is a view of an operand, which may be the caller's."""
    return array if array.base is None else array.copy()


def _elements(node: Node) -> int:
    count = 1
    for extent in node.shape:
        count *= extent
    return count


def _by_numpy(node: Node, arrays: dict[int, Any]) -> Any:
    match node.work:
        case Leaf(array):
            return array
        case Scalar(value):
            return value
        case Elementwise("power", (operand,), exponent):
            return np.power(arrays[id(operand)], exponent)
        case Elementwise(operation, operands):
            return _ELEMENTWISE[operation](*(arrays[id(o)] for o in operands))
        case SumAxes(operand, axes):
            return np.sum(arrays[id(operand)], axis=axes)
        case Transpose(operand, source):
            turned = np.transpose(arrays[id(operand)], [a for a in source if a is not None])
            return turned[tuple(None if a is None else slice(None) for a in source)]
        case Product(operands, labels, output):
            parts: list[Any] = []
            for operand, axes in zip(operands, labels, strict=True):
                parts += [arrays[id(operand)], list(axes)]
            return np.einsum(*parts, list(output), optimize=len(operands) > 2)
