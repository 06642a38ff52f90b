"""The host program: its launches, and tiles of generated inputs."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..artifact.manifest import Manifest
from ..environment import verify_level
from ..errors import ArgumentError, DtypeError, ShapeError
from ..records.loops import Fetch, Host, host_items
from ..records.tensors import Packing, Tensor
from ..simplices import stored_values, unpacked
from .host_device import address

Array = npt.NDArray[Any]
Values = Mapping[str, int]  # key: host loop variable
# A NaN that no computation gives: its upper 32 bits are one in single precision. Elements of a tile
# that a callable did not set still have these bits.
_UNSET = 0x7FF8_7463_6765_6E21
# Elements that are read at a time from a source that cannot read into the tile: 1 MiB of doubles.
_MOST_READ = 2**17


def on_host(manifest: Manifest, host: tuple[Host, ...]) -> bool:
    """True if the runtime walks the loops of a phase, not a function of the source.

    The phase asks for tiles of generated inputs, or its parts are iterations of its own loops.
    """
    parts = manifest.parts
    divided = parts is not None and parts.kernel is None and host == manifest.host_volatile
    return divided or any(isinstance(item, Fetch) for item in host_items(host))


def fetch_tile(
    tensor: Tensor,
    source: Any,
    ranges: tuple[slice, ...],
    buffer: Array,
    order: tuple[int, ...],
) -> None:
    """Read one tile of a generated or sliced input into ``buffer``, which is C-contiguous.

    A source that reads into an array (a callable, a dataset of h5py) fills the buffer itself. If
    the tile is shorter than the buffer, it arrives contiguous at the start of the buffer, and is
    then spread. A source that can only be indexed, or that stores a packed pair, makes new
    arrays, of 1 MiB or so at a time.

    The source is ``f(out, ranges)``, or anything that slices like an array in stored order;
    ``ranges`` are those of the tile on each logical axis, and ``order`` has the logical axes in the
    order of the buffer's.

    Raises:
        ArgumentError, ShapeError, DtypeError: the source gives another shape or element type, or a
            callable returns an array or leaves elements of its tile unset.
    """
    stored = tuple(ranges[axis] for axis in order)
    shape = tuple(r.stop - r.start for r in stored)
    if 0 in shape:
        return
    packed = buffer.reshape(-1)[: math.prod(shape)].reshape(shape)
    in_order = tensor.stored_order == order
    if callable(source):
        if order != tuple(range(len(order))):
            raise ArgumentError(
                f"{tensor.name} is stored in another order than that of the equations, so a "
                f"callable cannot fill it: pass an array or a dataset"
            )
        _fill(tensor, source, packed, ranges)
    elif in_order and not tensor.storage.packed and hasattr(source, "read_direct"):
        source.read_direct(packed, source_sel=stored)
    else:
        for part in _parts(tensor, ranges):
            place = (
                slice(part[n].start - ranges[n].start, part[n].stop - ranges[n].start)
                for n in order
            )
            logical = _slice(tensor, source, part, buffer.dtype)
            buffer[tuple(place)] = logical.transpose(order)
        return
    _spread(buffer, shape)


def _fill(tensor: Tensor, source: Any, tile: Array, ranges: tuple[slice, ...]) -> None:
    """Let a callable fill a tile; unless TCGEN_VERIFY is 0, check that it sets every element."""
    name = getattr(source, "__name__", type(source).__name__)
    where = ", ".join(f"{r.start}:{r.stop}" for r in ranges)
    call = f"generated input {tensor.name}: {name}(out, {tensor.name}[{where}])"
    advice = "write the elements into the array that it is given: out[...] = elements"
    words = tile.reshape(-1).view(np.uint32 if tile.dtype == np.float32 else np.uint64)
    unset = words.dtype.type(_UNSET >> (64 - 8 * words.itemsize))
    checked = verify_level() > 0
    if checked:
        words[...] = unset
    returned = source(tile, ranges)
    if returned is not tile and (hasattr(returned, "__array__") or isinstance(returned, Sequence)):
        raise ArgumentError(f"{call} returned {type(returned).__name__}: {advice}")
    if checked and (left := np.flatnonzero(words == unset)).size:
        place = np.unravel_index(int(left[0]) * words.itemsize // tile.itemsize, tile.shape)
        shown = ", ".join(str(r.start + int(n)) for r, n in zip(ranges, place, strict=True))
        raise ArgumentError(f"{call} left {tensor.name}[{shown}] unset: {advice}")


def _parts(tensor: Tensor, ranges: tuple[slice, ...]) -> Iterator[tuple[slice, ...]]:
    """Parts of a tile whose stored values lie in a small range.

    Between the pairs of a tile in a packed triangle lie others, up to all of the triangle. The
    largest index of a pair is its row there: a part of few rows has few others in between.
    """
    hulls = [_hull(pair, axis, ranges) for axis, pair in tensor.stored()]
    for axis, pair in tensor.stored():
        axes = [axis] if pair is None else pair.axes
        long = [n for n in axes if ranges[n].stop - ranges[n].start > 1] or axes
        row = max(long, key=lambda n: (ranges[n].stop, ranges[n].stop - ranges[n].start))
        start, stop = ranges[row].start, ranges[row].stop
        if math.prod(h.stop - h.start for h in hulls) > _MOST_READ and stop - start > 1:
            middle = (start + stop) // 2
            for half in (slice(start, middle), slice(middle, stop)):
                yield from _parts(tensor, (*ranges[:row], half, *ranges[row + 1 :]))
            return
    yield ranges


def _slice(tensor: Tensor, source: Any, ranges: tuple[slice, ...], dtype: np.dtype[Any]) -> Array:
    """A tile on logical axes; a view if the source is an array."""
    stored = tensor.stored()
    hulls = [_hull(pair, axis, ranges) for axis, pair in stored]
    tile = np.asarray(source[tuple(hulls)] if hulls else source[()])
    if tile.dtype.newbyteorder("=") != dtype:
        raise DtypeError(
            f"generated input {tensor.name} must be {dtype}, but its slices are "
            f"{tile.dtype}: store it as {dtype}"
        )
    position = 0
    for (_, pair), hull in zip(stored, hulls, strict=True):
        if pair is not None:
            own = (ranges[n] for n in tensor.stored_order if n in pair.axes)
            axes = np.meshgrid(*(np.arange(r.start, r.stop) for r in own), indexing="ij")
            tile = unpacked(tile, position, axes, pair.antisymmetric, start=hull.start)
            position += pair.count - 1
        position += 1
    tile = tile.transpose(np.argsort(tensor.stored_order))
    shape = tuple(r.stop - r.start for r in ranges)
    if tile.shape != shape:
        raise ShapeError(
            f"generated input {tensor.name}: the slice {ranges} must have shape {shape}, "
            f"found {tile.shape}"
        )
    return tile


def _hull(pair: Packing | None, axis: int, ranges: tuple[slice, ...]) -> slice:
    """Smallest range of a stored axis that holds the tile, from its first element to its last."""
    if pair is None:
        return ranges[axis]
    own = [ranges[n] for n in pair.axes]

    def place(ends: Iterable[int]) -> int:
        ordered = enumerate(sorted(ends, reverse=True))
        return sum(stored_values(x, pair.count - n, pair.antisymmetric) for n, x in ordered)

    # Antisymmetric axes store no equal positions; those of the ends are past the last element.
    stop = min(place(r.stop - 1 for r in own) + 1, pair.values(max(r.stop for r in own)))
    return slice(min(place(r.start for r in own), max(0, stop - 1)), stop)


def _spread(buffer: Array, shape: tuple[int, ...]) -> None:
    """Move the rows of a tile from the start of a buffer to their places by the buffer's strides.

    Rows move from the last to the first, so that no row is overwritten before it has moved.
    """
    short = [axis for axis, n in enumerate(shape) if n != buffer.shape[axis]]
    if not short or short[-1] == 0:
        return
    outer = shape[: short[-1]]
    row = math.prod(shape[short[-1] :]) * buffer.itemsize
    start = address(buffer)
    for number in range(math.prod(outer) - 1, 0, -1):
        place = np.unravel_index(number, outer)
        to = sum(int(p) * s for p, s in zip(place, buffer.strides, strict=False))
        ctypes.memmove(start + to, start + number * row, row)
