"""``tcgen report`` and ``tcgen explain``: numbers and steps of a compiled DIR or a SPEC."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ..cache_files import save_text
from ..compiler.documents import is_artifact, load_artifact, read_executed, read_plan
from ..options import parse_bytes
from ..runtime.program import Program
from .compile import Source, extents_for, read_source, with_times
from .options import (
    PATH,
    Command,
    Written,
    json_option,
    option,
    planning_options,
    refuse_planning,
    together,
)
from .output import make_folder, output_console, print_json, print_text

# The entries of a report that ``explain --json`` prints.
_EXPLAINED = (
    "schema",
    "spec",
    "target",
    "dtype",
    "extents",
    "operations",
    "steps",
    "nest",
    "notes",
    "tuning",
)

_report_options = together(
    option(
        "--html",
        type=Written(dir_okay=False),
        help="Write the report as one page that needs no network.",
    ),
    option(
        "--figures",
        type=click.Path(path_type=Path, file_okay=False),
        help="Write the page's drawings as SVG files.",
    ),
    option(
        "--grading",
        metavar="GROUP",
        help="Also count blocks: D2h, a mesh such as 2x2x2 or a number of irreps, with equal "
        "numbers of orbitals, or with given ones, as in C2v:o=3,0,1,1,v=1,0,0,1.",
    ),
    option(
        "--nodes",
        type=click.IntRange(min=1),
        help="Predict the work, memory and traffic of a DIR on this many nodes.",
    ),
    option("--node-memory", metavar="BYTES", help="Memory of a node, for example 200GB."),
    option(
        "--network",
        type=click.IntRange(min=1),
        help="Bytes per second that a node receives or reads (default 10^9).",
    ),
)


@click.command("report", cls=Command)
@click.argument("source", type=PATH)
@planning_options
@_report_options
@json_option
@click.pass_context
def report_command(
    ctx: click.Context,
    /,
    source: Path,
    html: Path | None,
    figures: Path | None,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Show operations, memory, arrays and kernels of a compiled DIR or a SPEC, at any extents."""
    if any(chosen[name] is not None for name in ("nodes", "node_memory", "network")):
        if chosen["nodes"] is None or chosen["node_memory"] is None or html or figures:
            raise click.UsageError(
                "a report of nodes takes --nodes N and --node-memory BYTES together, and neither "
                "--html nor --figures"
            )
        _report_nodes(ctx, source, chosen, as_json)
        return
    from ..report import figures as draw_figures  # noqa: PLC0415
    from ..report import print_report, report_html  # noqa: PLC0415

    read, blocks = _read(ctx, source, chosen)
    plan, artifact = read.plan, read.artifact
    report = with_times(read.report, read.result) | blocks
    files: dict[Path, str] = {}
    if html is not None:
        executed = read_executed(artifact, plan)
        files[html] = report_html(read.system, plan, artifact.manifest, executed, report)
    if figures is not None:
        make_folder(figures)
        drawn = draw_figures(plan, artifact.manifest, report)
        files |= {figures / name: text for name, text in drawn.items()}
    for path, text in files.items():
        save_text(path, text)
    if as_json:
        print_json(report)
        return
    print_report(report, output_console())
    if not ctx.obj["quiet"]:
        for path in files:
            click.echo(f"wrote {path}")


def _read(
    ctx: click.Context, source: Path, chosen: dict[str, Any]
) -> tuple[Source, dict[str, Any]]:
    """The source, and the entry of its report about blocks if there is a grading."""
    if chosen["grading"] is None:
        return read_source(ctx, source, chosen), {}
    from ..blocks.forecast import forecast, read_grading, with_orbitals  # noqa: PLC0415

    group, counts = read_grading(chosen["grading"])
    given = {name: sum(own) for name, own in counts.items()} | dict(chosen["extents"])
    read = read_source(ctx, source, {**chosen, "extents": tuple(given.items())})
    extents, sequence = read.report["extents"], read.plan.program
    grading = with_orbitals(group, counts, sequence.spaces, extents)
    return read, {"blocks": forecast(sequence, grading, extents, read.report["dtype"])}


def _report_nodes(ctx: click.Context, folder: Path, chosen: dict[str, Any], as_json: bool) -> None:
    """Predict runs of a compiled DIR on the nodes of a cluster."""
    from ..distributed.nodes import NETWORK, price_nodes  # noqa: PLC0415  (loads the planner)

    if not is_artifact(folder):
        raise click.UsageError(f"--nodes needs a compiled DIR: run tcgen compile {folder} first")
    refuse_planning(ctx, folder, "extents")
    artifact = load_artifact(folder)
    extents = extents_for(read_plan(artifact), chosen["extents"])
    memory, network = parse_bytes(chosen["node_memory"]), chosen["network"] or NETWORK
    report = price_nodes(Program(artifact), extents, chosen["nodes"], memory, network)
    if as_json:
        print_json({"schema": 1, "nodes": asdict(report)})
    else:
        for line in report.lines:
            click.echo(line)


@click.command("explain", cls=Command)
@click.argument("source", type=PATH)
@planning_options
@option(
    "--sequence",
    type=Written(dir_okay=False),
    help="Write the formula sequence as neutral JSON.",
)
@json_option
@click.pass_context
def explain_command(
    ctx: click.Context, /, source: Path, sequence: Path | None, as_json: bool, **planning: Any
) -> None:
    """Show the formula sequence of a compiled DIR or a SPEC, with the cost of each line."""
    from ..report import explain_text  # noqa: PLC0415

    read = read_source(ctx, source, planning)
    if sequence is not None:
        from ..algebra.sequence.export import neutral_sequence  # noqa: PLC0415

        text = json.dumps(neutral_sequence(read.plan.program), indent=1) + "\n"
        save_text(sequence, text)
    if as_json:
        print_json({key: read.report[key] for key in _EXPLAINED if key in read.report})
    else:
        print_text(explain_text(read.plan, read.report))
