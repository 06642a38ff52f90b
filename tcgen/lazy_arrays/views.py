"""Parts of recorded operations: the part of a result is the result of the operands' parts.

A slice of a pending operation is an operation on slices. An element that two slices have in common
is then computed twice, so only cheap arithmetic is sliced at once. Other work on elements is sliced
when it runs, if nothing else needs it; the rest is computed first, and its array is sliced.

Joined arrays are also slices: in each block of a result, a joined array is a part of one of them.
Before: ``g + roll(g, 1, 0)``, where the roll joins ``g[-1:]`` and ``g[:-1]``. After: ``g[1:] +
g[:-1]`` for the rows from the second on, and ``g[:1] + g[-1:]`` for the first. So a stencil with
periodic boundaries is one of slices, and neither rolled nor joined arrays are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import pairwise, product
from math import prod
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from .graph import (
    Array,
    Elementwise,
    Join,
    Leaf,
    Node,
    Part,
    Scalar,
    Shape,
    Transpose,
    in_order,
    with_axes,
    with_axes_of_array,
)
from .ufuncs import CHEAP

Pick: TypeAlias = int | slice
Block: TypeAlias = tuple[slice, ...]
# Operations and operands for each element of a slice; more take longer than a pass over memory.
_MOST_WORK = 13
_MOST_BLOCKS = 27  # three along each of three axes; more take too many calls


class _Unread:
    """Memory that is never read: views of it tell which elements a function takes."""

    array = np.empty(0, bool)

    def in_shape(self, shape: tuple[int, ...]) -> Array:
        """An array in C order."""
        size, array = prod(shape), self.array
        if size > array.size:
            self.array = array = np.empty(size, bool)
        return array[:size].reshape(shape)


UNREAD = _Unread()


def viewed(node: Node, take: Callable[[Array], Array]) -> Node | None:
    """The node of the view that a function takes of an array; None if it must be computed.

    Example:
        >>> from tcgen.lazy_arrays.graph import leaf
        >>> x = leaf(np.arange(4.0))
        >>> twice = Node(Elementwise("add", (x, x)), x.shape, x.dtype)
        >>> viewed(twice, lambda a: a[1:]).work.operands[0].work.array
        array([1., 2., 3.])
    """
    if type(node.work) is Leaf:
        return node.part(take(node.work.array))
    whole = UNREAD.in_shape(node.shape)
    view = take(whole)
    # Only a view of all elements may be one of other axes.
    picks, source = (picked(whole, view) if view.size == whole.size else None) or (None, ())
    if picks is not None and picks == _whole(node.shape):
        return with_axes(node, source) if source != tuple(range(node.ndim)) else node
    if isinstance(node.work, Elementwise | Join) and not _is_cheap(node):
        return Node(Part((node,), take), view.shape, node.dtype)
    return part_of(node, take)


def picked(whole: Array, view: Array) -> tuple[tuple[Pick, ...], tuple[int | None, ...]] | None:
    """The pick of each axis of an array in C order, and the axes of what is picked, as a view has.

    The array has elements of one byte. None for a new axis of the view; None for other views.

    Example:
        >>> x = np.empty((4, 5), bool)
        >>> picked(x, x[1, None, ::2]), picked(x, x.reshape(-1))
        (((1, slice(0, 5, 2)), (None, 0)), None)
    """
    start = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return _picked(whole.shape, whole.strides, start, view.shape, view.strides)


@lru_cache(maxsize=10_000)
def _picked(
    whole: Shape, steps: Shape, start: int, shape: Shape, strides: Shape
) -> tuple[tuple[Pick, ...], tuple[int | None, ...]] | None:
    if 0 in whole:
        return None
    first = []
    for stride in steps:
        place, start = divmod(start, stride)
        first.append(place)
    picks: list[Pick] = list(first)
    ones = [axis for axis, extent in enumerate(whole) if extent == 1]
    places: list[int | None] = []
    for extent, stride in zip(shape, strides, strict=True):
        axis: int | None = None
        if extent == 1:
            axis = ones.pop(0) if ones else None
            if axis is not None:
                picks[axis] = slice(0, 1, 1)
        else:
            fits = [n for n, own in enumerate(steps) if whole[n] > 1 and own <= abs(stride)]
            if not fits or stride % steps[fits[0]] or fits[0] in places or not extent:
                return None
            axis, step = fits[0], stride // steps[fits[0]]
            last = first[axis] + step * (extent - 1)
            if not 0 <= last < whole[axis]:
                return None
            stop = last + (1 if step > 0 else -1)
            picks[axis] = slice(first[axis], None if stop < 0 else stop, step)
        places.append(axis)
    kept = [axis for axis, pick in enumerate(picks) if type(pick) is slice]
    return tuple(picks), tuple([None if place is None else kept.index(place) for place in places])


def part_of(
    node: Node, take: Callable[[Array], Array], made: dict[Any, Node | None] | None = None
) -> Node | None:
    """The node of a view of known values, or of work on elements; None for other work.

    Axes to which the function broadcasts an array have the extent 1. ``made`` has the parts of
    other nodes.
    """
    made = {} if made is None else made
    if type(node.work) is Scalar:
        return node
    whole = UNREAD.in_shape(node.shape)
    view = take(whole)
    if view.base is not whole.base:
        return None
    key = (id(node), view.__array_interface__["data"][0], view.shape, view.strides)
    if key not in made:
        axes = zip(view.shape, view.strides, strict=True)
        # With the dots one element is an array too, not a number of NumPy.
        once = (*[slice(1 if n > 1 and not stride else None) for n, stride in axes], ...)
        made[key] = _own_part(node, take, whole, view[once], once, made)
    return made[key]


def _own_part(
    node: Node,
    take: Callable[[Array], Array],
    whole: Array,
    view: Array,
    once: Any,
    made: dict[Any, Node | None],
) -> Node | None:
    work = node.work
    match work:
        case Leaf(array):
            found = take(array)[once]
            return node.part(found) if np.may_share_memory(found, array) else None
        case Elementwise(operation, operands, exponent):
            parts = [
                part_of(o, take if o.shape == node.shape else _broadcasting(take, node), made)
                for o in operands
            ]
            known = tuple(p for p in parts if p is not None)
            if len(known) < len(parts):
                return None
            return Node(Elementwise(operation, known, exponent), view.shape, node.dtype)
        case Transpose((operand,), source):
            return part_of(operand, lambda a: take(with_axes_of_array(a, source)), made)
        case Join(operands, axis):
            picks, source = picked(whole, view) or ((), ())
            first = 0
            for operand in operands if picks else ():
                own = _moved(picks, axis, first, operand.shape[axis])
                if own is not None:
                    return part_of(operand, partial(_taken, own, source), made)
                first += operand.shape[axis]
            return None
        case _:
            return None


def _broadcasting(take: Callable[[Array], Array], node: Node) -> Callable[[Array], Array]:
    """A function of an array that is broadcast to the shape of a node first."""
    return lambda array: take(np.broadcast_to(array, node.shape))


def _taken(picks: Sequence[Pick], source: tuple[int | None, ...], array: Array) -> Array:
    return with_axes_of_array(array[(*picks, ...)], source)


def _whole(shape: Sequence[int]) -> tuple[Pick, ...]:
    return tuple([slice(0, extent, 1) for extent in shape])


def _is_cheap(node: Node) -> bool:
    if node.weight > _MOST_WORK:
        return False
    work = node.work
    known = isinstance(work, Leaf | Scalar | Transpose)
    cheap = known or (isinstance(work, Elementwise) and work.operation in CHEAP)
    return cheap and all(map(_is_cheap, work.operands))


def _moved(picks: Sequence[Pick], axis: int, first: int, extent: int) -> list[Pick] | None:
    """Picks of joined arrays within one of them; None if they have elements of others."""
    pick = picks[axis]
    if isinstance(pick, slice):
        # The reverse of a slice that ends at the first element has no end.
        places = range(pick.start, -1 if pick.stop is None else pick.stop, pick.step)
        stop = places[-1] - first + (1 if pick.step > 0 else -1)
        own: Pick = slice(pick.start - first, None if stop < 0 else stop, pick.step)
    else:
        places, own = range(pick, pick + 1), pick - first
    if min(places) < first or max(places) >= first + extent:
        return None
    return [*picks[:axis], own, *picks[axis + 1 :]]


def blocks_of(root: Node) -> list[tuple[Block, Node]] | None:
    """Blocks that together make up a result, each with the operations that compute it.

    None where operations other than those on elements read a joined array, or blocks are many.

    Example:
        >>> from tcgen.lazy_arrays.graph import leaf
        >>> x, y = leaf(np.arange(1.0)), leaf(np.arange(2.0))
        >>> both = Node(Join((x, y), 0), (3,), x.dtype)
        >>> twice = Node(Elementwise("add", (both, both)), both.shape, x.dtype)
        >>> [part.work.operands[1].work.array.tolist() for _, part in blocks_of(twice)]
        [[0.0], [0.0, 1.0]]
    """
    if not all(type(n.work) in (Leaf, Scalar, Elementwise, Join) for n in in_order((root,))):
        return None
    cuts = [{0, extent} for extent in root.shape]
    _cut(root, (0,) * root.ndim, cuts, set())
    ranges = [
        [slice(a, b) for a, b in pairwise(sorted(c for c in own if c <= extent))]
        for own, extent in zip(cuts, root.shape, strict=True)
    ]
    if prod(map(len, ranges)) > _MOST_BLOCKS:
        return None
    parts = [(block, part_of(root, itemgetter((*block, ...)))) for block in product(*ranges)]
    known = [(block, part) for block, part in parts if part is not None]
    return known if len(known) == len(parts) else None


def _cut(node: Node, first: Sequence[int], cuts: list[set[int]], seen: set[Any]) -> None:
    """Add the places of a result between joined arrays; a node begins at some place of it."""
    seen.add((id(node), first))
    work = node.work
    for operand in work.operands:
        own = tuple(first[len(first) - operand.ndim :])
        if (id(operand), own) not in seen:
            _cut(operand, own, cuts, seen)
        if type(work) is Join:
            place = first[work.axis] + operand.shape[work.axis]
            cuts[len(cuts) - node.ndim + work.axis].add(place)
            first = (*first[: work.axis], place, *first[work.axis + 1 :])
