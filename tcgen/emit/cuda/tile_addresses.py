"""Addresses of a tile: the tile of a thread block, and tables of offsets in shared memory.

Before: the strips of a mapping to Tiles. After: each block knows its tile and its point of the
batch, and a table has the offset of each point of m and of n in an array, so that any number of
variables costs the same. In the generated text, rows are points of m and columns points of n.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ...dtypes import BY_NAME
from ...ir.expr import Access
from ...ir.loops import Assign, BandVar
from ...ir.thread_mapping import Strip, Tiles
from ...resources import part
from ..printing import literal, product
from ..scope import Scope
from .expressions import part_of_address, points, values

TILES = "cuda/kernels/tiles.cu"


@dataclass(frozen=True, slots=True)
class TilePrinter:
    """A kernel of tiles: products, statements on a tile before it is stored, and names.

    ``inside``: a statement of a nest, whose tiles one block computes in turn.
    """

    stmts: tuple[Assign, ...]
    epilogue: tuple[Assign, ...]
    mapping: Tiles
    scope: Scope
    inside: bool = False

    @property
    def number(self) -> str:
        """Number of a tile."""
        return "tc_tile" if self.inside else "blockIdx.x"

    @property
    def staged(self) -> str:
        """Address of the tiles of the operands in shared memory."""
        return "tc_staged" if self.inside else "tc_dynamic"

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
        return self.mapping.threads_m * self.mapping.threads_n

    @property
    def each_m(self) -> int:
        """Points of m of a thread."""
        return self.mapping.per_thread[0]

    @property
    def each_n(self) -> int:
        """Points of n of a thread."""
        return self.mapping.per_thread[1]

    @property
    def whole(self) -> int:
        """Points of a tile."""
        return self.mapping.tile_m * self.mapping.tile_n

    @property
    def zero(self) -> str:
        """The number 0 in the type of the target."""
        return literal(0 * self.stmts[0].coeff, self.dtype)

    @property
    def row(self) -> str:
        """Point of m in the tile for the point ``tc_r`` of a thread."""
        return f"tc_y + tc_r*{8 if self.mapping.tensor_cores else self.mapping.threads_m}"

    @property
    def column(self) -> str:
        """Point of n in the tile for the point ``tc_c`` of a thread."""
        if self.mapping.tensor_cores:
            return "tc_x + tc_c/2*8 + tc_c%2"
        return f"tc_x + tc_c*{self.mapping.threads_n}"

    def variables(self, names: tuple[str, ...]) -> tuple[BandVar, ...]:
        """Band variables of some names."""
        return tuple(self.band[n] for n in names)


@dataclass(frozen=True, slots=True)
class Table:
    """Offsets in an array of the points of m or n of a tile.

    Attributes:
        guarded: -1 for points beyond the last; else the offset of the first point there, which is
            loaded without a guard because no result that depends on it is stored.
        run: neighbours of the tile are ``length/run`` places apart in the table.
    """

    name: str
    access: Access
    guarded: bool = False
    run: int = 1


def tile_lines(
    printer: TilePrinter,
    named: tuple[str, ...] = (),
    operands: tuple[Table, Table] | None = None,
) -> list[str]:
    """Tile and point of the batch of a block, and the offsets of its points of m and n in C.

    Variables that are ``named`` also get a table of their values; ``operands`` are tables of the
    first term.
    """
    mapping, scope = printer.mapping, printer.scope
    length = {n: mapping.tile_m for strip in mapping.m for n in strip.variables}
    length |= {n: mapping.tile_n for strip in mapping.n for n in strip.variables}
    batch = printer.variables(mapping.batch)
    batch_points = points(batch, scope)
    sides = (("r", "row", mapping.m), ("c", "column", mapping.n))
    counts, firsts, tables = [], [], []
    for number, (side, place, strips) in enumerate(sides):
        for n, strip in enumerate(strips):
            held = points(printer.variables(strip.variables), scope)
            counts += part(TILES, "points_of_strip", strip, strip=f"tc_{side}{n}", points=held)
        for n, strip in reversed(list(enumerate(strips))):
            which = "first_of_strip" if n else "first_of_last_strip"
            firsts += part(TILES, which, strip, strip=f"tc_{side}{n}", side=place)
        offsets = [Table(f"tc_out_{place}", printer.out, guarded=True)]
        offsets += [operands[number]] if operands else []
        tables += table_lines(side, strips, printer, offsets, named=named)
    rows, columns = (
        product([f"tc_{side}{n}_tiles" for n in range(len(strips))]) for side, _, strips in sides
    )
    return part(
        TILES,
        "tile",
        mapping,
        number=printer.number,
        target_tables=[] if printer.inside else part(TILES, "target_tables", mapping),
        value_tables=[
            f"__shared__ tc_int {value_table(n, printer)}[{length[n]}];"
            for n in named
            if n in length
        ],
        own_place=_own_place(printer),
        points=counts,
        rows=rows,
        columns=columns,
        firsts=firsts,
        batch=part(
            TILES,
            "batch",
            points=batch_points,
            divisor=batch_points if len(batch) == 1 else f"({batch_points})",
            values=values(batch, "tc_rest", scope, "tc_batch"),
        )
        if batch
        else [],
        tables=tables,
    )


def store_place(printer: TilePrinter) -> list[str]:
    """Store the tile's place in shared memory, so that no register holds it over all loops.

    The barriers of the first term's loop, which every block passes, stand before it is read.
    """
    names = _place_names(printer)
    given = (f"const tc_int tc_given{n} = {name};" for n, name in enumerate(_given(printer)))
    places = [f"tc_place[{n}] = {name};" for n, name in enumerate(names)]
    return part(TILES, "store_place", numbers=list(given), count=len(names), places=places)


def load_place(printer: TilePrinter, *, strips: bool) -> list[str]:
    """Declare the stored place of a tile again, and the numbers of the kernel.

    ``strips``: also the first points of m and n.
    """
    given, batch = _given(printer), set(_batch(printer))
    return [
        *(f"const tc_int {name} = tc_anew(tc_given{n});" for n, name in enumerate(given)),
        *(
            f"const tc_int {name} = tc_place[{n}];"
            for n, name in enumerate(_place_names(printer))
            if strips or name in batch
        ),
    ]


def _given(printer: TilePrinter) -> list[str]:
    """Extents and variables of the host that a kernel is given."""
    scope = printer.scope
    variables = (scope.variables[v.name] for v in scope.kernel.host_vars)
    return [*(f"N_{space.name}" for space in scope.extents), *variables]


def _place_names(printer: TilePrinter) -> list[str]:
    """First points of the strips of m and n, and the point of the batch."""
    sides = (("r", printer.mapping.m), ("c", printer.mapping.n))
    firsts = [f"tc_{side}{n}_first" for side, strips in sides for n in range(len(strips))]
    return [*firsts, *_batch(printer)]


def _batch(printer: TilePrinter) -> list[str]:
    return [printer.scope.variables[v] for v in printer.mapping.batch]


def value_table(name: str, printer: TilePrinter) -> str:
    """Name of the table of a variable's values in a tile."""
    return f"tc_of_{printer.scope.variables[name]}"


