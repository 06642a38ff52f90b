"""Tiles of matrix products on a GPU: which variables are rows, columns and depth, and how large.

The target's stride-1 variable is a column, so that neighbouring threads store neighbouring
elements; each factor is loaded along its own stride-1 variable, whichever group that is in. Where
the columns' factor and the target have different stride-1 variables among the columns, both stand
in the tile with runs of their own. Tiles are chosen by a count of the work that full waves of
blocks do, and of the traffic with shared memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...ir.expr import Access, Prod, leaves
from ...ir.loops import Assign, BandVar, Buffer
from ...ir.tensor import BYTES_OF
from ...ir.thread_mapping import Strip, Term, Tiles
from ..layout import elements, memory_order, unit_stride

SHARED_BYTES = 47 * 1024  # of the factors' tiles and all tables; sums of a block take the rest
MULTIPROCESSORS = 132  # blocks of a full wave, at least
MOST_SPLITS = 32
SHORTEST_SPLIT = 128  # points of a sum that a split must have
RUN = 8  # elements that are neighbours in memory on each side of a transposed tile
LEAST = 4  # rows, columns and depth from which tiles pay
# Rows and columns of a tile, and how many threads lie along them.
SHAPES = (
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


@dataclass(frozen=True, slots=True)
class Groups:
    """The variables of a product by their part in it.

    ``swapped``: the second factor has the rows. Rows, columns and depth are in loop order.
    """

    batch: tuple[BandVar, ...]
    rows: tuple[BandVar, ...]
    columns: tuple[BandVar, ...]
    depth: tuple[BandVar, ...]
    swapped: bool


def groups_of(stmt: Assign, buffers: Mapping[str, Buffer]) -> Groups | None:
    """The groups of a statement that is a product of two factors, summed; else None.

    None too where no row or no column is there, over triangles, and of packed arrays, whose
    addresses have no part for each variable.
    """
    expr = stmt.expr
    if not isinstance(expr, Prod) or len(expr.args) != 2 or stmt.orbit:
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
    kept = [v for v in stmt.band if v.name in out.variables]
    only_x = [v for v in kept if v.name in x.variables and v.name not in y.variables]
    only_y = [v for v in kept if v.name in y.variables and v.name not in x.variables]
    # The columns' factor is the one that holds the last of the target's own variables.
    order = memory_order(out, held[0])
    last = max((order.index(v.name) for v in (*only_x, *only_y)), default=-1)
    swapped = any(order.index(v.name) == last for v in only_x)
    left, right = (y, x) if swapped else (x, y)
    rows, columns = (only_y, only_x) if swapped else (only_x, only_y)
    own = {v.name for v in (*rows, *columns)}
    depth = [v for v in stmt.band if v.name not in out.variables]
    if not rows or not columns or not depth:
        return None
    return Groups(
        tuple(v for v in kept if v.name not in own),
        _along(rows, left, buffers),
        _along(columns, out, buffers),
        _along(depth, max(left, right, key=lambda a: len(a.variables)), buffers),
        swapped,
    )


def tiles_for(
    stmts: tuple[Assign, ...],
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
    *,
    epilogue: bool = False,
) -> Tiles | None:
    """The share of statements that are products of two factors; None where it does not pay.

    All statements have the same target and, by name, the same rows and columns. An ``epilogue``
    takes tables of the values of their variables.
    """
    found = [groups_of(s, buffers) for s in stmts]
    groups = [g for g in found if g is not None]
    if len(groups) != len(stmts):
        return None
    first = groups[0]
    m, n = elements(first.rows, extents), elements(first.columns, extents)
    k = sum(elements(g.depth, extents) for g in groups)
    if min(m, n, k) < LEAST:
        return None
    item = BYTES_OF[buffers[stmts[0].out.buffer].dtype]
    batch = elements(first.batch, extents)
    fitting = [s for s in SHAPES if item < 16 or s[0] * s[1] <= 64 * 64]
    shape = min(fitting, key=lambda s: _cost(s, batch, m, n, k))
    high, wide, tall, broad = shape
    sides = (len(first.rows), len(first.columns)) if epilogue else (0, 0)
    deep, stages = _deep(high, wide, item, sides)
    real = all(
        buffers[a.buffer].dtype == "float64"
        for s in stmts
        for a in (s.out, *leaves(s.expr))
        if isinstance(a, Access)
    )
    fits = tall % 8 == 0 and broad % 4 == 0 and deep % 8 == 0
    pairs = high // tall % 2 == 0 and wide // broad % 2 == 0
    return Tiles(
        batch=tuple(v.name for v in first.batch),
        rows=(Strip(tuple(v.name for v in first.rows), high),),
        columns=_column_strips(stmts[0], first, wide, buffers, extents),
        terms=tuple(_term(s, g, buffers) for s, g in zip(stmts, groups, strict=True)),
        high=tall,
        wide=broad,
        deep=deep,
        stages=stages,
        splits=_splits(shape, batch, m, n, k),
        tensor_cores=real and fits and pairs,
    )


def _along(
    group: list[BandVar], access: Access, buffers: Mapping[str, Buffer]
) -> tuple[BandVar, ...]:
    """A group in the order of an operand's memory; what that lacks stands in front."""
    order = memory_order(access, buffers[access.buffer])
    return tuple(sorted(group, key=lambda v: order.index(v.name) if v.name in order else -1))


