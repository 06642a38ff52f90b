"""Bytes of arrays at given extents, and what the memory of a call is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...artifact.arena import Layout
from ...artifact.manifest import BufferEntry, Manifest, TensorEntry

ITEM_BYTES = {"float64": 8, "float32": 4, "complex128": 16}


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes of one call.

    Attributes:
        kept: arena of what the constant phase leaves for the volatile one.
        phases: arena of each phase: intermediates, tiles of generated inputs, scratch.
        strides: of each kernel, bytes from one thread's own arrays to the next thread's.
        shapes: of the arrays that are returned, by output name, in stored order.
        outputs: bytes of these arrays.
    """

    kept: Layout
    phases: tuple[Layout, Layout]
    strides: tuple[int, ...]
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: int

    @property
    def arenas(self) -> int:
        """Most bytes of the arenas at one time."""
        return self.kept.total + max(layout.total for layout in self.phases)

    @property
    def peak(self) -> int:
        """Most bytes that are allocated at one time, beyond the inputs."""
        return self.arenas + self.outputs


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
    count = ITEM_BYTES[entry.dtype]
    for n in stored_shape(entry, manifest, extents):
        count *= n
    return count
