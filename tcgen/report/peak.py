"""The peak of a program as plain data, so that a page can find it at other extents.

What :func:`tcgen.runtime.memory.memory_use` counts for one thread: the arenas of both phases and
the results. `templates/report/page.js` places the blocks by the rule of :func:`tcgen.arena.place`.
"""

from __future__ import annotations

from typing import Any

from ..arena import ALIGNMENT, GRANTED
from ..artifact import BufferEntry, ContractionEntry, Manifest, TensorEntry
from ..runtime.memory import ITEM_BYTES
from ..runtime.packing import COLUMNS, DEPTH, LEFT, RIGHT, ROWS, SPARE
from .counts import stored_product


def peak_data(manifest: Manifest) -> dict[str, Any]:
    """Blocks ``[factors, item bytes, first, last, rank]`` by phase; a sixth place: what is packed.

    ``kept`` holds the blocks that the constant phase leaves, ``phases`` the others; ``outputs`` is
    a list of ``[factors, item bytes]``; ``alignment`` and ``granted`` are those of the arena.
    """
    # On a GPU private buffers lie in shared memory.
    places = ("arena",) if manifest.target == "cuda" else ("arena", "private")
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

    return {
        "kept": blocks([b for b in arena if b.keep], together=True),
        "phases": [
            blocks([b for b in arena if not b.keep and b.live[0] < split]) + packing(constant=True),
            blocks([b for b in arena if not b.keep and b.live[0] >= split])
            + packing(constant=False),
        ],
        "outputs": [counted(t) for t in manifest.tensors if t.role == "output"],
        "alignment": 1 if manifest.tight else ALIGNMENT,
        "granted": GRANTED,
        "packing": [DEPTH, LEFT, RIGHT, ROWS, COLUMNS, SPARE, ALIGNMENT],
    }


def _contraction(entry: ContractionEntry, manifest: Manifest) -> list[Any]:
    """``[item bytes, parts of an element, rows, columns, summed points]`` of what is packed."""
    dtype, found = entry
    parts = 2 if dtype == "complex128" else 1
    groups = [[[list(manifest.bases_of(s)), tile, 0] for s, tile in g] for g in found]
    return [ITEM_BYTES[dtype], parts, *groups]
