"""The grid of a kernel on a GPU as plain data of the manifest, and how its blocks are counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from ..hardware import PRIVATE_SHARED_BYTES
from ..simplices import stored_values

# Bytes of shared memory for a block's private buffers.
SHARED_BYTES = PRIVATE_SHARED_BYTES
LARGEST_GRID = 2**31 - 1  # blocks of a launch, on every GPU
# Elements of arrays and points of loops below which a kernel counts in integers of 32 bits: those
# hold one more step of all threads of a grid.
NARROW = 2**31 - 2**28
# Most blocks of a launch whose private buffers do not fit shared memory: each block has a copy of
# them in scratch. Generated code takes the number of blocks from the launch.
SPILLED_BLOCKS = 128


@dataclass(frozen=True, slots=True)
class StripEntry:
    """Loop variables that are collapsed into one and cut into tiles of ``tile`` iterations.

    ``lengths`` has the space of each variable, the tile to which an outer loop limits it or None,
    and the host variable at which that tile begins or None. ``chains`` has the space of each group
    of variables in order, their count, and whether no two are equal.
    """

    lengths: tuple[tuple[str, int | None, str | None], ...]
    tile: int
    chains: tuple[tuple[str, int, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class GridEntry:
    """Number of blocks of a kernel on a GPU, and the scratch memory that they need.

    Attributes:
        arguments: arrays that the function takes, in order.
        strips: each combination of their tiles has a block, times ``splits``.
        splits: number of blocks that share one sum.
        most: upper bound of blocks, which then take several combinations in turn; or None.
        finish: function of the second pass, which has one block for each combination; or None.
        once: whether the second pass is one block, even if the first pass has none.
        part_bytes: bytes of partial sums that each block leaves in scratch for the second pass.
        copies: arrays of which each block leaves a copy in scratch, for the second pass to add up.
        shared_bytes: dynamic shared memory of a block of the first pass, beside private buffers.
        ranges: numbers that the integers of the function must hold, in addition to blocks and
            scratch: products of lengths, each the extent of a space or the tile that limits it.
    """

    arguments: tuple[str, ...]
    strips: tuple[StripEntry, ...]
    splits: int
    most: int | None
    threads: int
    finish: str | None
    once: bool
    part_bytes: int
    shared_bytes: int
    ranges: tuple[tuple[tuple[str, int | None], ...], ...]
    copies: tuple[str, ...] = ()

    def blocks(
        self, extent: Callable[[str], int], values: Mapping[str, int] = MappingProxyType({})
    ) -> int:
        """Blocks of a launch, without splits, at some extents and values of host variables.

        Kernels rely on the exact number: no block is without work. By default tiles are whole, as
        in the largest launch.

        Example:
            >>> strip = StripEntry((("o", None, None), ("v", 4, "a0")), 16)
            >>> grid = GridEntry((), (strip,), 1, None, 256, None, False, 0, 0, ())
            >>> extent = {"o": 10, "v": 9}.__getitem__
            >>> grid.blocks(extent), grid.blocks(extent, {"a0": 8})
            (3, 1)
        """
        return self.at(extent)(values)

    def largest(self, extent: Callable[[str], int]) -> int:
        """The largest of the ranges at some extents.

        Example:
            >>> ranges = ((("o", None), ("v", None)), (("o", None), ("v", 4), ("v", 4)))
            >>> grid = GridEntry((), (), 1, None, 256, None, False, 0, 0, ranges)
            >>> grid.largest({"o": 10, "v": 9}.__getitem__)
            160
        """
        return max(
            (
                prod(extent(s) if tile is None else min(tile, extent(s)) for s, tile in lengths)
                for lengths in self.ranges
            ),
            default=0,
        )

    def at(self, extent: Callable[[str], int]) -> BlockCount:
        """The number of blocks at some extents, as a function of the host variables."""
        fixed, varying = 1, []
        for strip in self.strips:
            iterations, limited = 1, []
            for space, count, strict in strip.chains:
                iterations *= stored_values(extent(space), count, strict)
            for space, tile, start in strip.lengths:
                if start is None:
                    iterations *= extent(space) if tile is None else min(tile, extent(space))
                else:
                    limited.append((start, extent(space), tile))
            if limited:
                varying.append((iterations, tuple(limited), strip.tile))
            else:
                fixed *= -(-iterations // strip.tile)
        return BlockCount(fixed, tuple(varying), self.most)


@dataclass(frozen=True, slots=True)
class BlockCount:
    """Blocks of the launches of a kernel at some extents; ``most`` is an upper bound.

    Attributes:
        fixed: product of the tiles of the strips whose lengths no host variable changes.
        varying: other strips: iterations of its fixed variables; host variable, extent and tile of
            each variable that an outer loop limits; and the tile of the strip.
    """

    fixed: int
    varying: tuple[tuple[int, tuple[tuple[str, int, int | None], ...], int], ...]
    most: int | None

    def __call__(self, values: Mapping[str, int]) -> int:
        """The number at some values of the host variables; those that are missing are 0."""
        count = self.fixed
        for iterations, limited, step in self.varying:
            for start, extent, tile in limited:
                rest = extent - values.get(start, 0)
                iterations *= rest if tile is None or rest < tile else tile
            count *= -(-iterations // step)
        return count if self.most is None or count < self.most else self.most
