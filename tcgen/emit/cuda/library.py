"""A launch of the library as plain data for the runtime, and its comment in the source."""

from __future__ import annotations

from ...artifact.product import MatrixEntry, ProductEntry, SubscriptEntry, VariableEntry
from ...ir.expr import Access
from ...ir.loop_analysis import contraction_of
from ...ir.loops import BandVar, Gemm, Kernel
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


def make_product(product: Gemm, library: Library) -> ProductEntry:
    """The entry of a product in the manifest."""
    return ProductEntry(
        batch=_variables(product.batch),
        m=_variables(product.m),
        n=_variables(product.n),
        k=_variables(product.k),
        out=_matrix(product.out),
        a=_matrix(product.a),
        b=_matrix(product.b),
        coefficient=str(product.coeff),
        accumulate=product.accumulate,
        library=library.name,
    )


def _variables(group: tuple[BandVar, ...]) -> tuple[VariableEntry, ...]:
    return tuple(VariableEntry(v.name, v.space.name, v.tile, v.base) for v in group)


def _matrix(access: Access) -> MatrixEntry:
    subscripts = (
        SubscriptEntry(s.variable, s.base, tuple(space.name for space in s.offset))
        for s in access.subscripts
    )
    return MatrixEntry(access.buffer, tuple(subscripts))
