"""Bytes of arrays at given extents, and what the memory of a call is made of."""

from __future__ import annotations

from dataclasses import dataclass

from ...artifact.arena import Layout


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
