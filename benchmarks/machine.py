"""Memory operations of one core beside register tiles: bounds of memory-bound contractions.

    taskset -c 0 python benchmarks/machine.py

The first table has the time of a tile's step (a rank-1 update of 3 vectors by 8 columns, from the
first-level cache) alone, with one cache line prefetched or stored non-temporally at each step, and
of the lines alone. Lines are consecutive in memory, in one page or in six pages in turn; or the
second line of each pair of neighbours comes 64 lines after the first; or lines come in runs as in a
contraction that reads ``A[a,e,b,d]`` (all extents 72, sums over e) for several elements of a at a
time.

The second table has the time to read a line of the second-level cache, if so many pages of 4 KB
hold one line each. The time grows, although all lines stay in that cache, with the misses of the
TLB. A contraction whose operand has its unit-stride axis elsewhere touches that many pages.
Rounds run in turn; the table shows the least time.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tcgen.runtime.cpu.build import Source, build_libraries

LINE, PAGE = 64, 4096
EXTENT = 72
PLACE = EXTENT * EXTENT * 8  # bytes from one summed point to the next
SLAB = EXTENT * PLACE  # and from one element of the target's fastest axis to the next
WAYS = ("multiply", "fetch", "fetch_beside", "store", "store_beside")
Lines = npt.NDArray[np.int32]


def in_runs(run: int, together: int) -> Lines:
    """Numbers of the lines of A as blocks of the target need them: runs of so many lines, for so
    many elements of its fastest axis at a time.
    """
    across = PLACE // LINE // run
    a, block, element, e, line = np.indices((EXTENT // together, across, together, EXTENT, run))
    places = (a * together + element) * (SLAB // LINE) + e * (PLACE // LINE) + block * run + line
    return places.ravel().astype(np.int32)


def in_turn(streams: int, lines: int) -> Lines:
    """Numbers of A's lines, one from each of so many stretches of ``lines`` in turn."""
    count = EXTENT * SLAB // LINE // (streams * lines) * (streams * lines)
    numbers = np.arange(count, dtype=np.int32)
    return numbers.reshape(-1, streams, lines).transpose(0, 2, 1).ravel()


PATTERNS = {
    "lines in order": lambda: in_turn(1, 1),
    "lines of 6 pages in turn": lambda: in_turn(6, PAGE // LINE),
    "lines of 64 pairs in turn": lambda: in_turn(64, 2),
    "runs of 12, 1 element": lambda: in_runs(12, 1),
    "runs of 12, 8 elements": lambda: in_runs(12, 8),
    "runs of 12, 24 elements": lambda: in_runs(12, 24),
    "runs of 3, 24 elements": lambda: in_runs(3, 24),
}


def aligned(size: int) -> npt.NDArray[np.uint8]:
    """Zeros that begin on a page and have been written."""
    room = np.ones(size + PAGE, np.uint8)
    start = -room.ctypes.data % PAGE
    return room[start : start + size]


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def steps(library: ctypes.CDLL, rounds: int) -> list[dict]:
    """Nanoseconds of a step, for each pattern and way."""
    memory = aligned(EXTENT * SLAB)
    rows = [{"pattern": name} | dict.fromkeys(WAYS, float("inf")) for name in PATTERNS]
    for _ in range(rounds):
        for row in rows:
            lines = PATTERNS[row["pattern"]]()
            for way in WAYS:
                run = getattr(library, way)
                seconds = timed(lambda: run(memory.ctypes, lines.ctypes, len(lines)))  # noqa: B023
                row[way] = min(row[way], seconds / len(lines) * 1e9)
    return rows


def translations(library: ctypes.CDLL, rounds: int) -> list[dict]:
    """Nanoseconds to read a line, one in each page, in an order that nothing foresees."""
    rows = []
    for pages in (64, 1024, 2048, 4096, 8192, 16384):
        memory = aligned(pages * PAGE)
        order = np.random.default_rng(0).permutation(pages)
        places = order * PAGE + order * LINE % PAGE
        words = memory.view(np.uint64)
        words[places // 8] = memory.ctypes.data + np.roll(places, -1).astype(np.uint64)
        first, count = int(memory.ctypes.data + places[0]), 20 * max(pages, 1024)
        best = min(timed(lambda: library.chase(first, count)) for _ in range(rounds))  # noqa: B023
        rows.append({"pages": pages, "kilobytes": pages * LINE // 1024, "ns": best / count * 1e9})
    return rows


def main() -> None:
    """Print two Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    (library,) = build_libraries([Source(Path(__file__).with_suffix(".c").read_text())])
    for way in WAYS:
        getattr(library, way).argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
        getattr(library, way).restype = ctypes.c_double
    library.chase.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    library.chase.restype = ctypes.c_void_p
    library.flops.restype = ctypes.c_int64
    library.fill()
    rows = steps(library, options.rounds)
    peak = library.flops() / min(row["multiply"] for row in rows)
    print("| ns a step | alone | + fetch | lines alone | + store | lines alone |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        times = (row[w] for w in ("multiply", "fetch_beside", "fetch", "store_beside", "store"))
        print(f"| {row['pattern']} | {' | '.join(f'{t:.2f}' for t in times)} |")
    print(f"\nA step alone: {peak:.1f} Gflop/s.\n")
    pages = translations(library, options.rounds)
    print("| pages | " + " | ".join(str(r["pages"]) for r in pages) + " |")
    print("|---" * (len(pages) + 1) + "|")
    print("| kilobytes of lines | " + " | ".join(str(r["kilobytes"]) for r in pages) + " |")
    print("| ns to read one | " + " | ".join(f"{r['ns']:.1f}" for r in pages) + " |")
    if options.json:
        options.json.write_text(json.dumps({"steps": rows, "pages": pages}, indent=1) + "\n")


if __name__ == "__main__":
    main()
