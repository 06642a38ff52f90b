"""Thread mapping: the points of a kernel that each thread block and thread of a GPU computes.

The meaning of a kernel of level 4 is that of its statements; its thread mapping distributes their
points, or leaves that to a library. A kernel without one is for a CPU. All numbers here are
constants of the generated code (``threads``: those of a block); extents stay run-time arguments, so
the number of thread blocks is counted at each launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..dtypes import DType
from ..hardware import CUBLAS
from .expr import Access


@dataclass(frozen=True, slots=True)
class Strip:
    """Variables fused into one, the last the fastest, and cut into tiles of consecutive points.

    The points of (i, a) are numbered ``i*N_a + a``. Tile t has the numbers t*tile to
    t*tile + tile - 1, as far as there are points.
    """

    variables: tuple[str, ...]
    tile: int


@dataclass(frozen=True, slots=True)
class Points:
    """One statement: each thread computes whole elements of the target, sums included.

    Neighbouring threads compute neighbouring elements, or groups of ``lanes`` successive elements,
    which a thread loads and stores at once if arrays are aligned; the statement then walks all its
    arrays in step. One lane is right for any statement.
    """

    threads: int
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Sums:
    """One assignment: each element of the target is summed by ``splits`` blocks.

    The threads of a block take the points of the sum in turn and reduce by shuffles. With more
    than one split each block writes its part to scratch, and a second pass adds the parts in
    order, so that the result does not depend on the order of the blocks.

    ``along`` has summed variables. The lanes of a warp take successive points of all but the last,
    counted as one, each for a few successive values of the last one at once; what remains is
    counted once for a row of these. (): all points are numbered.
    """

    threads: int
    splits: int
    along: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transpose:
    """One assignment without sums, whose target and source have different unit-stride variables.

    A block reads a tile of the ``source`` into shared memory, in the order of the source, and
    writes the same elements in the order of the target. ``row`` is the unit-stride variable of the
    source, ``column`` that of the target. The tile has ``tile`` elements on each side, and the
    threads of a block are a multiple of that.
    """

    source: Access
    row: str
    column: str
    tile: int
    threads: int


@dataclass(frozen=True, slots=True)
class Term:
    """One matrix product ``out (+)= coeff * x * y`` of a tile.

    A is the factor with m, B the factor with n. Either may be conjugated.

    Attributes:
        swapped: A is the expression's second factor.
        k: summed variables, counted as one, the last the fastest.
        a_along_k, b_along_k: the unit-stride variable of the factor is in k, so that neighbouring
            threads load along k; else they load along m (or n).
        blocked: A has unit stride along the last variable of k, B along the one before. If the
            extents allow it, the points of k are counted in blocks of 4 x 4 of these two, so that
            both factors are loaded four neighbours at a time.
    """

    swapped: bool
    k: tuple[str, ...]
    a_along_k: bool
    b_along_k: bool
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class Tiles:
    """Matrix products with one target, by threadblock tiles.

    A block computes a tile of m x n elements of the target for one point of the batch. Tiles of A
    and B go through shared memory, ``tile_k`` points of k at a time, in ``stages`` buffers. Each
    thread keeps its part of the tile in registers over all terms, and the target is accessed once,
    at the end. With more than one split several blocks divide k, and a second pass adds their parts
    in order.

    The statements after the terms are the *epilogue*: they use the elements of a thread while these
    are in registers. A statement changes the element itself (``r /= d``), writes another array with
    the same variables in any order (``y[b,a] = r[a,b]/d[a,b]``), or adds to a number
    (``e += r*g``): the threads of a block reduce by shuffles, and a second pass adds the parts of
    all blocks in order. A target of place ``tile`` is never stored.

    Attributes:
        batch: variables of which a block takes one point.
        m, n: strips of the tile; together with the batch they have all variables of the target.
        terms: one for each of the first statements of the kernel; the others are the epilogue.
        threads_m, threads_n: threads of a block along m and n.
        tile_k: points of k at a time.
        stages: buffers in shared memory.
        splits: blocks that divide k (split-K).
        tensor_cores: products by tensor cores; for float32 only if terms may be rounded to TF32. A
            warp multiplies 16 x 8 x 8 points of m, n and k at once, those of complex numbers by
            four real products, or by two if a factor is real. A block has threads_m/8 x threads_n/4
            warps, each with neighbouring points of m and n.
    """

    batch: tuple[str, ...]
    m: tuple[Strip, ...]
    n: tuple[Strip, ...]
    terms: tuple[Term, ...]
    threads_m: int
    threads_n: int
    tile_k: int
    stages: int
    splits: int = 1
    tensor_cores: bool = False

    @property
    def tile_m(self) -> int:
        """Points of m in a tile."""
        return _product(self.m)

    @property
    def tile_n(self) -> int:
        """Points of n in a tile."""
        return _product(self.n)

    @property
    def per_thread(self) -> tuple[int, int]:
        """Points of m and of n that a thread keeps in registers."""
        return self.tile_m // self.threads_m, self.tile_n // self.threads_n


@dataclass(frozen=True, slots=True)
class Nest:
    """A nest of loops, or several statements: the threads of a block divide each statement.

    The points of parallel loops are counted as one and distributed over at most ``blocks`` blocks;
    each takes further points in turn. Private buffers belong to a block, and its threads
    synchronise after each statement.

    ``products`` has an entry for each statement inside the loops, in order. A block computes a
    statement with Tiles one tile after the other, all with one term and no splits; those without
    are divided by elements. () is the same as None for all.

    Arrays of ``summed`` are only added to, by iterations of different blocks. Each block adds to a
    copy of its own in scratch, and a second pass adds the copies in the order of the blocks.
    """

    threads: int
    blocks: int
    products: tuple[Tiles | None, ...] = ()
    summed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ThreadNest:
    """A nest of loops: each thread computes whole points of the parallel loops.

    Neighbouring threads compute neighbouring points. All private buffers are registers, each
    assignment has one element, and the loops inside are serial, so that threads need no barriers.
    """

    threads: int


@dataclass(frozen=True, slots=True)
class Library:
    """One product of two arrays, which a library computes, and no generated code.

    cuBLAS computes a matrix product without a scheme. Its batch is a loop of calls, of which one
    may compute many products whose operands are equally far apart (a strided batch). cuTENSOR
    computes an assignment, whose operands may have their axes in any order.
    """

    name: str = CUBLAS

    def __str__(self) -> str:
        return self.name


ThreadMapping: TypeAlias = Points | Sums | Transpose | Tiles | Nest | ThreadNest | Library


# Bytes of sums and fragments that leave enough of 168 registers (three blocks on a multiprocessor)
# and of 255 registers (two blocks) for everything else.
_THREE_BLOCKS_BYTES = 448
_TWO_BLOCKS_BYTES = 768
# Real and imaginary parts of A, those of B, and the negative imaginary parts of B, in bytes.
_COMPLEX_PARTS_BYTES = 8 * (2 * 4 + 3 * 2)


def resident_blocks(each_m: int, each_n: int, dtype: DType) -> int:
    """Thread blocks of 128 threads for which a multiprocessor has registers, by tensor cores.

    Two blocks hide each other's barriers and loads. A thread holds its sums, the fragments of A of
    8 points of k, those of B of 16, and those of one complex product by their parts. The result is
    3, 2, or 0 if the registers of two blocks would spill.
    """
    held = dtype.itemsize * (each_m * each_n + 2 * each_m + 2 * each_n)
    held += _COMPLEX_PARTS_BYTES if dtype.parts > 1 else 0
    return 3 if held <= _THREE_BLOCKS_BYTES else 2 if held <= _TWO_BLOCKS_BYTES else 0


def _product(strips: tuple[Strip, ...]) -> int:
    count = 1
    for strip in strips:
        count *= strip.tile
    return count
