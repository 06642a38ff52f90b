"""Which share of work suits a statement on a GPU: elements, sums, or tiles of a product.

Chosen under the planning extents; every share is right for all extents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..ir.expr import Access, leaves
from ..ir.loops import Assign, BandVar, Buffer, Kernel, Zero
from ..ir.share import Points, Share, Sums
from .gpu_tiles import tiles_for
from .layout import elements

THREADS = 256
BLOCKS = 264  # two for each multiprocessor of a large GPU
LONG_SUM = 64  # points of a sum from which its threads share it, where elements are few
FEW = 2**14  # elements that leave a GPU idle with one thread for each


def share_of(kernel: Kernel, buffers: Mapping[str, Buffer], extents: Mapping[str, int]) -> Kernel:
    """A kernel of statements outside loops with its share, its bands in the order it wants."""
    (first, *more) = kernel.body
    if isinstance(first, Zero):
        return replace(kernel, share=Points(THREADS))
    assigns = tuple(s for s in (first, *more) if isinstance(s, Assign))
    tiles = tiles_for(assigns, buffers, extents)
    if tiles is not None:
        return replace(kernel, share=tiles)
    (stmt,) = assigns
    return replace(kernel, share=_simple(stmt, extents))


def _simple(stmt: Assign, extents: Mapping[str, int]) -> Share:
    held = stmt.out.variables
    kept: tuple[BandVar, ...] = tuple(v for v in stmt.band if v.name in held)
    summed = tuple(v for v in stmt.band if v.name not in held)
    many, long = elements(kept, extents), elements(summed, extents)
    if not summed or long < LONG_SUM or many >= FEW or _reads_itself(stmt):
        return Points(THREADS)
    each = -(-long // (4 * THREADS))  # blocks that have at least four points for each thread
    return Sums(THREADS, max(1, min(-(-BLOCKS // max(many, 1)), each)))


def _reads_itself(stmt: Assign) -> bool:
    return any(isinstance(x, Access) and x.buffer == stmt.out.buffer for x in leaves(stmt.expr))
