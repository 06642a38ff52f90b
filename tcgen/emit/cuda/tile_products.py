"""The main loop of a tile: which elements of both operands its steps multiply.

Before: one assignment ``out[i,j,a,b] (+)= coeff * x[i,j,c] * y[c,a,b]`` mapped to Tiles. After:
tables of the offsets of m, n and k, and a call of the loop in ``templates/cuda/tile_loop.cu``. The
loop is there twice: elements that are neighbours in memory are copied 16 bytes at a time, if the
extents and the addresses at run time allow it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache

from ...dtypes import BY_NAME
from ...hardware import COPY_BYTES
from ...ir.expr import Access, Element, factors_in_order
from ...ir.loops import Assign, BandVar
from ...ir.thread_mapping import Term
from ..printing import elements, indented
from .expressions import (
    adjacent,
    count,
    even_conditions,
    fixed_address,
    part_of_address,
    points,
    total,
    values,
)
from .tile_addresses import Table, TilePrinter, kept_lines, table_lines

_BLOCK = 4  # points of both variables of a block of k
_BANKS = 32  # of shared memory, ...
_WORD = 4  # ... and bytes of each
_TABLE = 128  # numbers of 8 bytes in a table of k: twice TC_CHUNK_BYTES of tile_loop.cu
_MOST_NARROW = 2**32  # elements whose offsets a number of 32 bits can hold


def shared_lines(printer: TilePrinter) -> list[str]:
    """Declare the memory of the tiles and the tables of offsets in shared memory."""
    mapping = printer.mapping
    return [
        "extern __shared__ __align__(16) char tc_dynamic[];",
        f"__shared__ __align__(16) tc_int tc_left_rows[{mapping.tile_m}],"
        f" tc_right_columns[{mapping.tile_n}];",
        f"__shared__ __align__(16) long long tc_left_ks[{_TABLE}], tc_right_ks[{_TABLE}];",
    ]


def tile_bytes(printer: TilePrinter) -> int:
    """Bytes of dynamic shared memory: the tiles of both operands."""
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
    lines = [] if first else ["__syncthreads();", *kept_lines(printer, strips=True)]
    for operand in (left, right):
        access = operand.access
        name = scope.names[access.buffer]
        start = fixed_address(access, moving, scope)
        place = name if start == "0" else f"{name} + ({start})"
        if scope.buffers[access.buffer].place == "register":
            place = f"&{name}"
        lines.append(f"const {operand.kind} *const tc_{operand.side}_start = {place};")
    for operand, offset in ((left, 0), (right, _left_bytes(printer))):
        memory = f"(tc_dynamic + {offset})" if offset else "tc_dynamic"
        lines.append(f"{operand.kind} *const tc_{operand.side} = ({operand.kind} *){memory};")
    if not first:
        rows, columns = operand_tables(stmt, term, printer)
        lines += table_lines("r", mapping.m, printer, [rows])
        lines += table_lines("c", mapping.n, printer, [columns])
    lines += [
        "const auto tc_offsets = [&](",
        "    tc_int tc_k, tc_int &tc_left_offset, tc_int &tc_right_offset) {",
        *indented(values(k, "tc_rest", scope, "tc_k")),
        f"    tc_left_offset = {part_of_address(left.access, term.k, scope)};",
        f"    tc_right_offset = {part_of_address(right.access, term.k, scope)};",
        "};",
        f"const tc_int tc_depth = {points(k, scope)}, tc_last = {count(k[-1], scope)};",
    ]
    steps = f"tc_tiles(tc_depth, {mapping.tile_k})"
    if mapping.splits > 1:
        lines += [
            f"const tc_int tc_each = tc_tiles({steps}, {mapping.splits});",
            "const tc_int tc_first = tc_block*tc_each;",
            f"const tc_int tc_steps = tc_min(tc_each, {steps} - tc_first);",
        ]
    else:
        lines.append(f"const tc_int tc_first = 0, tc_steps = {steps};")
    wide = dict.fromkeys(c for o in (left, right) for c in _wide_conditions(o, printer))
    scale = total(stmt.coeff, printer.dtype, "tc_a") if scaled else "tc_a"
    lines.append(f"const auto tc_scale = [](const {left.kind} tc_a) {{ return {scale}; }};")
    head = "if (tc_steps > 0" + "".join(f"\n    && {condition}" for condition in wide) + ") {"
    return [
        *lines,
        *head.split("\n"),
        *indented(_loop(left, right, printer, "unsigned")),
        "} else if (tc_steps > 0) {",
        *indented(_loop(left.narrow, right.narrow, printer, "long long")),
        "} else {",
        "    __syncthreads();",
        "}",
    ]


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
        factor: the elements, and whether they are conjugated.
        side: ``left`` or ``right``.
        kind: type of the elements, in memory and in shared memory.
        length: points of m or n of a tile.
        width: neighbouring elements of one copy.
        along_k: they are neighbours along k.
        pitch: elements from one row in shared memory to the next.
        run, segment, block: see ``tc_operand`` in tile_loop.cu.
        bytes: of all buffers.
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
    def narrow(self) -> _Operand:
        """The same, copied one element at a time."""
        return replace(self, width=1, block=1)


def _operands(printer: TilePrinter) -> list[tuple[_Operand, _Operand]]:
    pairs = zip(printer.stmts, printer.mapping.terms, strict=True)
    return [_operand_pair(stmt, term, printer) for stmt, term in pairs]


def _operand_pair(stmt: Assign, term: Term, printer: TilePrinter) -> tuple[_Operand, _Operand]:
    """A, the factor with m, and B, the factor with n."""
    a, b = factors_in_order(stmt.expr, swapped=term.swapped)
    mapping = printer.mapping
    run = mapping.n[1].tile if len(mapping.n) > 1 else 1
    return (
        _operand(
            "left", a, term.a_along_k, mapping.tile_m, 1, mapping.m[0].variables, term, printer
        ),
        _operand(
            "right", b, term.b_along_k, mapping.tile_n, run, mapping.n[0].variables, term, printer
        ),
    )


def _operand(
    side: str,
    factor: Element,
    along_k: bool,
    length: int,
    run: int,
    outer: tuple[str, ...],
    term: Term,
    printer: TilePrinter,
) -> _Operand:
    mapping, access = printer.mapping, factor.access
    element = BY_NAME[printer.scope.buffers[access.buffer].dtype]
    block = _BLOCK if term.blocked and side == "right" else 1
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
        spread = _spread(pitch, 1 if along_k else run, block, element.itemsize, along_k=along_k)
        segment, pitch = spread
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
    and point t of k, or two of k that are neighbours in a block. Copies need a segment and a pitch
    of a multiple of 16 bytes.
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
    """What the copies of an operand need at run time: small offsets, and aligned neighbours."""
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


def _loop(left: _Operand, right: _Operand, printer: TilePrinter, index: str) -> list[str]:
    """The loop over k."""
    mapping = printer.mapping
    each_m, each_n = mapping.per_thread
    lines = [f"typedef {index} tc_index;"]
    for operand in (left, right):
        lines += [
            f"typedef tc_operand<{operand.kind}, tc_index, {printer.threads},"
            f" {operand.length}, {mapping.tile_k}, {operand.width},"
            f" {str(operand.along_k).lower()}, {operand.pitch},"
            f" {operand.run}, {operand.segment}, {operand.block},"
            f" {str(operand.factor.conjugated).lower()}> tc_{operand.side}_tile;",
        ]
    lines += [
        f"tc_pipeline<{printer.threads}, {mapping.tile_k}, {mapping.stages}, tc_left_tile,"
        " tc_right_tile, tc_index, decltype(tc_offsets)> tc_pipe(",
        "    tc_left_tile(tc_left_start, tc_left, tc_left_rows, (tc_index *)tc_left_ks),",
        "    tc_right_tile(tc_right_start, tc_right, tc_right_columns, (tc_index *)tc_right_ks),",
        "    (tc_index *)tc_left_ks, (tc_index *)tc_right_ks, tc_offsets, tc_depth, tc_last,"
        " tc_first,"
        " tc_steps);",
    ]
    if mapping.tensor_cores:
        call = f"tc_multiply_by_warps<{mapping.tile_k}, {each_m}, {each_n}>"
        lines.append(f"{call}(tc_sum, tc_pipe, tc_top, tc_side, tc_scale);")
    else:
        steps = f"{mapping.threads_m}, {mapping.threads_n}"
        call = f"tc_multiply_by_threads<{mapping.tile_k}, {steps}>"
        lines.append(f"{call}(tc_sum, tc_pipe, tc_y, tc_x, tc_scale);")
    return lines
