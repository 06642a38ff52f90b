"""The end of a tile: partial sums in scratch, or the epilogue and the store.

Before: the sums of a tile in registers, and the statements after the products of a mapping to
Tiles. After: each thread applies the statements to its elements and stores the results, and the
threads of a block reduce the totals by shuffles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...dtypes import BY_NAME
from ...ir.expr import Access, Equal, leaves
from ...ir.loop_analysis import is_total
from ...ir.loops import Assign, Buffer
from ...ir.thread_mapping import Strip, Tiles
from ...resources import part
from ..c.expressions import expression
from ..c.stores import total
from ..printing import literal
from .expressions import (
    adjacent,
    even_conditions,
    fixed_address,
    from_registers,
    held_in_registers,
    store,
    sum_type,
    value,
)
from .tile_addresses import TILES, TilePrinter, blocks, value_table

_HELD = 256  # most bytes of loads of a thread in flight, beside the sums in its registers
_AT = "tc_c - tc_columns"  # the place of an element's loads in their arrays of registers
PART = 16  # bytes of scratch for each block and total: the widest element


def write_parts(printer: TilePrinter) -> list[str]:
    """Write the partial sums of the tile to scratch, for the second pass."""
    which = "write_pairs" if _in_pairs(printer) else "write_sums"
    return part(TILES, which, printer, place=_place_of_part(printer))


def _in_pairs(printer: TilePrinter) -> bool:
    """True if two partial sums of a thread are neighbours in scratch, written at once."""
    return printer.each_n % 2 == 0 and BY_NAME[printer.dtype].parts == 1


def _place_of_part(printer: TilePrinter) -> str:
    """Where a partial sum is in the scratch of its block: neighbouring threads are neighbours."""
    each_n, threads = printer.each_n, printer.threads
    if _in_pairs(printer):
        return f"((tc_r*{each_n} + tc_c)/2*{threads} + threadIdx.x)*2 + tc_c%2"
    return f"(tc_r*{each_n} + tc_c)*{threads} + threadIdx.x"


def store_lines(printer: TilePrinter) -> list[str]:
    """Apply the epilogue, store the tile, and write the block's part of each total to scratch."""
    totals = totals_of(printer)
    lines = [
        f"{sum_type(s, printer.scope)} tc_total{n} = {literal(0 * s.coeff, printer.scope.dtype)};"
        for n, s in enumerate(totals)
    ]
    elements = _elements_at_once(printer)
    pairs = _pair_conditions(printer)
    lines += elements if pairs is None else _pairs(printer, pairs, elements)
    for number, stmt in enumerate(totals):
        kind = sum_type(stmt, printer.scope)
        lines += part(TILES, "total", number=number, kind=kind, bytes=PART)
    return lines


def finish_lines(printer: TilePrinter) -> list[str]:
    """The second pass of a tile: add the parts of each element in order, apply the epilogue."""
    element = part(
        TILES,
        "sum_of_parts",
        printer,
        printer.mapping,
        place=_place_of_part(printer),
        element=_element(printer, "tc_sum", {}),
    )
    return ["__syncthreads();", *_each_element(printer, element, [])]


def totals_finish(printer: TilePrinter) -> list[str]:
    """The second pass for totals: one block adds the parts of all blocks in order."""
    lines = [f"const tc_int tc_blocks = {blocks(printer)};"]
    for number, stmt in enumerate(totals_of(printer)):
        lines += part(
            TILES,
            "total_of_parts",
            number=number,
            kind=sum_type(stmt, printer.scope),
            zero=literal(0 * stmt.coeff, printer.scope.dtype),
            threads=printer.threads,
            bytes=PART,
            store=store(stmt, printer.scope, total(stmt.coeff, printer.scope.dtype)),
        )
    return lines


def totals_of(printer: TilePrinter) -> tuple[Assign, ...]:
    """Statements of the epilogue that add to a single number."""
    return tuple(s for s in printer.epilogue if is_total(s))


