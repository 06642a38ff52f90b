"""Parts of recorded operations: the part of a result is the result of the operands' parts.

A slice of a pending operation is an operation on slices. An element that two slices have in common
is then computed twice, so only cheap arithmetic is sliced at once. Other work on elements is sliced
when it runs, if nothing else needs it; the rest is computed first, and its array is sliced.

Rolled arrays are also slices: in each block of a result, a rolled array is a part of the array.
Before: ``g + roll(g, 1, 0)``. After: ``g[1:] + g[:-1]`` for the rows from the second on, and
``g[:1] + g[-1:]`` for the first. So a stencil with periodic boundaries is one of slices, and the
rolled arrays are never stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from math import prod
from typing import Any, TypeAlias

import numpy as np

from .graph import (
    Array,
    Elementwise,
    Leaf,
    Node,
    Part,
    Roll,
    Scalar,
    Transpose,
    in_order,
    with_axes,
)
from .ufuncs import CHEAP

Pick: TypeAlias = int | slice
Block: TypeAlias = tuple[slice, ...]
# Operations and operands for each element of a slice; more take longer than a pass over memory.
_MOST_WORK = 13
_MOST_BLOCKS = 27  # three along each of three axes; more take too many calls


def sliced(node: Node, key: Any) -> Node | None:
    """``node[key]`` for a key of numbers, slices and new axes, or None if it must be computed.

    Example:
        >>> from tcgen.lazy_arrays.graph import leaf
        >>> x = leaf(np.arange(4.0))
        >>> twice = Node(Elementwise("add", (x, x)), x.shape, x.dtype)
        >>> sliced(twice, slice(1, None)).work.operands[0].work.array
        array([1., 2., 3.])
    """
    keys = key if type(key) is tuple else (key,)
    picks: list[Pick] = []
    source: list[int | None] = []
    for one in _without_dots(keys, node.ndim):
        if one is None:
            source.append(None)
            continue
        if len(picks) == node.ndim:
            return None
        extent = node.shape[len(picks)]
        if type(one) is slice:
            source.append(sum(type(p) is slice for p in picks))
            start, stop, step = one.indices(extent)
            empty = not range(start, stop, step)
            picks.append(
                slice(0, 0, 1) if empty else slice(start, None if stop < 0 else stop, step)
            )
        elif type(one) is int and -extent <= one < extent:
            picks.append(one % extent)
        else:
            return None
    if len(picks) < node.ndim:
        return None
    whole = all(p == slice(0, n, 1) for p, n in zip(picks, node.shape, strict=True))
    made: Node | None = node
    if whole:
        pass
    elif _is_cheap(node):
        made = part_of(node, tuple(picks))
    elif isinstance(node.work, Elementwise):
        axes = zip(node.shape, picks, strict=True)
        shape = tuple([len(range(*p.indices(n))) for n, p in axes if type(p) is slice])
        made = Node(Part(node, tuple(picks)), shape, node.dtype)
    else:
        return None
    if made is None or source == list(range(made.ndim)):
        return made
    return with_axes(made, tuple(source))


def reshaped(node: Node, shape: tuple[int, ...]) -> Node | None:
    """A node with other axes, in C order; None for work that is not on elements of all operands."""
    match node.work:
        case Scalar():
            return node
        case Leaf(array) if array.flags.c_contiguous:
            return node.part(array.reshape(shape))
        case Elementwise(operation, operands, exponent) if _is_cheap(node):
            whole = all(o.shape in ((), node.shape) for o in operands)
            # A number is broadcast, whatever the axes.
            number = () if node.shape else None
            parts = [o if o.shape == number else reshaped(o, shape) for o in operands if whole]
            known = tuple(p for p in parts if p is not None)
            if len(known) == len(operands):
                return Node(Elementwise(operation, known, exponent), shape, node.dtype)
        case _:
            pass
    return None


def _without_dots(keys: tuple[Any, ...], ndim: int) -> tuple[Any, ...]:
    """The keys with an entry for each axis."""
    dots = [n for n, k in enumerate(keys) if k is Ellipsis]
    rest = (slice(None),) * (ndim - sum(k is not None and k is not Ellipsis for k in keys))
    place = dots[0] if dots else len(keys)
    return (*keys[:place], *rest, *keys[place + 1 :])


def part_of(node: Node, picks: tuple[Pick, ...]) -> Node | None:
    """The node of some picks of known values, or of work on elements; None for other work."""
    return _part(node, node.shape, picks, {})


def _is_cheap(node: Node) -> bool:
    if node.weight > _MOST_WORK:
        return False
    work = node.work
    known = isinstance(work, Leaf | Scalar | Transpose)
    cheap = known or (isinstance(work, Elementwise) and work.operation in CHEAP)
    return cheap and all(map(_is_cheap, work.operands))


def _part(
    node: Node, shape: Sequence[int], picks: Sequence[Pick], made: dict[tuple[int, str], Node]
) -> Node | None:
    """The picks of a shape, taken of a node that is broadcast to it.

    None for work that is not on elements, for a part of a new axis, and for one of a rolled array
    that has its end inside. ``made`` has the parts of other nodes.
    """
    first = len(picks) - node.ndim
    own: list[Pick] = []
    for extent, whole, pick in zip(node.shape, shape[first:], picks[first:], strict=True):
        repeated = extent == 1 and whole != 1
        own.append(pick if not repeated else 0 if type(pick) is int else slice(0, 1, 1))
    key = (id(node), str(own))
    if key not in made:
        found = _own_part(node, own, made)
        if found is None:
            return None
        made[key] = found
    return made[key]


def _own_part(node: Node, picks: list[Pick], made: dict[tuple[int, str], Node]) -> Node | None:
    match node.work:
        case Leaf(array):
            # With the dots one element is an array too, not a number of NumPy.
            return node.part(array[(*picks, ...)])
        case Roll(operand, shifts):
            assert isinstance(operand.work, Leaf), "values of a rolled array are known"
            moved: list[Pick] = []
            for pick, shift, extent in zip(picks, shifts, operand.shape, strict=True):
                if type(pick) is not slice or pick.step not in (None, 1):
                    return None
                start = (pick.start - shift) % extent
                if pick.stop is None or start + pick.stop - pick.start > extent:
                    return None
                moved.append(slice(start, start + pick.stop - pick.start))
            return operand.part(operand.work.array[tuple(moved)])
        case Elementwise(operation, operands, exponent):
            parts = [_part(o, node.shape, picks, made) for o in operands]
            known = tuple(p for p in parts if p is not None)
            if len(known) < len(parts):
                return None
            shape = np.broadcast_shapes(*[p.shape for p in known])
            return Node(Elementwise(operation, known, exponent), shape, node.dtype)
        case Transpose(operand, source):
            below: list[Pick] = [slice(None)] * operand.ndim
            for axis, pick in zip(source, picks, strict=True):
                if axis is not None:
                    below[axis] = pick
                elif type(pick) is slice and len(range(*pick.indices(1))) != 1:
                    return None
            part = _part(operand, operand.shape, below, made)
            kept = [axis for axis, pick in enumerate(below) if type(pick) is slice]
            left = [a for a, pick in zip(source, picks, strict=True) if type(pick) is slice]
            order = tuple(None if a is None else kept.index(a) for a in left)
            return None if part is None else with_axes(part, order)
        case Scalar():
            return node
        case _:
            return None


def blocks_of(root: Node) -> list[tuple[Block, Node]] | None:
    """Blocks that together make up a result, each with the operations that compute it.

    None where operations other than those on elements read a rolled array, or blocks are many.

    Example:
        >>> from tcgen.lazy_arrays.graph import leaf
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
    parts = [(block, _part(root, root.shape, block, {})) for block in product(*ranges)]
    return [(block, part) for block, part in parts if part is not None]


def rolled_array(array: Array, shifts: tuple[int, ...]) -> Array:
    """The rolled array itself."""
    axes = tuple([axis for axis, shift in enumerate(shifts) if shift])
    return np.roll(array, tuple([shifts[axis] for axis in axes]), axes)
