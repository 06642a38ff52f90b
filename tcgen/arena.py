"""One arena for many arrays: where each starts, so that arrays whose lives meet never overlap.

A pure function of bytes and lives. It is used at run time with the actual extents and by reports
with any others; it knows nothing of tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

ALIGNMENT = 64  # bytes: one cache line, and the widest vector load


@dataclass(frozen=True, slots=True)
class Block:
    """A request for memory: ``bytes`` from position ``first`` to ``last``, both inclusive."""

    name: str
    bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Offsets of the blocks, in the order of the requests, and the bytes of the whole arena."""

    offsets: tuple[tuple[str, int], ...]
    total: int


def aligned(count: int) -> int:
    """``count`` bytes rounded up to a whole number of cache lines.

    Example:
        >>> aligned(0), aligned(1), aligned(64)
        (0, 64, 64)
    """
    return -(-count // ALIGNMENT) * ALIGNMENT


def place(blocks: tuple[Block, ...]) -> Layout:
    """Offsets by first fit, largest block first; equal blocks in the order of the requests.

    Every offset is a multiple of 64. Two blocks share bytes only if their lives are disjoint.

    Example:
        >>> place((Block("a", 64, 0, 1), Block("b", 128, 1, 2), Block("c", 64, 2, 3)))
        Layout(offsets=(('a', 128), ('b', 0), ('c', 128)), total=192)
    """
    ranked = sorted(range(len(blocks)), key=lambda i: (-aligned(blocks[i].bytes), i))
    starts = [0] * len(blocks)
    placed: list[int] = []
    total = 0
    for i in ranked:
        block = blocks[i]
        extent = aligned(block.bytes)
        start = 0
        for low, high in sorted(
            (starts[j], starts[j] + aligned(blocks[j].bytes))
            for j in placed
            if blocks[j].first <= block.last and block.first <= blocks[j].last
        ):
            if start + extent <= low:
                break
            start = max(start, high)
        starts[i] = start
        placed.append(i)
        total = max(total, start + extent)
    return Layout(tuple((b.name, s) for b, s in zip(blocks, starts, strict=True)), total)
