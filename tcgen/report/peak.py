"""Lower bound of the peak memory of a program, as polynomials in the extents.

The peak itself comes from :func:`tcgen.runtime.memory.usage.memory_use`, which places and aligns
the blocks of the arenas and adds what contractions pack and what kernels on a GPU use as scratch.
The polynomials count the arrays alone, so that a page can evaluate them without these rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop
from itertools import pairwise
from math import inf

from ..artifact.manifest import Manifest
from ..dtypes import BY_NAME
from ..ir.cost import ZERO, Poly
from ..records.loops import Buffer
from ..records.tensors import Tensor, element_type
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
    moments = [always + held for p in phases for held in _largest_sums(p, manifest)]
    return tuple(dict.fromkeys(moments)) or (always,)


def peak_bound(manifest: Manifest, extents: Mapping[str, int]) -> int:
    """Lower bound of the peak in bytes: the largest of the polynomials at these extents."""
    return max(poly.value(extents) for poly in live_bytes(manifest))


def _largest_sums(buffers: list[Buffer], manifest: Manifest) -> list[Poly]:
    """Bytes of the sets of buffers live at one moment that are within no other such set."""
    sizes = [_bytes([b], manifest) for b in buffers]
    starting: dict[int, list[int]] = {}
    for number, buffer in enumerate(buffers):
        starting.setdefault(buffer.live[0], []).append(number)
    ending = [(buffer.live[1], number) for number, buffer in enumerate(buffers)]
    heapify(ending)
    held, sums = ZERO, list[Poly]()
    for now, after in pairwise([*sorted(starting), inf]):
        held = sum((sizes[n] for n in starting[int(now)]), held)
        if ending and ending[0][0] < after:
            sums.append(held)
        while ending and ending[0][0] < after:
            held = held + sizes[heappop(ending)[1]] * Poly.of(-1)
    return sums


def _bytes(entries: Iterable[Tensor | Buffer], manifest: Manifest) -> Poly:
    total = ZERO
    for entry in entries:
        dtype = entry.dtype if isinstance(entry, Buffer) else element_type(entry, manifest.dtype)
        total = total + stored_polynomial(entry) * Poly.of(BY_NAME[dtype].itemsize)
    return total
