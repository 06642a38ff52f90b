"""Conversion between the arrays of a caller and dense logical arrays.

A caller's array has its axes in ``Tensor.stored_order``. A packed group of axes is one axis that
stores a triangle row by row; an axis over a joined space is whole. A generated input is a callable
``f(out, ranges)`` or an object that can be sliced like an array. A logical array is dense, with its
axes in declared order.

The compiler packs by ``tcgen.ir.layouts`` and ``tcgen.simplices``. This module shares no code with
them: it lists the elements that a packed axis stores and copies them one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, combinations_with_replacement, product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, ExtentError, ShapeError
from ..ir.expr import Expr, format_expr, has_no_value, is_complex_number, nodes
from ..ir.tensor import Packing, Role, Space, Tensor, element_type

Array: TypeAlias = npt.NDArray[Any]
Source: TypeAlias = Any  # array, number, callable, or an object with slices (h5py, memmap)
Block: TypeAlias = tuple[tuple[int, int], ...]  # (start, stop) on each logical axis


def whole_block(tensor: Tensor, extents: Mapping[str, int]) -> Block:
    """The block that covers the whole tensor."""
    return tuple((0, n) for n in logical_shape(tensor, extents))


def logical_shape(tensor: Tensor, extents: Mapping[str, int]) -> tuple[int, ...]:
    """Shape of the dense array in declared axis order."""
    return tuple(space.extent_in(extents) for space in tensor.spaces)


@lru_cache(maxsize=64)
def stored_elements(extent: int, packing: Packing) -> dict[tuple[int, ...], int]:
    """The elements of a packed axis, by their positions in falling order, and their numbers.

    Antisymmetric axes of extent 3 have ``{(1, 0): 0, (2, 0): 1, (2, 1): 2}``.
    """
    choose = combinations if packing.antisymmetric else combinations_with_replacement
    falling = sorted(chosen[::-1] for chosen in choose(range(extent), packing.count))
    return {element: number for number, element in enumerate(falling)}


def image_sign(packing: Packing, element: Sequence[int]) -> int:
    """The sign of an element relative to the stored one with the same positions.

    It is 1, -1 and 0 for the antisymmetric elements (1, 0), (0, 1) and (1, 1).
    """
    if not packing.antisymmetric:
        return 1
    if len(set(element)) < len(element):
        return 0
    return math.prod(-1 if one < other else 1 for one, other in combinations(element, 2))


def stored_axes(tensor: Tensor) -> list[tuple[tuple[int, ...], Packing | None]]:
    """For each axis of the caller's array its logical axes, and their packing if they have one.

    The row of a triangle is the axis of the pair that is first in the stored order.
    """
    packing_of = {axis: packing for packing in tensor.storage.packed for axis in packing.axes}
    groups: list[tuple[tuple[int, ...], Packing | None]] = []
    for axis in tensor.stored_order:
        packing = packing_of.get(axis)
        if packing is not None and groups and groups[-1][1] == packing:
            groups[-1] = ((*groups[-1][0], axis), packing)
        else:
            groups.append(((axis,), packing))
    return groups


def caller_shape(tensor: Tensor, extents: Mapping[str, int]) -> tuple[int, ...]:
    """Shape of the caller's array."""
    shape = []
    for axes, packing in stored_axes(tensor):
        n = tensor.spaces[axes[0]].extent_in(extents)
        if packing is not None:
            more = 0 if packing.antisymmetric else packing.count - 1
            n = math.comb(n + more, packing.count) if n else 0
        shape.append(n)
    return tuple(shape)


def to_logical(tensor: Tensor, array: Source, extents: Mapping[str, int]) -> Array:
    """The dense array in declared axis order, from a caller's array that is not a callable."""
    array = np.asarray(array)
    return read_block(tensor, array, whole_block(tensor, extents), array.dtype)