def _tiles(shape: tuple[int, int, int, int], batch: int, m: int, n: int) -> int:
    return batch * -(-m // shape[0]) * -(-n // shape[1])


def _splits(shape: tuple[int, int, int, int], batch: int, m: int, n: int, k: int) -> int:
    """Blocks that share a sum where there are fewer tiles than multiprocessors."""
    missing = MULTIPROCESSORS // max(_tiles(shape, batch, m, n), 1)
    return max(1, min(missing, k // SHORTEST_SPLIT, MOST_SPLITS))


def _cost(shape: tuple[int, int, int, int], batch: int, m: int, n: int, k: int) -> float:
    """Work of the multiprocessor that has most: multiply-adds, and reads of shared memory."""
    high, wide, tall, broad = shape
    splits = _splits(shape, batch, m, n, k)
    waves = -(-_tiles(shape, batch, m, n) * splits // MULTIPROCESSORS)
    reads = tall / high + broad / wide  # of shared memory for each multiply-add of a thread
    return waves * high * wide * (-(-k // splits) * (1 + 2 * reads) + 4 * splits)


def _deep(high: int, wide: int, item: int, named: tuple[int, int]) -> tuple[int, int]:
    """Points of the sum at a time, and buffers: as many as shared memory holds.

    Beside them stand tables of 8 bytes: two for each side, one for each of its named variables.
    """
    tables = 8 * (high * (2 + named[0]) + wide * (2 + named[1]))
    for deep, stages in ((16, 3), (16, 2), (8, 3), (8, 2)):
        if deep * stages * (high + wide + 8) * item + tables + 32 * deep <= SHARED_BYTES:
            return deep, stages
    return 4, 2


def _column_strips(
    stmt: Assign,
    groups: Groups,
    wide: int,
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
) -> tuple[Strip, ...]:
    """One strip, or two where the factor's stride-1 variable is another than the target's."""
    names = tuple(v.name for v in groups.columns)
    assert isinstance(stmt.expr, Prod)
    right = stmt.expr.args[0 if groups.swapped else 1]
    assert isinstance(right, Access)
    inner = unit_stride(right, buffers[right.buffer])
    if inner == names[-1] or inner not in names:
        return (Strip(names, wide),)
    run = RUN
    while run > elements(groups.columns[-1:], extents) and run > 1:
        run //= 2
    others = tuple(n for n in names[:-1] if n != inner)
    return (Strip((*others, inner), wide // run), Strip(names[-1:], run))


def _term(stmt: Assign, groups: Groups, buffers: Mapping[str, Buffer]) -> Term:
    def deep(access: Access) -> bool:
        inner = unit_stride(access, buffers[access.buffer])
        return any(v.name == inner for v in groups.depth)

    assert isinstance(stmt.expr, Prod)
    x, y = (a for a in stmt.expr.args if isinstance(a, Access))
    left, right = (y, x) if groups.swapped else (x, y)
    return Term(groups.swapped, tuple(v.name for v in groups.depth), deep(left), deep(right))
