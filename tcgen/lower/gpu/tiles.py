"""Threadblock tiles of matrix products on a GPU: the groups m, n and k, and the sizes of tiles.

The target's unit-stride variable is in n, so that neighbouring threads store neighbouring elements.
Each factor is loaded along its own unit-stride variable, in any group. If B and the target have
different unit-stride variables in n, a tile has a run of each. The size of a tile, and the number
of parts of its sum, minimise the time that :func:`tcgen.thresholds.time_model.tile_cycles`
predicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from ...dtypes import BY_NAME, DType
from ...hardware import COPY_BYTES
from ...ir.chains import chains, is_strict, numbered, separable
from ...ir.expr import Access, factors_in_order, two_factors
from ...ir.loops import Assign, BandVar
from ...ir.reduction import Reduction
from ...ir.thread_mapping import Strip, Term, Tiles, resident_blocks
from ...simplices import stored_values
from ...thresholds.gpu import GpuThresholds
from ...thresholds.time_model import (
    TILE_K,
    ProductSize,
    count_tiles,
    thread_tile_work,
    tile_cycles,
)
from ..layout import GpuContext

_TILE_BYTES = 80 * 1024  # A and B in shared memory: two blocks fit a multiprocessor from sm_80 on
# The same of a product in a nest: with private buffers of 46 KiB it fits GPUs from sm_80 on.
_NEST_TILE_BYTES = 52 * 1024
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


_RUN = 8  # elements that are neighbours in memory on each side of a transposed tile


@dataclass(frozen=True, slots=True)
class Groups:
    """The variables of a product by their role, in loop order.

    ``swapped``: A, the factor with m, is the second one.
    """

    batch: tuple[BandVar, ...]
    m: tuple[BandVar, ...]
    n: tuple[BandVar, ...]
    k: tuple[BandVar, ...]
    swapped: bool


def groups_of(stmt: Assign, context: GpuContext) -> Groups | None:
    """The groups of a statement that is a sum of products of two elements of arrays; else None.

    The result is also None if m, n or k is empty, and for triangles and packed axes that are not
    whole in one of the groups: their addresses are not sums of one term for each group.
    """
    factors = two_factors(stmt.expr)
    if factors is None or stmt.orbit or stmt.reduction is not Reduction.SUM:
        return None
    out, (x, y) = stmt.out, (f.access for f in factors)
    held = [context.buffer(a) for a in (out, x, y)]
    real = all(b.dtype != "complex128" for b in held)
    if (
        (not real and held[0].dtype != "complex128")
        or (real and len({b.dtype for b in held}) > 1)
        or out.buffer in (x.buffer, y.buffer)
    ):
        return None
    free = [v for v in stmt.band if v.name in out.variables]
    only_x = [v for v in free if v.name in x.variables and v.name not in y.variables]
    only_y = [v for v in free if v.name in y.variables and v.name not in x.variables]
    # B is the factor with the last of the target's variables that only one factor has.
    order = context.memory_order(out)
    last = max((order.index(v.name) for v in (*only_x, *only_y)), default=-1)
    swapped = any(order.index(v.name) == last for v in only_x)
    a, b = (y, x) if swapped else (x, y)
    m, n = (only_y, only_x) if swapped else (only_x, only_y)
    own = {v.name for v in (*m, *n)}
    k = [v for v in stmt.band if v.name not in out.variables]
    if not m or not n or not k:
        return None
    batch, rows, columns, sums = (
        _in_chains(group)
        for group in (
            [v for v in free if v.name not in own],
            context.ordered(tuple(m), a),
            context.ordered(tuple(n), out),
            _order_of_k(k, a, b, context),
        )
    )
    groups = (batch, rows, columns, sums)
    divided = all(map(numbered, groups)) and all(
        separable(access, buffer, groups, written=access is out)
        for access, buffer in zip((out, x, y), held, strict=True)
    )
    return Groups(batch, rows, columns, sums, swapped) if divided else None


def _in_chains(group: Sequence[BandVar]) -> tuple[BandVar, ...]:
    """A group in which the variables of a triangle are neighbours, at the place of the last one."""
    below = {v.below: v for v in group if v.below is not None}
    inner = {v.name for v in below.values()}
    found: list[tuple[int, list[BandVar]]] = []
    for var in group:
        if var.name in inner and any(v.name == var.below for v in group):
            continue
        chain = [var]
        while chain[-1].name in below:
            chain.append(below[chain[-1].name])
        found.append((max(map(group.index, chain)), chain))
    return tuple(v for _, chain in sorted(found, key=lambda c: c[0]) for v in chain)


def _order_of_k(k: list[BandVar], a: Access, b: Access, context: GpuContext) -> tuple[BandVar, ...]:
    """The order of k: the memory order of a factor with unit stride along it, of A if both have.

    If the two unit strides are along different variables, A's is the last and B's the one before.
    """
    names = {v.name: v for v in k}
    along_a, along_b = (context.fastest(f) for f in (a, b))
    if along_a in names:
        order = context.ordered(tuple(k), a)
        if along_b in names and along_b != along_a:
            ends = (names[along_b], names[along_a])
            return (*(v for v in order if v not in ends), *ends)
        return order
    if along_b in names:
        return context.ordered(tuple(k), b)
    return context.ordered(tuple(k), max(a, b, key=lambda access: len(access.variables)))


def tiles_for(
    stmts: tuple[Assign, ...], context: GpuContext, tiling: Tiling | None = None
) -> Tiles | None:
    """The thread mapping of statements that are products of two factors; None if it does not pay.

    All have the same target and, by name, the same m and n; the default tiling has least estimate.
    """
    groups = [g for s in stmts if (g := groups_of(s, context)) is not None]
    tiling = tiling or next(iter(tilings_of(stmts, context)), None)
    if tiling is None or len(groups) != len(stmts):
        return None
    shape = tiling.shape
    first, by_cores = groups[0], on_tensor_cores(stmts, context)
    tile_k, stages = depth_and_stages(shape, _dtype(stmts, context).itemsize)
    return Tiles(
        batch=tuple(v.name for v in first.batch),
        m=(Strip(tuple(v.name for v in first.m), shape.m),),
        n=_strips_of_n(stmts[0], first, shape.n, context),
        terms=tuple(term_of(s, g, context) for s, g in zip(stmts, groups, strict=True)),
        threads_m=shape.threads_m,
        threads_n=shape.threads_n,
        tile_k=tile_k,
        stages=stages,
        splits=tiling.splits,
        tensor_cores=by_cores,
    )


def tiles_of_block(stmt: Assign, threads: int, context: GpuContext) -> Tiles | None:
    """The tiles of a product that one block of a nest computes; None if they do not pay.

    The tile has least estimate for a GPU of one multiprocessor.
    """
    alone = replace(context.thresholds, multiprocessors=1, splits=1)
    itemsize = _dtype((stmt,), context).itemsize
    for tiling in tilings_of((stmt,), replace(context, thresholds=alone)):
        shape = tiling.shape
        tile_k, stages = depth_and_stages(shape, itemsize)
        held = tile_k * stages * (shape.m + shape.n + 8) * itemsize
        if shape.threads_m * shape.threads_n == threads and held <= _NEST_TILE_BYTES:
            return tiles_for((stmt,), context, tiling)
    return None


def tilings_of(stmts: tuple[Assign, ...], context: GpuContext) -> tuple[Tiling, ...]:
    """The tilings of these statements, that of least estimate first; none if tiles do not pay."""
    thresholds = context.thresholds
    groups = [g for s in stmts if (g := groups_of(s, context)) is not None]
    if len(groups) != len(stmts):
        return ()
    first = groups[0]
    batch, m, n = (points_of_chains(g, context) for g in (first.batch, first.m, first.n))
    depths = [points_of_chains(g.k, context) for g in groups]
    k = sum(depths)
    if min(m, n, k) < thresholds.least_mnk:
        return ()
    each = (real_products(s, context) for s in stmts)
    products = sum(depth * count for depth, count in zip(depths, each, strict=True)) / k
    size = ProductSize(batch, m, n, k, products)
    by_cores = on_tensor_cores(stmts, context)
    return best_tilings(size, _dtype(stmts, context), thresholds, tensor_cores=by_cores)


def points_of_chains(group: Sequence[BandVar], context: GpuContext) -> int:
    """Points of a group of variables, of a triangle in it those of its distinct values."""
    return prod(
        context.elements(chain)
        if len(chain) == 1
        else stored_values(context.elements(chain[:1]), len(chain), is_strict(chain[-1]))
        for chain in chains(group)
    )


def real_products(stmt: Assign, context: GpuContext) -> int:
    """Products of real numbers in one of two factors: 4 of complex numbers, 2 if one is real."""
    factors = two_factors(stmt.expr)
    assert factors is not None, "a contraction is a product of two elements"
    return prod(BY_NAME[context.buffer(f.access).dtype].parts for f in factors)


def _dtype(stmts: tuple[Assign, ...], context: GpuContext) -> DType:
    return BY_NAME[context.buffer(stmts[0].out).dtype]


def on_tensor_cores(stmts: tuple[Assign, ...], context: GpuContext) -> bool:
    """True if tensor cores multiply the elements of the target's type, or may round them."""
    return _dtype(stmts, context).tensor_cores or all(s.tf32 for s in stmts)


