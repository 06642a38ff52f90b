"""A launch of the library as plain data for the runtime, and its comment in the source."""

from __future__ import annotations

from ...ir.loop_analysis import contraction_of
from ...ir.loops import Gemm, Kernel
from ...ir.pretty.loops import format_product
from ...ir.thread_mapping import Library


def library_product(kernel: Kernel) -> tuple[Gemm, Library] | None:
    """The product of a kernel that is a call of a library, and which one; else None."""
    if not isinstance(kernel.mapping, Library):
        return None
    (first, *_) = kernel.body
    product = first if isinstance(first, Gemm) else contraction_of(first)
    return None if product is None else (product, kernel.mapping)


def library_comment(product: Gemm, library: Library) -> str:
    """``cuBLAS: r[i,a] += f[i,c] * t[c,a], m = i, n = a, k = c``."""
    groups = (("batch", product.batch), ("m", product.m), ("n", product.n), ("k", product.k))
    named = [f"{name} = {','.join(v.name for v in group)}" for name, group in groups if group]
    return ", ".join((f"{library}: {format_product(product)}", *named))
