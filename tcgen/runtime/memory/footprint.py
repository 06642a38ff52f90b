"""The parts of the memory of a call."""

from __future__ import annotations

from dataclasses import dataclass

from ...artifact.arena import Layout


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes of one call.

    Attributes:
        lasting: arena of the buffers that the constant phase leaves for the volatile one.
        phases: arena of each phase: intermediates, tiles of generated inputs, scratch.
        strides: for each kernel the bytes from one thread's private arrays to the next thread's.
        shapes: of the arrays that the call returns, by output name, in stored order.
        outputs: bytes of these arrays.
    """

    lasting: Layout
    phases: tuple[Layout, Layout]
    strides: tuple[int, ...]
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: int

    @property
    def arenas(self) -> int:
        """Most bytes of the arenas at one time."""
        return self.lasting.total + max(layout.total for layout in self.phases)

    @property
    def peak(self) -> int:
        """Most bytes that a call allocates at one time, beyond the inputs."""
        return self.arenas + self.outputs
