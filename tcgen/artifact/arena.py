"""One arena for many arrays: arrays whose lifetimes overlap have separate memory.

Offsets are a pure function of bytes and lifetimes. The runtime places arrays at the actual extents,
reports at any extents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..hardware import CACHE_LINE_BYTES

ALIGNMENT = CACHE_LINE_BYTES  # of arrays in an arena; also the bytes of the widest vector load
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
    """Where the blocks are in an arena.

    Attributes:
        offsets: of the blocks in bytes, in the order of the requests.
        total: bytes to ask the system for. If the alignment is larger than GRANTED, they include
            the bytes that may have to be skipped at the start.
        alignment: in bytes, of the start of the arena and of every block in it.
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
    """``count`` bytes rounded up to a multiple of ``alignment``.

    Example:
        >>> aligned(0), aligned(1), aligned(64)
        (0, 64, 64)
    """
    return -(-count // alignment) * alignment


def place(blocks: tuple[Block, ...], alignment: int = ALIGNMENT) -> Layout:
    """Offsets by first fit, in the one of four orders that needs the fewest bytes.

    The orders: largest first; earliest ``first``; longest lifetime first; the planner's ranks.
    Equal blocks keep the order of the requests, and of equally good orders the first is taken.
    Every offset is a multiple of ``alignment``. The bytes of two blocks overlap only if their
    lifetimes are disjoint.

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
    lower_bound = max(
        (_live_bytes(blocks, spans, position) for position in {b.first for b in blocks}),
        default=0,
    )
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


def _live_bytes(blocks: tuple[Block, ...], spans: list[int], position: int) -> int:
    """Bytes of the blocks that are live at one position: a lower bound of the arena."""
    return sum(n for b, n in zip(blocks, spans, strict=True) if b.first <= position <= b.last)


def _first_fit(blocks: tuple[Block, ...], spans: list[int], order: list[int]) -> list[int]:
    """Starts of the blocks: each in turn takes the lowest that is free."""
    starts = [0] * len(blocks)
    placed: list[int] = []
    for n in order:
        block, start = blocks[n], 0
        live = [
            m for m in placed if blocks[m].first <= block.last and block.first <= blocks[m].last
        ]
        for m in sorted(live, key=lambda m: starts[m]):
            if start + spans[n] <= starts[m]:
                break
            start = max(start, starts[m] + spans[m])
        starts[n] = start
        placed.append(n)
    return starts