def blocks(printer: TilePrinter) -> str:
    """Number of blocks of a launch without splits."""
    strips = (*printer.mapping.m, *printer.mapping.n)
    counts = [
        f"tc_tiles({points(printer.variables(s.variables), printer.scope)}, {s.tile})"
        for s in strips
    ]
    return product([*counts, points(printer.variables(printer.mapping.batch), printer.scope)])


def _own_place(printer: TilePrinter) -> list[str]:
    """First point of m and of n of a thread."""
    mapping = printer.mapping
    if not mapping.tensor_cores:
        return part(TILES, "place_of_thread", mapping)
    warps_n = mapping.threads_n // 4
    warp_m, warp_n = mapping.tile_m * 8 // mapping.threads_m, mapping.tile_n // warps_n
    return part(TILES, "place_of_lane", warps_n=warps_n, warp_m=warp_m, warp_n=warp_n)


def table_lines(
    side: str,
    strips: tuple[Strip, ...],
    printer: TilePrinter,
    tables: list[Table],
    *,
    named: tuple[str, ...] = (),
) -> list[str]:
    """Fill tables of the offsets of a tile's points of m or n."""
    scope = printer.scope
    length = prod(strip.tile for strip in strips)
    places = ["int tc_m = tc_n;"] if len(strips) > 1 else []
    inside = []
    for number, strip in reversed(list(enumerate(strips))):
        name = f"tc_{side}{number}"
        here = "tc_n" if len(strips) == 1 else (f"tc_m%{strip.tile}" if number else "tc_m")
        places.append(f"const tc_int {name} = {name}_first + {here};")
        if len(strips) > 1 and number:
            places.append(f"tc_m /= {strip.tile};")
        inside.append(f"{name} < {name}_points")
        number_text = f"({name} < {name}_points ? {name} : 0)"
        places += values(printer.variables(strip.variables), f"{name}_rest", scope, number_text)
    names = [n for strip in strips for n in strip.variables]
    variables = printer.variables(tuple(names))
    entries = []
    for table in tables:
        place = part_of_address(table.access, variables, scope)
        if table.guarded:
            place = f"{' && '.join(inside)} ? {place} : -1"
        run = table.run
        entry = "tc_n" if run == 1 else f"tc_n%{run}*{length // run} + tc_n/{run}"
        entries.append(f"{table.name}[{entry}] = {place};")
    own = (n for n in names if n in named)
    entries += [f"{value_table(n, printer)}[tc_n] = {scope.variables[n]};" for n in own]
    return part(TILES, "table", printer, length=length, places=places, entries=entries)
