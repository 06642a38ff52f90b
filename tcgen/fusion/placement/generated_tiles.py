"""Generated inputs that share no loop with their reader: tile by tile, in loops of their own.

The reader and the visit that produces the input stand together inside a loop over tiles of one
axis, of two where one slab would still be too large. The tile is what is held at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...ir.cost import extent_of
from ...ir.plan import LoopId, Visit
from ...ir.program import Step
from ...ir.tensor import Index, Tensor, element_bytes


@dataclass(frozen=True, slots=True)
class Fetched:
    """A generated input before its reader, and the reader inside the added loops.

    Attributes:
        fetch: the visit that produces a tile.
        contracted: axes of the input and the loops they are held in.
        reader: the reader's visit.
        added: the new tile loops, outermost first.
    """

    fetch: Visit
    contracted: tuple[tuple[int, LoopId], ...]
    reader: Visit
    added: tuple[LoopId, ...]


def fetch_tiles(
    produce: Step,
    step: Step,
    reader: Visit,
    next_id: int,
    extents: Mapping[str, int],
    dtype: str,
    tile_bytes: int,
) -> Fetched:
    """Put a reader and the production of a generated input into common tile loops.

    An input that the reader uses with different indices on every axis (``G[i,j]*G[j,i]``) or in
    part only has no axis to share, and one tile holds all of it.

    Args:
        produce: the step that produces the input.
        step: the step that reads it.
        reader: its visit, in the loops it has so far.
        next_id: of the first loop to be added.
        extents: planning extents.
        dtype: of the program.
        tile_bytes: most that a tile may take, if it has more than one element.
    """
    tensor = produce.out.tensor
    shared = _shared_axes(tensor, step)
    bind, added = list(reader.bind), list[LoopId]()
    while True:
        contracted = tuple((axis, loop) for axis, index in shared for i, loop in bind if i == index)
        held = _tile_bytes(tensor, contracted, extents, dtype)
        free = [(axis, index) for axis, index in shared if all(i != index for i, _ in bind)]
        if not free or (contracted and held <= tile_bytes):
            break
        axis, index = min(
            free,
            key=lambda f: (f[1] in step.sums, -extent_of(tensor.spaces[f[0]], extents), f[0]),
        )
        extent = extent_of(tensor.spaces[axis], extents)
        # At least two tiles, so that the input is never held whole.
        tile = max(1, min(tile_bytes // max(1, held // extent), (extent + 1) // 2))
        loop = LoopId(next_id + len(added), tensor.spaces[axis], tile)
        bind.append((index, loop))
        added.append(loop)
    loops = (*reader.loops, *added)
    own = tuple((produce.out.indices[axis], loop) for axis, loop in contracted)
    repeated = tuple(o for o in loops if all(o != loop for _, loop in own))
    return Fetched(
        Visit(produce.id, own, loops, repeated),
        contracted,
        Visit(reader.step, tuple(bind), loops, reader.redundant),
        tuple(added),
    )


def _shared_axes(tensor: Tensor, step: Step) -> list[tuple[int, Index]]:
    """Axes that the step reads whole and with one and the same index, each index once."""
    reads = [r.indices for r in step.operands if r.tensor == tensor]
    found: dict[Index, int] = {}
    for axis, space in enumerate(tensor.spaces):
        index = reads[0][axis]
        if index.space == space and all(r[axis] == index for r in reads):
            found.setdefault(index, axis)
    return [(axis, index) for index, axis in found.items()]


def _tile_bytes(
    tensor: Tensor,
    contracted: tuple[tuple[int, LoopId], ...],
    extents: Mapping[str, int],
    dtype: str,
) -> int:
    total, held = element_bytes(tensor, dtype), dict(contracted)
    for axis, space in enumerate(tensor.spaces):
        extent = extent_of(space, extents)
        total *= min(extent, held[axis].tile or 1) if axis in held else extent
    return total
