"""Memory in which the generated contraction kernel packs blocks of its operands.

The generated code cuts it up by the same sums (``tc_packing`` in ``kernels.c``). It depends on the
extents and on no property of the machine, so that a report holds everywhere.
"""

from __future__ import annotations

from .arena import aligned

DEPTH = 384  # summed points of a block
LEFT = 240 * DEPTH  # doubles of a packed block of the left operand, within a second-level cache
STAGED = 880 * DEPTH  # of two buffers of the target instead, and a panel
RIGHT = 2816 * DEPTH  # and of the right one
ROWS, COLUMNS = 4096, 16384  # most rows and columns of a block
SPARE = 48  # rows, columns: a last panel is padded

_ITEMS = {"float64": 8, "float32": 4, "complex128": 16}


# Parts of the generated kernel: micro-kernels by how they read A and B (both packed, A in place, B
# in place), and who calls them.
TILES = ("packed", "left", "right")
CALLERS = ("blocks", "staged")
HEIGHTS = 4  # entries of a table of micro-kernels, by the vectors of MR: none, and one to three
FALLBACK = "fallback"  # blocks, where they are called only if the buffer of a stage is too small


def library(part: str, dtype: str) -> str:
    """File of an artifact with the source of a part of the kernel for an element type."""
    return f"contract_{part}_{dtype}.c"


def packing_bytes(dtype: str, m: int, n: int, k: int, staged_rows: bool = False) -> int:
    """Bytes that one thread needs to contract m rows with n columns over k summed points.

    Example:
        >>> packing_bytes("float64", 1, 1, 1)
        2496
    """
    item = _ITEMS[dtype]
    parts = 2 if dtype == "complex128" else 1  # a packed complex element is two by two reals
    depth = min(DEPTH // parts, max(k, 1))
    more = 8 * parts // item  # blocks of floats hold twice as many elements
    left = min(more * (STAGED if staged_rows else LEFT) // parts**2, (3 * m + SPARE) * depth)
    right = min(more * RIGHT, (n + SPARE) * depth)
    places = 2 * (min(ROWS, m + SPARE) + min(COLUMNS, n + SPARE) + depth)
    return aligned(left * item * parts) + aligned(right * item) + aligned(8 * places)
