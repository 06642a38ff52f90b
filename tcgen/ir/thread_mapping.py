"""Thread mappings: which blocks and threads of a GPU compute which points of a kernel.

The mapping does not change the meaning of a kernel, which its statements define. A kernel without a
mapping is for a CPU. All numbers here are constants of the generated code; extents are run-time
arguments, so the number of blocks is computed at each launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .expr import Access


@dataclass(frozen=True, slots=True)
class Strip:
    """Variables fused into one, the last the fastest, and cut into tiles of consecutive points.

    The points of (i, a) are numbered ``i*N_a + a``; tile t consists of the numbers t*tile to
    t*tile + tile - 1, without those beyond the last point.
    """

    variables: tuple[str, ...]
    tile: int


@dataclass(frozen=True, slots=True)
class Points:
    """One statement: each thread computes whole elements of the target, including their sums.

    ``threads`` is the number in a block; adjacent threads compute adjacent elements.
    """

    threads: int


@dataclass(frozen=True, slots=True)
class Sums:
    """One assignment: each element of the target is summed by ``splits`` blocks.

    The threads of a block take the points of the sum in turn and reduce them by warp shuffles. With
    more than one split each block writes its partial sum to scratch, and a second pass adds the
    partial sums in order, so the result does not depend on the order of the blocks.
    """

    threads: int
    splits: int


@dataclass(frozen=True, slots=True)
class Turned:
    """One assignment without sums, whose target and source have different unit-stride variables.

    A block reads a tile of the source into shared memory, contiguously, and writes the same
    elements to the target, contiguously.

    Attributes:
        source: the access that is transposed by way of the tile in shared memory.
        row: unit-stride variable of the source.
        column: unit-stride variable of the target.
        tile: elements on each side.
        threads: number in a block, a multiple of ``tile``.
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
        swapped: the expression's second factor has the variables of m.
        depth: the variables of k, which are summed; fused into one, the last the fastest.
        left_deep, right_deep: the factor's unit-stride variable is in k, so adjacent threads load
            along k; otherwise along m (n).
    """

    swapped: bool
    depth: tuple[str, ...]
    left_deep: bool
    right_deep: bool


@dataclass(frozen=True, slots=True)
class Tiles:
    """Assignments to the same elements, each a product of two factors: matrix products by tiles.

    A block computes an m x n tile of the target for one point of the batch. Tiles of both factors
    are staged in shared memory, ``deep`` values of k at a time, in ``stages`` buffers. Each thread
    accumulates its part of the tile in registers over all terms, and writes the target once, at the
    end. With more than one split the values of k are divided among blocks, and a second pass adds
    the partial sums in order.

    The statements after the terms are the *epilogue*: each thread applies them to its elements
    while they are in registers. A statement changes the element itself (``r /= d``), writes another
    array with the same variables in any order (``y[b,a] = r[a,b]/d[a,b]``), or adds to a scalar
    (``e += r*g``), which is reduced within a block by warp shuffles and over all blocks, in order,
    by a second pass. A target of place ``tile`` is never stored.

    Attributes:
        batch: variables of which a block takes one point.
        rows, columns: strips of m and of n; with the batch they are all variables of the target.
        terms: one for each of the first statements of the kernel; the others are the epilogue.
        high, wide: threads of a block along m and along n.
        deep: values of k in a stage.
        stages: number of buffers in shared memory.
        splits: number of blocks among which the values of k are divided.
        tensor_cores: float64 only. A warp multiplies 16 (m) x 8 (n) x 8 (k) at once; a block has
            high/8 x wide/4 warps, each with adjacent values of m and n.
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
        """Extent of a tile along m."""
        return _product(self.rows)

    @property
    def width(self) -> int:
        """Extent of a tile along n."""
        return _product(self.columns)


@dataclass(frozen=True, slots=True)
class Nest:
    """A loop nest, or several statements: a block runs it, and its threads divide each statement.

    Parallel loops of the nest are fused into one and distributed over the blocks. Private buffers
    belong to a block, whose threads synchronise after each statement.

    Attributes:
        threads: number in a block.
        blocks: largest number of blocks; each takes further points in turn.
    """

    threads: int
    blocks: int


Share: TypeAlias = Points | Sums | Turned | Tiles | Nest


def _product(strips: tuple[Strip, ...]) -> int:
    count = 1
    for strip in strips:
        count *= strip.tile
    return count
