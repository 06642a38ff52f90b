"""Lower bound of the peak memory of a program, as polynomials in the extents.

The peak itself comes from :func:`tcgen.runtime.memory.usage.memory_use`, which places and aligns
the blocks of the arenas and adds what contractions pack and what kernels on a GPU use as scratch.
The polynomials count the arrays alone, so that a page can evaluate them without these rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import inf

from ..artifact.manifest import BufferEntry, Manifest, TensorEntry
from ..dtypes import BY_NAME
from ..ir.cost import ZERO, Poly
from .counts import stored_polynomial


def live_bytes(manifest: Manifest) -> tuple[Poly, ...]:
    """Bytes of the arrays that are allocated beyond the inputs, at each moment of a call.

    Counts results, arrays that the constant phase keeps, and the buffers that are live. A moment
    is left out if all its arrays are live at the next one too.

    Args:
        manifest: of the artifact.
    """
    # On a GPU private buffers are in shared memory, or part of the scratch of their kernel.
    places = ("arena",) if manifest.target == "cuda" else ("arena", "private")
    arena = [b for b in manifest.buffers if b.place in places]
    always = _bytes(manifest.outputs, manifest)
    always = always + _bytes([b for b in arena if b.keep], manifest)
    split = manifest.constant_positions
    phases = (
        [b for b in arena if not b.keep and b.live[0] < split],
        [b for b in arena if not b.keep and b.live[0] >= split],
    )
    moments = [always + _bytes(live, manifest) for p in phases for live in _largest_sets(p)]
    return tuple(dict.fromkeys(moments)) or (always,)


def peak_bound(manifest: Manifest, extents: Mapping[str, int]) -> int:
    """Lower bound of the peak in bytes: the largest of the polynomials at these extents."""
    return max(poly.value(extents) for poly in live_bytes(manifest))


def _largest_sets(buffers: list[BufferEntry]) -> list[list[BufferEntry]]:
    """The sets of buffers live at one moment that are within no other such set."""
    starts = sorted({b.live[0] for b in buffers})
    sets = []
    for now, after in pairwise([*starts, inf]):
        live = [b for b in buffers if b.live[0] <= now <= b.live[1]]
        if any(b.live[1] < after for b in live):
            sets.append(live)
    return sets


def _bytes(entries: Iterable[TensorEntry | BufferEntry], manifest: Manifest) -> Poly:
    sizes = (stored_polynomial(e, manifest) * Poly.of(BY_NAME[e.dtype].itemsize) for e in entries)
    return sum(sizes, ZERO)
