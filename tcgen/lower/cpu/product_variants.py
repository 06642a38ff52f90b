"""The ways in which one matrix product can be computed: the BLAS, and the schemes of the kernel.

All of them compute the same target from the same operands where they lie; nothing is copied. Which
one is fast is the model's guess (``scheme``) or a matter of measurement, of which this page knows
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...ir.expr import Prod
from ...ir.loop_analysis import band_of
from ...ir.loops import Buffer, Gemm, Scheme
from ..layout import as_product, elements, fastest
from ..statements import Statement
from .kernel_scheme import DEEP, arranged, exchanged, packed_contraction


def ways_of(
    product: Gemm, buffers: Mapping[str, Buffer], extents: Mapping[str, int]
) -> tuple[Gemm, ...]:
    """Every way to compute a product, each once, the given one first.

    Args:
        product: of any way.
        buffers: of its operands, by name.
        extents: planning extents: staged tiles hold only so many summed points.
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
        return (product,)  # a matter of the BLAS alone
    turned = exchanged(plain)
    found = [product]
    schemes = [(plain, s) for s in _staged(plain, buffers, extents)]
    schemes += [(p, s) for p in (plain, turned) for s in _packing(p, buffers)]
    found += [arranged(p, s, buffers, extents) for p, s in schemes]
    whole = as_product(statement, buffers, extents)
    if whole is not None and not (whole.copy_a or whole.copy_b or whole.copy_out):
        batch, m, n, k = whole.batch, whole.m, whole.n, whole.k
        found.append(replace(product, batch=batch, m=m, n=n, k=k, scheme=None))
    return tuple(dict.fromkeys(replace(way, parallel=product.parallel) for way in found))


def _packing(plain: Gemm, buffers: Mapping[str, Buffer]) -> Iterator[Scheme]:
    """Ways to pack: complex elements are always packed, rows are where they have no stride 1."""
    yield Scheme()
    if buffers[plain.out.buffer].dtype == "complex128":
        return
    yield Scheme(pack_b=False)
    if fastest(plain.a, buffers[plain.a.buffer]) == plain.m[-1].name:
        yield Scheme(pack_a=False)


def _staged(
    plain: Gemm, buffers: Mapping[str, Buffer], extents: Mapping[str, int]
) -> Iterator[Scheme]:
    """Ways to turn tiles in a buffer, which holds what is summed at once; no complex ones."""
    complex_ones = buffers[plain.out.buffer].dtype == "complex128"
    if complex_ones or elements(plain.k, extents) > DEEP:
        return
    yield Scheme(pack_b=False, stage=True)
    lanes = fastest(plain.a, buffers[plain.a.buffer])
    if lanes in [v.name for v in plain.m[:-1]]:
        yield Scheme(pack_a=False, stage=True)
