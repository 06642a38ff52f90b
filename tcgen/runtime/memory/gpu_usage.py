"""Bytes that a call allocates on a GPU: arenas, which contain the scratch of each kernel."""

from __future__ import annotations

from collections.abc import Mapping

from ...artifact.arena import Block, aligned, place
from ...artifact.grid import SHARED_BYTES, SPILLED_BLOCKS
from ...artifact.manifest import KernelEntry, Manifest, array_bytes, stored_shape
from ...records.loops import Buffer
from .footprint import MemoryUse


def gpu_memory_use(
    manifest: Manifest, extents: Mapping[str, int], *, constant_only: bool
) -> MemoryUse:
    """Bytes of a call on a GPU at extents of the base spaces.

    The scratch of a kernel is a block ``@name`` of the arena, live while the kernel runs.
    """
    arena = [b for b in manifest.buffers if b.place == "arena"]

    def block(entry: Buffer, *, together: bool = False) -> Block:
        live = (0, 0) if together else entry.live
        return Block(entry.name, array_bytes(entry, manifest, extents), *live, entry.rank)

    def phase(*, constant: bool) -> tuple[Block, ...]:
        scratch = (
            Block(scratch_name(k), scratch_bytes(k, manifest, extents), *k.live, len(arena))
            for k in manifest.kernels
            if manifest.is_constant(k.live) == constant
        )
        return (
            *(block(b) for b in arena if not b.keep and manifest.is_constant(b.live) == constant),
            *(b for b in scratch if b.bytes),
        )

    outputs = manifest.constant_outputs if constant_only else manifest.outputs
    return MemoryUse(
        lasting=place(tuple(block(b, together=True) for b in arena if b.keep)),
        phases=(
            place(phase(constant=True)),
            place(() if constant_only else phase(constant=False)),
        ),
        strides=tuple(0 for _ in manifest.kernels),
        shapes=tuple((t.name, stored_shape(t, extents)) for t in outputs),
        outputs=sum(array_bytes(t, manifest, extents) for t in outputs),
    )


def scratch_name(kernel: KernelEntry) -> str:
    """Name of the block of the arena that is the scratch of a kernel."""
    return f"@{kernel.name}"


def block_bytes(kernel: KernelEntry, manifest: Manifest, extents: Mapping[str, int]) -> int:
    """Bytes of the private buffers of one block of a GPU."""
    buffers = {b.name: b for b in manifest.buffers}
    return sum(aligned(array_bytes(buffers[n], manifest, extents)) for n in kernel.private)


def scratch_bytes(kernel: KernelEntry, manifest: Manifest, extents: Mapping[str, int]) -> int:
    """Bytes of scratch of a kernel: partial sums, and private buffers that exceed shared memory."""
    if kernel.grid is None:
        return 0  # the library has memory of its own
    blocks = kernel.grid.blocks(lambda space: manifest.extent(space, extents))
    own = block_bytes(kernel, manifest, extents)
    spilled = min(blocks, SPILLED_BLOCKS) * own if own > SHARED_BYTES else 0
    return blocks * kernel.grid.splits * kernel.grid.part_bytes + spilled
