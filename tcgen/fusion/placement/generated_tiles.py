"""Generated inputs that share no loop with their reader are produced tile by tile.

The reader and the visit that produces the input are placed in a common loop over tiles of one axis,
or of several axes where one slab would still be too large. Only one tile is held at a time.
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
    """The visits of a generated input and of its reader, inside the added tile loops.

    Attributes:
        fetch: the visit that produces a tile.
        contracted: axes of the input, each with the loop that cuts it into tiles.
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
    tile_bytes: int | None,
) -> Fetched:
    """Put a reader and the production of a generated input into common tile loops.

    The loops that the reader is in already cut the input along the axes that it reads by their
    indices. An input of which the reader uses no axis with a single index (``G[i,j]*G[j,i]``), or
    only a part, is one tile.

    Args:
        produce: the step that produces the input.
        step: the step that reads it.
        reader: its visit, in the loops it has so far.
        next_id: number of the first loop to be added.
        extents: planning extents.
        dtype: of the program.
        tile_bytes: of the largest tile, for which loops are added; a tile has at least one
            element. None: no loop is added.
    """
    tensor = produce.out.tensor
    shared = _shared_axes(tensor, step)
    bind, added = list(reader.bind), list[LoopId]()
    while True:
        contracted = tuple((axis, loop) for axis, index in shared for i, loop in bind if i == index)
        held = _tile_bytes(tensor, contracted, extents, dtype)
        free = [(axis, index) for axis, index in shared if all(i != index for i, _ in bind)]
        if tile_bytes is None or not free or (contracted and held <= tile_bytes):
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
    """Axes that the step reads whole and always with the same index; one axis for each index."""
    reads = [r.indices for r in step.operands if r.tensor == tensor]
    axis_of: dict[Index, int] = {}
    for axis, space in enumerate(tensor.spaces):
        index = reads[0][axis]
        if index.space == space and all(r[axis] == index for r in reads):
            axis_of.setdefault(index, axis)
    return [(axis, index) for index, axis in axis_of.items()]


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
