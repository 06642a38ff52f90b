"""The report as tables for a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table

from ..runtime.report import TOTALS, fusion_text
from .numbers import OPERATIONS
from .units import readable_bytes


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a table, with its cells from the first row to the last.

    ``dropped`` is the rank of the column among those that are left out if the window is too narrow,
    the smallest first, and None for a column that is always shown. ``numeric`` aligns cells at the
    right, ``wraps`` breaks them between words.
    """

    title: str
    cells: list[str]
    numeric: bool = False
    dropped: int | None = None
    wraps: bool = False

    @property
    def width(self) -> int:
        """Smallest number of characters."""
        if self.wraps:
            return max(len(self.title), *(len(w) for c in self.cells for w in c.split()), 0)
        return max(len(self.title), *(len(cell) for cell in self.cells), 0)


def print_report(report: dict[str, Any], console: Console, most_arrays: int | None = None) -> None:
    """Print the tables of a report made by :func:`tcgen.report.report_json`.

    Columns that do not fit the console are left out. The ``most_arrays`` largest arrays are shown.
    """
    width = console.width
    sizes = ", ".join(f"{n} = {e}" for n, e in report["extents"].items())
    console.print(f"[bold]{report['spec']}[/bold]  {sizes}  {report['dtype']}  {report['target']}")
    console.print(_operations(report["operations"], width))
    console.print(_memory(report["memory"], width))
    if "blocks" in report:
        console.print(_blocks(report["blocks"], report["memory"], width))
    arrays = sorted(report["arrays"], key=lambda r: -r["bytes"])
    console.print(_arrays(arrays[:most_arrays], width))
    if most_arrays is not None and len(arrays) > most_arrays:
        console.print(f"and {len(arrays) - most_arrays} smaller arrays (tcgen report shows all)")
    if report.get("pareto"):
        console.print(_pareto(report["pareto"], width))
    if "tuning" in report:
        console.print(_tuning(report["tuning"], width))
    for note in report["notes"]:
        # Without markup, which would read r[i,a] as a style.
        console.print(f"not optimised: {note}", markup=False)
    console.print(
        f"fusion: objective {fusion_text(report)}; "
        f"{_count(report['kernels'], 'kernel')}, {_count(report['steps'], 'step')}"
    )


def _count(things: list[Any], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def _pareto(points: list[dict[str, Any]], width: int) -> Table:
    limits = [point["limit_bytes"] for point in points]
    return _table(
        "Time-memory trade-off",
        width,
        _Column("limit", ["none" if n is None else f"{n:,}" for n in limits], numeric=True),
        _Column("peak", [f"{point['peak_bytes']:,}" for point in points], numeric=True),
        _Column("predicted s", [f"{point['seconds']:.4g}" for point in points], numeric=True),
        _Column("steps repeated", [str(p["repeats"]) for p in points], numeric=True, dropped=0),
        _Column("shared loops", [", ".join(p["loops"]) or "none" for p in points], False, 1, True),
    )


def _tuning(rows: list[dict[str, Any]], width: int) -> Table:
    """Measured variants; the model's choice is shown only if it differs."""
    other = ["" if row["taken"] == row["model"] else row["model"] for row in rows]
    return _table(
        "Matrix products, as measured",
        width,
        _Column("product", [row["product"] for row in rows], wraps=True),
        _Column("by", [row["taken"] for row in rows]),
        _Column("the model", other, dropped=0),
    )


def _table(title: str, width: int, *columns: _Column) -> Table:
    """A table of the columns that fit."""
    shown = list(columns)
    while sum(column.width + 2 for column in shown) - 2 > width:
        droppable = [c for c in shown if c.dropped is not None]
        if not droppable:
            break
        shown.remove(min(droppable, key=lambda c: c.dropped or 0))
    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for column in shown:
        justify: JustifyMethod = "right" if column.numeric else "left"
        table.add_column(
            column.title, justify=justify, no_wrap=not column.wraps, min_width=column.width
        )
    for row in zip(*(column.cells for column in shown), strict=True):
        table.add_row(*map(escape, row))
    return table


def _operations(operations: dict[str, Any], width: int) -> Table:
    flops = [f"{operations[key]:,}" for key in OPERATIONS]
    moved = [operations.get(f"{key}_bytes") for key in OPERATIONS]
    return _table(
        f"Operations, {operations['optimality']}",
        width,
        _Column("", list(OPERATIONS.values()), wraps=True),
        _Column("flops", flops, numeric=True),
        _Column("bytes", ["" if n is None else f"{n:,}" for n in moved], True, dropped=0),
    )


def _memory(memory: dict[str, Any], width: int) -> Table:
    names = {key: name for name, key in TOTALS}
    names["peak_bytes"] = "peak (all a call allocates, 1 thread)"
    rows = [(name, memory[key]) for key, name in names.items() if memory[key] is not None]
    return _table(
        "Memory",
        width,
        _Column("", [name for name, _ in rows], wraps=True),
        _Column("bytes", [f"{count:,}" for _, count in rows], numeric=True, dropped=0),
        _Column("", [readable_bytes(count) for _, count in rows], numeric=True),
    )


def _blocks(blocks: dict[str, Any], memory: dict[str, Any], width: int) -> Table:
    rows = [
        ("flops of products, per call", blocks["dense_products"], blocks["products"]),
        ("bytes of inputs", memory["inputs_bytes"], blocks["inputs_bytes"]),
        ("bytes of outputs", memory["outputs_bytes"], blocks["outputs_bytes"]),
        ("peak", memory["peak_bytes"], blocks["peak_bytes"]),
        ("bytes of tables", None, blocks["table_bytes"]),
    ]
    shares = ["" if not a else f"{b / a:.3f}" for _, a, b in rows]
    return _table(
        f"Blocks of {blocks['group']}",
        width,
        _Column("", [name for name, _, _ in rows], wraps=True),
        _Column("dense", ["" if a is None else f"{a:,}" for _, a, _ in rows], numeric=True),
        _Column("blocks", [f"{b:,}" for _, _, b in rows], numeric=True),
        _Column("share", shares, numeric=True, dropped=0),
    )


def _arrays(rows: list[dict[str, Any]], width: int) -> Table:
    fused = [
        ",".join(i if row["tile"][i] == 1 else f"{i}:{row['tile'][i]}" for i in row["fused"])
        for row in rows
    ]
    sizes = [f"{row['bytes']:,}" for row in rows]
    readers = [" ".join(f"s{c}" for c in row["consumers"]) for row in rows]
    columns = (
        _Column("name", [row["name"] for row in rows]),
        _Column("kind", [row["kind"] for row in rows], dropped=4),
        _Column("indices", [",".join(row["indices"]) for row in rows], dropped=5),
        _Column("fused", fused, dropped=3),
        _Column("unfused", [f"{row['elements_unfused']:,}" for row in rows], True, dropped=0),
        _Column("elements", [f"{row['elements']:,}" for row in rows], True, dropped=1),
        _Column("bytes", sizes, numeric=True),
        _Column("read by", readers, dropped=2, wraps=True),
    )
    return _table("Arrays", width, *columns)
