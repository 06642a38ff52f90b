"""The loops of one assignment in C: order, blocking, threads, vectors, sums.

Before: ``Assign(out, expr, band, parallel, block)``. After: nested ``for`` loops, with a local sum
over the innermost variables if these are summed, and OpenMP threads for the outermost loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtypes import COMPLEX128, FLOAT64
from ...hardware import CACHE_LINE_BYTES
from ...ir.expr import Access, leaves
from ...ir.loops import Assign, BandVar
from ...ir.reduction import Reduction
from ...resources import part
from ..printing import indented, is_complex, nest, product
from ..scope import Scope, reduces
from .expressions import LOOPS, bounds, length, loop_head
from .loop_transforms import (
    blocked_pair,
    collapsible,
    ends,
    joined,
    over_blocks,
    start,
    within_block,
)
from .packed_rows import packed_row
from .stores import combined, start_of, store, total, value_at_point
from .transposition import transposed_block, transposes

_LINE = CACHE_LINE_BYTES // FLOAT64.itemsize  # elements: the narrowest block
# Operations of OpenMP, and those of the template reductions.c.
OPENMP = {
    Reduction.SUM: "+",
    Reduction.PROD: "*",
    Reduction.MAX: "tc_by_max",
    Reduction.MIN: "tc_by_min",
}
# The first line of an iteration, with further loops in it: a kernel that is ended skips it.
STOPPED = "if (*tc_stop) continue;"


def assign(stmt: Assign, scope: Scope, *, threads: bool) -> list[str]:
    """The lines of an assignment; ``threads``: it may start threads."""
    stmt, scope = joined(stmt, scope.walking(stmt.band))
    if threads and reduces(stmt):
        return _parallel_sum(stmt, scope)
    summed = _summed_tail(stmt)
    outer = stmt.band[: len(stmt.band) - summed]
    if summed and any(v.name in stmt.block for v in outer):
        return _block_of_sums(stmt, scope, threads=threads)
    heads = _heads(outer, stmt, scope)
    squares = transposes(stmt, scope)
    row = None if squares or summed else packed_row(outer, stmt, scope)
    if squares:
        heads = heads[:-2]  # the function has the loops within a block
        body = transposed_block(stmt, scope)
    elif row is not None:
        heads, body = heads[:-1], row.lines
    elif summed:
        body = _point(stmt, scope)
    else:
        body = store(stmt, scope, value_at_point(stmt, scope))
    if not heads:
        return ["{", *indented(body), "}"] if len(body) > 1 else body
    collapsed = 1
    # Threads do not divide the innermost loop, which is left to the vector unit.
    divisible = min(stmt.parallel, len(outer) if summed or len(outer) == 1 else len(outer) - 1)
    pragma = ""
    whole = bool(summed) or squares or row is not None  # the body has loops of its own
    vector = not whole and _independent(stmt, outer[-1])
    if threads and divisible:
        depth = _rectangular(outer, divisible)
        collapsed = _collapsed(outer, stmt, depth)
        kind = "parallel for simd" if vector and len(heads) == 1 else "parallel for"
        pragma = _pragma(stmt, scope, collapsed, kind)
    # Loops inside the one that checks tc_stop. Loops around a nested statement also check it.
    inside = len(heads) - collapsed + whole
    checks = inside >= (1 if threads else 2)
    # Nothing stands between collapsed loops.
    declared: dict[int, list[str]] = {}
    for number, texts in row.declared.items() if row is not None else ():
        declared.setdefault(max(number, collapsed - 1), []).extend(texts)
    lines = list(body)
    for number, head in reversed(list(enumerate(heads))):
        check = [STOPPED] if checks and number == collapsed - 1 else []
        lines = nest(head, [*check, *declared.get(number, ()), *lines])
        if number == len(heads) - 1 and vector and not (number == 0 and pragma):
            lines = ["#pragma omp simd", *lines]
    return [pragma, *lines] if pragma else lines


def _heads(outer: tuple[BandVar, ...], stmt: Assign, scope: Scope) -> list[str]:
    """Heads of loops, outermost first; loops over blocks precede the first blocked variable."""
    blocked, side = blocked_pair(outer, stmt), str(scope.thresholds.block_side)
    heads: list[str] = []
    for var in outer:
        if var not in blocked:
            heads.append(loop_head(var, scope))
            continue
        if var == blocked[0]:
            stops = ends(blocked, scope, side)
            heads += [over_blocks(*v, scope, side) for v in zip(blocked, stops, strict=True)]
        heads.append(within_block(var, scope, side))
    return heads


def _rectangular(outer: tuple[BandVar, ...], divisible: int) -> int:
    """Number of outermost loops whose bounds do not depend on each other."""
    names: set[str] = set()
    for depth, var in enumerate(outer[:divisible]):
        if var.below in names:
            return depth
        names.add(var.name)
    return divisible


def _collapsed(outer: tuple[BandVar, ...], stmt: Assign, depth: int) -> int:
    """Number of collapsed loops: loops before a block, and the two loops over blocks."""
    blocked = blocked_pair(outer, stmt)
    if not blocked:
        return depth
    first = outer.index(blocked[0])
    return depth if depth <= first else first + collapsible(blocked, stmt)


def _pragma(stmt: Assign, scope: Scope, collapsed: int, kind: str) -> str:
    points = product(
        [
            f"(double){length(v, scope)}" if n == 0 else length(v, scope)
            for n, v in enumerate(stmt.band)
        ]
    )
    triangular = any(v.below is not None for v in stmt.band)
    parts = [f"#pragma omp {kind}"]
    if collapsed > 1:
        parts.append(f"collapse({collapsed})")
    if kind.startswith("parallel for"):
        parts.append("schedule(guided)" if triangular else "schedule(static)")
    parts.append(f"num_threads(tc_threads) if ({points} > TC_PARALLEL_POINTS)")
    return " ".join(parts)


def _summed_tail(stmt: Assign) -> int:
    """Number of innermost variables that the target does not hold."""
    held = stmt.out.variables
    count = 0
    for var in reversed(stmt.band):
        if var.name in held:
            break
        count += 1
    return count


def _independent(stmt: Assign, innermost: BandVar) -> bool:
    """True if no iteration of the innermost loop reads an element that another one writes."""
    return innermost.name in stmt.out.variables and all(
        leaf == stmt.out
        for leaf in leaves(stmt.expr)
        if isinstance(leaf, Access) and leaf.buffer == stmt.out.buffer
    )


def _sum_type(stmt: Assign, scope: Scope) -> str:
    """Type of sums: double for single precision (2e7 equal floats in one float are 9 % off)."""
    return (COMPLEX128 if is_complex(stmt.expr, scope) else FLOAT64).c_type


def _point(stmt: Assign, scope: Scope) -> list[str]:
    """A local sum over the innermost variables, then one store."""
    tail = stmt.band[len(stmt.band) - _summed_tail(stmt) :]
    return [
        *_local_sum(stmt, tail, scope),
        *store(stmt, scope, total(stmt.coeff, scope.dtype)),
    ]


def _local_sum(
    stmt: Assign,
    tail: tuple[BandVar, ...],
    scope: Scope,
    pragma: str = "",
    heads: Sequence[str] = (),
    divided: int = 0,
) -> list[str]:
    """Declare ``tc_sum`` and add up over ``tail``, by its own loops unless ``heads`` are given.

    The innermost loop is a vector reduction; a complex sum is two real ones, which every compiler
    can vectorise. Threads divide the first ``divided`` loops. The last of these checks ``tc_stop``
    if it has inner loops.
    """
    value = value_at_point(stmt, scope, coefficient=False)
    operation = OPENMP[stmt.reduction]
    if is_complex(stmt.expr, scope) and stmt.reduction is not Reduction.PROD:
        names = "tc_re, tc_im"
        body = part(LOOPS, "complex_term", value=value)
    else:
        # OpenMP has no reductions of complex numbers.
        names = "" if is_complex(stmt.expr, scope) else "tc_sum"
        body = [combined(stmt.reduction, "tc_sum", value)]
    lines = body
    pieces = bool(pragma) and len(tail) == 1
    heads = [_piece_head(tail[0], scope)] if pieces else heads or _heads(tail, stmt, scope)
    for number, head in reversed(list(enumerate(heads))):
        check = [STOPPED] if number == divided - 1 < len(heads) - 1 else []
        lines = nest(head, [*check, *lines])
        if number == len(heads) - 1 and names:
            lines = [f"#pragma omp simd reduction({operation}:{names})", *lines]
    if pieces:  # threads divide the pieces, and the vector unit each piece
        low, high = bounds(tail[0], scope)
        piece = scope.thresholds.sum_piece
        lines = part(LOOPS, "pieces", low=low, high=high, piece=piece, body=lines)
    lines = [pragma, *lines] if pragma else lines
    if names == "tc_re, tc_im":
        return part(LOOPS, "complex_sum", loops=lines)
    kind, first = (
        ("double", start_of(stmt.reduction, scope)) if names else ("double complex", "1.0")
    )
    return [f"{kind} tc_sum = {first};", *lines]


def _nested(heads: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Lines inside of loops, the outermost first."""
    for head in reversed(heads):
        lines = nest(head, lines)
    return list(lines)


