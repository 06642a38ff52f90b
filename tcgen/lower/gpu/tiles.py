"""Threadblock tiles of matrix products on a GPU: the groups m, n and k, and the sizes of tiles.

The target's unit-stride variable is in n, so that neighbouring threads store neighbouring elements.
Each factor is loaded along its own unit-stride variable, whichever group that is in. If B and the
target have different unit-stride variables in n, a tile has a run of each. Tile sizes minimise an
estimate: the multiply-adds of full waves of thread blocks, and their reads of shared memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...dtypes import BY_NAME
from ...hardware import BLOCK_SUM_BYTES, SHARED_MEMORY_BYTES
from ...ir.expr import Access, Prod, leaves
from ...ir.loops import Assign, BandVar, Buffer
from ...ir.reduction import Reduction
from ...ir.thread_mapping import Strip, Term, Tiles
from ...thresholds.gpu import GpuThresholds
from ..layout import elements, in_order, memory_order, unit_stride

_FACTOR_BYTES = SHARED_MEMORY_BYTES - BLOCK_SUM_BYTES  # for tiles of A and B, and all tables
_RUN = 8  # elements that are neighbours in memory on each side of a transposed tile
# tile_m, tile_n, threads_m, threads_n
_SHAPES = (
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


_Shape = tuple[int, int, int, int]
_Size = tuple[int, int, int, int]  # batch, m, n, k


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


def groups_of(stmt: Assign, buffers: Mapping[str, Buffer]) -> Groups | None:
    """The groups of a statement that is a sum of products of two factors; else None.

    The result is None, too, if m, n or k is empty, over triangles, and for packed arrays, whose
    addresses are not sums of one term for each variable.
    """
    expr = stmt.expr
    if not isinstance(expr, Prod) or len(expr.args) != 2 or stmt.orbit:
        return None
    if stmt.reduction is not Reduction.SUM:
        return None
    x, y = expr.args
    if not isinstance(x, Access) or not isinstance(y, Access):
        return None
    out = stmt.out
    held = [buffers[a.buffer] for a in (out, x, y)]
    real = all(b.dtype != "complex128" for b in held)
    if (
        any(b.packed for b in held)
        or (not real and held[0].dtype != "complex128")
        or (real and len({b.dtype for b in held}) > 1)
        or out.buffer in (x.buffer, y.buffer)
        or any(v.below is not None for v in stmt.band)
    ):
        return None
    free = [v for v in stmt.band if v.name in out.variables]
    only_x = [v for v in free if v.name in x.variables and v.name not in y.variables]
    only_y = [v for v in free if v.name in y.variables and v.name not in x.variables]
    # B is the factor with the last of the target's variables that only one factor has.
    order = memory_order(out, held[0])
    last = max((order.index(v.name) for v in (*only_x, *only_y)), default=-1)
    swapped = any(order.index(v.name) == last for v in only_x)
    a, b = (y, x) if swapped else (x, y)
    m, n = (only_y, only_x) if swapped else (only_x, only_y)
    own = {v.name for v in (*m, *n)}
    k = [v for v in stmt.band if v.name not in out.variables]
    if not m or not n or not k:
        return None
    return Groups(
        tuple(v for v in free if v.name not in own),
        _ordered(m, a, buffers),
        _ordered(n, out, buffers),
        _ordered(k, max(a, b, key=lambda access: len(access.variables)), buffers),
        swapped,
    )


def tiles_for(
    stmts: tuple[Assign, ...],
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
    thresholds: GpuThresholds,
    *,
    epilogue: bool = False,
) -> Tiles | None:
    """The thread mapping of statements that are products of two factors; None if it does not pay.

    All statements have the same target and, by name, the same m and n. An ``epilogue`` needs tables
    of the values of these variables.
    """
    groups = [g for s in stmts if (g := groups_of(s, buffers)) is not None]
    if len(groups) != len(stmts):
        return None
    first = groups[0]
    m, n = elements(first.m, extents), elements(first.n, extents)
    k = sum(elements(g.k, extents) for g in groups)
    if min(m, n, k) < thresholds.least_mnk:
        return None
    itemsize = BY_NAME[buffers[stmts[0].out.buffer].dtype].itemsize
    size = (elements(first.batch, extents), m, n, k)
    fitting = [s for s in _SHAPES if itemsize < 16 or s[0] * s[1] <= 64 * 64]
    shape = min(fitting, key=lambda s: _cost(s, size, thresholds))
    tile_m, tile_n, threads_m, threads_n = shape
    tables = (len(first.m), len(first.n)) if epilogue else (0, 0)
    tile_k, stages = _tile_k(tile_m, tile_n, itemsize, tables)
    real = all(
        buffers[a.buffer].dtype == "float64"
        for s in stmts
        for a in (s.out, *leaves(s.expr))
        if isinstance(a, Access)
    )
    fits = threads_m % 8 == 0 and threads_n % 4 == 0 and tile_k % 8 == 0
    pairs = tile_m // threads_m % 2 == 0 and tile_n // threads_n % 2 == 0
    return Tiles(
        batch=tuple(v.name for v in first.batch),
        m=(Strip(tuple(v.name for v in first.m), tile_m),),
        n=_strips_of_n(stmts[0], first, tile_n, buffers, extents),
        terms=tuple(_term(s, g, buffers) for s, g in zip(stmts, groups, strict=True)),
        threads_m=threads_m,
        threads_n=threads_n,
        tile_k=tile_k,
        stages=stages,
        splits=_splits(shape, size, thresholds),
        tensor_cores=real and fits and pairs,
    )


def _ordered(
    group: list[BandVar], access: Access, buffers: Mapping[str, Buffer]
) -> tuple[BandVar, ...]:
    """A group in the memory order of an operand; variables without an axis there come first."""
    return in_order(tuple(group), memory_order(access, buffers[access.buffer]))


def _tiles(shape: _Shape, size: _Size) -> int:
    batch, m, n, _ = size
    return batch * -(-m // shape[0]) * -(-n // shape[1])


def _splits(shape: _Shape, size: _Size, thresholds: GpuThresholds) -> int:
    """Thread blocks that divide k if there are fewer tiles than multiprocessors."""
    idle = thresholds.multiprocessors // max(_tiles(shape, size), 1)
    return max(1, min(idle, size[-1] // thresholds.split_k, thresholds.splits))


def _cost(shape: _Shape, size: _Size, thresholds: GpuThresholds) -> float:
    """Work of the busiest multiprocessor: multiply-adds, and reads of shared memory."""
    tile_m, tile_n, threads_m, threads_n = shape
    splits, k = _splits(shape, size, thresholds), size[-1]
    waves = -(-_tiles(shape, size) * splits // thresholds.multiprocessors)
    reads = threads_m / tile_m + threads_n / tile_n  # for each multiply-add of a thread
    return waves * tile_m * tile_n * (-(-k // splits) * (1 + 2 * reads) + 4 * splits)


def _tile_k(tile_m: int, tile_n: int, itemsize: int, tables: tuple[int, int]) -> tuple[int, int]:
    """The k of a tile and the number of its buffers: as large as shared memory allows.

    Shared memory also holds tables of 8 bytes: two for each of m and n, and ``tables`` more.
    """
    table_bytes = 8 * (tile_m * (2 + tables[0]) + tile_n * (2 + tables[1]))
    for tile_k, stages in ((16, 3), (16, 2), (8, 3), (8, 2)):
        factors = tile_k * stages * (tile_m + tile_n + 8) * itemsize
        if factors + table_bytes + 32 * tile_k <= _FACTOR_BYTES:
            return tile_k, stages
    return 4, 2


def _strips_of_n(
    stmt: Assign,
    groups: Groups,
    tile_n: int,
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
) -> tuple[Strip, ...]:
    """One strip, or two if B's unit-stride variable is in n and is not that of the target."""
    names = tuple(v.name for v in groups.n)
    assert isinstance(stmt.expr, Prod)
    b = stmt.expr.args[0 if groups.swapped else 1]
    assert isinstance(b, Access)
    inner = unit_stride(b, buffers[b.buffer])
    if inner is None or inner == names[-1] or inner not in names:
        return (Strip(names, tile_n),)
    run = _RUN
    while run > elements(groups.n[-1:], extents) and run > 1:
        run //= 2
    others = tuple(n for n in names[:-1] if n != inner)
    return (Strip((*others, inner), tile_n // run), Strip(names[-1:], run))


def _term(stmt: Assign, groups: Groups, buffers: Mapping[str, Buffer]) -> Term:
    names = tuple(v.name for v in groups.k)
    assert isinstance(stmt.expr, Prod)
    x, y = (a for a in stmt.expr.args if isinstance(a, Access))
    a, b = (y, x) if groups.swapped else (x, y)
    a_along_k, b_along_k = (unit_stride(f, buffers[f.buffer]) in names for f in (a, b))
    return Term(groups.swapped, names, a_along_k, b_along_k)
