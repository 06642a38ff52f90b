"""One arena for many arrays: arrays whose lifetimes overlap have separate memory.

Offsets are a pure function of bytes and lifetimes. The planner places arrays at the planning
extents, the runtime at the actual ones, and reports at any.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from ..hardware import CACHE_LINE_BYTES

# Alignment of arrays in an arena; also the bytes of the widest vector load.
ALIGNMENT = CACHE_LINE_BYTES
GRANTED = 16  # bytes: alignment of memory from the system


@dataclass(frozen=True, slots=True)
class Block:
    """A request for memory: ``bytes`` from position ``first`` to ``last``, both inclusive.

    ``rank`` is the place of the block in the planner's order of placement.
    """

    name: str
    bytes: int
    first: int
    last: int
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of blocks in an arena.

    Attributes:
        offsets: offsets of the blocks in bytes, in the order of the requests.
        total: bytes to request from the system; if the alignment is larger than GRANTED, with those
            that may have to be skipped at the start.
        alignment: alignment in bytes of the arena and of every block in it.
    """

    offsets: tuple[tuple[str, int], ...]
    total: int
    alignment: int = ALIGNMENT

    @property
    def extent(self) -> int:
        """Bytes from the start of the first block to the end of the last one."""
        return max(0, self.total - _skipped(self.alignment))


def _skipped(alignment: int) -> int:
    """Bytes that may precede the first aligned address."""
    return max(0, alignment - GRANTED)


def aligned(count: int, alignment: int = ALIGNMENT) -> int:
    """``count`` bytes rounded up to a multiple of ``alignment``."""
    return -(-count // alignment) * alignment


def place(blocks: tuple[Block, ...], alignment: int = ALIGNMENT) -> Layout:
    """Offsets by first fit, in the one of four orders that needs the fewest bytes.

    The orders: largest first; earliest ``first``; longest lifetime first; the planner's ranks.
    Equal blocks keep the order of the requests, and of equally good orders the first is taken.

    Example:
        >>> place((Block("a", 64, 0, 1), Block("b", 128, 1, 2), Block("c", 64, 2, 3)))
        Layout(offsets=(('a', 128), ('b', 0), ('c', 128)), total=240, alignment=64)
        >>> place((Block("a", 24, 0, 1), Block("b", 8, 1, 2)), alignment=1).total
        32
    """
    spans = [aligned(b.bytes, alignment) for b in blocks]
    keys: tuple[Callable[[int], tuple[int, ...]], ...] = (
        lambda n: (-spans[n],),
        lambda n: (blocks[n].first, -spans[n]),
        lambda n: (blocks[n].first - blocks[n].last,),
        lambda n: (blocks[n].rank, -spans[n]),
    )
    lower_bound = most_live_bytes(blocks, spans)
    best: list[int] = []
    extent = -1
    for key in keys:
        starts = _first_fit(blocks, spans, sorted(range(len(blocks)), key=key))
        needed = max((s + n for s, n in zip(starts, spans, strict=True)), default=0)
        if extent < 0 or needed < extent:
            best, extent = starts, needed
        if extent == lower_bound:
            break
    total = extent + _skipped(alignment) if extent > 0 else 0
    offsets = tuple((b.name, s) for b, s in zip(blocks, best, strict=True))
    return Layout(offsets, total, alignment)


def most_live_bytes(blocks: tuple[Block, ...], spans: list[int]) -> int:
    """The most bytes of blocks that are live at one position: a lower bound of the arena."""
    changes = [(b.first, n) for b, n in zip(blocks, spans, strict=True)]
    changes += [(b.last + 1, -n) for b, n in zip(blocks, spans, strict=True)]
    # At one position blocks end before others begin.
    changes.sort()
    return max(accumulate((n for _, n in changes), initial=0))


class _Placed:
    """Placed blocks, found fast by their lifetimes.

    A block is in the lists of the few nodes of a binary tree over all positions that make up its
    lifetime, so that those that are live at one position are in the nodes above it.
    """

    def __init__(self, blocks: tuple[Block, ...]) -> None:
        self.blocks = blocks
        self.ends = sorted({p for b in blocks for p in (b.first, b.last)})
        self.leaves = 1 << max(0, len(self.ends) - 1).bit_length()
        self.tree: dict[int, list[int]] = {}
        self.by_first: list[tuple[int, int]] = []

    def add(self, n: int) -> None:
        """Add the n-th block."""
        block = self.blocks[n]
        low = self.leaves + bisect_left(self.ends, block.first)
        high = self.leaves + bisect_left(self.ends, block.last) + 1
        while low < high:
            if low & 1:
                self.tree.setdefault(low, []).append(n)
                low += 1
            if high & 1:
                high -= 1
                self.tree.setdefault(high, []).append(n)
            low, high = low >> 1, high >> 1
        insort(self.by_first, (block.first, n))

    def live_with(self, block: Block) -> list[int]:
        """Blocks with a lifetime that overlaps that of a block."""
        found: list[int] = []
        node = self.leaves + bisect_left(self.ends, block.first)
        while node:
            found += self.tree.get(node, ())
            node >>= 1
        start = bisect_left(self.by_first, (block.first + 1, -1))
        stop = bisect_left(self.by_first, (block.last + 1, -1))
        return [*found, *(n for _, n in self.by_first[start:stop])]


def _first_fit(blocks: tuple[Block, ...], spans: list[int], order: list[int]) -> list[int]:
    """Starts of the blocks: each in turn takes the lowest that is free."""
    starts = [0] * len(blocks)
    placed = _Placed(blocks)
    for n in order:
        start = 0
        for m in sorted(placed.live_with(blocks[n]), key=starts.__getitem__):
            if start + spans[n] <= starts[m]:
                break
            start = max(start, starts[m] + spans[m])
        starts[n] = start
        placed.add(n)
    return starts
