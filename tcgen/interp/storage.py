"""Conversion between the arrays of a caller and dense logical arrays.

A caller's array has its axes in ``Tensor.stored_order``. A packed pair of axes is one axis that
stores a triangle row by row; an axis over a joined space is whole. A generated input is a callable
``f(out, ranges)`` or an object that can be sliced like an array. A logical array is dense, with its
axes in declared order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, ExtentError, ShapeError
from ..ir.cost import extent_of
from ..ir.tensor import Role, Space, Tensor, element_type
from ..simplices import places, positions, stored_values

Array: TypeAlias = npt.NDArray[Any]
Source: TypeAlias = Any  # array, number, callable, or an object with slices (h5py, memmap)
Block: TypeAlias = tuple[tuple[int, int], ...]  # (start, stop) on each logical axis


def whole_block(tensor: Tensor, extents: Mapping[str, int]) -> Block:
    """The block that covers the whole tensor."""
    return tuple((0, extent_of(space, extents)) for space in tensor.spaces)


def logical_shape(tensor: Tensor, extents: Mapping[str, int]) -> tuple[int, ...]:
    """Shape of the dense array in declared axis order."""
    return tuple(extent_of(space, extents) for space in tensor.spaces)


def stored_axes(tensor: Tensor) -> tuple[tuple[int, ...], ...]:
    """Logical axes of each axis of the caller's array: one, or several for a packed axis.

    The row of a triangle is the axis of the pair that is first in the stored order.
    """
    packed = {axis: p.count for p in tensor.storage.packed for axis in p.axes}
    order = tensor.stored_order
    groups: list[tuple[int, ...]] = []
    position = 0
    while position < len(order):
        width = packed.get(order[position], 1)
        groups.append(order[position : position + width])
        position += width
    return tuple(groups)


def _is_strict(tensor: Tensor, axes: tuple[int, ...]) -> bool:
    """True where packed axes have no diagonal."""
    return any(p.first == min(axes) and p.antisymmetric for p in tensor.storage.packed)


def caller_shape(tensor: Tensor, extents: Mapping[str, int]) -> tuple[int, ...]:
    """Shape of the caller's array.

    Example:
        >>> from tcgen.ir.tensor import Packing, Storage
        >>> v = Space("v")
        >>> t = Tensor("g", (v, v), Role.INPUT, storage=Storage(packed=(Packing(0),)))
        >>> caller_shape(t, {"v": 4})
        (10,)
    """
    shape = []
    for group in stored_axes(tensor):
        n = extent_of(tensor.spaces[group[0]], extents)
        if len(group) == 1:
            shape.append(n)
        else:
            shape.append(stored_values(n, len(group), _is_strict(tensor, group)))
    return tuple(shape)


def to_logical(tensor: Tensor, array: Source, extents: Mapping[str, int]) -> Array:
    """The dense array in declared axis order, from a caller's array that is not a callable."""
    block = whole_block(tensor, extents)
    array = np.asarray(array)
    return read_block(tensor, array, block, array.dtype)


def to_caller(tensor: Tensor, logical: Array) -> Array:
    """The caller's array of a dense logical array: C-contiguous, in stored order, packed."""
    array = np.transpose(logical, tensor.stored_order)
    for position, group in enumerate(stored_axes(tensor)):
        if len(group) > 1:
            held = positions(array.shape[position], len(group), _is_strict(tensor, group))
            front: tuple[Any, ...] = (slice(None),) * position
            array = array[(*front, *held)]
    return np.ascontiguousarray(array).reshape(array.shape)


def read_block(tensor: Tensor, source: Source, block: Block, dtype: npt.DTypeLike) -> Array:
    """A dense block of an input in declared axis order.

    Args:
        tensor: the input.
        source: the caller's array or callable; only the part for the block is read.
        block: (start, stop) on each logical axis.
        dtype: element type of the tile that a callable fills.

    Returns:
        A view where the array allows it: do not write to it.
    """
    shape = tuple(stop - start for start, stop in block)
    if callable(source):
        tile = np.empty(shape, dtype)
        if tile.size:
            source(tile, tuple(slice(start, stop) for start, stop in block))
        return tile
    groups = stored_axes(tensor)
    hulls = [_hull(tensor, group, block) for group in groups]
    array = np.asarray(source)[()] if not groups else source[tuple(hulls)]
    array = np.asarray(array)
    position = 0
    for group, hull in zip(groups, hulls, strict=True):
        if len(group) > 1:
            ranges = [block[axis] for axis in group]
            array = _unpack(array, position, hull.start, ranges, _is_strict(tensor, group))
        position += len(group)
    return np.transpose(array, np.argsort(tensor.stored_order)) if groups else array


def _hull(tensor: Tensor, group: tuple[int, ...], block: Block) -> slice:
    """The smallest range of a stored axis that contains the block."""
    if len(group) == 1:
        return slice(*block[group[0]])
    ranges = [block[axis] for axis in group]
    if any(start == stop for start, stop in ranges):
        return slice(0, 0)
    ends = max(start for start, _ in ranges), max(stop for _, stop in ranges)
    return slice(*(stored_values(n, len(group), _is_strict(tensor, group)) for n in ends))


def _unpack(
    array: Array, position: int, start: int, ranges: Sequence[tuple[int, int]], strict: bool
) -> Array:
    """Dense axes from one packed axis that starts at its element ``start``."""
    axes = np.meshgrid(*(np.arange(*r) for r in ranges), indexing="ij")
    place, sign = places(axes, strict)
    stored = sign != 0
    packed = np.moveaxis(array, position, -1)
    dense = np.zeros(packed.shape[:-1] + place.shape, array.dtype)
    dense[..., stored] = packed[..., place[stored] - start] * sign[stored].astype(array.real.dtype)
    count = len(ranges)
    return np.moveaxis(dense, range(-count, 0), range(position, position + count))


def program_dtype(arrays: Mapping[str, Source]) -> str:
    """Element type of a program for these arrays.

    It is complex128 if any array is complex, float32 if every array with axes is, else float64.
    """
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
        ShapeError: the shape of an array does not fit its tensor.
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
    """Check that every base space has an extent of 0 or more.

    Raises:
        ExtentError: an extent is missing or negative; the message names the space.
    """
    for space in spaces:
        for base in space.bases:
            if base.name not in extents:
                raise ExtentError(f"the extent of space {base.name} is missing: give {base.name}=")
            if extents[base.name] < 0:
                raise ExtentError(f"extent {base.name}={extents[base.name]} is negative")


def check_shape(tensor: Tensor, shape: Sequence[int], extents: Mapping[str, int]) -> None:
    """Check the shape of a caller's array.

    Raises:
        ShapeError: the shape does not fit the tensor.
    """
    expected = caller_shape(tensor, extents)
    if tuple(shape) != expected:
        axes = ",".join(
            "(" + ",".join(tensor.spaces[k].name for k in group) + ")"
            if len(group) > 1
            else tensor.spaces[group[0]].name
            for group in stored_axes(tensor)
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
    """Logical start arrays of the outputs that accumulate.

    Raises:
        ArgumentError: an output that accumulates has no array in ``out``.
        ShapeError: the shape of its array does not fit.
    """
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
