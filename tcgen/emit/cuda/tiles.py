"""Matrix products by threadblock tiles: operands in shared memory, the target in registers.

Before: assignments ``out[i,j,a,b] (+)= coeff * x[i,j,c] * y[c,a,b]`` mapped to Tiles, and their
epilogue. After: each thread block finds its tile (``tile_addresses``), multiplies, and stores once,
at the end (``tile_epilogue``). A product is tables of the offsets of m, n and k, and a call of the
loop in ``templates/cuda/tile_loop.cu``. The loop is there twice: elements that are neighbours in
memory are copied 16 bytes at a time, if the extents and the addresses at run time allow it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cache

from ...dtypes import BY_NAME
from ...hardware import COPY_BYTES
from ...ir.expr import Access, Element, factors_in_order
from ...ir.loops import Assign, BandVar
from ...ir.thread_mapping import Term, Tiles
from ...resources import part
from ..c.stores import total
from ..printing import elements, indented
from ..scope import Scope
from .expressions import (
    adjacent,
    count,
    even_conditions,
    fixed_address,
    part_of_address,
    points,
    values,
)
from .tile_addresses import (
    TILES,
    Table,
    TilePrinter,
    blocks,
    load_place,
    store_place,
    table_lines,
    tile_lines,
)
from .tile_epilogue import (
    finish_lines,
    named_variables,
    store_lines,
    totals_finish,
    totals_of,
    write_parts,
)

_BLOCK = 4  # points of both variables of a block of k
# Banks of shared memory, and the bytes of each.
_BANKS, _WORD = 32, 4
_TABLE = 128  # numbers of 8 bytes in a table of k: twice TC_CHUNK_BYTES of tile_loop.cu
_MOST_NARROW = 2**32  # elements whose offsets a number of 32 bits can hold


def tiles_body(stmts: tuple[Assign, ...], mapping: Tiles, scope: Scope) -> list[str]:
    """The whole body of the kernel that multiplies."""
    printer = _printer(stmts, mapping, scope)
    split = mapping.splits > 1
    several, terms = len(printer.stmts) > 1, []
    for stmt, term in zip(printer.stmts, mapping.terms, strict=True):
        first = stmt is printer.stmts[0]
        inner = term_lines(stmt, term, printer, scaled=several, first=first)
        terms += ["{", *indented(inner), "}"]
    end = write_parts(printer) if split else store_lines(printer)
    if several and not split:
        end = ["{", *indented([*load_place(printer, strips=False), *end]), "}"]
    return part(
        TILES,
        "body",
        printer,
        mapping,
        operand_tables=part(TILES, "operand_tables", mapping, table=_TABLE),
        sums=part(TILES, "sums", printer),
        tile=tile_lines(
            printer,
            () if split else named_variables(printer),
            operand_tables(printer.stmts[0], mapping.terms[0], printer),
        ),
        store_place=store_place(printer) if several else [],
        terms=terms,
        end=end,
    )


def product_lines(stmt: Assign, mapping: Tiles, scope: Scope) -> list[str]:
    """A statement of a nest: all its tiles, one after the other, by one block."""
    printer = replace(_printer((stmt,), mapping, scope), inside=True)
    (term,) = mapping.terms
    return [
        "{",
        *indented(
            part(
                TILES,
                "product_of_block",
                tiles=blocks(printer),
                tile=tile_lines(printer, (), operand_tables(stmt, term, printer)),
                sums=part(TILES, "sums", printer),
                term=[
                    "{",
                    *indented(term_lines(stmt, term, printer, scaled=False, first=True)),
                    "}",
                ],
                end=store_lines(printer),
            )
        ),
        "}",
    ]


def tables_of_products(mappings: Collection[Tiles]) -> list[str]:
    """Tables in shared memory that all products of a nest use in turn."""
    tile_m, tile_n = max(m.tile_m for m in mappings), max(m.tile_n for m in mappings)
    return [
        *part(TILES, "operand_tables", tile_m=tile_m, tile_n=tile_n, table=_TABLE),
        *part(TILES, "target_tables", tile_m=tile_m, tile_n=tile_n),
    ]


def tiles_finish(stmts: tuple[Assign, ...], mapping: Tiles, scope: Scope) -> list[str]:
    """The second pass: add the parts of a tile, or of totals, in order and store the result."""
    printer = _printer(stmts, mapping, scope)
    if totals_of(printer):
        return totals_finish(printer)
    return [*tile_lines(printer, named_variables(printer)), *finish_lines(printer)]


def _printer(stmts: tuple[Assign, ...], mapping: Tiles, scope: Scope) -> TilePrinter:
    count = len(mapping.terms)
    return TilePrinter(stmts[:count], stmts[count:], mapping, scope)


def tiles_shared_bytes(stmts: tuple[Assign, ...], mapping: Tiles, scope: Scope) -> int:
    """Bytes of dynamic shared memory of a block: the tiles of both operands."""
    printer = _printer(stmts, mapping, scope)
    return _left_bytes(printer) + max(right.bytes for _, right in _operands(printer))


def _left_bytes(printer: TilePrinter) -> int:
    """Bytes of the tiles of A, of all terms: those of B lie behind them."""
    return max(left.bytes for left, _ in _operands(printer))


def term_lines(
    stmt: Assign, term: Term, printer: TilePrinter, *, scaled: bool, first: bool
) -> list[str]:
    """All products of one statement."""
    mapping, scope = printer.mapping, printer.scope
    left, right = _operand_pair(stmt, term, printer)
    k = printer.variables(term.k)
    moving = (*(n for s in (*mapping.m, *mapping.n) for n in s.variables), *term.k)
    again, tables = [], []
    if not first:
        again = ["__syncthreads();", *load_place(printer, strips=True)]
        rows, columns = operand_tables(stmt, term, printer)
        tables = [
            *table_lines("r", mapping.m, printer, [rows]),
            *table_lines("c", mapping.n, printer, [columns]),
        ]
    aligned = dict.fromkeys(c for o in (left, right) for c in _wide_conditions(o, printer))
    return part(
        TILES,
        "term",
        again=again,
        left_kind=left.kind,
        right_kind=right.kind,
        left_start=_start(left, moving, scope),
        right_start=_start(right, moving, scope),
        staged=printer.staged,
        left_bytes=_left_bytes(printer),
        tables=tables,
        values=values(k, "tc_rest", scope, "tc_k"),
        left_offset=part_of_address(left.access, k, scope),
        right_offset=part_of_address(right.access, k, scope),
        depth=points(k, scope),
        last=count(k[-1], scope),
        steps=part(TILES, "steps_of_split" if mapping.splits > 1 else "all_steps", mapping),
        scale=total(stmt.coeff, printer.dtype, "tc_a") if scaled else "tc_a",
        aligned="".join(f"\n    && {condition}" for condition in aligned),
        wide=_loop(left, right, printer, "unsigned"),
        narrow=_loop(left.narrow, right.narrow, printer, "long long"),
    )


def _start(operand: _Operand, moving: tuple[str, ...], scope: Scope) -> str:
    """Address of the first element of an operand in a block."""
    name = scope.names[operand.access.buffer]
    if scope.buffers[operand.access.buffer].place == "register":
        return f"&{name}"
    place = fixed_address(operand.access, moving, scope)
    return name if place == "0" else f"{name} + ({place})"


def operand_tables(stmt: Assign, term: Term, printer: TilePrinter) -> tuple[Table, Table]:
    """Tables of the offsets of m in A and of n in B."""
    left, right = _operand_pair(stmt, term, printer)
    return (
        Table("tc_left_rows", left.access),
        Table("tc_right_columns", right.access, run=right.run),
    )


@dataclass(frozen=True, slots=True)
class _Operand:
    """One factor of a product in shared memory.

    Attributes:
        side: ``left`` or ``right``.
        kind: type of the elements, in memory and in shared memory.
        length: points of m or n of a tile.
        width: neighbouring elements of one copy.
        along_k: they are neighbours along k.
        pitch: elements from one row in shared memory to the next.
        run, segment, block: see ``tc_operand`` in tile_loop.cu.
        bytes: bytes of all buffers.
        unit: variable along which it is copied; None if it has none.
        blocked: variables of k whose points are counted in blocks.
    """

    factor: Element
    side: str
    kind: str
    length: int
    width: int
    along_k: bool
    pitch: int
    run: int
    segment: int
    block: int
    bytes: int
    unit: BandVar | None
    blocked: tuple[str, ...]

    @property
    def access(self) -> Access:
        """The element of the array."""
        return self.factor.access

    @property
    def conjugated(self) -> bool:
        """Whether the complex conjugates of the elements are multiplied."""
        return self.factor.conjugated

    @property
    def narrow(self) -> _Operand:
        """The same, copied one element at a time."""
        return replace(self, width=1, block=1)


def _operands(printer: TilePrinter) -> list[tuple[_Operand, _Operand]]:
    pairs = zip(printer.stmts, printer.mapping.terms, strict=True)
    return [_operand_pair(stmt, term, printer) for stmt, term in pairs]


def _operand_pair(stmt: Assign, term: Term, printer: TilePrinter) -> tuple[_Operand, _Operand]:
    """A, the factor with m, and B, the factor with n."""
    a, b = factors_in_order(stmt.expr, swapped=term.swapped)
    return (
        _operand("left", a, term.a_along_k, term, printer),
        _operand("right", b, term.b_along_k, term, printer),
    )


def _operand(
    side: str, factor: Element, along_k: bool, term: Term, printer: TilePrinter
) -> _Operand:
    mapping, access = printer.mapping, factor.access
    left = side == "left"
    strips, length = (mapping.m, mapping.tile_m) if left else (mapping.n, mapping.tile_n)
    run = 1 if left or len(strips) == 1 else strips[1].tile
    outer = strips[0].variables
    element = BY_NAME[printer.scope.buffers[access.buffer].dtype]
    block = _BLOCK if term.blocked and not left else 1
    unit = term.k[-1 if block == 1 else -2] if along_k else outer[-1] if outer else None
    last = None if unit is None else printer.band[unit]
    width = 1
    if (
        last is not None
        and (mapping.tensor_cores or not along_k)
        and adjacent(access, last.name, printer.scope)
    ):
        width = max(1, COPY_BYTES // element.itemsize)
    rows = length if along_k else mapping.tile_k
    segment, pitch = length // run, mapping.tile_k if along_k else length
    if mapping.tensor_cores:
        apart = 1 if along_k else run
        segment, pitch = _spread(pitch, apart, block, element.itemsize, along_k=along_k)
    elif along_k:
        pitch += 1
    whole = mapping.stages * rows * pitch * element.itemsize
    return _Operand(
        factor,
        side,
        element.cuda_type,
        length,
        width if along_k or length // run % width == 0 else 1,
        along_k,
        pitch,
        run,
        segment,
        block,
        -(-whole // COPY_BYTES) * COPY_BYTES,
        last,
        term.k[-2:],
    )


@cache
def _spread(points: int, run: int, block: int, itemsize: int, *, along_k: bool) -> tuple[int, int]:
    """Segment and pitch of rows for which fragments are read with fewest conflicts.

    The lanes that read 128 bytes together are served at once: lane 4*g + t reads point g of m or n
    and point t of k, or two neighbours of k in a block. Copies need multiples of 16 bytes.
    """
    read = itemsize * (2 if block > 1 else 1)
    lanes = [(g, t) for g in range(_BANKS // read) for t in range(4)]
    step = max(1, COPY_BYTES // itemsize)

    def conflicts(segment: int, pitch: int) -> int:
        places = [
            g * pitch + t * block if along_k else t * pitch + (g % run * segment if run > 1 else g)
            for g, t in lanes
        ]
        words = Counter(
            (p * itemsize // _WORD + word) % _BANKS for p in places for word in range(read // _WORD)
        )
        return max(words.values())

    choices = [
        (segment, pitch)
        for segment in (range(points // run, points // run + 8, step) if run > 1 else (points,))
        for pitch in range(segment * run, segment * run + _BANKS, step)
    ]
    return min(choices, key=lambda choice: (conflicts(*choice), choice[1]))


def _wide_conditions(operand: _Operand, printer: TilePrinter) -> list[str]:
    """Conditions of wide copies at run time: small offsets, and aligned neighbours."""
    scope, buffer = printer.scope, printer.scope.buffers[operand.access.buffer]
    conditions = [f"{elements(buffer)} < {_MOST_NARROW}"]
    if operand.width > 1:
        assert operand.unit is not None
        conditions += even_conditions(operand.access, operand.unit, operand.width, scope)
        if operand.block > 1:
            conditions += [
                f"{count(printer.band[n], scope)}%{operand.block} == 0" for n in operand.blocked
            ]
        conditions.append(f"(unsigned long long)tc_{operand.side}_start%{COPY_BYTES} == 0")
    return conditions


def _is_own(operand: _Operand, printer: TilePrinter) -> bool:
    """Whether an array belongs to the block, so that it may be in shared memory."""
    return printer.scope.buffers[operand.access.buffer].place == "private"


def _loop(left: _Operand, right: _Operand, printer: TilePrinter, index: str) -> list[str]:
    """The loop over k."""
    mapping = printer.mapping
    operands = [
        line
        for o in (left, right)
        for line in part(TILES, "operand", o, printer, mapping, own=_is_own(o, printer))
    ]
    by = "by_warps" if mapping.tensor_cores else "by_threads"
    multiply = part(TILES, by, mapping, printer)
    return part(TILES, "loop", mapping, printer, index=index, operands=operands, multiply=multiply)
