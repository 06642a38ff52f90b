"""Bytes that a call allocates beyond its inputs: predicted, limited, and counted.

The runtime makes every array whose extent depends on the program's through a :class:`Ledger`, which
counts the bytes that :func:`memory_use` predicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy.typing as npt

from ..artifact.grid import SHARED_BYTES, SPILLED_BLOCKS
from ..artifact.kernel_abi import packing_bytes
from ..artifact.manifest import ContractionEntry, KernelEntry, Manifest, array_bytes
from ..errors import MemoryLimitError
from ..records.arena import ALIGNMENT, Block, Layout, aligned, place
from ..records.loops import Buffer, stored_shape
from ..records.tensors import Tensor
from .device_protocol import Device


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes of one call.

    Attributes:
        lasting: arena of the buffers that the constant phase leaves for the volatile one.
        phases: arena of each phase: intermediates, tiles of generated inputs, scratch.
        strides: bytes from one thread's private arrays to the next thread's, for each kernel.
        shapes: shapes of the results by name, in stored order.
        outputs: bytes of the results.
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


def memory_use(
    manifest: Manifest, extents: Mapping[str, int], *, threads: int, constant_only: bool = False
) -> MemoryUse:
    """Bytes of a call at extents of the base spaces.

    With ``constant_only``, only arenas and results of the constant phase count; extents that it
    does not need may be missing. With several threads, the private arrays of each are one block,
    live while its kernel runs. So is the scratch of a kernel on a GPU, where each block of threads
    has its own private arrays.
    """
    on_gpu = manifest.target == "cuda"
    alignment = 1 if manifest.tight else ALIGNMENT
    places = ("arena",) if on_gpu else ("arena", "private")
    placed = {b.name: b for b in manifest.buffers if b.place in places}
    frames = {
        k.name: _frame(manifest, k, extents, alignment)
        for k in manifest.kernels
        if k.private and threads > 1 and (manifest.is_constant(k.live) or not constant_only)
    }
    strides = {kernel: aligned(frame.extent) for kernel, frame in frames.items()}
    inside = {n for k in manifest.kernels if k.name in frames for n in k.private}
    alone = [b for name, b in placed.items() if name not in inside]

    def block(entry: Buffer, *, together: bool = False) -> Block:
        live = (0, 0) if together else entry.live
        return Block(entry.name, array_bytes(entry, manifest, extents), *live, entry.rank)

    def phase(*, constant: bool) -> Layout:
        def here(live: tuple[int, int]) -> bool:
            return manifest.is_constant(live) == constant

        blocks = [block(b) for b in alone if not b.keep and here(b.live)]
        blocks += [
            Block(f"@{k.name}", threads * strides[k.name], *k.live, len(placed))
            for k in manifest.kernels
            if k.name in frames and here(k.live)
        ]
        blocks += [
            Block(packs(k), threads * _packing(manifest, k, extents), *k.live, len(placed))
            for k in manifest.kernels
            if k.contractions and here(k.live)
        ]
        scratch = (
            Block(scratch_name(k), scratch_bytes(k, manifest, extents), *k.live, len(placed))
            for k in manifest.kernels
            if on_gpu and here(k.live)
        )
        blocks += (b for b in scratch if b.bytes)
        layout = place(tuple(blocks), alignment)
        starts = dict(layout.offsets)
        members = (
            (name, starts[f"@{kernel}"] + offset)
            for kernel, frame in frames.items()
            if f"@{kernel}" in starts
            for name, offset in frame.offsets
        )
        return Layout((*layout.offsets, *members), layout.total, layout.alignment)

    outputs = manifest.constant_outputs if constant_only else manifest.outputs
    return MemoryUse(
        lasting=place(tuple(block(b, together=True) for b in alone if b.keep), alignment),
        phases=(phase(constant=True), place(()) if constant_only else phase(constant=False)),
        strides=tuple(strides.get(k.name, 0) for k in manifest.kernels),
        shapes=tuple((t.name, stored_shape(t, extents)) for t in outputs),
        outputs=sum(array_bytes(t, manifest, extents) for t in outputs),
    )


def packs(kernel: KernelEntry) -> str:
    """Name of the block of the arena where the threads of a kernel pack."""
    return f"@packs {kernel.name}"


def _packing(manifest: Manifest, kernel: KernelEntry, extents: Mapping[str, int]) -> int:
    """Bytes of packed operands of one thread: those of the largest contraction of a kernel."""

    def length(space: str, tile: int | None) -> int:
        extent = manifest.extent(space, extents)
        return extent if tile is None else min(tile, extent)

    def count(entry: ContractionEntry) -> int:
        dtype, groups, staged_a = entry
        m, n, k = (prod(length(space, tile) for space, tile in group) for group in groups)
        return packing_bytes(dtype, m, n, k, staged_a)

    return max(count(c) for c in kernel.contractions)


def _frame(
    manifest: Manifest, kernel: KernelEntry, extents: Mapping[str, int], alignment: int
) -> Layout:
    """The layout of the private arrays of one thread of a kernel."""
    buffers = {b.name: b for b in manifest.buffers}
    own = [buffers[name] for name in kernel.private]
    blocks = (Block(b.name, array_bytes(b, manifest, extents), *b.live, b.rank) for b in own)
    return place(tuple(blocks), alignment)


def check_limit(
    manifest: Manifest,
    extents: Mapping[str, int],
    needed: int,
    copies: tuple[str, ...] = (),
    direct_kind: str = "in C order",
) -> None:
    """Refuse a call whose ``needed`` bytes in all exceed the memory limit of the program.

    ``copies`` are inputs and results that kernels cannot take as they are, and ``direct_kind`` says
    which arrays they can take. MemoryLimitError gives the bytes, the largest arrays, and advice.
    """
    limit = manifest.memory_limit
    if limit is None or needed <= limit:
        return
    entries: list[Buffer | Tensor] = [*manifest.outputs]
    entries += [b for b in manifest.buffers if b.place in ("arena", "private")]
    arrays = [
        (array_bytes(entry, manifest, extents), entry.name)
        for entry in entries
        if all(base.name in extents for space in entry.spaces for base in space.bases)
    ]
    largest = sorted(arrays, key=lambda a: -a[0])[:4]
    shown = ", ".join(f"{name} {count:,}" for count, name in largest)
    here = ", ".join(f"{name}={extents[name]}" for name in manifest.bases if name in extents)
    advice = "raise memory_limit, or compile with another objective for these extents"
    if copies:
        advice = f"pass {', '.join(copies)} {direct_kind}, so that no copy is needed, or {advice}"
    raise MemoryLimitError(
        f"{manifest.name} needs {needed:,} bytes at {here}, but the memory limit is {limit:,} "
        f"bytes; its largest arrays are {shown}: {advice}"
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
    if own > SHARED_BYTES:
        blocks = min(blocks, SPILLED_BLOCKS)
    buffers = {b.name: b for b in manifest.buffers}
    copies = (aligned(array_bytes(buffers[n], manifest, extents)) for n in kernel.grid.copies)
    part = kernel.grid.splits * kernel.grid.part_bytes + sum(copies)
    return blocks * (part + (own if own > SHARED_BYTES else 0))


class Ledger:
    """Bytes that a call holds, ``now`` and at most (``peak``); ``held`` were allocated before."""

    __slots__ = ("_device", "now", "peak")

    def __init__(self, device: Device, held: int = 0) -> None:
        self._device = device
        self.now = self.peak = held

    def add(self, count: int) -> None:
        """Count bytes that stay to the end of the call."""
        self.now += count
        if self.now > self.peak:
            self.peak = self.now

    def array(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Any:
        """A new array that stays to the end of the call."""
        made = self._device.empty(shape, dtype)
        self.add(made.nbytes)
        return made

    def copy(self, array: Any) -> Any:
        """A copy on the device, in C order, that stays to the end of the call."""
        device = self._device
        made = device.contiguous(array) if device.holds(array) else device.put(array)
        self.add(array.nbytes)
        return made

    def arena(self, layout: Layout) -> Any:
        """The memory of a layout, to the end of the call or until it is released."""
        if not layout.total:
            return self._device.nothing
        made = self._device.arena(layout)
        self.add(layout.total)
        return made

    def release(self, layout: Layout) -> None:
        """Count the memory of a layout no more; its holder drops it."""
        self.now -= layout.total
