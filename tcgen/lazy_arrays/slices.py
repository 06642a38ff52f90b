"""Slices of pending work: the slice of a result is the result of the operands' slices.

An element that two slices have in common is then computed twice. So only cheap arithmetic is
sliced; other work is computed first, and its array is sliced.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from .graph import CHEAP, Elementwise, Leaf, Node, Scalar, Transpose, leaf
from .recording import record
from .ufuncs import with_axes

Pick: TypeAlias = int | slice
_MOST_WORK = 6  # operations for each element; more take longer than a pass over memory


def sliced(node: Node, key: Any) -> Node | None:
    """``node[key]`` for a key of numbers, slices and new axes, or None if it must be computed.

    Example:
        >>> import numpy as np
        >>> x = leaf(np.arange(4.0))
        >>> twice = Node(Elementwise("add", (x, x)), x.shape, x.dtype)
        >>> sliced(twice, slice(1, None)).work.operands[0].work.array
        array([1., 2., 3.])
    """
    keys = key if type(key) is tuple else (key,)
    picks: list[Pick] = []
    source: list[int | None] = []
    for part in _without_dots(keys, node.ndim):
        if part is None:
            source.append(None)
            continue
        if len(picks) == node.ndim:
            return None
        extent = node.shape[len(picks)]
        if type(part) is slice:
            source.append(sum(type(p) is slice for p in picks))
            start, stop, step = part.indices(extent)
            empty = not range(start, stop, step)
            picks.append(
                slice(0, 0, 1) if empty else slice(start, None if stop < 0 else stop, step)
            )
        elif type(part) is int and -extent <= part < extent:
            picks.append(part % extent)
        else:
            return None
    whole = all(p == slice(0, n, 1) for p, n in zip(picks, node.shape, strict=False))
    if len(picks) < node.ndim:
        return None
    part_of = node if whole else _part(node, tuple(picks)) if _is_cheap(node) else None
    if part_of is None or source == list(range(part_of.ndim)):
        return part_of
    return with_axes(part_of, tuple(source))


def _without_dots(keys: tuple[Any, ...], ndim: int) -> tuple[Any, ...]:
    """The keys with an entry for each axis."""
    dots = [n for n, k in enumerate(keys) if k is Ellipsis]
    rest = (slice(None),) * (ndim - sum(k is not None and k is not Ellipsis for k in keys))
    place = dots[0] if dots else len(keys)
    return (*keys[:place], *rest, *keys[place + 1 :])


def _is_cheap(node: Node) -> bool:
    if node.weight > _MOST_WORK:
        return False
    match node.work:
        case Leaf() | Scalar():
            return True
        case Elementwise(operation, operands):
            return operation in CHEAP and all(map(_is_cheap, operands))
        case Transpose(operand):
            return _is_cheap(operand)
        case _:
            return False


def _part(node: Node, picks: tuple[Pick, ...]) -> Node | None:
    match node.work:
        case Leaf(array):
            return leaf(array[picks])
        case Elementwise(operation, operands, exponent):
            parts = [_operand_part(o, node, picks) for o in operands]
            known = tuple(p for p in parts if p is not None)
            shape = _shape(node, picks)
            if len(known) < len(parts):
                return None
            return record(Elementwise(operation, known, exponent), shape, node.dtype)
        case Transpose(operand, source):
            return _transposed_part(operand, source, picks)
        case _:
            return None


def _operand_part(operand: Node, node: Node, picks: tuple[Pick, ...]) -> Node | None:
    """The picks of a node, taken of an operand that is broadcast to it."""
    if not operand.shape:
        return operand
    first = node.ndim - operand.ndim
    own: list[Pick] = []
    for extent, whole, pick in zip(operand.shape, node.shape[first:], picks[first:], strict=True):
        repeated = extent == 1 and whole != 1
        own.append(pick if not repeated else 0 if type(pick) is int else slice(0, 1, 1))
    return _part(operand, tuple(own))


def _transposed_part(
    operand: Node, source: tuple[int | None, ...], picks: tuple[Pick, ...]
) -> Node | None:
    below: list[Pick] = [slice(None)] * operand.ndim
    for axis, pick in zip(source, picks, strict=True):
        if axis is not None:
            below[axis] = pick
        elif type(pick) is slice and len(range(*pick.indices(1))) != 1:
            return None
    part = _part(operand, tuple(below))
    if part is None:
        return None
    kept = [axis for axis, pick in enumerate(below) if type(pick) is slice]
    left = [a for a, pick in zip(source, picks, strict=True) if type(pick) is slice]
    return with_axes(part, tuple(None if a is None else kept.index(a) for a in left))


def _shape(node: Node, picks: tuple[Pick, ...]) -> tuple[int, ...]:
    return tuple(
        len(range(*pick.indices(extent)))
        for extent, pick in zip(node.shape, picks, strict=True)
        if type(pick) is slice
    )
