"""Sizes of the threadblock tiles of a matrix product, and into how many parts its sum is split.

The choice minimises the time that :func:`tcgen.thresholds.time_model.tile_cycles` predicts.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dtypes import DType
from ...ir.thread_mapping import resident_blocks
from ...thresholds.gpu import GpuThresholds
from ...thresholds.time_model import (
    TILE_K,
    ProductSize,
    count_tiles,
    thread_tile_work,
    tile_cycles,
)

_TILE_BYTES = 80 * 1024  # A and B in shared memory: two blocks fit a multiprocessor from sm_80 on
_CANDIDATE_SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


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
    size: ProductSize, dtype: DType, thresholds: GpuThresholds, *, tensor_cores: bool
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


def _best_splits(
    shape: TileShape, size: ProductSize, dtype: DType, thresholds: GpuThresholds
) -> int:
    """The splits of least estimate of a product by tensor cores."""
    most = max(1, min(size.k // thresholds.split_k, thresholds.splits))
    splits = (p for p in _CANDIDATE_SPLITS if p <= most)
    return min(splits, key=lambda p: _cycles(Tiling(shape, p), size, dtype, thresholds))


def depth_and_stages(shape: TileShape, itemsize: int) -> tuple[int, int]:
    """The k of a tile and the number of its buffers: as large as shared memory allows."""
    for stages in (3, 2):
        if TILE_K * stages * (shape.m + shape.n + 8) * itemsize <= _TILE_BYTES:
            return TILE_K, stages
    return TILE_K // 2, 2


def _cycles(tiling: Tiling, size: ProductSize, dtype: DType, thresholds: GpuThresholds) -> float:
    shape, resident = tiling.shape, tiling.shape.resident(dtype)
    tile = (shape.m, shape.n)
    return tile_cycles(tile, tiling.splits, resident, size, dtype, thresholds.multiprocessors)


def _splits(shape: TileShape, size: ProductSize, thresholds: GpuThresholds) -> int:
    """Thread blocks that divide k if there are fewer tiles than multiprocessors."""
    idle = thresholds.multiprocessors // max(count_tiles((shape.m, shape.n), size), 1)
    return max(1, min(idle, size.k // thresholds.split_k, thresholds.splits))


def _thread_cost(shape: TileShape, size: ProductSize, thresholds: GpuThresholds) -> float:
    tile, threads = (shape.m, shape.n), (shape.threads_m, shape.threads_n)
    splits = _splits(shape, size, thresholds)
    return thread_tile_work(tile, threads, splits, size, thresholds.multiprocessors)
