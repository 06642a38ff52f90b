"""The loops of one assignment in C: order, blocking, threads, vectors, sums.

Before: ``Assign(out, expr, band, parallel, block)``. After: nested ``for`` loops, with a local sum
over the innermost variables if these are summed, and OpenMP threads for the outermost loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ...dtypes import COMPLEX128, FLOAT64
from ...hardware import CACHE_LINE_BYTES
from ...ir.expr import Access, leaves
from ...ir.loops import Assign, BandVar, LoopVar
from ...ir.reduction import Reduction
from ..printing import INDENT, PROD, indented, is_complex, literal, product
from ..scope import Scope, reduces
from .blocks import blocked_pair, collapsible, ends, over_blocks, start, within_block
from .counting import counted_value
from .expressions import bounds, expression, length
from .joined_loops import joined
from .packed_rows import packed_row
from .stores import combined, start_of, store
from .transposition import transposed_block, transposes

_LINE = CACHE_LINE_BYTES // FLOAT64.itemsize  # elements: the narrowest block
_OPENMP = {
    Reduction.SUM: "+",
    Reduction.PROD: "*",
    Reduction.MAX: "tc_by_max",  # of the template reductions.c
    Reduction.MIN: "tc_by_min",
}
# The first line of an iteration, with further loops in it: a kernel that is ended skips it.
STOPPED = "if (*tc_stop) continue;"


def loop_head(var: LoopVar | BandVar, scope: Scope) -> str:
    """``for (int64_t i = 0; i < N_o; ++i)``."""
    name = scope.variables[var.name]
    low, high = bounds(var, scope)
    step = f"{name} += {var.tile}" if isinstance(var, LoopVar) and var.tile else f"++{name}"
    return f"for (int64_t {name} = {low}; {name} < {high}; {step})"


def assign(stmt: Assign, scope: Scope, dtype: str, *, threads: bool) -> list[str]:
    """The lines of an assignment; ``threads``: it may start threads."""
    stmt, scope = joined(stmt, scope.walking(stmt.band))
    if threads and reduces(stmt):
        return _parallel_sum(stmt, scope, dtype)
    summed = _summed_tail(stmt)
    outer = stmt.band[: len(stmt.band) - summed]
    if summed and any(v.name in stmt.block for v in outer):
        return _block_of_sums(stmt, scope, dtype, threads=threads)
    heads = _heads(outer, stmt, scope)
    squares = transposes(stmt, scope)
    row = None if squares or summed else packed_row(outer, stmt, scope, dtype)
    if squares:
        heads = heads[:-2]  # the loops within a block are in the function
        body = transposed_block(stmt, scope)
    elif row is not None:
        heads, body = heads[:-1], row.lines
    elif summed:
        body = _point(stmt, scope, dtype)
    else:
        body = store(stmt, scope, _value(stmt, scope, dtype))
    if not heads:
        return ["{", *indented(body), "}"] if len(body) > 1 else body
    collapsed = 1
    # Threads do not divide the innermost loop, which is left to the vector unit.
    wanted = min(stmt.parallel, len(outer) if summed or len(outer) == 1 else len(outer) - 1)
    pragma = ""
    whole = bool(summed) or squares or row is not None  # the body has loops of its own
    vector = not whole and _independent(stmt, outer[-1])
    if threads and wanted:
        depth = _rectangular(outer, wanted)
        collapsed = _collapsed(outer, stmt, depth)
        kind = "parallel for simd" if vector and len(heads) == 1 else "parallel for"
        pragma = _pragma(stmt, scope, collapsed, kind)
    # Loops inside the asking one; those around a nested statement ask, too.
    inside = len(heads) - collapsed + whole
    asks = inside >= (1 if threads else 2)
    # Nothing stands between collapsed loops.
    declared: dict[int, list[str]] = {}
    for number, texts in row.declared.items() if row is not None else ():
        declared.setdefault(max(number, collapsed - 1), []).extend(texts)
    lines = list(body)
    for number, head in reversed(list(enumerate(heads))):
        asked = [STOPPED] if asks and number == collapsed - 1 else []
        lines = [f"{head} {{", *indented([*asked, *declared.get(number, ()), *lines]), "}"]
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


def _rectangular(outer: tuple[BandVar, ...], wanted: int) -> int:
    """How many of the outermost loops have bounds that do not depend on each other."""
    names: set[str] = set()
    for depth, var in enumerate(outer[:wanted]):
        if var.below in names:
            return depth
        names.add(var.name)
    return wanted


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


def _value(stmt: Assign, scope: Scope, dtype: str, *, coefficient: bool = True) -> str:
    """``coeff * orbit * expr`` of one point."""
    factors = []
    if coefficient and stmt.coeff not in (1, -1):
        factors.append(literal(stmt.coeff, dtype))
    factors += [_orbit(chain, scope) for chain in stmt.orbit]
    sign = "-" if coefficient and stmt.coeff == -1 else ""
    outer = PROD if factors or sign else 0
    text = "*".join([*factors, expression(stmt.expr, scope, dtype, outer + bool(factors))])
    return counted_value(stmt, scope, f"{sign}{text}")


def _orbit(chain: tuple[str, ...], scope: Scope) -> str:
    names = [scope.variables[name] for name in chain]
    if len(names) == 2:
        return f"({names[0]} == {names[1]} ? 1 : 2)"
    return f"tc_orbit({len(names)}, (const int64_t[]){{{', '.join(names)}}})"


def _sum_type(stmt: Assign, scope: Scope) -> str:
    """Type of sums: double for single precision (2e7 equal floats in one float are 9 % off)."""
    return (COMPLEX128 if is_complex(stmt.expr, scope) else FLOAT64).c_type


def _total(coeff: Fraction, dtype: str) -> str:
    if coeff == 1:
        return "tc_sum"
    return "-tc_sum" if coeff == -1 else f"{literal(coeff, dtype)}*tc_sum"


def _point(stmt: Assign, scope: Scope, dtype: str) -> list[str]:
    """A local sum over the innermost variables, then one store."""
    tail = stmt.band[len(stmt.band) - _summed_tail(stmt) :]
    return [
        *_local_sum(stmt, tail, scope, dtype),
        *store(stmt, scope, _total(stmt.coeff, dtype)),
    ]


def _local_sum(
    stmt: Assign,
    tail: tuple[BandVar, ...],
    scope: Scope,
    dtype: str,
    pragma: str = "",
    heads: Sequence[str] = (),
    divided: int = 0,
) -> list[str]:
    """Declare ``tc_sum`` and add up over ``tail``, by its own loops unless ``heads`` are given.

    The innermost loop is a vector reduction. A complex sum is two real ones, which every compiler
    can vectorise. Threads divide the first ``divided`` loops, the last of which asks whether the
    kernel is to end, if others are inside it.
    """
    value = _value(stmt, scope, dtype, coefficient=False)
    operation = _OPENMP[stmt.reduction]
    if is_complex(stmt.expr, scope) and stmt.reduction is Reduction.PROD:
        names = ""  # OpenMP has no reductions of complex numbers
        declare, finish = ["double complex tc_sum = 1.0;"], []
        body = [combined(stmt.reduction, "tc_sum", value)]
    elif is_complex(stmt.expr, scope):
        names = "tc_re, tc_im"
        declare = ["double tc_re = 0.0, tc_im = 0.0;"]
        body = [
            f"const double complex tc_term = {value};",
            "tc_re += creal(tc_term);",
            "tc_im += cimag(tc_term);",
        ]
        finish = ["const double complex tc_sum = CMPLX(tc_re, tc_im);"]
    else:
        names = "tc_sum"
        declare = [f"double tc_sum = {start_of(stmt.reduction, scope)};"]
        body = [combined(stmt.reduction, "tc_sum", value)]
        finish = []
    lines = body
    pieces = bool(pragma) and len(tail) == 1
    heads = [_piece_head(tail[0], scope)] if pieces else heads or _heads(tail, stmt, scope)
    for number, head in reversed(list(enumerate(heads))):
        asked = [STOPPED] if number == divided - 1 < len(heads) - 1 else []
        lines = [f"{head} {{", *indented([*asked, *lines]), "}"]
        if number == len(heads) - 1 and names:
            lines = [f"#pragma omp simd reduction({operation}:{names})", *lines]
    if pieces:  # threads divide the pieces; each piece is left to the vector unit
        low, high = bounds(tail[0], scope)
        piece = scope.thresholds.sum_piece
        loop = f"for (int64_t tc_piece = {low}; tc_piece < {high}; tc_piece += {piece})"
        lines = [f"{loop} {{", *indented([STOPPED, *lines]), "}"]
    return [*declare, *([pragma] if pragma else []), *lines, *finish]


def _nested(heads: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Lines inside of loops, the outermost first."""
    for head in reversed(heads):
        lines = [f"{head} {{", *indented(lines), "}"]
    return list(lines)


