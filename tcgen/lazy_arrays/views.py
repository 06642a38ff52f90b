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
from itertools import pairwise, product
from math import prod
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


def viewed(
    node: Node, take: Callable[[Array], Array], parts: tuple[Array, Array] | None = None
) -> Node | None:
    """The node of the view that a function takes of an array; None if it must be computed.

    The function gets an array in C order whose elements nobody reads, unless it is given with its
    view: the place of the view in the memory tells which part of the values it takes.

    Example:
        >>> from tcgen.lazy_arrays.graph import leaf
        >>> x = leaf(np.arange(4.0))
        >>> twice = Node(Elementwise("add", (x, x)), x.shape, x.dtype)
        >>> viewed(twice, lambda a: a[1:]).work.operands[0].work.array
        array([1., 2., 3.])
    """
    work = node.work
    if type(work) is Leaf:
        return node.part(take(work.array))
    whole = UNREAD.in_shape(node.shape) if parts is None else parts[0]
    view = take(whole) if parts is None else parts[1]
    found = picked(whole, view)
    if found is None:
        return _viewed_operands(node, take, view.shape)
    picks, source = found
    made: Node | None = node
    if not _are_whole(picks, node.shape):
        if _is_cheap(node):
            made = part_of(node, picks)
        elif isinstance(work, Elementwise | Join):
            axes = zip(node.shape, picks, strict=True)
            shape = tuple([len(range(*p.indices(n))) for n, p in axes if type(p) is slice])
            made = Node(Part((node,), picks), shape, node.dtype)
        else:
            return None
    if made is None or source == tuple(range(made.ndim)):
        return made
    return with_axes(made, source)


def _viewed_operands(
    node: Node, take: Callable[[Array], Array], shape: tuple[int, ...]
) -> Node | None:
    """Cheap work on elements of the views of its operands, if those have its shape."""
    work = node.work
    if not isinstance(work, Elementwise) or not _is_cheap(node):
        return None
    number = () if node.shape else None  # it is broadcast, whatever the axes
    whole = all(o.shape in (number, node.shape) for o in work.operands)
    parts = [o if o.shape == number else viewed(o, take) for o in work.operands if whole]
    known = tuple(p for p in parts if p is not None)
    if len(known) < len(work.operands):
        return None
    return Node(Elementwise(work.operation, known, work.exponent), shape, node.dtype)


def picked(whole: Array, view: Array) -> tuple[tuple[Pick, ...], tuple[int | None, ...]] | None:
    """The pick of each axis of an array in C order, and the axes of what is picked, as a view has.

    The array has elements of one byte. None for a new axis of the view; None for other views.

    Example:
        >>> x = np.empty((4, 5), bool)
        >>> picked(x, x[1, None, ::2]), picked(x, x.reshape(-1))
        (((1, slice(0, 5, 2)), (None, 0)), None)
    """
    if not whole.size:
        return None
    first, rest = [], view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    for stride in whole.strides:
        start, rest = divmod(rest, stride)
        first.append(start)
    picks: list[Pick] = list(first)
    ones = [axis for axis, extent in enumerate(whole.shape) if extent == 1]
    places: list[int | None] = []
    for extent, stride in zip(view.shape, view.strides, strict=True):
        if extent == 1:
            place = ones.pop(0) if ones else None
            if place is not None:
                picks[place] = slice(0, 1, 1)
        else:
            sizes = zip(whole.shape, whole.strides, strict=True)
            fits = [n for n, (most, own) in enumerate(sizes) if most > 1 and own <= abs(stride)]
            if not fits or stride % whole.strides[fits[0]] or fits[0] in places or not extent:
                return None
            place, step = fits[0], stride // whole.strides[fits[0]]
            last = first[place] + step * (extent - 1)
            if not 0 <= last < whole.shape[place]:
                return None
            stop = last + (1 if step > 0 else -1)
            picks[place] = slice(first[place], None if stop < 0 else stop, step)
        places.append(place)
    kept = [axis for axis, pick in enumerate(picks) if type(pick) is slice]
    return tuple(picks), tuple([None if place is None else kept.index(place) for place in places])


def part_of(node: Node, picks: tuple[Pick, ...]) -> Node | None:
    """The node of some picks of known values, or of work on elements; None for other work."""
    return _part(node, node.shape, picks, {})


def _are_whole(picks: Sequence[Pick], shape: Sequence[int]) -> bool:
    return all(pick == slice(0, n, 1) for pick, n in zip(picks, shape, strict=True))


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

    None for work that is not on elements, for a part of a new axis, and for one that has elements
    of several joined arrays. ``made`` has the parts of other nodes.
    """
    first = len(picks) - node.ndim
    own: list[Pick] = []
    for extent, whole, pick in zip(node.shape, shape[first:], picks[first:], strict=True):
        repeated = extent == 1 and whole != 1
        own.append(pick if not repeated else 0 if type(pick) is int else slice(0, 1, 1))
    key = (id(node), str(own))
    if key not in made:
        found = node if _are_whole(own, node.shape) else _own_part(node, own, made)
        if found is None:
            return None
        made[key] = found
    return made[key]


def _own_part(node: Node, picks: list[Pick], made: dict[tuple[int, str], Node]) -> Node | None:
    match node.work:
        case Leaf(array):
            # With the dots one element is an array too, not a number of NumPy.
            return node.part(array[(*picks, ...)])
        case Join(operands, along):
            first = 0
            for operand in operands:
                extent = operand.shape[along]
                moved = _moved(picks[along], node.shape[along], first, extent)
                if moved is not None:
                    own = [*picks[:along], moved, *picks[along + 1 :]]
                    return _part(operand, operand.shape, own, made)
                first += extent
            return None
        case Elementwise(operation, operands, exponent):
            parts = [_part(o, node.shape, picks, made) for o in operands]
            known = tuple(p for p in parts if p is not None)
            if len(known) < len(parts):
                return None
            shape = np.broadcast_shapes(*[p.shape for p in known])
            return Node(Elementwise(operation, known, exponent), shape, node.dtype)
        case Transpose((operand,), source):
            below: list[Pick] = [slice(0, extent, 1) for extent in operand.shape]
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


def _moved(pick: Pick, length: int, first: int, extent: int) -> Pick | None:
    """The pick of a joined axis within one of the arrays; None if it has elements of others."""
    if not isinstance(pick, slice):
        return pick - first if 0 <= pick - first < extent else None
    places = range(*pick.indices(length))
    if not places or min(places) < first or max(places) >= first + extent:
        return None
    stop = places[-1] - first + (1 if places.step > 0 else -1)
    return slice(places.start - first, None if stop < 0 else stop, places.step)


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
    parts = [(block, _part(root, root.shape, block, {})) for block in product(*ranges)]
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
