"""Fusion of two launches into one kernel.

Before: kernels of one statement each. After, as far as the rules of thread mappings allow:

- products with the same m and n that add to the same elements use one tile;
- ``r += f`` before or after such a product is added to the tile before it is stored;
- ``y[b,a] = f(r[a,b], ...)`` and ``e += sum f(r[a,b], ...)`` after it become its epilogue;
- element-wise additions to the same elements become one statement, a sum of expressions;
- an element-wise statement whose target is read once, element by element, is inlined there.

:mod:`~tcgen.lower.gpu.launch_order` decides whether statements may be reordered for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from ...errors import VerifyError
from ...ir.expr import Expr, Prod, Quot, Sum, accesses_of, leaves, map_leaves, scaled
from ...ir.loop_analysis import band_of, is_total
from ...ir.loops import Assign, BandVar, Buffer, Gemm, Kernel, Stmt
from ...ir.reduction import Reduction
from ...ir.thread_mapping import Tiles
from ...ir.verify.thread_mapping import check_epilogue
from ...thresholds.gpu import GpuThresholds
from ..layout import GpuContext
from ..names import renamed
from .tiles import Groups, Tiling, groups_of, tiles_for


def as_assign(product: Gemm) -> Assign:
    """The assignment that computes a product."""
    factors = Prod((product.a, product.b))
    coeff, accumulate = product.coeff, product.accumulate
    return Assign(product.out, factors, coeff, accumulate, band_of(product), step=product.step)


def terms_of(kernel: Kernel) -> tuple[Assign, ...]:
    """The products at the beginning of a kernel that add to the same elements."""
    terms: list[Assign] = []
    for stmt in kernel.body:
        if not isinstance(stmt, Assign) or is_pointwise(stmt) or is_total(stmt):
            break
        if terms and stmt.out != terms[0].out:
            break
        terms.append(stmt)
    return tuple(terms)


def tile_of(kernel: Kernel, context: GpuContext, tiling: Tiling | None = None) -> Tiles | None:
    """The tiles of a kernel of products and their epilogue; None if tiles do not suit it.

    Without a tiling it is the one of least estimate.
    """
    terms = terms_of(kernel)
    epilogue = tuple(s for s in kernel.body[len(terms) :] if isinstance(s, Assign))
    if not terms or len(terms) + len(epilogue) != len(kernel.body):
        return None
    tiles = tiles_for(terms, context, tiling)
    if tiles is None or not epilogue:
        return tiles
    try:
        check_epilogue(terms, epilogue, tiles, context.buffers)
    except VerifyError:
        return None
    return tiles


def with_addition(one: Kernel, two: Kernel, context: GpuContext) -> Kernel | None:
    """Both kernels as one if the second adds to the elements that the first writes; else None."""
    first, second = one.body[0], two.body[0]
    if not isinstance(first, Assign) or not isinstance(second, Assign) or len(two.body) > 1:
        return None
    if not second.accumulate or second.out.buffer != first.out.buffer:
        return None
    if not first.reduction is second.reduction is Reduction.SUM:
        return None
    other = renamed(second, second.out, first.out, first.band)
    if other is None or reads(other, other.out.buffer):
        return None
    terms = terms_of(one)
    rest = one.body[len(terms) :]
    if any(isinstance(s, Assign) and reads(s, first.out.buffer) for s in rest):
        return None
    if is_pointwise(other):
        if terms:
            return _with_body(one, two, (*one.body, other), context)
        merged = _sum_of(first, other, context.thresholds)
        return None if merged is None else united(one, two, (merged,))
    if terms:
        if _tile_groups(first, context) != _tile_groups(other, context):
            return None
        return _with_body(one, two, (*terms, other, *rest), context)
    if not is_pointwise(first) or reads(first, first.out.buffer):
        return None
    # Without accumulation, summed variables have to be innermost.
    band = sorted(other.band, key=lambda v: v.name not in other.out.variables)
    head = replace(other, accumulate=first.accumulate, band=tuple(band))
    return _with_body(one, two, (head, replace(first, accumulate=True)), context)


def with_epilogue(one: Kernel, two: Kernel, context: GpuContext) -> Kernel | None:
    """Tiles of products with a statement that reads their elements as epilogue; else None."""
    terms = terms_of(one)
    (second, *more) = two.body
    if not terms or more or not isinstance(second, Assign):
        return None
    if second.reduction is not Reduction.SUM:
        return None
    target = terms[0].out
    found = [a for a in accesses_of(second.expr) if a.buffer == target.buffer]
    if not found or any(a != found[0] for a in found):
        return None
    other = renamed(second, found[0], target, terms[0].band)
    if other is None or not (is_pointwise(other) or is_total(other)):
        return None
    return _with_body(one, two, (*one.body, other), context)


def inlined(one: Kernel, two: Kernel, context: GpuContext) -> Kernel | None:
    """The second kernel with the first one's expression in place of its target; else None.

    The first kernel overwrites elements that no other kernel reads.
    """
    (first, *rest), (second, *more) = one.body, two.body
    if rest or more or not isinstance(first, Assign) or not isinstance(second, Assign):
        return None
    if not is_pointwise(first) or first.accumulate or reads(first, first.out.buffer):
        return None
    found = [a for a in accesses_of(second.expr) if a.buffer == first.out.buffer]
    if not found or any(a != found[0] for a in found) or second.orbit or first.orbit:
        return None
    other = renamed(first, first.out, found[0], second.band)
    if other is None or {v.name for v in other.band} != {v.name for v in second.band}:
        return None
    if not (is_pointwise(second) or is_total(second)) or reads(other, second.out.buffer):
        return None
    if context.buffers[first.out.buffer].dtype != _common(other, context.buffers):
        return None
    of_first, of_second = (len(tuple(leaves(s.expr))) for s in (first, second))
    if len(found) * of_first + of_second > context.thresholds.expression_leaves:
        return None
    value = scaled(other.coeff, other.expr)
    expr = map_leaves(second.expr, lambda leaf: value if leaf == found[0] else leaf)
    return united(one, two, (replace(second, expr=expr),))


def _with_body(
    one: Kernel, two: Kernel, body: tuple[Stmt, ...], context: GpuContext
) -> Kernel | None:
    """A kernel of tiles with that body, or None if tiles do not suit it."""
    kernel = united(one, two, body)
    return None if tile_of(kernel, context) is None else kernel


def united(one: Kernel, two: Kernel, body: tuple[Stmt, ...]) -> Kernel:
    """The first kernel with that body, and what else of both it needs."""
    variables = tuple(dict.fromkeys((*one.host_vars, *two.host_vars)))
    comment = tuple(dict.fromkeys((*one.comment, *two.comment)))
    return replace(one, comment=comment, host_vars=variables, body=body)


def is_pointwise(stmt: Assign) -> bool:
    """True if each point of the band writes an element of its own."""
    return bool(stmt.band) and {v.name for v in stmt.band} <= set(stmt.out.variables)


def reads(stmt: Assign, buffer: str) -> bool:
    """True if an expression reads an element of a buffer."""
    return any(a.buffer == buffer for a in accesses_of(stmt.expr))


def _common(stmt: Assign, buffers: Mapping[str, Buffer]) -> str:
    """Element type of an expression's value, as far as its arrays decide it."""
    dtypes = [buffers[a.buffer].dtype for a in accesses_of(stmt.expr)]
    return "complex128" if "complex128" in dtypes else next(iter(dtypes), "")


