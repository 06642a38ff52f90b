"""Record an operation; evaluate its operands if the graph exceeds its limits.

Nodes carry upper bounds of the operations, arrays and bytes below them, counted once for each path.
The graph is walked, and the bounds are made exact, only if one of them exceeds a limit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .evaluate import evaluate
from .graph import Elementwise, Leaf, Node, Roll, Scalar, Work, in_order
from .rolls import rolled_array

# Beyond these numbers, operands are computed first.
_HEAVIEST = 200  # operations of one kernel
_DEEPEST = 64  # operations on the longest path: each takes several frames of Python's stack
_MOST_ARRAYS = 32  # arrays that one kernel reads: their memory cannot be freed before it runs
_FEW_READS = 4  # up to this number of reads, each new one is checked for temporary memory
_HELD_BYTES = 2**22  # bytes of arrays held only by operations: about the size of a cache


def record(work: Work, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Node:
    """A node for the work; its operands are computed first if too many operations are pending.

    The node itself is computed at once if that frees much memory, or if NumPy's arrays can write to
    the memory that it reads.
    """
    if type(work) is not Elementwise:
        _compute_rolls(work)
    node = Node(work, shape, dtype)
    if _is_too_much(node):
        evaluate(work.operands)
        return Node(work, shape, dtype)
    if _reads_open(work) or (
        node.bytes >= _HELD_BYTES and _reads_more(node) and _holds_memory(node)
    ):
        evaluate((node,))
    return node


def _reads_open(work: Work) -> bool:
    for operand in work.operands:
        read = operand.work
        if type(read) is Leaf and read.is_open:
            return True
    return False


def _compute_rolls(work: Work) -> None:
    """Compute the rolled arrays that the work reads: only work on elements reads slices of them."""
    for operand in work.operands:
        rolled = operand.work
        if type(rolled) is Roll and type(rolled.operand.work) is Leaf:
            operand.set_array(rolled_array(rolled.operand.work.array, rolled.shifts))


def _is_too_much(node: Node) -> bool:
    if node.depth > _DEEPEST:
        return True
    if node.weight <= _HEAVIEST and node.arrays <= _MOST_ARRAYS:
        return False
    _count(node)
    return node.weight > _HEAVIEST or node.arrays > _MOST_ARRAYS


def _reads_more(node: Node) -> bool:
    """True if operations read one more array of a few, or twice as many as their operands.

    Only then their memory is checked, so that recording most operations costs nothing.
    """
    most = 0
    for operand in node.work.operands:
        if operand.reads > most:
            most = operand.reads
    if node.reads <= _FEW_READS:
        return node.reads > most
    return node.reads.bit_length() > most.bit_length()


def _holds_memory(node: Node) -> bool:
    """True if arrays held only by operations take a cache and twice the result.

    NumPy would have used them while they were in the cache, and freed them.
    """
    limit = max(_HELD_BYTES, 2 * math.prod(node.shape) * node.dtype.itemsize)
    if node.bytes < limit:
        return False
    return _count(node) >= limit


def _count(node: Node) -> int:
    """Count operations and arrays below a node and their bytes, each once.

    Returns:
        The bytes of arrays that lazy arrays allocated and only operations hold.
    """
    found: dict[int, int] = {}
    operations = held = 0
    for below in in_order((node,)):
        work = below.work
        if not isinstance(work, Leaf):
            operations += type(work) is not Scalar
        elif id(work.array) not in found:
            found[id(work.array)] = work.array.nbytes
            if work.is_new and not (work.whole or below).has_handle():
                held += work.array.nbytes
    node.weight = operations
    node.arrays, node.bytes = len(found), sum(found.values())
    return held
