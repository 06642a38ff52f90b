"""The products of a tile: factors loaded ahead through shared memory, multiplied in registers.

Before: one assignment ``out[i,j,a,b] (+)= coeff * x[i,j,c] * y[c,a,b]`` of a share of Tiles. After:
the loop over its sum, some points at a time; copies to shared memory run beside the arithmetic.
"""

from __future__ import annotations

from ...dtypes import BY_NAME
from ...ir.expr import Access, Prod
from ...ir.loops import Assign, BandVar
from ...ir.thread_mapping import Term
from ..printing import indented
from .expressions import fixed_address, part_of_address, points, total, values
from .tile_addresses import TilePrinter, table_lines, zero


def term_lines(stmt: Assign, term: Term, printer: TilePrinter, *, scaled: bool) -> list[str]:
    """All products of one statement."""
    share, scope = printer.share, printer.scope
    left, right = _factors(stmt, term)
    rows = tuple(n for s in share.rows for n in s.variables)
    columns = tuple(n for s in share.columns for n in s.variables)
    depth = printer.variables(term.depth)
    moving = (*rows, *columns, *term.depth)
    lines = []
    for side, access in (("left", left), ("right", right)):
        name, dtype = scope.names[access.buffer], scope.buffers[access.buffer].dtype
        start = fixed_address(access, moving, scope)
        place = name if start == "0" else f"{name} + ({start})"
        if scope.buffers[access.buffer].place == "register":
            place = f"&{name}"
        lines.append(f"const {BY_NAME[dtype].cuda_type} *const tc_{side}_start = {place};")
    lines += table_lines("r", share.rows, printer, (("tc_left_row", left),), guarded=False)
    lines += table_lines("c", share.columns, printer, (("tc_right_column", right),), guarded=False)
    lines.append(f"const tc_int tc_depth = {points(depth, scope)};")
    steps = f"tc_tiles(tc_depth, {share.deep})"
    if share.splits > 1:
        lines += [
            f"const tc_int tc_each = tc_tiles({steps}, {share.splits});",
            "const tc_int tc_first = tc_block*tc_each;",
            f"const tc_int tc_steps = tc_min(tc_each, {steps} - tc_first);",
        ]
    else:
        lines.append(f"const tc_int tc_first = 0, tc_steps = {steps};")
    lines += [
        f"for (tc_int tc_load = -1; tc_load < tc_steps + {share.stages - 1}; ++tc_load) {{",
        f"    const tc_int tc_step = tc_load - {share.stages - 1};",
        f"    tc_cp_async_wait<{share.stages - 2}>();",
        "    __syncthreads();",
        *indented(_load(term, printer)),
        *indented(_deep_table(left, right, term, depth, printer)),
        "    if (tc_step >= 0) {",
        *indented(indented(_multiply(stmt, printer, scaled=scaled))),
        "    }",
        "}",
    ]
    return lines


def _factors(stmt: Assign, term: Term) -> tuple[Access, Access]:
    """The factor that holds the rows, and the one that holds the columns."""
    assert isinstance(stmt.expr, Prod)
    x, y = stmt.expr.args
    assert isinstance(x, Access)
    assert isinstance(y, Access)
    return (y, x) if term.swapped else (x, y)


def _load(term: Term, printer: TilePrinter) -> list[str]:
    share = printer.share
    whole, part = [], []
    for side, deep_first, length, table in (
        ("left", term.left_deep, share.height, "tc_left_row"),
        ("right", term.right_deep, share.width, "tc_right_column"),
    ):
        if deep_first:
            split = f"const int tc_k = tc_n%{share.deep}, tc_m = tc_n/{share.deep};"
        else:
            split = f"const int tc_m = tc_n%{length}, tc_k = tc_n/{length};"
        target = f"tc_{side}[tc_slot][tc_k][tc_m]"
        source = f"tc_{side}_start + {table}[tc_m] + tc_{side}_deep[tc_load&1][tc_k]"
        copy = f"tc_copy(&{target}, {source});"
        if printer.pairs and not deep_first:
            whole += _load_pairs(side, length, table, printer)
        else:
            whole += _copies(share.deep * length, [split, copy], printer)
        guarded = [
            split,
            f"if (tc_k < tc_rest) {copy}",
            f"else {target} = {zero(printer)};",
        ]
        part += [_thread_loop(share.deep * length, printer), *indented(guarded), "}"]
    return [
        "if (tc_load >= 0 && tc_load < tc_steps) {",
        f"    const int tc_slot = (int)(tc_load%{share.stages});",
        f"    const tc_int tc_rest = tc_depth - (tc_first + tc_load)*{share.deep};",
        f"    if (tc_rest >= {share.deep}) {{",
        *indented(indented(whole)),
        "    } else {",
        *indented(indented(part)),
        "    }",
        "}",
        "tc_cp_async_commit();",
    ]


def _thread_loop(count: int, printer: TilePrinter) -> str:
    return f"for (int tc_n = threadIdx.x; tc_n < {count}; tc_n += {printer.threads}) {{"


def _copies(count: int, copy: list[str], printer: TilePrinter) -> list[str]:
    """The threads share ``count`` copies; of as many for each the compiler makes straight code."""
    each, rest = divmod(count, printer.threads)
    head = [_thread_loop(count, printer)]
    if not rest:
        head = [
            f"for (int tc_turn = 0; tc_turn < {each}; ++tc_turn) {{",
            f"    const int tc_n = tc_turn*{printer.threads} + threadIdx.x;",
        ]
    return ["#pragma unroll 4", *head, *indented(copy), "}"]


