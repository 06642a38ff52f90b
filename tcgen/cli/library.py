"""``tcgen library``: specs and compiled folders as a library for C, C++ and Fortran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..compiler.documents import is_artifact
from ..errors import ArgumentError
from ..native.make import make_library
from .compile import compiled
from .options import PATH, Command, chosen_options, option, planning_options, refuse_planning
from .output import print_json


@click.command("library", cls=Command)
@click.argument("sources", metavar="SPEC|DIR...", nargs=-1, required=True, type=PATH)
@option("-o", "--output", type=PATH, required=True, help="Folder to write.")
@option("--name", metavar="NAME", help="Name of the library.  [default: the folder's]")
@option("--prefix", metavar="PREFIX", help="Beginning of symbols in C.  [default: <name>_]")
@option(
    "--archs",
    metavar="ARCHS",
    default="native",
    help="Processors: native, one of Arm, or levels such as x86-64-v3,x86-64-v4.",
)
@option("--fortran-order", is_flag=True, help="Store arrays so that Fortran has t2(i,j,a,b).")
@planning_options
@option("--json", "as_json", is_flag=True, help="Print one JSON object to stdout.")
@click.pass_context
def library_command(
    ctx: click.Context,
    /,
    sources: tuple[Path, ...],
    output: Path,
    name: str | None,
    prefix: str | None,
    archs: str,
    fortran_order: bool,
    as_json: bool,
    **planning: Any,
) -> None:
    """Write each SPEC, and each DIR that compile wrote, into one library for C, C++ and Fortran."""
    if all(map(is_artifact, sources)):
        refuse_planning(ctx, sources[0])
    if planning["target"] not in (None, "cpu"):
        raise ArgumentError(
            f"a library holds programs of the target cpu, not {planning['target']}: leave out "
            f"--target"
        )
    planning["target"] = "cpu"
    folder = make_library(
        sources,
        output,
        chosen_options(planning, "cpu"),
        lambda system, own: compiled(ctx, system, {**planning, "extents": own.extents}),
        name=name,
        prefix=prefix,
        archs=archs,
        fortran_order=fortran_order,
        warn=lambda text: click.echo(f"tcgen: warning: {text}", err=True),
    )
    if as_json:
        print_json({"schema": 1, "library": str(folder)})
    elif not ctx.obj["quiet"]:
        click.echo(f"wrote {folder}/ (README.md says how to build and call it)")
