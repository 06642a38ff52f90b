"""Threadblock tiles of matrix products on a GPU: the groups m, n and k, and the sizes of tiles.

The target's unit-stride variable is in n, so that neighbouring threads store neighbouring elements.
Each factor is loaded along its own unit-stride variable, whichever group that is in. If B and the
target have different unit-stride variables in n, a tile has a run of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from ...dtypes import BY_NAME, DType
from ...hardware import COPY_BYTES
from ...ir.expr import Access
from ...ir.factors import factors_in_order, two_factors
from ...ir.loops import Assign, BandVar, Buffer
from ...ir.reduction import Reduction
from ...ir.thread_mapping import Strip, Term, Tiles
from ...thresholds.gpu import GpuThresholds
from ...thresholds.time_model import ProductSize
from ..layout import elements, in_order, memory_order, unit_stride
from .tile_shapes import Tiling, best_tilings, depth_and_stages

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


def groups_of(stmt: Assign, buffers: Mapping[str, Buffer]) -> Groups | None:
    """The groups of a statement that is a sum of products of two elements of arrays; else None.

    The result is None, too, if m, n or k is empty, over triangles, and for packed arrays, whose
    addresses are not sums of one term for each variable.
    """
    factors = two_factors(stmt.expr)
    if factors is None or stmt.orbit or stmt.reduction is not Reduction.SUM:
        return None
    out, (x, y) = stmt.out, (f.access for f in factors)
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
        _order_of_k(k, a, b, buffers),
        swapped,
    )


def _order_of_k(
    k: list[BandVar], a: Access, b: Access, buffers: Mapping[str, Buffer]
) -> tuple[BandVar, ...]:
    """The order of k: the memory order of a factor with unit stride along it, of A if both have.

    If the unit strides of both are along different variables, that of A is the last, that of B the
    one before.
    """
    names = {v.name: v for v in k}
    along_a, along_b = (unit_stride(f, buffers[f.buffer]) for f in (a, b))
    if along_a in names:
        order = _ordered(k, a, buffers)
        if along_b in names and along_b != along_a:
            ends = (names[along_b], names[along_a])
            return (*(v for v in order if v not in ends), *ends)
        return order
    if along_b in names:
        return _ordered(k, b, buffers)
    return _ordered(k, max(a, b, key=lambda access: len(access.variables)), buffers)


def tiles_for(
    stmts: tuple[Assign, ...],
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
    thresholds: GpuThresholds,
    tiling: Tiling | None = None,
) -> Tiles | None:
    """The thread mapping of statements that are products of two factors; None if it does not pay.

    All statements have the same target and, by name, the same m and n. Without a tiling it is the
    one of least estimate.
    """
    groups = [g for s in stmts if (g := groups_of(s, buffers)) is not None]
    tiling = tiling or next(iter(tilings_of(stmts, buffers, extents, thresholds)), None)
    if tiling is None or len(groups) != len(stmts):
        return None
    shape = tiling.shape
    first, by_cores = groups[0], on_tensor_cores(stmts, buffers)
    tile_k, stages = depth_and_stages(shape, _dtype(stmts, buffers).itemsize)
    return Tiles(
        batch=tuple(v.name for v in first.batch),
        m=(Strip(tuple(v.name for v in first.m), shape.m),),
        n=_strips_of_n(stmts[0], first, shape.n, buffers, extents),
        terms=tuple(term_of(s, g, buffers) for s, g in zip(stmts, groups, strict=True)),
        threads_m=shape.threads_m,
        threads_n=shape.threads_n,
        tile_k=tile_k,
        stages=stages,
        splits=tiling.splits,
        tensor_cores=by_cores,
    )


def tilings_of(
    stmts: tuple[Assign, ...],
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
    thresholds: GpuThresholds,
) -> tuple[Tiling, ...]:
    """The tilings of such statements, that of least estimate first; none if tiles do not pay."""
    groups = [g for s in stmts if (g := groups_of(s, buffers)) is not None]
    if len(groups) != len(stmts):
        return ()
    first = groups[0]
    m, n = elements(first.m, extents), elements(first.n, extents)
    depths = [elements(g.k, extents) for g in groups]
    k = sum(depths)
    if min(m, n, k) < thresholds.least_mnk:
        return ()
    each = (real_products(s, buffers) for s in stmts)
    products = sum(depth * count for depth, count in zip(depths, each, strict=True)) / k
    size = ProductSize(elements(first.batch, extents), m, n, k, products)
    by_cores = on_tensor_cores(stmts, buffers)
    return best_tilings(size, _dtype(stmts, buffers), thresholds, tensor_cores=by_cores)


def real_products(stmt: Assign, buffers: Mapping[str, Buffer]) -> int:
    """Products of real numbers in one of two factors: 4 of complex numbers, 2 if one is real."""
    factors = two_factors(stmt.expr)
    assert factors is not None, "a contraction is a product of two elements"
    return prod(BY_NAME[buffers[f.access.buffer].dtype].parts for f in factors)


def _dtype(stmts: tuple[Assign, ...], buffers: Mapping[str, Buffer]) -> DType:
    return BY_NAME[buffers[stmts[0].out.buffer].dtype]


def on_tensor_cores(stmts: tuple[Assign, ...], buffers: Mapping[str, Buffer]) -> bool:
    """True if tensor cores multiply the elements of the target's type, or may round them."""
    return _dtype(stmts, buffers).tensor_cores or all(s.tf32 for s in stmts)


def _ordered(
    group: list[BandVar], access: Access, buffers: Mapping[str, Buffer]
) -> tuple[BandVar, ...]:
    """A group in the memory order of an operand; variables without an axis there come first."""
    return in_order(tuple(group), memory_order(access, buffers[access.buffer]))


def _strips_of_n(
    stmt: Assign,
    groups: Groups,
    tile_n: int,
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
) -> tuple[Strip, ...]:
    """One strip, or two if B's unit-stride variable is in n and is not that of the target."""
    names = tuple(v.name for v in groups.n)
    _, b = factors_in_order(stmt.expr, swapped=groups.swapped)
    inner = unit_stride(b.access, buffers[b.access.buffer])
    if inner is None or inner == names[-1] or inner not in names:
        return (Strip(names, tile_n),)
    run = _RUN
    while run > elements(groups.n[-1:], extents) and run > 1:
        run //= 2
    others = tuple(n for n in names[:-1] if n != inner)
    return (Strip((*others, inner), tile_n // run), Strip(names[-1:], run))


def term_of(stmt: Assign, groups: Groups, buffers: Mapping[str, Buffer]) -> Term:
    """How the tiles of a product read its factors."""
    names = tuple(v.name for v in groups.k)
    a, b = (f.access for f in factors_in_order(stmt.expr, swapped=groups.swapped))
    along_a, along_b = (unit_stride(f, buffers[f.buffer]) for f in (a, b))
    # Tensor cores take several neighbours at once.
    several = _dtype((stmt,), buffers).itemsize < COPY_BYTES and on_tensor_cores((stmt,), buffers)
    blocked = several and along_a != along_b and along_a in names and along_b in names
    return Term(groups.swapped, names, along_a in names, along_b in names, blocked)
