"""Matrix products by threadblock tiles: operands in shared memory, the target in registers.

Before: assignments ``out[i,j,a,b] (+)= coeff * x[i,j,c] * y[c,a,b]`` mapped to Tiles, and their
epilogue. After: each thread block finds its tile (``tile_addresses``), multiplies
(``tile_products``), and stores once, at the end (``tile_epilogue``).
"""

from __future__ import annotations

from ...ir.loops import Assign
from ...ir.thread_mapping import Tiles
from ..printing import indented
from ..scope import Scope
from .tile_addresses import TilePrinter, keeping_lines, kept_lines, tile_lines, zero
from .tile_epilogue import (
    finish_lines,
    named_variables,
    store_lines,
    totals_finish,
    totals_of,
    write_parts,
)
from .tile_products import operand_tables, shared_lines, term_lines, tile_bytes


def tiles_body(stmts: tuple[Assign, ...], mapping: Tiles, scope: Scope, dtype: str) -> list[str]:
    """The whole body of the kernel that multiplies."""
    printer = _printer(stmts, mapping, scope)
    each_m, each_n = mapping.per_thread
    split = mapping.splits > 1
    lines = [
        *shared_lines(printer),
        *tile_lines(
            printer,
            () if split else named_variables(printer),
            operand_tables(printer.stmts[0], mapping.terms[0], printer),
        ),
        f"{printer.kind} tc_sum[{each_m}][{each_n}];",
        "#pragma unroll",
        f"for (int tc_r = 0; tc_r < {each_m}; ++tc_r) {{",
        "    #pragma unroll",
        f"    for (int tc_c = 0; tc_c < {each_n}; ++tc_c) tc_sum[tc_r][tc_c] = {zero(printer)};",
        "}",
    ]
    several = len(printer.stmts) > 1
    lines += keeping_lines(printer) if several else []
    for stmt, term in zip(printer.stmts, mapping.terms, strict=True):
        first = stmt is printer.stmts[0]
        inner = term_lines(stmt, term, printer, scaled=several, first=first)
        lines += ["{", *indented(inner), "}"]
    end = write_parts(printer) if split else store_lines(printer, dtype)
    if several and not split:
        end = ["{", *indented([*kept_lines(printer, strips=False), *end]), "}"]
    return [*lines, *end]


def tiles_finish(stmts: tuple[Assign, ...], mapping: Tiles, scope: Scope, dtype: str) -> list[str]:
    """The second pass: add the parts of a tile, or of totals, in order and store the result."""
    printer = _printer(stmts, mapping, scope)
    if totals_of(printer):
        return totals_finish(printer, dtype)
    return [*tile_lines(printer, named_variables(printer)), *finish_lines(printer, dtype)]


def _printer(stmts: tuple[Assign, ...], mapping: Tiles, scope: Scope) -> TilePrinter:
    count = len(mapping.terms)
    return TilePrinter(stmts[:count], stmts[count:], mapping, scope)


def tiles_shared_bytes(stmts: tuple[Assign, ...], mapping: Tiles, scope: Scope) -> int:
    """Bytes of dynamic shared memory of a block."""
    return tile_bytes(_printer(stmts, mapping, scope))