def _block_of_sums(stmt: Assign, scope: Scope, dtype: str, *, threads: bool) -> list[str]:
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
        part = [*_local_sum(stmt, tuple(summed), scope, dtype, heads=heads), f"{place} += tc_sum;"]
        lines = _nested(within, part)
    else:
        part = [f"{place} += {_value(stmt, scope, dtype, coefficient=False)};"]
        lines = _nested(within[:-1], ["#pragma omp simd", *_nested(within[-1:], part)])
    around = [loop_head(v, scope) for v in tail if v not in summed]
    lines = _nested([*around, *(_over_all_blocks(v, scope, side) for v in summed)], lines)
    stored = store(stmt, scope, _total(stmt.coeff, dtype))
    lines = [
        f"{kind} tc_sums[{'*'.join([side] * len(free))}] = {{0}};",
        *lines,
        *_nested(within, [f"const {kind} tc_sum = {place};", *stored]),
    ]
    heads = [_over_all_blocks(v, scope, width) if v in free else loop_head(v, scope) for v in outer]
    lines = _nested(heads, [*([STOPPED] if threads and heads else []), *lines])
    if not depth:
        return lines
    lines = [_pragma(stmt, scope, depth, "parallel for"), *lines]
    if not summed:
        return lines
    each = f"({length(free[0], scope)}/tc_threads + {_LINE - 1})/{_LINE}*{_LINE}"
    declared = f"const int64_t {width} = tc_min({side}, tc_max({_LINE}, {each}));"
    return ["{", *indented([declared, *lines]), "}"]