def to_caller(tensor: Tensor, logical: Array) -> Array:
    """The caller's array of a dense logical array: C-contiguous, in stored order, packed."""
    array = np.transpose(logical, tensor.stored_order)
    for position, (axes, packing) in enumerate(stored_axes(tensor)):
        if packing is not None:
            dense = np.moveaxis(array, range(position, position + len(axes)), range(len(axes)))
            elements = stored_elements(dense.shape[0], packing)
            packed = np.empty((len(elements), *dense.shape[len(axes) :]), array.dtype)
            for element, number in elements.items():
                packed[number] = dense[element]
            array = np.moveaxis(packed, 0, position)
    return np.ascontiguousarray(array).reshape(array.shape)


def read_block(tensor: Tensor, source: Source, block: Block, dtype: npt.DTypeLike) -> Array:
    """A dense block of an input in declared axis order; only what it needs of the source is read.

    A callable fills a tile of ``dtype``. The result is a view if the array allows it: do not write
    to it.
    """
    if callable(source):
        tile = np.empty(tuple(stop - start for start, stop in block), dtype)
        if tile.size:
            source(tile, tuple(slice(start, stop) for start, stop in block))
        return tile
    groups = stored_axes(tensor)
    if not groups:
        return np.asarray(np.asarray(source)[()])
    copies = [
        _copies(packing, [block[axis] for axis in axes]) if packing else ()
        for axes, packing in groups
    ]
    parts = [
        _hull(numbers) if packing else slice(*block[axes[0]])
        for (axes, packing), numbers in zip(groups, copies, strict=True)
    ]
    array = np.asarray(source[tuple(parts)])
    position = 0
    for (axes, packing), group_copies, part in zip(groups, copies, parts, strict=True):
        if packing is not None:
            packed = np.moveaxis(array, position, 0)
            lengths = [stop - start for start, stop in (block[axis] for axis in axes)]
            dense = np.zeros((*lengths, *packed.shape[1:]), array.dtype)
            for element, number, sign in group_copies:
                dense[element] = packed[number - part.start] * sign
            array = np.moveaxis(dense, range(len(axes)), range(position, position + len(axes)))
        position += len(axes)
    return np.transpose(array, np.argsort(tensor.stored_order))


def _copies(
    packing: Packing, ranges: Sequence[tuple[int, int]]
) -> list[tuple[tuple[int, ...], int, int]]:
    """The nonzero elements of a dense block: position in the block, number when packed, sign."""
    numbers = stored_elements(max(stop for _, stop in ranges), packing)
    copies = []
    for element in product(*(range(start, stop) for start, stop in ranges)):
        sign = image_sign(packing, element)
        if sign:
            place = tuple(at - start for at, (start, _) in zip(element, ranges, strict=True))
            copies.append((place, numbers[tuple(sorted(element, reverse=True))], sign))
    return copies


def _hull(copies: Sequence[tuple[tuple[int, ...], int, int]]) -> slice:
    """The smallest range of a packed axis with all elements that are read."""
    numbers = [number for _, number, _ in copies]
    return slice(min(numbers), max(numbers) + 1) if numbers else slice(0, 0)


def program_dtype(
    arrays: Mapping[str, Source], expressions: Iterable[Expr], given: str | None
) -> str:
    """Element type of a program of these arrays and expressions, unless one is given.

    It is complex128 if any array is complex or an expression has a number such as ``1j``, float32
    if every array with axes is, else float64. An ArgumentError refuses a given real type for
    complex numbers, and numbers such as ``arccos(2)``.
    """
    parts = [part for expr in expressions for part in nodes(expr)]
    wrong = next(filter(has_no_value, parts), None)
    if wrong is not None:
        raise ArgumentError(f"{format_expr(wrong)} is not real: only sqrt and log can be complex")
    number = next(filter(is_complex_number, parts), None)
    if number is not None and given not in (None, "complex128"):
        raise ArgumentError(
            f'{format_expr(number)} is not real: pass dtype="complex128", not {given!r}'
        )
    if given is not None or number is not None:
        return given or "complex128"
    kinds = [np.asarray(a).dtype for a in arrays.values() if isinstance(a, int | float | complex)]
    sized = [np.dtype(a.dtype) for a in arrays.values() if hasattr(a, "dtype")]
    if any(d.kind == "c" for d in kinds + sized):
        return "complex128"
    with_axes = [np.dtype(a.dtype) for a in arrays.values() if hasattr(a, "dtype") and a.shape]
    return "float32" if with_axes and all(d == np.float32 for d in with_axes) else "float64"


