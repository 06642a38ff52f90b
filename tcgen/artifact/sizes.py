"""Sizes of stored arrays, in elements and bytes."""

from __future__ import annotations

from collections.abc import Mapping

from ..dtypes import BY_NAME
from .manifest import BufferEntry, Manifest, TensorEntry


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