def _strips_of_n(
    stmt: Assign, groups: Groups, tile_n: int, context: GpuContext
) -> tuple[Strip, ...]:
    """One strip, or two if B's unit-stride variable is in n and is not that of the target."""
    names = tuple(v.name for v in groups.n)
    _, b = factors_in_order(stmt.expr, swapped=groups.swapped)
    inner = context.unit_stride(b.access)
    if inner is None or inner == names[-1] or inner not in names or _bounded(groups.n):
        return (Strip(names, tile_n),)
    run = _RUN
    while run > context.elements(groups.n[-1:]) and run > 1:
        run //= 2
    others = tuple(n for n in names[:-1] if n != inner)
    return (Strip((*others, inner), tile_n // run), Strip(names[-1:], run))


def _bounded(group: Sequence[BandVar]) -> bool:
    return any(v.below is not None for v in group)


def term_of(stmt: Assign, groups: Groups, context: GpuContext) -> Term:
    """The reads of a product's factors by its tiles."""
    names = tuple(v.name for v in groups.k)
    a, b = (f.access for f in factors_in_order(stmt.expr, swapped=groups.swapped))
    along_a, along_b = (context.fastest(f) for f in (a, b))
    # Tensor cores take several neighbours at once.
    several = _dtype((stmt,), context).itemsize < COPY_BYTES and on_tensor_cores((stmt,), context)
    several = several and not _bounded(groups.k)
    blocked = several and along_a != along_b and along_a in names and along_b in names
    return Term(groups.swapped, names, along_a in names, along_b in names, blocked)
