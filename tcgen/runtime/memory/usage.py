"""Bytes that a call allocates at given extents, and the memory limit."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ...artifact.arena import ALIGNMENT, Block, Layout, aligned, place
from ...artifact.kernel_abi import packing_bytes
from ...artifact.manifest import ContractionEntry, KernelEntry, Manifest, array_bytes, stored_shape
from ...errors import MemoryLimitError
from ...records.loops import Buffer
from ...records.tensors import Tensor
from .footprint import MemoryUse


def memory_use(
    manifest: Manifest, extents: Mapping[str, int], *, threads: int, constant_only: bool = False
) -> MemoryUse:
    """Bytes of a call at extents of the base spaces.

    With ``constant_only`` the arena of the volatile phase is empty, and of the results only those
    count that the constant phase computes: the extents that it does not need may be missing.

    The private arrays of a thread are one block, if there are several threads; the blocks of all
    threads are live while their kernel runs.
    """
    if manifest.target == "cuda":
        from .gpu_usage import gpu_memory_use  # noqa: PLC0415  (loaded for GPUs)

        return gpu_memory_use(manifest, extents, constant_only=constant_only)
    alignment = 1 if manifest.tight else ALIGNMENT
    placed = {b.name: b for b in manifest.buffers if b.place in ("arena", "private")}
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
    """Name of the block of the arena in which the threads of a kernel pack."""
    return f"@packs {kernel.name}"


def _packing(manifest: Manifest, kernel: KernelEntry, extents: Mapping[str, int]) -> int:
    """Bytes in which one thread of a kernel packs: those of its largest contraction."""

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
    """Refuse a call that needs more than the memory limit of the program.

    Args:
        manifest: of the program.
        extents: of the base spaces; those that are known.
        needed: bytes of everything that the call allocates.
        copies: inputs and results whose arrays kernels cannot take as they are.
        direct_kind: the arrays that they can take, in words.

    Raises:
        MemoryLimitError: with the bytes, the largest arrays, and advice.
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