def _load_pairs(side: str, length: int, table: str, printer: TilePrinter) -> list[str]:
    """Two neighbours of a row or column at a time: one copy where they are neighbours in memory."""
    half = length // 2
    copy = [
        f"const int tc_m = tc_n%{half}*2, tc_k = tc_n/{half};",
        f"tc_copy_pair(&tc_{side}[tc_slot][tc_k][tc_m], "
        f"tc_{side}_start + tc_{side}_deep[tc_load&1][tc_k], {table}[tc_m], {table}[tc_m + 1]);",
    ]
    return _copies(printer.share.deep * half, copy, printer)


def _deep_table(
    left: Access, right: Access, term: Term, depth: tuple[BandVar, ...], printer: TilePrinter
) -> list[str]:
    """Where the points of the sum of the next tile lie in each factor."""
    share, scope = printer.share, printer.scope
    number = f"(tc_first + tc_load + 1)*{share.deep} + tc_n"
    fill = [
        *values(depth, "tc_rest", scope, f"tc_min({number}, tc_depth - 1)"),
        f"tc_left_deep[(tc_load + 1)&1][tc_n] = {part_of_address(left, term.depth, scope)};",
        f"tc_right_deep[(tc_load + 1)&1][tc_n] = {part_of_address(right, term.depth, scope)};",
    ]
    if share.deep <= printer.threads:
        head = f"if (tc_load + 1 < tc_steps && threadIdx.x < {share.deep}) {{"
        return [head, "    const int tc_n = threadIdx.x;", *indented(fill), "}"]
    head = f"for (int tc_n = threadIdx.x; tc_n < {share.deep}; tc_n += {printer.threads}) {{"
    return ["if (tc_load + 1 < tc_steps) {", f"    {head}", *indented(indented(fill)), "    }", "}"]


def _multiply(stmt: Assign, printer: TilePrinter, *, scaled: bool) -> list[str]:
    share = printer.share
    if share.tensor_cores:
        return _multiply_by_warps(stmt, printer, scaled=scaled)
    high, wide = printer.per_thread
    own = f"tc_left[tc_slot][tc_k][{printer.row()}]"
    return [
        f"const int tc_slot = (int)(tc_step%{share.stages});",
        "#pragma unroll",
        f"for (int tc_k = 0; tc_k < {share.deep}; ++tc_k) {{",
        f"    {printer.kind} tc_a[{high}], tc_b[{wide}];",
        "    #pragma unroll",
        f"    for (int tc_r = 0; tc_r < {high}; ++tc_r)"
        f" tc_a[tc_r] = {total(stmt.coeff, printer.dtype, own) if scaled else own};",
        "    #pragma unroll",
        f"    for (int tc_c = 0; tc_c < {wide}; ++tc_c)"
        f" tc_b[tc_c] = tc_right[tc_slot][tc_k][{printer.column()}];",
        "    #pragma unroll",
        f"    for (int tc_r = 0; tc_r < {high}; ++tc_r) {{",
        "        #pragma unroll",
        f"        for (int tc_c = 0; tc_c < {wide}; ++tc_c)"
        " tc_sum[tc_r][tc_c] += tc_a[tc_r]*tc_b[tc_c];",
        "    }",
        "}",
    ]


def _multiply_by_warps(stmt: Assign, printer: TilePrinter, *, scaled: bool) -> list[str]:
    """A tile by the tensor cores: fragments from shared memory, 16 x 8 x 8 at a time."""
    share = printer.share
    high, wide = (n // 2 for n in printer.per_thread)
    place = "[tc_slot][tc_k + tc_lane%4 + tc_n/2*4][tc_y + tc_r*16 + tc_n%2*8]"
    left = f"tc_left{place}"
    right = "tc_right[tc_slot][tc_k + tc_lane%4 + tc_n*4][tc_side + tc_c*8 + tc_lane/4]"
    given = total(stmt.coeff, printer.dtype, left) if scaled else left
    return [
        f"const int tc_slot = (int)(tc_step%{share.stages});",
        "#pragma unroll",
        f"for (int tc_k = 0; tc_k < {share.deep}; tc_k += 8) {{",
        f"    double tc_a[{high}][4], tc_b[{wide}][2];",
        "    #pragma unroll",
        f"    for (int tc_r = 0; tc_r < {high}; ++tc_r) {{",
        "        #pragma unroll",
        "        for (int tc_n = 0; tc_n < 4; ++tc_n)",
        f"            tc_a[tc_r][tc_n] = {given};",
        "    }",
        "    #pragma unroll",
        f"    for (int tc_c = 0; tc_c < {wide}; ++tc_c) {{",
        "        #pragma unroll",
        "        for (int tc_n = 0; tc_n < 2; ++tc_n)",
        f"            tc_b[tc_c][tc_n] = {right};",
        "    }",
        "    #pragma unroll",
        f"    for (int tc_r = 0; tc_r < {high}; ++tc_r) {{",
        "        #pragma unroll",
        f"        for (int tc_c = 0; tc_c < {wide}; ++tc_c)",
        "            tc_product(tc_sum[2*tc_r][2*tc_c], tc_sum[2*tc_r][2*tc_c + 1],",
        "                tc_sum[2*tc_r + 1][2*tc_c], tc_sum[2*tc_r + 1][2*tc_c + 1],",
        "                tc_a[tc_r], tc_b[tc_c]);",
        "    }",
        "}",
    ]