def working_type(tensor: Tensor, dtype: str) -> str:
    """Element type in which the interpreter computes a tensor: always double precision."""
    return element_type(tensor, "complex128" if dtype == "complex128" else "float64")


def check_inputs(
    tensors: Sequence[Tensor], arrays: Mapping[str, Source], extents: Mapping[str, int]
) -> dict[str, Source]:
    """The caller's arrays of all inputs among ``tensors``, with default values filled in.

    Raises:
        ArgumentError: an array is missing or unknown, or a stored input is a callable.
    """
    inputs = [t for t in tensors if t.is_input and t.alias is None]
    unknown = [name for name in arrays if name not in {t.name for t in inputs}]
    if unknown:
        raise ArgumentError(
            f"{', '.join(unknown)}: no such input; inputs are {', '.join(t.name for t in inputs)}"
        )
    sources: dict[str, Source] = {}
    for tensor in inputs:
        if tensor.name not in arrays:
            if tensor.default is None:
                raise ArgumentError(f"input {tensor.name} is missing: pass it by this name")
            sources[tensor.name] = np.asarray(float(tensor.default))
            continue
        source = arrays[tensor.name]
        if callable(source):
            if tensor.role is not Role.GENERATED:
                raise ArgumentError(
                    f"{tensor.name} is a callable, but only generated inputs can be: "
                    f"pass an array, or declare it generated"
                )
        elif not hasattr(source, "shape"):
            source = np.asarray(source)
        if not callable(source):
            check_shape(tensor, source.shape, extents)
        sources[tensor.name] = source
    return sources


def check_extents(spaces: Sequence[Space], extents: Mapping[str, int]) -> None:
    """Check that every base space has an extent of 0 or more; an error names the space."""
    for space in spaces:
        for base in space.bases:
            if base.name not in extents:
                raise ExtentError(f"the extent of space {base.name} is missing: give {base.name}=")
            if extents[base.name] < 0:
                raise ExtentError(f"extent {base.name}={extents[base.name]} is negative")


def check_shape(tensor: Tensor, shape: Sequence[int], extents: Mapping[str, int]) -> None:
    """Check that the shape of a caller's array fits its tensor."""
    expected = caller_shape(tensor, extents)
    if tuple(shape) != expected:
        axes = ",".join(
            "(" + ",".join(tensor.spaces[axis].name for axis in group) + ")"
            if packing
            else tensor.spaces[group[0]].name
            for group, packing in stored_axes(tensor)
        )
        raise ShapeError(
            f"{tensor.name}[{axes}] must have shape {expected} at these extents, "
            f"found {tuple(shape)}"
        )


def starting_values(
    outputs: Sequence[Tensor],
    out: Mapping[str, Array] | None,
    extents: Mapping[str, int],
    dtype: str,
) -> dict[str, Array]:
    """Logical start arrays of the outputs that accumulate; ``out`` must have all of them."""
    start = {}
    for tensor in outputs:
        if not tensor.accumulate:
            continue
        if out is None or tensor.name not in out:
            raise ArgumentError(
                f'output {tensor.name} accumulates: pass out={{"{tensor.name}": array}}'
            )
        array = np.asarray(out[tensor.name])
        check_shape(tensor, array.shape, extents)
        start[tensor.name] = to_logical(tensor, array, extents).astype(working_type(tensor, dtype))
    return start


def returned(tensor: Tensor, logical: Array, dtype: str) -> Array:
    """An output as the caller gets it: in stored order, packed, with the program's type."""
    return to_caller(tensor, logical).astype(element_type(tensor, dtype))
