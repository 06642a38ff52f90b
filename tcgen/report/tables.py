"""The report as tables for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table

from ..runtime.report import fusion_text


def print_report(report: dict[str, Any], console: Console) -> None:
    """Print the tables of a report made by :func:`tcgen.report.report_json`."""
    sizes = ", ".join(f"{n} = {e}" for n, e in report["extents"].items())
    console.print(f"[bold]{report['spec']}[/bold]  {sizes}  {report['dtype']}  {report['target']}")
    console.print(_operations(report["operations"]))
    console.print(_memory(report["memory"]))
    console.print(_arrays(report["arrays"]))
    if report.get("pareto"):
        console.print(_pareto(report["pareto"]))
    if "tuning" in report:
        console.print(_tuning(report["tuning"]))
    for note in report["notes"]:
        console.print(f"left as written: {note}", markup=False)  # r[i,a] is no style
    console.print(
        f"fusion: objective {fusion_text(report)}; "
        f"{_count(report['kernels'], 'kernel')}, {_count(report['steps'], 'step')}"
    )


def _count(things: list[Any], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def _pareto(points: list[dict[str, Any]]) -> Table:
    table = _table(
        "Time-memory trade-off",
        ("limit", True),
        ("peak", True),
        ("predicted s", True),
        ("steps repeated", True),
        ("shared loops", False),
    )
    for point in points:
        limit = point["limit_bytes"]
        table.add_row(
            "none" if limit is None else f"{limit:,}",
            f"{point['peak_bytes']:,}",
            f"{point['seconds']:.4g}",
            str(point["repeats"]),
            ", ".join(point["loops"]) or "none",
        )
    return table


def _tuning(rows: list[dict[str, Any]]) -> Table:
    """Measured variants; the model's choice is shown only if it differs."""
    table = _table(
        "Matrix products, as measured", ("product", False), ("by", False), ("the model", False)
    )
    for row in rows:
        other = "" if row["taken"] == row["model"] else row["model"]
        table.add_row(*map(escape, (row["product"], row["taken"], other)))
    return table


def readable_bytes(count: int) -> str:
    """Bytes with a binary unit.

    Example:
        >>> readable_bytes(3 * 2**20)
        '3.00 MiB'
    """
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            return f"{count} bytes" if unit == "bytes" else f"{amount:.2f} {unit}"
        amount /= 1024
    return f"{count} bytes"


def _table(title: str, *columns: tuple[str, bool]) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for name, numeric in columns:
        wraps = name == "read by"
        justify: JustifyMethod = "right" if numeric else "left"
        table.add_column(name, justify=justify, no_wrap=not wraps, overflow="fold")
    return table


def _operations(operations: dict[str, Any]) -> Table:
    table = _table("Operations", ("", False), ("flops", True))
    names = {
        "naive": "naive",
        "each_term": "each term alone",
        "contractions": "contractions",
        "contractions_packed": "  of which symmetry-unique",
        "additions": "additions",
        "maps": "maps",
        "sequence": "sequence",
    }
    for key, name in names.items():
        table.add_row(name, f"{operations[key]:,}")
    return table


def _memory(memory: dict[str, Any]) -> Table:
    table = _table("Memory", ("", False), ("bytes", True), ("", True))
    names = {
        "inputs_bytes": "inputs",
        "outputs_bytes": "outputs",
        "intermediates_unfused_bytes": "intermediates, unfused",
        "intermediates_static_bytes": "intermediates, as planned",
        "peak_bytes": "peak (all the program allocates)",
        "limit_bytes": "limit",
    }
    for key, name in names.items():
        if memory[key] is not None:
            table.add_row(name, f"{memory[key]:,}", readable_bytes(memory[key]))
    return table


def _arrays(arrays: list[dict[str, Any]]) -> Table:
    table = _table(
        "Arrays",
        ("name", False),
        ("kind", False),
        ("indices", False),
        ("fused", False),
        ("unfused", True),
        ("elements", True),
        ("bytes", True),
        ("read by", False),
    )
    for row in sorted(arrays, key=lambda r: -r["bytes"]):
        fused = ",".join(
            i if row["tile"][i] == 1 else f"{i}:{row['tile'][i]}" for i in row["fused"]
        )
        table.add_row(
            row["name"],
            row["kind"],
            ",".join(row["indices"]),
            fused,
            f"{row['elements_unfused']:,}",
            f"{row['elements']:,}",
            f"{row['bytes']:,}",
            " ".join(f"s{c}" for c in row["consumers"]),
        )
    return table
