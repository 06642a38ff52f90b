"""Rolled arrays as slices: in each block of a result, a rolled array is a part of the array.

Before: ``g + roll(g, 1, 0)``. After: ``g[1:] + g[:-1]`` for the rows from the second on, and
``g[:1] + g[-1:]`` for the first. So a stencil with periodic boundaries is one of slices, and the
rolled arrays are never stored.
"""

from __future__ import annotations

from itertools import pairwise, product
from math import prod

import numpy as np

from .graph import Array, Elementwise, Leaf, Node, Roll, Scalar, in_order, leaf

Block = tuple[slice, ...]
_MOST_BLOCKS = 27  # three along each of three axes; more take too many calls


def blocks_of(root: Node) -> list[tuple[Block, Node]] | None:
    """Blocks that together make up a result, each with the operations that compute it.

    None where operations other than those on elements read a rolled array, or blocks are many.

    Example:
        >>> x = leaf(np.arange(4.0))
        >>> moved = Node(Roll(x, (1,)), x.shape, x.dtype)
        >>> twice = Node(Elementwise("add", (x, moved)), x.shape, x.dtype)
        >>> [part.work.operands[1].work.array.tolist() for _, part in blocks_of(twice)]
        [[3.0], [0.0, 1.0, 2.0]]
    """
    nodes = in_order((root,))
    known = (Leaf, Scalar, Elementwise, Roll)
    if type(root.work) is not Elementwise or not all(type(n.work) in known for n in nodes):
        return None
    cuts = [{0, extent} for extent in root.shape]
    for node in nodes:
        if type(node.work) is Roll:
            first = root.ndim - node.ndim
            for axis, shift in enumerate(node.work.shifts, first):
                cuts[axis].add(shift)
    ranges = [[slice(a, b) for a, b in pairwise(sorted(own))] for own in cuts]
    if prod(map(len, ranges)) > _MOST_BLOCKS:
        return None
    return [(block, _part(root, block, {})) for block in product(*ranges)]


def _part(node: Node, block: Block, made: dict[int, Node]) -> Node:
    """A block of a node; no rolled array has its end inside."""
    if id(node) in made:
        return made[id(node)]
    own: Block = ()
    for extent, part in zip(node.shape, block[len(block) - node.ndim :], strict=True):
        own += (part if extent != 1 else slice(0, 1),)
    match node.work:
        case Leaf(array):
            found = leaf(array[own])
        case Roll(operand, shifts):
            assert isinstance(operand.work, Leaf), "values of a rolled array are known"
            extents = operand.shape
            starts = [(s.start - n) % e for s, n, e in zip(own, shifts, extents, strict=True)]
            moved = (slice(a, a + s.stop - s.start) for a, s in zip(starts, own, strict=True))
            found = leaf(operand.work.array[tuple(moved)])
        case Elementwise(operation, operands, exponent):
            parts = tuple(_part(operand, block, made) for operand in operands)
            shape = tuple(s.stop - s.start for s in own)
            found = Node(Elementwise(operation, parts, exponent), shape, node.dtype)
        case _:
            found = node
    made[id(node)] = found
    return found


def rolled_array(array: Array, shifts: tuple[int, ...]) -> Array:
    """The rolled array itself."""
    axes = tuple([axis for axis, shift in enumerate(shifts) if shift])
    return np.roll(array, tuple([shifts[axis] for axis in axes]), axes)