def named_variables(printer: TilePrinter) -> tuple[str, ...]:
    """Variables of m and n that the epilogue uses outside of accesses to the tile's target."""
    used: dict[str, None] = {}
    for stmt in printer.epilogue:
        for leaf in (stmt.out, *leaves(stmt.expr)):
            if isinstance(leaf, Access) and leaf.buffer != printer.out.buffer:
                used.update(dict.fromkeys(leaf.variables))
            elif isinstance(leaf, Equal):
                names = (leaf.left.variable, leaf.right.variable)
                used.update(dict.fromkeys(n for n in names if n is not None))
    return tuple(n for n in printer.band if n in used)


def _named(printer: TilePrinter, strips: tuple[Strip, ...], place: str) -> list[str]:
    """Declare the values of the variables of m or n that the epilogue uses."""
    own = [n for strip in strips for n in strip.variables]
    return [
        f"const tc_int {printer.scope.variables[n]} = {value_table(n, printer)}[{place}];"
        for n in named_variables(printer)
        if n in own
    ]


def _each_element(printer: TilePrinter, element: list[str], unrolled: list[str]) -> list[str]:
    """Loops of a thread over its elements."""
    values = _named(printer, printer.mapping.m, printer.row)
    return part(TILES, "elements", printer, unrolled=unrolled, row_values=values, element=element)


def _elements_at_once(printer: TilePrinter) -> list[str]:
    """The elements of a thread, some at once: what they need of memory is loaded before a store.

    A load behind a store waits for memory by itself, since it may read what was stored.
    """
    loads = _loads(printer.stmts, printer.epilogue)
    element = _element(printer, "tc_sum[tc_r][tc_c]", loads)
    if not loads:
        return _each_element(printer, element, ["#pragma unroll"])
    scope = printer.scope
    kinds = [BY_NAME[scope.buffers[a.buffer].dtype] for a in loads]
    at_once = _at_once(printer.each_n, sum(k.itemsize for k in kinds))
    named = zip(loads.items(), kinds, strict=True)
    return part(
        TILES,
        "elements_at_once",
        printer,
        at_once=at_once,
        row_values=_named(printer, printer.mapping.m, printer.row),
        column_values=_named(printer, printer.mapping.n, printer.column),
        arrays=[f"{kind.cuda_type} {name}[{at_once}];" for (_, name), kind in named],
        loads=[f"{name}[{_AT}] = {_read(a, printer)};" for a, name in loads.items()],
        element=element,
    )