def _block_of_sums(stmt: Assign, scope: Scope, *, threads: bool) -> list[str]:
    """Sums for a block of the target at a time, so that each cache line is loaded once.

    Before: ``y[a] = x[a,c,b]*z[b,c,a]   for a, c, b   block a,b``. After: for each block of a, an
    array of local sums, to which each c and each block of b adds.
    """
    tail = stmt.band[len(stmt.band) - _summed_tail(stmt) :]
    outer = stmt.band[: len(stmt.band) - len(tail)]
    free = [v for v in outer if v.name in stmt.block]
    summed = [v for v in tail if v.name in stmt.block]
    depth = _rectangular(outer, min(stmt.parallel, len(outer))) if threads else 0
    side = str(scope.thresholds.block_side)
    width = "tc_wide" if depth and summed else side
    names = [scope.variables[v.name] for v in free]
    points = [f"({n} - {start(v, scope)})" for n, v in zip(names, free, strict=True)]
    place = f"tc_sums[{f'*{side} + '.join(points)}]"
    kind, within = _sum_type(stmt, scope), [within_block(v, scope, width) for v in free]
    if summed:
        heads = [within_block(v, scope, side) for v in summed]
        added = [*_local_sum(stmt, tuple(summed), scope, heads=heads), f"{place} += tc_sum;"]
        lines = _nested(within, added)
    else:
        added = [f"{place} += {value_at_point(stmt, scope, coefficient=False)};"]
        lines = _nested(within[:-1], ["#pragma omp simd", *_nested(within[-1:], added)])
    around = [loop_head(v, scope) for v in tail if v not in summed]
    lines = _nested([*around, *(_over_all_blocks(v, scope, side) for v in summed)], lines)
    stored = store(stmt, scope, total(stmt.coeff, scope.dtype))
    lines = part(
        LOOPS,
        "block_of_sums",
        kind=kind,
        points="*".join([side] * len(free)),
        loops=lines,
        stores=_nested(within, part(LOOPS, "stored_sum", kind=kind, sum=place, store=stored)),
    )
    heads = [_over_all_blocks(v, scope, width) if v in free else loop_head(v, scope) for v in outer]
    lines = _nested(heads, [*([STOPPED] if threads and heads else []), *lines])
    if not depth:
        return lines
    lines = [_pragma(stmt, scope, depth, "parallel for"), *lines]
    if not summed:
        return lines
    return part(
        LOOPS,
        "wide_blocks",
        side=side,
        line=_LINE,
        over=_LINE - 1,
        length=length(free[0], scope),
        loops=lines,
    )