def _over_all_blocks(var: BandVar, scope: Scope, side: str) -> str:
    return over_blocks(var, bounds(var, scope)[1], scope, side)


def _piece_head(var: BandVar, scope: Scope) -> str:
    name, (_, high) = scope.variables[var.name], bounds(var, scope)
    stop = f"tc_min(tc_piece + {scope.thresholds.sum_piece}, {high})"
    return f"for (int64_t {name} = tc_piece; {name} < {stop}; ++{name})"


def _parallel_sum(stmt: Assign, scope: Scope, dtype: str) -> list[str]:
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
    opening = _pragma(stmt, scope, 1, "parallel")
    apart = f"(64/(int)sizeof({kind}))"  # each thread's part on a cache line of its own
    slot = f"tc_parts[{{}}*{apart}]"
    start = "0" if stmt.reduction is Reduction.SUM else start_of(stmt.reduction, scope)
    total = combined(stmt.reduction, "tc_sum", slot.format("tc_n"))
    return [
        "{",
        *indented(
            [
                f"{kind} tc_parts[tc_threads*{apart}];",
                f"for (int tc_n = 0; tc_n < tc_threads; ++tc_n) {slot.format('tc_n')} = {start};",
                opening,
                "{",
                *indented(_local_sum(stmt, stmt.band, scope, dtype, divide, divided=depth)),
                f"{INDENT}{slot.format('omp_get_thread_num()')} = tc_sum;",
                "}",
                f"{kind} tc_sum = {start};",
                f"for (int tc_n = 0; tc_n < tc_threads; ++tc_n) {total}",
                *store(stmt, scope, _total(stmt.coeff, dtype)),
            ]
        ),
        "}",
    ]