def end_waits(
    terms: Sequence[Assign],
    epilogue: Sequence[Assign],
    mapping: Tiles,
    buffers: Mapping[str, Buffer],
) -> int:
    """Times that a thread waits for what the end of a tile reads."""
    loads = _loads(terms, epilogue)
    each_m, each_n = mapping.per_thread
    held = sum(BY_NAME[buffers[a.buffer].dtype].itemsize for a in loads)
    if not loads or mapping.splits > 1:
        return 0
    if not epilogue:
        return each_m // _at_once(each_m, each_n * held)
    return each_m * (each_n // _at_once(each_n, held))


def _at_once(most: int, held: int) -> int:
    """How many of ``most`` groups of loads of so many bytes are in flight; a divisor of them."""
    return max(n for n in range(1, most + 1) if most % n == 0 and (n == 1 or n * held <= _HELD))


def _loads(terms: Sequence[Assign], epilogue: Sequence[Assign]) -> dict[Access, str]:
    """Elements that the end of a tile reads, and the arrays of registers into which they go."""
    target = terms[0].out
    written = {target.buffer, *(s.out.buffer for s in epilogue)}
    read = [a for s in epilogue for a in leaves(s.expr) if isinstance(a, Access)]
    found = [a for a in read if a.buffer not in written]
    if terms[0].accumulate:
        found.insert(0, target)
    return {a: f"tc_held{n}" for n, a in enumerate(dict.fromkeys(found))}


def _read(access: Access, printer: TilePrinter) -> str:
    """An element of an array; of the target, by the tables of its offsets."""
    held = access == printer.out
    return _target(printer) if held else expression(access, printer.scope)


def _target(printer: TilePrinter) -> str:
    """The element of the target at a point of the tile."""
    return f"{printer.scope.names[printer.out.buffer]}[{_start(printer)}tc_i + tc_j]"


def _pair_conditions(printer: TilePrinter) -> list[str] | None:
    """When two elements of a thread are neighbours that one store takes; None if never.

    The tensor cores leave columns 2*n and 2*n + 1 of a tile to one thread.
    """
    scope, last = printer.scope, printer.band[printer.mapping.n[-1].variables[-1]]
    if (
        not printer.mapping.tensor_cores
        or BY_NAME[printer.dtype].parts > 1  # an element is a pair
        or printer.epilogue
        or printer.mapping.n[-1].tile % 2
        or not adjacent(printer.out, last.name, scope)
    ):
        return None
    name = scope.names[printer.out.buffer]
    return [*even_conditions(printer.out, last, 2, scope), f"(unsigned long long){name}%16 == 0"]


def _pairs(printer: TilePrinter, aligned: list[str], elements: list[str]) -> list[str]:
    """Store two neighbouring elements at once if the target is aligned, else ``elements``."""
    scope, stmt = printer.scope, printer.stmts[0]
    first, second = (f"tc_sum[tc_r][tc_c{next}]" for next in ("", " + 1"))
    if len(printer.stmts) == 1:
        first, second = (total(stmt.coeff, printer.dtype, v) for v in (first, second))
    place = f"{scope.names[printer.out.buffer]} + ({_start(printer)}tc_i + tc_j)"
    at_once, loads = printer.each_m, list[str]()
    if stmt.accumulate:
        at_once = _at_once(at_once, printer.each_n * BY_NAME[printer.dtype].itemsize)
        loads = part(TILES, "load_pairs", printer, at_once=at_once, place=place)
        first, second = (
            f"tc_held[tc_r - tc_rows][tc_c{next}] + {own}"
            for next, own in (("", first), (" + 1", second))
        )
    # What a nest or another launch reads again stays in the cache.
    kept = printer.inside or stmt.accumulate
    return part(
        TILES,
        "pairs",
        printer,
        aligned=" && ".join(aligned),
        at_once=at_once,
        loads=loads,
        store="tc_write_pair" if kept else "tc_store_pair",
        place=place,
        first=first,
        second=second,
        elements=elements,
    )


def _start(printer: TilePrinter) -> str:
    """The terms of the target's address that no point of the tile changes, as a first summand."""
    mapping = printer.mapping
    names = [n for s in (*mapping.m, *mapping.n) for n in s.variables]
    start = fixed_address(printer.out, names, printer.scope)
    return "" if start == "0" else f"{start} + "


def _element(printer: TilePrinter, own: str, loads: Mapping[Access, str]) -> list[str]:
    """One element of a thread; ``own`` is its sum, and ``loads`` are in registers."""
    scope, stmt = printer.scope, printer.stmts[0]
    held = _target(printer)
    given = own if len(printer.stmts) > 1 else total(stmt.coeff, printer.dtype, own)
    if stmt.accumulate:
        given = f"{f'{loads[printer.out]}[{_AT}]' if loads else held} + {given}"
    if not printer.epilogue:
        return [f"if (tc_i >= 0 && tc_j >= 0) {held} = {given};"]
    # An element of the tile is a variable of the thread.
    name = printer.out.buffer
    register = replace(scope.buffers[name], place="register")
    inner = scope.holding({name: register}, {name: "tc_value"})
    own_loads = {a: n for a, n in loads.items() if a.buffer != name}
    inner = held_in_registers(own_loads, _AT, inner)
    lines, number = [], 0
    for after in printer.epilogue:
        loaded = replace(after, expr=from_registers(after.expr, own_loads))
        if is_total(after):
            lines.append(f"tc_total{number} += {value(loaded, inner, coefficient=False)};")
            number += 1
        else:
            lines.append(store(loaded, inner, value(loaded, inner, coefficient=True)))
    if scope.buffers[name].place != "tile":
        lines.append(f"{held} = tc_value;")
    return part(
        TILES,
        "value",
        printer,
        column_values=_named(printer, printer.mapping.n, printer.column),
        value=given,
        epilogue=lines,
    )