def _over_all_blocks(var: BandVar, scope: Scope, side: str) -> str:
    return over_blocks(var, bounds(var, scope)[1], scope, side)


def _piece_head(var: BandVar, scope: Scope) -> str:
    name, (_, high) = scope.variables[var.name], bounds(var, scope)
    stop = f"tc_min(tc_piece + {scope.thresholds.sum_piece}, {high})"
    return f"for (int64_t {name} = tc_piece; {name} < {stop}; ++{name})"


def _parallel_sum(stmt: Assign, scope: Scope) -> list[str]:
    """A parallel sum: each thread adds up a part, and parts are added in the order of threads."""
    kind = _sum_type(stmt, scope)
    depth = _rectangular(stmt.band, min(stmt.parallel, max(1, len(stmt.band) - 1)))
    if blocked := blocked_pair(stmt.band, stmt):
        first = stmt.band.index(blocked[0])
        before = _rectangular(stmt.band, first)
        # No loop within a block is divided.
        depth = before if before < first else first + 1 + (blocked[1].below is None)
    collapse = f" collapse({depth})" if depth > 1 else ""
    divide = f"#pragma omp for{collapse} schedule(static) nowait"
    # The part of each thread is on a cache line of its own.
    own = f"tc_parts[tc_n*(64/(int)sizeof({kind}))]"
    return part(
        LOOPS,
        "sum_of_threads",
        kind=kind,
        start="0" if stmt.reduction is Reduction.SUM else start_of(stmt.reduction, scope),
        pragma=_pragma(stmt, scope, 1, "parallel"),
        sum=_local_sum(stmt, stmt.band, scope, divide, divided=depth),
        add=combined(stmt.reduction, "tc_sum", own),
        store=store(stmt, scope, total(stmt.coeff, scope.dtype)),
    )
