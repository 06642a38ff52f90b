"""The peak of a program as plain data, so that a page can find it at other extents.

What :func:`tcgen.runtime.memory.memory_use` counts for one thread: the arenas of both phases, the
largest scratch of a kernel, results. `templates/report/page.js` places the blocks by the rule of
:func:`tcgen.arena.place`.
"""

from __future__ import annotations

from typing import Any

from ..artifact import BufferEntry, Manifest, TensorEntry
from ..runtime.memory import ITEM_BYTES, launches
from .counts import stored_product


def peak_data(manifest: Manifest) -> dict[str, Any]:
    """Blocks ``[factors, item bytes, first, last]`` and scratch by phase.

    ``kept`` holds the blocks that the constant phase leaves, ``phases`` the others; ``scratch`` has
    for each phase the kernels as ``[shared, private, bytes to reduce]``, where ``shared`` and
    ``private`` are lists of ``[factors, item bytes]``; ``outputs`` is such a list too.
    """
    arena = [b for b in manifest.buffers if b.place == "arena"]
    hosts = (manifest.host_constant, manifest.host_volatile)
    last = len(launches(manifest.host_constant)) - 1
    buffers = {b.name: b for b in manifest.buffers}

    def counted(entry: BufferEntry | TensorEntry) -> list[Any]:
        return [stored_product(entry, manifest), ITEM_BYTES[entry.dtype]]

    def blocks(chosen: list[BufferEntry], *, together: bool = False) -> list[Any]:
        return [[*counted(b), *((0, 0) if together else b.live)] for b in chosen]

    return {
        "kept": blocks([b for b in arena if b.keep], together=True),
        "phases": [
            blocks([b for b in arena if not b.keep and b.live[0] <= last]),
            blocks([b for b in arena if not b.keep and b.live[0] > last]),
        ],
        "scratch": [
            [
                [
                    [counted(buffers[n]) for n in kernel.shared],
                    [counted(buffers[n]) for n in kernel.private],
                    64 * kernel.reduces,
                ]
                for kernel in manifest.kernels
                if kernel.name in launches(host)
            ]
            for host in hosts
        ],
        "outputs": [counted(t) for t in manifest.tensors if t.role == "output"],
    }
