"""One arena for many arrays: where each starts, so that arrays whose lives meet never overlap.

A pure function of bytes and lives. It is used at run time with the actual extents and by reports
with any others; it knows nothing of tensors. `templates/report/page.js` follows the same rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

ALIGNMENT = 64  # bytes: one cache line, and the widest vector load
GRANTED = 16  # bytes: what memory from the system is aligned to


@dataclass(frozen=True, slots=True)
class Block:
    """A request for memory: ``bytes`` from position ``first`` to ``last``, both inclusive.

    ``rank`` is the block's place in an order of layout that the planner found to be good.
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
        offsets: of the blocks, in the order of the requests.
        total: bytes to ask the system for; with an alignment beyond what the system grants, they
            include the bytes that may have to be skipped at the start.
        alignment: of the start of the arena, and of every block in it.
    """

    offsets: tuple[tuple[str, int], ...]
    total: int
    alignment: int = ALIGNMENT

    @property
    def extent(self) -> int:
        """Bytes from the start of the first block to the end of the last one."""
        return max(0, self.total - _skipped(self.alignment))


def _skipped(alignment: int) -> int:
    """Bytes that may lie before the first address of an alignment."""
    return max(0, alignment - GRANTED)


def aligned(count: int, alignment: int = ALIGNMENT) -> int:
    """``count`` bytes rounded up to a whole number of cache lines.

    Example:
        >>> aligned(0), aligned(1), aligned(64)
        (0, 64, 64)
    """
    return -(-count // alignment) * alignment


def place(blocks: tuple[Block, ...], alignment: int = ALIGNMENT) -> Layout:
    """Offsets by first fit, in whichever of four orders takes least.

    The orders: largest first; first born; longest life first; the planner's ranks. Ties go by the
    order of the requests, and to the earlier order. Every offset is a multiple of ``alignment``.
    Two blocks share bytes only if their lives are disjoint.

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
    least = max(
        (_held(blocks, spans, moment) for moment in {b.first for b in blocks}),
        default=0,
    )
    best: list[int] = []
    extent = -1
    for key in keys:
        starts = _first_fit(blocks, spans, sorted(range(len(blocks)), key=key))
        needed = max((s + n for s, n in zip(starts, spans, strict=True)), default=0)
        if extent < 0 or needed < extent:
            best, extent = starts, needed
        if extent == least:
            break
    total = extent + _skipped(alignment) if extent > 0 else 0
    offsets = tuple((b.name, s) for b, s in zip(blocks, best, strict=True))
    return Layout(offsets, total, alignment)


def _held(blocks: tuple[Block, ...], spans: list[int], moment: int) -> int:
    """Bytes that live at one position: no arena is smaller."""
    return sum(n for b, n in zip(blocks, spans, strict=True) if b.first <= moment <= b.last)


def _first_fit(blocks: tuple[Block, ...], spans: list[int], order: list[int]) -> list[int]:
    """Starts of the blocks, each the lowest that is free when its turn comes."""
    starts = [0] * len(blocks)
    placed: list[int] = []
    for n in order:
        block, start = blocks[n], 0
        met = [m for m in placed if blocks[m].first <= block.last and block.first <= blocks[m].last]
        for m in sorted(met, key=lambda m: starts[m]):
            if start + spans[n] <= starts[m]:
                break
            start = max(start, starts[m] + spans[m])
        starts[n] = start
        placed.append(n)
    return starts
