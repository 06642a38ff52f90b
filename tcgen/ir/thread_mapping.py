"""How the work of a kernel is shared out among the blocks and threads of a GPU.

A kernel of level 4 means what its statements mean; a share says which block and which thread
computes which points of them. Without a share the kernel is for a CPU. All numbers here are
constants of the generated code; extents stay run-time arguments, so the number of blocks is
counted at each launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .expr import Access


@dataclass(frozen=True, slots=True)
class Strip:
    """Variables counted as one, the last the fastest, and cut into tiles of consecutive points.

    The points of (i, a) are numbered ``i*N_a + a``; tile t holds the numbers t*tile to
    t*tile + tile - 1, as far as there are points.
    """

    variables: tuple[str, ...]
    tile: int


@dataclass(frozen=True, slots=True)
class Points:
    """One statement: each thread computes whole elements of the target, its sum included.

    ``threads`` is that of a block; neighbouring threads have neighbouring elements.
    """

    threads: int


@dataclass(frozen=True, slots=True)
class Sums:
    """One assignment: each element of the target is summed by ``splits`` blocks.

    The threads of a block take the points of the sum in turn and add up by shuffles. With more
    than one split each block writes its part to scratch, and a second pass adds the parts in
    order: the result does not depend on which block comes first.
    """

    threads: int
    splits: int


@dataclass(frozen=True, slots=True)
class Turned:
    """One assignment without sums, whose target and source have different fastest variables.

    A block reads a tile of the source along its memory into shared memory, and writes the same
    elements of the target along the target's memory.

    Attributes:
        source: access of the expression that goes through the tile.
        row: fastest variable of the source.
        column: fastest variable of the target.
        tile: elements on each side.
        threads: of a block, a multiple of the tile.
    """

    source: Access
    row: str
    column: str
    tile: int
    threads: int


@dataclass(frozen=True, slots=True)
class Term:
    """One assignment ``out (+)= coeff * x * y`` of a tile of products.

    Attributes:
        swapped: the expression's second factor holds the rows.
        depth: variables that are summed, counted as one, the last the fastest.
        left_deep, right_deep: the factor's memory runs along the sum, so neighbouring threads
            load along it; else along rows (columns).
    """

    swapped: bool
    depth: tuple[str, ...]
    left_deep: bool
    right_deep: bool


@dataclass(frozen=True, slots=True)
class Tiles:
    """Assignments to the same elements, each a product of two factors: matrix products by tiles.

    A block computes a tile of rows x columns of the target for one point of the batch. Tiles of
    both factors go through shared memory, ``deep`` points of the sum at a time, in ``stages``
    buffers. Each thread keeps an own part of the tile in registers over all terms, and the target
    is touched once, at the end. With more than one split the sums are parted among blocks, and a
    second pass adds the parts in order.

    The statements behind the terms are the *epilogue*: what each thread does with its elements
    while they are in registers. One changes the element itself (``r /= d``), writes another array
    with the same variables in any order (``y[b,a] = r[a,b]/d[a,b]``), or adds to a number
    (``e += r*g``), which the threads of a block add up by shuffles, and a second pass for all
    blocks in order. A target of place ``tile`` is never stored.

    Attributes:
        batch: variables of which a block takes one point.
        rows, columns: of the tile; together with the batch all variables of the target.
        terms: one for each of the first statements of the kernel; the others are the epilogue.
        high, wide: threads of a block along rows and columns.
        deep: points of the sum at a time.
        stages: buffers in shared memory.
        splits: blocks that share a sum.
        tensor_cores: float64 only. Warps multiply 16 rows x 8 columns x 8 points of the sum at
            once: a block has high/8 x wide/4 warps, each with neighbouring rows and columns.
    """

    batch: tuple[str, ...]
    rows: tuple[Strip, ...]
    columns: tuple[Strip, ...]
    terms: tuple[Term, ...]
    high: int
    wide: int
    deep: int
    stages: int
    splits: int = 1
    tensor_cores: bool = False

    @property
    def height(self) -> int:
        """Rows of a tile."""
        return _product(self.rows)

    @property
    def width(self) -> int:
        """Columns of a tile."""
        return _product(self.columns)


@dataclass(frozen=True, slots=True)
class Nest:
    """A nest of loops, or several statements: a block walks it, its threads share each statement.

    Parallel loops of the nest are counted as one and dealt to the blocks; private buffers belong
    to a block, and its threads wait for each other after each statement.

    Attributes:
        threads: of a block.
        blocks: most blocks; each takes further points in turn.
    """

    threads: int
    blocks: int


Share: TypeAlias = Points | Sums | Turned | Tiles | Nest


def _product(strips: tuple[Strip, ...]) -> int:
    count = 1
    for strip in strips:
        count *= strip.tile
    return count
