"""Kernels that multiply by tiles: operands through shared memory, the target's tile in registers.

Before: assignments ``out[i,j,a,b] (+)= coeff * x[i,j,c] * y[c,a,b]`` with a share of Tiles. After:
each block finds its tile; tables in shared memory say where each row, column and point of the sum
lies in each array, so that any number of variables, in any order of the arrays, walks alike; tiles
of the factors are loaded ahead of their use; one store at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.expr import Access, Prod
from ..ir.loops import Assign, BandVar
from ..ir.share import Strip, Term, Tiles
from .c_expr import literal
from .c_loops import indented
from .cuda_expr import (
    CUDA_TYPES,
    fixed_address,
    part_of_address,
    points,
    total,
    values,
)
from .scope import Scope


@dataclass(frozen=True, slots=True)
class _Printer:
    """A kernel of tiles and the names in it."""

    stmts: tuple[Assign, ...]
    share: Tiles
    scope: Scope

    @property
    def band(self) -> dict[str, BandVar]:
        """Variables of all statements by name."""
        return {v.name: v for s in self.stmts for v in s.band}

    @property
    def out(self) -> Access:
        """The target."""
        return self.stmts[0].out

    @property
    def kind(self) -> str:
        """Type of the sums: the target's."""
        return CUDA_TYPES[self.dtype]

    @property
    def dtype(self) -> str:
        """Element type of the target."""
        return self.scope.buffers[self.out.buffer].dtype

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.share.high * self.share.wide

    @property
    def per_thread(self) -> tuple[int, int]:
        """Rows and columns that a thread keeps."""
        return self.share.height // self.share.high, self.share.width // self.share.wide

    @property
    def skew(self) -> int:
        """Elements by which neighbouring rows in shared memory are shifted: no banks collide."""
        return 4 if self.share.tensor_cores else 1

    def row(self) -> str:
        """Row of the tile of a thread's row ``tc_r``."""
        return f"tc_y + tc_r*{8 if self.share.tensor_cores else self.share.high}"

    def column(self) -> str:
        """Column of the tile of a thread's column ``tc_c``."""
        if self.share.tensor_cores:
            return "tc_x + tc_c/2*8 + tc_c%2"
        return f"tc_x + tc_c*{self.share.wide}"

    def variables(self, names: tuple[str, ...]) -> tuple[BandVar, ...]:
        """Band variables of some names."""
        return tuple(self.band[n] for n in names)


def tiles_body(stmts: tuple[Assign, ...], share: Tiles, scope: Scope) -> list[str]:
    """The kernel that multiplies."""
    printer = _Printer(stmts, share, scope)
    high, wide = printer.per_thread
    slots, deep = share.stages, share.deep
    lines = [
        f"__shared__ {printer.kind} tc_left[{slots}][{deep}][{share.height + printer.skew}];",
        f"__shared__ {printer.kind} tc_right[{slots}][{deep}][{share.width + printer.skew}];",
        f"__shared__ tc_int tc_left_row[{share.height}], tc_right_column[{share.width}];",
        f"__shared__ tc_int tc_left_deep[2][{deep}], tc_right_deep[2][{deep}];",
        *_tile_lines(printer),
        f"{printer.kind} tc_sum[{high}][{wide}];",
        "#pragma unroll",
        f"for (int tc_r = 0; tc_r < {high}; ++tc_r) {{",
        "    #pragma unroll",
        f"    for (int tc_c = 0; tc_c < {wide}; ++tc_c) tc_sum[tc_r][tc_c] = {_zero(printer)};",
        "}",
    ]
    scaled = len(stmts) > 1
    for stmt, term in zip(stmts, share.terms, strict=True):
        lines += ["{", *indented(_term(stmt, term, printer, scaled=scaled)), "}"]
    if share.splits > 1:
        return [*lines, *_write_parts(printer)]
    return [*lines, *_store(printer)]


def tiles_finish(stmts: tuple[Assign, ...], share: Tiles, scope: Scope) -> list[str]:
    """The second pass: adds the parts of a tile in order and stores it."""
    printer = _Printer(stmts, share, scope)
    high, wide = printer.per_thread
    whole = share.height * share.width
    place = f"(tc_n*(tc_int)gridDim.x + blockIdx.x)*{whole}"
    return [
        *_tile_lines(printer),
        "__syncthreads();",
        f"{printer.kind} tc_sum[{high}][{wide}];",
        "#pragma unroll",
        f"for (int tc_r = 0; tc_r < {high}; ++tc_r) {{",
        "    #pragma unroll",
        f"    for (int tc_c = 0; tc_c < {wide}; ++tc_c) {{",
        f"        {printer.kind} tc_part = {_zero(printer)};",
        f"        for (tc_int tc_n = 0; tc_n < {share.splits}; ++tc_n) {{",
        f"            tc_part += ((const {printer.kind} *)tc_scratch)"
        f"[{place} + (tc_r*{wide} + tc_c)*{printer.threads} + threadIdx.x];",
        "        }",
        "        tc_sum[tc_r][tc_c] = tc_part;",
        "    }",
        "}",
        *_store(printer),
    ]


