"""Sizes of stored arrays, in elements and bytes."""

from __future__ import annotations

from collections.abc import Mapping

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
            n = n * (n - 1) // 2 if pair.antisymmetric else n * (n + 1) // 2
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


def packed_run(pair: PackingEntry, one: tuple[int, int], two: tuple[int, int]) -> tuple[int, int]:
    """The smallest run of a packed axis with all elements of two logical ranges.

    Example:
        >>> packed_run(PackingEntry(0, False), (2, 4), (0, 1))
        (3, 10)
    """
    if one[0] >= one[1] or two[0] >= two[1]:
        return 0, 0
    low, high = max(one[0], two[0]), max(one[1], two[1])
    if pair.antisymmetric:
        return low * (low - 1) // 2, (high - 1) * high // 2
    return low * (low + 1) // 2, high * (high + 1) // 2
