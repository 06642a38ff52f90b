"""Runs recorded operations by generated kernels, each compiled once for a form of system.

A form does not depend on extents (other than 1) or on the values of numbers, so a loop that repeats
the same operations with other numbers compiles once. Operations on few elements run one by one in
NumPy, whose calls take less time than a kernel's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..artifact.folder import Artifact
from ..compiler.driver import compile_system
from ..compiler.program_cache import ProgramCache
from ..compiler.target import with_kernels
from ..environment import lazy_min_elements
from ..options import Options
from ..runtime.program import Program
from .equations import LazySystem, lazy_system
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

_MOST_PROGRAMS = 256  # compiled programs that a process keeps
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


def evaluate(nodes: Sequence[Node], dtype: str) -> None:
    """Compute nodes together; each becomes a leaf with its array.

    Args:
        nodes: of one element type.
        dtype: that element type.
    """
    # Threads may evaluate nodes at the same time: each computes from a copy that does not change.
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
        lazy = lazy_system(roots)
        made = _by_kernel(lazy, dtype)
    for node, array in zip(waiting, made, strict=True):
        array.flags.writeable = False  # so that operations may read it later without a copy
        node.set_array(array.reshape(node.shape))


def program_of(lazy: LazySystem, dtype: str, target: str) -> Program:
    """The program of a system, compiled if the cache has none."""
    key = (lazy.system, dtype, target)
    return PROGRAMS.program(key, lambda: _compiled(lazy, dtype, target))


def _compiled(lazy: LazySystem, dtype: str, target: str) -> Artifact:
    # Products stay matrix products; without them intermediates shrink to elements of fused loops.
    products = any(len(t.factors) > 1 for e in lazy.system.equations for t in e.terms)
    options = Options(
        extents=tuple(sorted((name, max(1, n)) for name, n in lazy.extents.items())),
        target=target,
        dtype=dtype,
        objective="none" if products or len(lazy.system.equations) == 1 else "memory",
        optimize=False,
        round_each=True,
        sums_alone=False,
    )
    return compile_system(lazy.system, options).artifact


def _by_kernel(lazy: LazySystem, dtype: str) -> list[Array]:
    arrays: dict[str, Any] = {
        name: array.reshape([n for n in array.shape if n != 1])
        for name, array in lazy.inputs.items()
    }
    arrays |= {name: np.asarray(value, dtype) for name, value in lazy.numbers.items()}
    made = with_kernels(lambda target: program_of(lazy, dtype, target)(**arrays))
    return [np.asarray(made[name]) for name in lazy.outputs]


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
            transposed = np.transpose(arrays[id(operand)], [a for a in source if a is not None])
            return transposed[tuple(None if a is None else slice(None) for a in source)]
        case Product(operands, labels, output):
            parts: list[Any] = []
            for operand, axes in zip(operands, labels, strict=True):
                parts += [arrays[id(operand)], list(axes)]
            return np.einsum(*parts, list(output), optimize=len(operands) > 2)