def _zero(printer: _Printer) -> str:
    return literal(0 * printer.stmts[0].coeff, printer.dtype)


def _tile_lines(printer: _Printer) -> list[str]:
    """Which tile and point of the batch a block has, and where its rows and columns are stored."""
    share, scope = printer.share, printer.scope
    lines = [
        f"__shared__ tc_int tc_out_row[{share.height}], tc_out_column[{share.width}];",
        *_own_place(printer),
        "tc_int tc_block = blockIdx.x;",
    ]
    for side, strips in (("c", share.columns), ("r", share.rows)):
        for number, strip in reversed(list(enumerate(strips))):
            name = f"tc_{side}{number}"
            count = points(printer.variables(strip.variables), scope)
            lines += [
                f"const tc_int {name}_points = {count};",
                f"const tc_int {name}_tiles = tc_tiles({name}_points, {strip.tile});",
                f"const tc_int {name}_first = tc_block%{name}_tiles*{strip.tile};",
                f"tc_block /= {name}_tiles;",
            ]
    batch = printer.variables(share.batch)
    if batch:
        lines += [
            f"const tc_int tc_batch = tc_block%({points(batch, scope)});",
            f"tc_block /= {points(batch, scope)};"
            if len(batch) == 1
            else f"tc_block /= ({points(batch, scope)});",
            *values(batch, "tc_rest", scope, "tc_batch"),
        ]
    for side, strips, table in (
        ("r", share.rows, "tc_out_row"),
        ("c", share.columns, "tc_out_column"),
    ):
        lines += _table(side, strips, printer, ((table, printer.out),), guarded=True)
    return lines


def _own_place(printer: _Printer) -> list[str]:
    """First row and column of a thread."""
    share = printer.share
    if not share.tensor_cores:
        return [f"const int tc_y = threadIdx.x/{share.wide}, tc_x = threadIdx.x%{share.wide};"]
    across = share.wide // 4
    tall, broad = share.height * 8 // share.high, share.width // across
    return [
        "const int tc_lane = threadIdx.x%32, tc_warp = threadIdx.x/32;",
        f"const int tc_top = tc_warp/{across}*{tall}, tc_side = tc_warp%{across}*{broad};",
        "const int tc_y = tc_top + tc_lane/4, tc_x = tc_side + tc_lane%4*2;",
    ]


def _table(
    side: str,
    strips: tuple[Strip, ...],
    printer: _Printer,
    tables: tuple[tuple[str, Access], ...],
    *,
    guarded: bool,
) -> list[str]:
    """Fill tables of the places of a tile's rows or columns.

    Beyond the last point a guarded table says -1; any other repeats the last point, which may be
    loaded without a question since nothing that depends on it is stored.
    """
    scope = printer.scope
    length = 1
    for strip in strips:
        length *= strip.tile
    body = ["int tc_m = tc_n;"] if len(strips) > 1 else []
    inside = []
    for number, strip in reversed(list(enumerate(strips))):
        name = f"tc_{side}{number}"
        here = "tc_n" if len(strips) == 1 else (f"tc_m%{strip.tile}" if number else "tc_m")
        body.append(f"const tc_int {name} = {name}_first + {here};")
        if len(strips) > 1 and number:
            body.append(f"tc_m /= {strip.tile};")
        inside.append(f"{name} < {name}_points")
        number_text = f"tc_min({name}, {name}_points - 1)"
        variables = printer.variables(strip.variables)
        body += values(variables, f"{name}_rest", scope, number_text)
    names = [n for strip in strips for n in strip.variables]
    for table, access in tables:
        place = part_of_address(access, names, scope)
        body.append(
            f"{table}[tc_n] = {' && '.join(inside)} ? {place} : -1;"
            if guarded
            else f"{table}[tc_n] = {place};"
        )
    head = f"for (int tc_n = threadIdx.x; tc_n < {length}; tc_n += {printer.threads}) {{"
    return [head, *indented(body), "}"]


