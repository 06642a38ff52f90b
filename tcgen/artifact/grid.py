"""The grid of a kernel on a GPU as plain data: what the manifest says, and how blocks are counted.

Travels with every artifact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

SHARED_BYTES = 46 * 1024  # of private buffers of a block; beside them a kernel has 2 KiB of its own
LARGEST_GRID = 2**31 - 1  # blocks of a launch, on every GPU
SPILLED_BLOCKS = 128  # most blocks where private buffers do not fit shared memory


@dataclass(frozen=True, slots=True)
class StripEntry:
    """Variables that are counted as one and cut into tiles.

    Attributes:
        lengths: of each variable its space, the tile to which a loop around it limits it, and the
            host variable where that tile begins.
        tile: points of a tile.
    """

    lengths: tuple[tuple[str, int | None, str | None], ...]
    tile: int


@dataclass(frozen=True, slots=True)
class GridEntry:
    """How many blocks of a GPU run a kernel, and the scratch memory that they take.

    Attributes:
        arguments: arrays that the function takes, in order.
        strips: there is a block for each combination of tiles, times ``splits``.
        splits: blocks that share a sum.
        most: no more blocks than that: they take further points in turn; or None.
        threads: of a block.
        finish: function of the second pass, which has one block for each combination; or None.
        once: the second pass is one block, also where the first one has none.
        part_bytes: what each block leaves in scratch for it.
    """

    arguments: tuple[str, ...]
    strips: tuple[StripEntry, ...]
    splits: int
    most: int | None
    threads: int
    finish: str | None
    once: bool
    part_bytes: int

    def blocks(
        self, extent: Callable[[str], int], values: Mapping[str, int] = MappingProxyType({})
    ) -> int:
        """Blocks of the launch without splits, given the extent of each space.

        Kernels count on it that there is none too many. Without the host variables' ``values``: of
        whole tiles, the most of any launch.

        Example:
            >>> strip = StripEntry((("o", None, None), ("v", 4, "a0")), 16)
            >>> grid = GridEntry((), (strip,), 1, None, 256, None, False, 0)
            >>> extent = {"o": 10, "v": 9}.__getitem__
            >>> grid.blocks(extent), grid.blocks(extent, {"a0": 8})
            (3, 1)
        """
        count = 1
        for strip in self.strips:
            points = 1
            for space, tile, start in strip.lengths:
                rest = extent(space) - (0 if start is None else values.get(start, 0))
                points *= rest if tile is None else min(tile, rest)
            count *= -(-points // strip.tile)
        return count if self.most is None else min(count, self.most)
