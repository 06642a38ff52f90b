"""What becomes of a tile of sums: parts in scratch, or its epilogue and its one store.

Before: the sums of a tile in registers, and the statements behind the products of a share of Tiles.
After: each thread applies them to its elements, stores what is kept, and the threads of a block add
up by shuffles what goes to a number.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.expr import Access, Equal, leaves
from ...ir.loop_analysis import is_total
from ...ir.loops import Assign
from ..printing import indented, literal
from ..scope import Scope
from .expressions import fixed_address, store, sum_type, total, value
from .tile_addresses import TilePrinter, blocks, value_table, zero

PART = 16  # bytes of scratch for each block and number: the widest element


def write_parts(printer: TilePrinter) -> list[str]:
    """Leave the tile in scratch, for the second pass."""
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


def store_lines(printer: TilePrinter, dtype: str) -> list[str]:
    """Apply the epilogue, store the tile, leave the block's part of each number in scratch."""
    totals = totals_of(printer)
    lines = [
        f"{sum_type(s, printer.scope)} tc_total{n} = {literal(0 * s.coeff, dtype)};"
        for n, s in enumerate(totals)
    ]
    element = _element(printer, dtype, "tc_sum[tc_r][tc_c]")
    lines += _each_element(printer, element, ("#pragma unroll",))
    for number, stmt in enumerate(totals):
        kind = sum_type(stmt, printer.scope)
        lines += [
            f"tc_total{number} = tc_block_sum(tc_total{number});",
            f"if (threadIdx.x == 0) *({kind} *)(tc_scratch + "
            f"({number}*(tc_int)gridDim.x + blockIdx.x)*{PART}) = tc_total{number};",
        ]
    return lines


def finish_lines(printer: TilePrinter, dtype: str) -> list[str]:
    """The second pass of a tile: add the parts of each element in order, apply the epilogue."""
    _, wide = printer.per_thread
    whole = printer.share.height * printer.share.width
    place = f"(tc_n*(tc_int)gridDim.x + blockIdx.x)*{whole}"
    element = [
        f"{printer.kind} tc_sum = {zero(printer)};",
        f"for (tc_int tc_n = 0; tc_n < {printer.share.splits}; ++tc_n) {{",
        f"    tc_sum += ((const {printer.kind} *)tc_scratch)"
        f"[{place} + (tc_r*{wide} + tc_c)*{printer.threads} + threadIdx.x];",
        "}",
        *_element(printer, dtype, "tc_sum"),
    ]
    return ["__syncthreads();", *_each_element(printer, element, ())]


def totals_finish(printer: TilePrinter, dtype: str) -> list[str]:
    """The second pass for numbers: one block adds the parts of all blocks in order."""
    lines = [f"const tc_int tc_blocks = {blocks(printer)};"]
    for number, stmt in enumerate(totals_of(printer)):
        kind = sum_type(stmt, printer.scope)
        add = [
            f"{kind} tc_sum = {literal(0 * stmt.coeff, dtype)};",
            f"for (tc_int tc_n = threadIdx.x; tc_n < tc_blocks; tc_n += {printer.threads})",
            f"    tc_sum += *(const {kind} *)(tc_scratch + ({number}*tc_blocks + tc_n)*{PART});",
            "tc_sum = tc_block_sum(tc_sum);",
            f"if (threadIdx.x == 0) {store(stmt, printer.scope, total(stmt.coeff, dtype))}",
        ]
        lines += ["{", *indented(add), "}"]
    return lines


def totals_of(printer: TilePrinter) -> tuple[Assign, ...]:
    """Statements of the epilogue that add to a number."""
    return tuple(s for s in printer.epilogue if is_total(s))


def named_variables(printer: TilePrinter) -> tuple[str, ...]:
    """Variables of rows and columns that the epilogue names, its target's own subscripts aside."""
    found: dict[str, None] = {}
    for stmt in printer.epilogue:
        for leaf in (stmt.out, *leaves(stmt.expr)):
            if isinstance(leaf, Access) and leaf.buffer != printer.out.buffer:
                found.update(dict.fromkeys(leaf.variables))
            elif isinstance(leaf, Equal):
                names = (leaf.left.variable, leaf.right.variable)
                found.update(dict.fromkeys(n for n in names if n is not None))
    return tuple(n for n in printer.band if n in found)


def _named(printer: TilePrinter, side: str, place: str) -> list[str]:
    """Declare the values of the variables that the epilogue names, of a row or of a column."""
    strips = printer.share.rows if side == "rows" else printer.share.columns
    own = [n for strip in strips for n in strip.variables]
    return [
        f"const tc_int {printer.scope.variables[n]} = {value_table(n, printer)}[{place}];"
        for n in named_variables(printer)
        if n in own
    ]


def _each_element(printer: TilePrinter, element: list[str], unrolled: tuple[str, ...]) -> list[str]:
    """Loops of a thread over its elements."""
    high, wide = printer.per_thread
    return [
        *unrolled,
        f"for (int tc_r = 0; tc_r < {high}; ++tc_r) {{",
        f"    const tc_int tc_i = tc_out_row[{printer.row()}];",
        *indented(_named(printer, "rows", printer.row())),
        *(f"    {line}" for line in unrolled),
        f"    for (int tc_c = 0; tc_c < {wide}; ++tc_c) {{",
        f"        const tc_int tc_j = tc_out_column[{printer.column()}];",
        *indented(indented(element)),
        "    }",
        "}",
    ]


def _element(printer: TilePrinter, dtype: str, own: str) -> list[str]:
    """One element by its thread, whose sum is ``own``."""
    share, scope, stmt = printer.share, printer.scope, printer.stmts[0]
    names = [n for s in (*share.rows, *share.columns) for n in s.variables]
    start = fixed_address(printer.out, names, scope)
    place = "tc_i + tc_j" if start == "0" else f"{start} + tc_i + tc_j"
    held = f"{scope.names[printer.out.buffer]}[{place}]"
    given = own if len(printer.stmts) > 1 else total(stmt.coeff, printer.dtype, own)
    guard = "if (tc_i >= 0 && tc_j >= 0)"
    if not printer.epilogue:
        return [f"{guard} {held} {'+=' if stmt.accumulate else '='} {given};"]
    inner = _in_register(printer)
    lines = [
        *_named(printer, "columns", printer.column()),
        f"{printer.kind} tc_value = {f'{held} + {given}' if stmt.accumulate else given};",
    ]
    number = 0
    for after in printer.epilogue:
        if is_total(after):
            lines.append(f"tc_total{number} += {value(after, inner, dtype, coefficient=False)};")
            number += 1
        else:
            lines.append(store(after, inner, value(after, inner, dtype, coefficient=True)))
    if scope.buffers[printer.out.buffer].place != "tile":
        lines.append(f"{held} = tc_value;")
    return [f"{guard} {{", *indented(lines), "}"]


def _in_register(printer: TilePrinter) -> Scope:
    """The scope in which the tile's element is a variable of the thread."""
    scope, name = printer.scope, printer.out.buffer
    held = replace(scope.buffers[name], place="register")
    return replace(
        scope,
        buffers={**scope.buffers, name: held},
        names={**scope.names, name: "tc_value"},
    )