def _factors(stmt: Assign, term: Term) -> tuple[Access, Access]:
    """The factor that holds the rows, and the one that holds the columns."""
    assert isinstance(stmt.expr, Prod)
    x, y = stmt.expr.args
    assert isinstance(x, Access)
    assert isinstance(y, Access)
    return (y, x) if term.swapped else (x, y)


def _term(stmt: Assign, term: Term, printer: _Printer, *, scaled: bool) -> list[str]:
    """All products of one statement."""
    share, scope = printer.share, printer.scope
    left, right = _factors(stmt, term)
    rows = tuple(n for s in share.rows for n in s.variables)
    columns = tuple(n for s in share.columns for n in s.variables)
    depth = printer.variables(term.depth)
    moving = (*rows, *columns, *term.depth)
    lines = []
    for side, access in (("left", left), ("right", right)):
        name, kind = scope.names[access.buffer], CUDA_TYPES[scope.buffers[access.buffer].dtype]
        start = fixed_address(access, moving, scope)
        place = name if start == "0" else f"{name} + ({start})"
        if scope.buffers[access.buffer].place == "register":
            place = f"&{name}"
        lines.append(f"const {kind} *const tc_{side}_start = {place};")
    lines += _table("r", share.rows, printer, (("tc_left_row", left),), guarded=False)
    lines += _table("c", share.columns, printer, (("tc_right_column", right),), guarded=False)
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
        *indented(_load(left, right, term, printer)),
        *indented(_deep_table(left, right, term, depth, printer)),
        "    if (tc_step >= 0) {",
        *indented(indented(_multiply(stmt, printer, scaled=scaled))),
        "    }",
        "}",
    ]
    return lines


def _load(left: Access, right: Access, term: Term, printer: _Printer) -> list[str]:
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
        head = (
            f"for (int tc_n = threadIdx.x; tc_n < {share.deep * length}; "
            f"tc_n += {printer.threads}) {{"
        )
        whole += ["#pragma unroll 4", head, *indented([split, copy]), "}"]
        guarded = [
            split,
            f"if (tc_k < tc_rest) {copy}",
            f"else {target} = {_zero(printer)};",
        ]
        part += [head, *indented(guarded), "}"]
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


def _deep_table(
    left: Access, right: Access, term: Term, depth: tuple[BandVar, ...], printer: _Printer
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


def _multiply(stmt: Assign, printer: _Printer, *, scaled: bool) -> list[str]:
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


def _multiply_by_warps(stmt: Assign, printer: _Printer, *, scaled: bool) -> list[str]:
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


def _write_parts(printer: _Printer) -> list[str]:
    high, wide = printer.per_thread
    whole = printer.share.height * printer.share.width
    return [
        f"{printer.kind} *const tc_parts = ({printer.kind} *)tc_scratch"
        f" + (tc_int)blockIdx.x*{whole};",
        "#pragma unroll",
        f"for (int tc_r = 0; tc_r < {high}; ++tc_r) {{",
        "    #pragma unroll",
        f"    for (int tc_c = 0; tc_c < {wide}; ++tc_c)"
        f" tc_parts[(tc_r*{wide} + tc_c)*{printer.threads} + threadIdx.x] = tc_sum[tc_r][tc_c];",
        "}",
    ]


def _store(printer: _Printer) -> list[str]:
    share, scope, stmt = printer.share, printer.scope, printer.stmts[0]
    high, wide = printer.per_thread
    names = [n for s in (*share.rows, *share.columns) for n in s.variables]
    start = fixed_address(printer.out, names, scope)
    place = "tc_i + tc_j" if start == "0" else f"{start} + tc_i + tc_j"
    operator = "+=" if stmt.accumulate else "="
    own = "tc_sum[tc_r][tc_c]"
    given = own if len(printer.stmts) > 1 else total(stmt.coeff, printer.dtype, own)
    return [
        "#pragma unroll",
        f"for (int tc_r = 0; tc_r < {high}; ++tc_r) {{",
        f"    const tc_int tc_i = tc_out_row[{printer.row()}];",
        "    #pragma unroll",
        f"    for (int tc_c = 0; tc_c < {wide}; ++tc_c) {{",
        f"        const tc_int tc_j = tc_out_column[{printer.column()}];",
        f"        if (tc_i >= 0 && tc_j >= 0) {scope.names[printer.out.buffer]}[{place}]"
        f" {operator} {given};",
        "    }",
        "}",
    ]
