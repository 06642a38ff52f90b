"""Sizes of the threadblock tiles of a matrix product, and into how many parts its sum is split.

The choice minimises an estimate of the time in cycles of a multiprocessor. Its constants are those
of an H100, for which each was fitted to the times of contractions of the TCCG suite in all shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dtypes import DType
from ...ir.thread_mapping import resident_blocks
from ...thresholds.gpu import GpuThresholds

TILE_K = 16  # points of k of a tile in shared memory
_TILE_BYTES = 80 * 1024  # of A and B: two blocks fit a multiprocessor from sm_80 on

_PRODUCTS = 128  # multiply-adds of the tensor cores in a cycle, of double precision, ...
_TF32_PRODUCTS = 512  # ... and of TF32: half of the data sheet's, not measured
_LOADED = 25.0  # bytes from the level-2 cache in a cycle, if all multiprocessors load
_MOVED = 12.5  # bytes to or from memory in a cycle, likewise
_STORED = 60.0  # bytes of a tile that its block stores in a cycle
_STEP = 200.0  # cycles of a step that a block without company waits, beside its products
_ALONE = 1.5  # factor of the time of products of a block without company
_BLOCK = 1500.0  # cycles in which a block starts and fills its tables
_LAUNCH = 8000.0  # cycles until a second pass has started
_OVERLAP = 0.9  # share of the shorter of computing and moving that the other hides
_PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # splits of a sum that are tried


@dataclass(frozen=True, slots=True)
class TileShape:
    """A tile of ``m`` x ``n`` elements and the threads of its block along both.

    The tensor cores have ``threads_m/8`` x ``threads_n/4`` warps, each a multiple of 16 x 8.
    """

    m: int
    n: int
    threads_m: int
    threads_n: int

    def resident(self, dtype: DType) -> int:
        """Thread blocks by tensor cores that run on a multiprocessor; 0: it lacks registers."""
        return resident_blocks(self.m // self.threads_m, self.n // self.threads_n, dtype)


@dataclass(frozen=True, slots=True)
class Tiling:
    """A tile, and the thread blocks that divide the sum of each."""

    shape: TileShape
    splits: int

    def __str__(self) -> str:
        parts = "" if self.splits == 1 else f", sums in {self.splits} parts"
        return f"tiles of {self.shape.m} x {self.shape.n}{parts}"


@dataclass(frozen=True, slots=True)
class Size:
    """Points of the groups of a product under the planning extents.

    ``products``: of real numbers in each of its products, on the average of its terms.
    """

    batch: int
    m: int
    n: int
    k: int
    products: float


_TENSOR_CORES = tuple(
    TileShape(*shape)
    for shape in (
        (128, 64, 16, 8),
        (64, 128, 8, 16),
        (64, 64, 16, 8),
        (96, 64, 16, 8),
        (64, 96, 16, 8),
        (80, 64, 8, 16),
        (64, 80, 32, 4),
        (80, 96, 8, 16),
        (96, 80, 16, 8),
        (128, 48, 32, 4),
        (48, 128, 8, 16),
        (64, 48, 16, 8),
        (128, 32, 32, 4),
        (32, 128, 8, 16),
        (64, 32, 16, 8),
        (32, 64, 16, 8),
        (32, 32, 16, 8),
        (128, 16, 32, 4),
        (16, 128, 8, 16),
        (64, 16, 32, 4),
        (16, 64, 8, 16),
        (32, 16, 16, 8),
        (16, 32, 8, 16),
        (16, 16, 8, 8),
    )
)
_THREADS = tuple(
    TileShape(*shape)
    for shape in (
        (128, 128, 16, 16),
        (128, 64, 16, 16),
        (64, 128, 16, 16),
        (64, 64, 16, 16),
        (32, 128, 8, 32),
        (128, 32, 32, 8),
        (64, 32, 16, 8),
        (32, 64, 8, 16),
        (32, 32, 8, 16),
        (16, 128, 4, 32),
        (16, 64, 4, 32),
        (64, 16, 16, 8),
        (16, 32, 8, 16),
        (32, 16, 16, 8),
        (16, 16, 8, 16),
    )
)
_WIDE_SUMS = 64 * 64  # elements of the largest tile of complex numbers, whose sums fit registers


def best_tilings(
    size: Size, dtype: DType, thresholds: GpuThresholds, *, tensor_cores: bool
) -> tuple[Tiling, ...]:
    """Every tile for a product, each with the splits of the sum; that of least estimate first."""
    if not tensor_cores:
        fitting = [s for s in _THREADS if dtype.parts == 1 or s.m * s.n <= _WIDE_SUMS]
        shapes = sorted(fitting, key=lambda s: _thread_cost(s, size, thresholds))
        return tuple(Tiling(s, _splits(s, size, thresholds)) for s in shapes)
    tilings = [
        Tiling(s, _best_splits(s, size, dtype, thresholds))
        for s in _TENSOR_CORES
        if s.resident(dtype) and depth_and_stages(s, dtype.itemsize)[0] == TILE_K
    ]
    return tuple(sorted(tilings, key=lambda t: _cycles(t, size, dtype, thresholds)))


def _best_splits(shape: TileShape, size: Size, dtype: DType, thresholds: GpuThresholds) -> int:
    """The splits of least estimate of a product by tensor cores."""
    most = max(1, min(size.k // thresholds.split_k, thresholds.splits))
    splits = (p for p in _PARTS if p <= most)
    return min(splits, key=lambda p: _cycles(Tiling(shape, p), size, dtype, thresholds))


def depth_and_stages(shape: TileShape, itemsize: int) -> tuple[int, int]:
    """The k of a tile and the number of its buffers: as large as shared memory allows."""
    for stages in (3, 2):
        if TILE_K * stages * (shape.m + shape.n + 8) * itemsize <= _TILE_BYTES:
            return TILE_K, stages
    return TILE_K // 2, 2


def _tiles(shape: TileShape, size: Size) -> int:
    return size.batch * -(-size.m // shape.m) * -(-size.n // shape.n)


def _cycles(tiling: Tiling, size: Size, dtype: DType, thresholds: GpuThresholds) -> float:
    """Estimate of the time of a product by tensor cores, which multiply real numbers alone."""
    shape, splits = tiling.shape, tiling.splits
    steps = -(-size.k // (TILE_K * splits))
    result = size.m * size.n
    moved = size.m * size.k + size.k * size.n + result * splits
    cycles = dtype.itemsize * size.batch / (_MOVED * thresholds.multiprocessors)
    memory = moved * cycles
    second_pass = _LAUNCH + result * (splits + 1) * cycles if splits > 1 else 0.0
    rate = _PRODUCTS if dtype.tensor_cores else _TF32_PRODUCTS
    products = shape.m * shape.n * TILE_K * size.products / rate
    loads = (shape.m + shape.n) * TILE_K * dtype.itemsize / _LOADED
    stores = shape.m * shape.n * dtype.itemsize * min(splits, 2) / _STORED

    def together(blocks: int) -> float:
        """Cycles of some blocks on one multiprocessor."""
        busy = max(blocks * products, blocks * loads, _STEP + _ALONE * products)
        return steps * busy + _BLOCK + blocks * stores

    resident = shape.resident(dtype)
    waves, rest = divmod(_tiles(shape, size) * splits, thresholds.multiprocessors * resident)
    computing = waves * together(resident)
    if rest:
        computing += together(-(-rest // thresholds.multiprocessors))
    return max(computing, memory) + (1 - _OVERLAP) * min(computing, memory) + second_pass


def _splits(shape: TileShape, size: Size, thresholds: GpuThresholds) -> int:
    """Thread blocks that divide k if there are fewer tiles than multiprocessors."""
    idle = thresholds.multiprocessors // max(_tiles(shape, size), 1)
    return max(1, min(idle, size.k // thresholds.split_k, thresholds.splits))


def _thread_cost(shape: TileShape, size: Size, thresholds: GpuThresholds) -> float:
    """Work of the busiest multiprocessor: multiply-adds, and reads of shared memory."""
    splits = _splits(shape, size, thresholds)
    waves = -(-_tiles(shape, size) * splits // thresholds.multiprocessors)
    reads = shape.threads_m / shape.m + shape.threads_n / shape.n  # for each multiply-add
    return waves * shape.m * shape.n * (-(-size.k // splits) * (1 + 2 * reads) + 4 * splits)
