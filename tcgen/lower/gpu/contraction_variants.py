"""The variants of a contraction of a module on a GPU, and a program that times them.

Reads and makes kernels of level 4: by tiles of several shapes, or by a library. ``tiles`` and
``library`` predict the fastest one, and :mod:`tcgen.compiler.tuning` measures it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from ...hardware import CUTENSOR
from ...ir.expr import factors_in_order, two_factors
from ...ir.loop_analysis import contraction_of, gemm_obstacle
from ...ir.loops import (
    Assign,
    Gemm,
    Host,
    HostLoop,
    Kernel,
    Launch,
    Loop,
    LoopVar,
    Stmt,
)
from ...ir.thread_mapping import Library, Tiles
from ..cpu.product_variants import ProductBenchmark, product_benchmark
from ..layout import GpuContext
from .fuse_launches import as_assign, terms_of, tile_of
from .tiles import TileShape, Tiling, groups_of, tilings_of

Variant: TypeAlias = Tiling | Library

# Extents differ by their leading binary digits, or by the remainder of the widest load.
_LEADING = 4  # binary digits
_ALIGNED = 4  # elements


def variants_of(
    kernel: Kernel, context: GpuContext, libraries: tuple[Library, ...]
) -> tuple[Variant, ...]:
    """The variants of a kernel, that of its mapping first; none for other than contractions.

    ``libraries`` compute products without transpositions, if layouts allow them.
    """
    now = _variant(kernel)
    if now is None:
        return ()
    terms = terms_of(_in_tiles(kernel))
    tilings = tilings_of(terms, context)[: context.thresholds.benchmark_tilings]
    found: list[Variant] = [now, *tilings]
    if len(kernel.body) == 1:
        found += [x for x in libraries if _suits(x, kernel, context)]
    return tuple(dict.fromkeys(found))


def with_variant(kernel: Kernel, variant: Variant, context: GpuContext) -> Kernel:
    """The kernel, computed in another way."""
    tiled = _in_tiles(kernel)
    if isinstance(variant, Library):
        body = tiled.body if variant.name == CUTENSOR else (product_of(kernel, context),)
        return replace(kernel, body=body, mapping=variant)
    mapping = tile_of(tiled, context, variant)
    assert mapping is not None, f"kernel {kernel.name} has no tiles"
    return replace(tiled, mapping=mapping)


def product_of(kernel: Kernel, context: GpuContext) -> Gemm:
    """The contraction of a kernel, that with the longest sum if there are several."""
    (first, *_) = kernel.body
    if isinstance(first, Gemm):
        return first
    products = [_as_product(s, context) for s in terms_of(kernel)]
    return max(products, key=lambda p: context.elements(p.k))


def variant_benchmark(
    kernel: Kernel, variants: tuple[Variant, ...], context: GpuContext
) -> ProductBenchmark:
    """The program of the contraction of a kernel in several ways, without its other statements.

    Its extents are those of :func:`extent_class`, so that products of about the same size are
    measured once.
    """
    product = product_of(kernel, context)
    classes = {name: extent_class(extent) for name, extent in context.extents.items()}
    copies = product_benchmark((product,) * len(variants), replace(context, extents=classes))
    module = copies.module
    buffers = {b.name: b for b in module.buffers}
    held = replace(context, buffers=buffers, extents=dict(copies.extents))
    (whole,) = module.kernels
    body, around = _inside(whole.body, len(variants))
    kernels: list[Kernel] = []
    host: list[Host] = []
    for number, (loop, variant) in enumerate(zip(body, variants, strict=True)):
        assert isinstance(loop, Loop)
        own = Kernel(f"variant{number}", (str(variant),), around, loop.body)
        kernels.append(with_variant(own, variant, held))
        host.append(HostLoop(loop.var, (Launch(own.name),)))
    for var in reversed(around):
        host = [HostLoop(var, tuple(host))]
    bound = replace(module, kernels=tuple(kernels), host_volatile=tuple(host))
    return replace(copies, module=bound, variants=tuple(map(str, variants)), target="cuda")


def extent_class(extent: int) -> int:
    """The extent for all with the same first binary digits and the same alignment.

    Example:
        >>> extent_class(30), extent_class(200), extent_class(207), extent_class(601)
        (30, 192, 195, 577)
    """
    rest = extent % _ALIGNED
    coarse = extent - rest
    lost = max(0, coarse.bit_length() - _LEADING)
    return (coarse >> lost << lost) + rest


def _variant(kernel: Kernel) -> Variant | None:
    """The variant of the kernel's mapping; None for other than tiles and libraries."""
    match kernel.mapping:
        case Library() as library:
            return library
        case Tiles(threads_m=threads_m, threads_n=threads_n, splits=splits) as tiles:
            return Tiling(TileShape(tiles.tile_m, tiles.tile_n, threads_m, threads_n), splits)
        case _:
            return None


def _in_tiles(kernel: Kernel) -> Kernel:
    """The kernel with an assignment in place of the product of a library."""
    (first, *_) = kernel.body
    if not isinstance(first, Gemm):
        return kernel
    return replace(kernel, body=(as_assign(first),))


def _as_product(stmt: Assign, context: GpuContext) -> Gemm:
    """The product of a term; factors are not conjugated, which changes no time."""
    groups = groups_of(stmt, context)
    assert groups is not None, "the terms of tiles are products"
    a, b = (f.access for f in factors_in_order(stmt.expr, swapped=groups.swapped))
    bands = (groups.batch, groups.m, groups.n, groups.k)
    return Gemm(stmt.out, a, b, *bands, stmt.coeff, stmt.accumulate, step=stmt.step)


def _suits(library: Library, kernel: Kernel, context: GpuContext) -> bool:
    """True for a product whose operands the library takes in their layouts, as they are."""
    (stmt,) = _in_tiles(kernel).body
    assert isinstance(stmt, Assign)
    factors = two_factors(stmt.expr)
    if factors is None or any(f.conjugated for f in factors):
        return False
    product = contraction_of(stmt) if library.name == CUTENSOR else _as_product(stmt, context)
    if product is None:
        return False
    operands = (
        (product.out, (product.m, product.n)),
        (product.a, (product.m, product.k)),
        (product.b, (product.k, product.n)),
    )
    held = [context.buffer(x) for x, _ in operands]
    if len({b.dtype for b in held}) > 1 or any(b.place not in ("caller", "arena") for b in held):
        return False
    return library.name == CUTENSOR or all(
        gemm_obstacle(x, context.buffer(x), groups) is None for x, groups in operands
    )


def _inside(body: tuple[Stmt, ...], count: int) -> tuple[tuple[Stmt, ...], tuple[LoopVar, ...]]:
    """The loops of the variants, and the variables of the loops around them."""
    around: list[LoopVar] = []
    while len(body) != count:
        (loop,) = body
        assert isinstance(loop, Loop)
        around.append(loop.var)
        body = loop.body
    return body, tuple(around)
