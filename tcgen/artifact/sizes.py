"""Sizes of stored arrays, in elements and bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..dtypes import BY_NAME
from .manifest import BufferEntry, Manifest, PackingEntry, TensorEntry


def stored_shape(
    entry: TensorEntry | BufferEntry, manifest: Manifest, extents: Mapping[str, int]
) -> tuple[int, ...]:
    """Shape of the array in memory: stored order, a packed pair is one axis."""
    shape = []
    lengths = entry.lengths if isinstance(entry, BufferEntry) else (None,) * len(entry.spaces)
    for axis, pair in entry.stored():
        length = lengths[axis]
        n = manifest.extent(entry.spaces[axis], extents) if length is None else length
        if pair is not None:
            n = pair.values(n)
        shape.append(n)
    return tuple(shape)


def array_bytes(
    entry: TensorEntry | BufferEntry, manifest: Manifest, extents: Mapping[str, int]
) -> int:
    """Bytes of a tensor's array or of a buffer."""
    count = BY_NAME[entry.dtype].itemsize
    for n in stored_shape(entry, manifest, extents):
        count *= n
    return count


def packed_run(pair: PackingEntry, ranges: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The smallest run of a packed axis with all elements of some ranges of its logical axes.

    Example:
        >>> packed_run(PackingEntry(0, False), ((2, 4), (0, 1)))
        (3, 10)
    """
    if any(start >= stop for start, stop in ranges):
        return 0, 0
    # The largest position of an element, which is stored first, is in this range.
    low, high = max(start for start, _ in ranges), max(stop for _, stop in ranges)
    return pair.values(low), pair.values(high)
