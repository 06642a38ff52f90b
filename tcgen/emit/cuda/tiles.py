"""Kernels that multiply by tiles: operands through shared memory, the target's tile in registers.

Before: assignments ``out[i,j,a,b] (+)= coeff * x[i,j,c] * y[c,a,b]`` with a share of Tiles, and
their epilogue. After: each block finds its tile (:mod:`cuda_tile_places`), multiplies
(:mod:`cuda_tile_loop`), and stores once, at the end (:mod:`cuda_tile_store`).
"""

from __future__ import annotations

from ...ir.loops import Assign
from ...ir.thread_mapping import Tiles
from ..printing import indented
from ..scope import Scope
from .tile_addresses import TilePrinter, tile_lines, zero
from .tile_epilogue import (
    finish_lines,
    named_variables,
    store_lines,
    totals_finish,
    totals_of,
    write_parts,
)
from .tile_products import term_lines


def tiles_body(stmts: tuple[Assign, ...], share: Tiles, scope: Scope, dtype: str) -> list[str]:
    """The kernel that multiplies."""
    printer = _printer(stmts, share, scope)
    high, wide = printer.per_thread
    slots, deep = share.stages, share.deep
    parted = share.splits > 1
    shared = "__shared__ __align__(16)" if printer.pairs else "__shared__"
    lines = [
        f"{shared} {printer.kind} tc_left[{slots}][{deep}][{share.height + printer.skew}];",
        f"{shared} {printer.kind} tc_right[{slots}][{deep}][{share.width + printer.skew}];",
        f"__shared__ tc_int tc_left_row[{share.height}], tc_right_column[{share.width}];",
        f"__shared__ tc_int tc_left_deep[2][{deep}], tc_right_deep[2][{deep}];",
        *tile_lines(printer, () if parted else named_variables(printer)),
        f"{printer.kind} tc_sum[{high}][{wide}];",
        "#pragma unroll",
        f"for (int tc_r = 0; tc_r < {high}; ++tc_r) {{",
        "    #pragma unroll",
        f"    for (int tc_c = 0; tc_c < {wide}; ++tc_c) tc_sum[tc_r][tc_c] = {zero(printer)};",
        "}",
    ]
    scaled = len(printer.stmts) > 1
    for stmt, term in zip(printer.stmts, share.terms, strict=True):
        lines += ["{", *indented(term_lines(stmt, term, printer, scaled=scaled)), "}"]
    if parted:
        return [*lines, *write_parts(printer)]
    return [*lines, *store_lines(printer, dtype)]


def tiles_finish(stmts: tuple[Assign, ...], share: Tiles, scope: Scope, dtype: str) -> list[str]:
    """The second pass: adds the parts of a tile in order and stores it; or those of numbers."""
    printer = _printer(stmts, share, scope)
    if totals_of(printer):
        return totals_finish(printer, dtype)
    return [*tile_lines(printer, named_variables(printer)), *finish_lines(printer, dtype)]


def _printer(stmts: tuple[Assign, ...], share: Tiles, scope: Scope) -> TilePrinter:
    count = len(share.terms)
    return TilePrinter(stmts[:count], stmts[count:], share, scope)
