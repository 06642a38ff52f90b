"""The peak of a program as plain data, so that a page can find it at other extents.

What :func:`tcgen.runtime.memory.usage.memory_use` counts for one thread, or for a GPU: the
arenas of both phases and the results. `templates/report/page.js` places the blocks by the rule of
:func:`tcgen.artifact.arena.place`.
"""

from __future__ import annotations

from typing import Any

from ..artifact.arena import ALIGNMENT, GRANTED
from ..artifact.grid import SHARED_BYTES, SPILLED_BLOCKS, GridEntry, StripEntry
from ..artifact.kernel_abi import COLUMNS, DEPTH, LEFT, RIGHT, ROWS, SPARE, STAGED
from ..artifact.manifest import BufferEntry, ContractionEntry, Manifest, TensorEntry
from ..artifact.sizes import ITEM_BYTES
from .counts import stored_product


def peak_data(manifest: Manifest) -> dict[str, Any]:
    """Blocks ``[factors, item bytes, first, last, rank]`` by phase.

    A sixth place holds what is packed, a seventh the grid of a kernel that has scratch on a GPU.

    ``kept`` holds the blocks that the constant phase leaves, ``phases`` the others; ``outputs`` is
    a list of ``[factors, item bytes]``; ``alignment`` and ``granted`` are those of the arena.
    """
    # On a GPU private buffers lie in shared memory, or are a part of the kernel's scratch.
    on_gpu = manifest.target == "cuda"
    places = ("arena",) if on_gpu else ("arena", "private")
    arena = [b for b in manifest.buffers if b.place in places]
    split = manifest.constant_positions

    def counted(entry: BufferEntry | TensorEntry) -> list[Any]:
        return [stored_product(entry, manifest), ITEM_BYTES[entry.dtype]]

    def blocks(chosen: list[BufferEntry], *, together: bool = False) -> list[Any]:
        return [[*counted(b), *((0, 0) if together else b.live), b.rank] for b in chosen]

    def packing(*, constant: bool) -> list[Any]:
        rank = len(arena)
        return [
            [[], 0, *k.live, rank, [_contraction(c, manifest) for c in k.contractions]]
            for k in manifest.kernels
            if k.contractions and (k.live[0] < split) == constant
        ]

    def scratch(*, constant: bool) -> list[Any]:
        rank = len(arena)
        return [
            [[], 0, *k.live, rank, None, _grid(k.grid, k.private, manifest)]
            for k in manifest.kernels
            if k.grid is not None and (k.live[0] < split) == constant
        ]

    beside = scratch if on_gpu else packing
    return {
        "kept": blocks([b for b in arena if b.keep], together=True),
        "phases": [
            blocks([b for b in arena if not b.keep and b.live[0] < split]) + beside(constant=True),
            blocks([b for b in arena if not b.keep and b.live[0] >= split])
            + beside(constant=False),
        ],
        "outputs": [counted(t) for t in manifest.tensors if t.role == "output"],
        "alignment": 1 if manifest.tight else ALIGNMENT,
        "granted": GRANTED,
        "spilling": [SHARED_BYTES, SPILLED_BLOCKS, ALIGNMENT],
        "packing": [DEPTH, LEFT, STAGED, RIGHT, ROWS, COLUMNS, SPARE, ALIGNMENT],
    }


def _grid(grid: GridEntry, private: tuple[str, ...], manifest: Manifest) -> list[Any]:
    """``[[points, tile] of each strip, most blocks, bytes each leaves, private buffers]``."""

    def points(strip: StripEntry) -> list[Any]:
        return [[list(manifest.bases_of(s)), tile, 0] for s, tile, _ in strip.lengths]

    held = [b for b in manifest.buffers if b.name in private]
    return [
        [[points(strip), strip.tile] for strip in grid.strips],
        grid.most,
        grid.splits * grid.part_bytes,
        [[stored_product(b, manifest), ITEM_BYTES[b.dtype]] for b in held],
    ]


def _contraction(entry: ContractionEntry, manifest: Manifest) -> list[Any]:
    """``[item bytes, parts of an element, rows staged, rows, columns, summed points]``."""
    dtype, found, staged = entry
    parts = 2 if dtype == "complex128" else 1
    groups = [[[list(manifest.bases_of(s)), tile, 0] for s, tile in g] for g in found]
    return [ITEM_BYTES[dtype], parts, staged, *groups]
