"""Numbers on which generated code and its callers agree: parts of the contraction kernel, packing.

The kernel packs blocks of its operands A (m by k) and B (k by n). The bytes that it needs depend on
the extents and not on the machine, so a report holds on every machine. Generated code divides them
by the same formulas (``tc_packing``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..dtypes import BY_NAME
from ..records.arena import aligned

KC = 384  # most k of a packed block
MC, NC = 240, 2816  # m and n of packed blocks with KC: doubles; A's fits a second-level cache
STAGE_ROOM = 880 * KC  # doubles in place of A's block: two staging buffers, a micro-panel
MOST_M, MOST_N = 4096, 16384  # most m and n of a block with a small k
EDGE = 48  # m or n by which the micro-panels at the edge of a block are padded at most

# Parts of the generated kernel: micro-kernels by how they read A and B (both packed, A in place, B
# in place), and who calls them.
TILES = ("packed", "left", "right")
CALLERS = ("blocks", "staged")
HEIGHTS = 4  # entries of a table of micro-kernels, by the vectors of MR: none, and one to three
# Name of the blocks if they are called only when the buffer of a stage is too small.
FALLBACK = "fallback"


def library(part: str, dtype: str) -> str:
    """File of an artifact with the source of a part of the kernel for an element type."""
    return f"contract_{part}_{dtype}.c"


def packing_bytes(dtype: str, m: int, n: int, k: int, staged_a: bool = False) -> int:
    """Bytes to pack in for one thread; ``staged_a``: C is staged while A is read in place."""
    item, reals = BY_NAME[dtype].itemsize, BY_NAME[dtype].parts
    depth = min(KC // reals, max(k, 1))
    more = 8 * reals // item  # blocks of floats hold twice as many elements
    # A packed complex element of A is a matrix of two by two reals.
    largest_a = more * (STAGE_ROOM if staged_a else MC * KC) // reals**2
    packed_a = min(largest_a, (3 * m + EDGE) * depth) * item * reals
    packed_b = min(more * NC * KC, (n + EDGE) * depth) * item
    offsets = 16 * (min(MOST_M, m + EDGE) + min(MOST_N, n + EDGE) + depth)
    return aligned(packed_a) + aligned(packed_b) + aligned(offsets)


# First line of a source with loops that round each product before it is added. Compilers do so for
# a whole file or not at all.
ROUND_EACH = "#define TC_ROUND_EACH  /* compiled with -ffp-contract=off (CUDA: --fmad=false) */"

# First line of a CUDA source with integers of 32 bits; without it they have 64.
NARROW_INTEGERS = "#define TC_INT int"


def rounds_each(source: str) -> bool:
    """True if a source requests a rounding of each operation."""
    return source.removeprefix(f"{NARROW_INTEGERS}\n").startswith(ROUND_EACH)


# First line of a source in pieces, behind that of rounding: a compiler makes an object of each,
# where TC_PIECE is its number. Without TC_PIECE, the source is one piece.
_PIECES = re.compile(r'(?:.*\n)?#define TC_PIECES "((?:-O[0-3] ?)+)"')


def pieces_line(levels: Sequence[str]) -> str:
    """The line of a source in pieces with these levels of optimisation."""
    return f'#define TC_PIECES "{" ".join(levels)}"  /* levels, by TC_PIECE */\n'


def levels_of_pieces(source: str) -> tuple[str, ...]:
    """The levels of the pieces of a source; none if it is one piece."""
    found = _PIECES.match(source)
    return tuple(found[1].split()) if found else ()
