"""Blocks in an arena: against the plain search for neighbours, and work in proportion."""

from __future__ import annotations

import random
import sys

from tcgen.records.arena import Block, place


def first_fit(blocks: list[Block], order: list[int]) -> list[int]:
    """Starts where each block in turn takes the lowest free bytes, found one by one."""
    starts: dict[int, int] = {}
    for n in order:
        block = blocks[n]
        others = [
            (starts[m], starts[m] + blocks[m].bytes)
            for m in starts
            if blocks[m].first <= block.last and block.first <= blocks[m].last
        ]
        starts[n] = min(
            start
            for start in [0, *(end for _, end in others)]
            if all(start + block.bytes <= a or b <= start for a, b in others)
        )
    return [starts[n] for n in range(len(blocks))]


def test_layouts_are_those_of_the_best_order() -> None:
    draw = random.Random(1)
    for _ in range(150):
        blocks = []
        for n in range(draw.randrange(1, 20)):
            first = draw.randrange(12)
            last = first + draw.choice((0, 1, 2, 9))
            blocks.append(Block(f"b{n}", draw.choice((1, 8, 64, 100)), first, last, n))
        keys = (
            lambda b: (-b.bytes,),
            lambda b: (b.first, -b.bytes),
            lambda b: (b.first - b.last,),
            lambda b: (b.rank, -b.bytes),
        )
        extents = []
        for key in keys:
            order = sorted(range(len(blocks)), key=lambda n: key(blocks[n]))
            starts = first_fit(blocks, order)
            extents.append(max(s + b.bytes for s, b in zip(starts, blocks, strict=True)))
        assert place(tuple(blocks), alignment=1).extent == min(extents)


def calls_for(count: int) -> int:
    """Calls of functions that placing a chain of short lives takes."""
    blocks = tuple(Block(f"b{n}", 1 + n % 7, n, n + 1 + n % 3) for n in range(count))
    calls = 0

    def called(frame: object, event: str, _: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        place(blocks)
    finally:
        sys.setprofile(None)
    return calls


def test_work_grows_little_faster_than_the_number_of_blocks() -> None:
    assert calls_for(2000) < 5 * calls_for(500)
