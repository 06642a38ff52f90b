"""Where the rows and columns of a tile lie: which tile a block has, and tables in shared memory.

Before: the strips of a share of Tiles. After: each block knows its tile and its point of the batch,
and each row and column its place in an array, so that any number of variables walks alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dtypes import BY_NAME
from ...ir.expr import Access
from ...ir.loops import Assign, BandVar
from ...ir.thread_mapping import Strip, Tiles
from ..printing import indented, literal, product
from ..scope import Scope
from .expressions import part_of_address, points, values


@dataclass(frozen=True, slots=True)
class TilePrinter:
    """A kernel of tiles and the names in it.

    Attributes:
        stmts: the products.
        epilogue: what is done with the elements of the tile before they are stored.
    """

    stmts: tuple[Assign, ...]
    epilogue: tuple[Assign, ...]
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
        return BY_NAME[self.dtype].cuda_type

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

    @property
    def pairs(self) -> bool:
        """Neighbours in a row of shared memory, from an even one on, start on 16 bytes."""
        even = self.share.height % 2 == 0 and self.share.width % 2 == 0
        return self.dtype == "float64" and self.skew % 2 == 0 and even

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


def zero(printer: TilePrinter) -> str:
    """The number 0 in the type of the target."""
    return literal(0 * printer.stmts[0].coeff, printer.dtype)


def tile_lines(printer: TilePrinter, named: tuple[str, ...] = ()) -> list[str]:
    """Which tile and point of the batch a block has, and where its rows and columns are stored.

    ``named``: variables whose values each row (column) has to know as well.
    """
    share, scope = printer.share, printer.scope
    sides = {n: share.height for strip in share.rows for n in strip.variables}
    sides |= {n: share.width for strip in share.columns for n in strip.variables}
    lines = [
        f"__shared__ tc_int tc_out_row[{share.height}], tc_out_column[{share.width}];",
        *(f"__shared__ tc_int {value_table(n, printer)}[{sides[n]}];" for n in named if n in sides),
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
        lines += table_lines(
            side, strips, printer, ((table, printer.out),), guarded=True, named=named
        )
    return lines


def value_table(name: str, printer: TilePrinter) -> str:
    """Table of the values of a variable in the rows or columns of a tile."""
    return f"tc_of_{printer.scope.variables[name]}"


def blocks(printer: TilePrinter) -> str:
    """Number of blocks of a launch whose sums are not parted."""
    strips = (*printer.share.rows, *printer.share.columns)
    counts = [
        f"tc_tiles({points(printer.variables(s.variables), printer.scope)}, {s.tile})"
        for s in strips
    ]
    return product([*counts, points(printer.variables(printer.share.batch), printer.scope)])


def _own_place(printer: TilePrinter) -> list[str]:
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


def table_lines(
    side: str,
    strips: tuple[Strip, ...],
    printer: TilePrinter,
    tables: tuple[tuple[str, Access], ...],
    *,
    guarded: bool,
    named: tuple[str, ...] = (),
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
    own = (n for n in names if n in named)
    body += [f"{value_table(n, printer)}[tc_n] = {scope.variables[n]};" for n in own]
    head = f"for (int tc_n = threadIdx.x; tc_n < {length}; tc_n += {printer.threads}) {{"
    return [head, *indented(body), "}"]
