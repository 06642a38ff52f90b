"""The variants of one matrix product: a call of the BLAS, and the packing schemes of the kernel.

All variants compute the same target from the same operands in place; nothing is copied. Which one
is fastest is predicted by ``kernel_scheme``, or measured by ``tcgen.compiler.timings``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...ir.expr import Prod
from ...ir.loop_analysis import band_of
from ...ir.loops import Buffer, Gemm, PackingScheme
from ...thresholds import CpuThresholds
from ..layout import as_product, elements, fastest
from ..statements import Statement
from .kernel_scheme import arranged, exchanged, packed_contraction


def variants_of(
    product: Gemm,
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
    thresholds: CpuThresholds,
) -> tuple[Gemm, ...]:
    """Every variant of a product, each once, the given one first.

    Args:
        product: any variant.
        buffers: of its operands, by name.
        extents: planning extents.
        thresholds: of the largest k of a staged tile, and of orders of groups.
    """
    statement = Statement(
        out=product.out,
        expr=Prod((product.a, product.b)),
        factors=(product.a, product.b),
        band=band_of(product),
        coeff=product.coeff,
        accumulate=product.accumulate,
        orbit=(),
        home=None,
        position=0,
    )
    plain = packed_contraction(statement, buffers)
    if plain is None:
        return (product,)  # only the BLAS can compute it
    schemes = [(plain, s) for s in _staged(plain, buffers, extents, thresholds)]
    schemes += [(p, s) for p in (plain, exchanged(plain)) for s in _packing(p, buffers)]
    variants = [arranged(p, s, buffers, extents, thresholds) for p, s in schemes]
    whole = as_product(statement, buffers, extents, thresholds)
    if whole is not None and not (whole.copy_a or whole.copy_b or whole.copy_out):
        batch, m, n, k = whole.batch, whole.m, whole.n, whole.k
        variants.append(replace(product, batch=batch, m=m, n=n, k=k, scheme=None))
    complete = (
        replace(variant, parallel=product.parallel, step=product.step) for variant in variants
    )
    return tuple(dict.fromkeys((product, *complete)))


def _packing(plain: Gemm, buffers: Mapping[str, Buffer]) -> Iterator[PackingScheme]:
    """Schemes without staging; complex operands are packed, and A unless m ends on its lanes."""
    yield PackingScheme()
    if buffers[plain.out.buffer].dtype == "complex128":
        return
    yield PackingScheme(pack_b=False)
    if fastest(plain.a, buffers[plain.a.buffer]) == plain.m[-1].name:
        yield PackingScheme(pack_a=False)


def _staged(
    plain: Gemm,
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
    thresholds: CpuThresholds,
) -> Iterator[PackingScheme]:
    """Schemes with staged tiles: real elements, and a k that a tile takes at once."""
    is_complex = buffers[plain.out.buffer].dtype == "complex128"
    if is_complex or elements(plain.k, extents) > thresholds.staged_k:
        return
    yield PackingScheme(pack_b=False, stage=True)
    lanes = fastest(plain.a, buffers[plain.a.buffer])
    if lanes in [v.name for v in plain.m[:-1]]:
        yield PackingScheme(pack_a=False, stage=True)