def _tile_groups(stmt: Assign, context: GpuContext) -> tuple[frozenset[BandVar], ...] | None:
    """Batch, m and n of a product; products with equal groups use one tile."""
    groups: Groups | None = groups_of(stmt, context)
    if groups is None:
        return None
    return tuple(frozenset(g) for g in (groups.batch, groups.m, groups.n))


def _sum_of(first: Assign, second: Assign, thresholds: GpuThresholds) -> Assign | None:
    """Two element-wise additions to the same elements as one, quotients first.

    A division is a function call on a GPU: values that are loaded before it would not stay in
    registers.
    """
    if not is_pointwise(first) or first.orbit or any(v.below is not None for v in first.band):
        return None
    if {v.name for v in first.band} != {v.name for v in second.band}:
        return None
    if reads(first, first.out.buffer):
        return None
    args = sorted((*_summands(first), *_summands(second)), key=lambda a: not _divides(a))
    if sum(len(tuple(leaves(a))) for a in args) > thresholds.expression_leaves:
        return None
    return replace(first, coeff=Fraction(1), expr=Sum(tuple(args)))


def _divides(expr: Expr) -> bool:
    match expr:
        case Quot():
            return True
        case Sum(args) | Prod(args):
            return any(map(_divides, args))
        case _:
            return False


def _summands(stmt: Assign) -> tuple[Expr, ...]:
    if stmt.coeff == 1 and isinstance(stmt.expr, Sum):
        return stmt.expr.args
    return (scaled(stmt.coeff, stmt.expr),)
