"""``tcgen compile``, and the sources of other commands: a SPEC or a compiled DIR."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..artifact.folder import Artifact
from ..compiler.documents import (
    is_artifact,
    load_artifact,
    read_artifact_system,
    read_plan,
    report_of,
)
from ..compiler.driver import Compilation, compile_system, read_system
from ..compiler.progress import in_words
from ..compiler.tracer import Tracer
from ..errors import ExtentError
from ..ir.plan import FusionPlan
from ..ir.system import System, assumed_extents
from ..options import MOST
from ..runtime.program import Program
from .options import (
    PATH,
    Command,
    chosen_options,
    chosen_target,
    json_option,
    option,
    output_option,
    planning_options,
    refuse_planning,
)
from .output import StatusLine, output_console, print_json, print_warnings


@click.command("compile", cls=Command)
@click.argument("spec", type=PATH)
@output_option("Folder to write.  [default: <spec>_tcgen/]")
@planning_options
@option(
    "--spin",
    type=click.Choice(("closed-shell", "unrestricted", "triplet")),
    help="Integrate over spins first, as tcgen spin does.",
)
@option(
    "--objects",
    is_flag=True,
    help="Add compiled objects to the folder; machines of the same kind then need no compiler.",
)
@option(
    "--fallback",
    is_flag=True,
    help="Add kernels for NumPy to the folder, for machines without a compiler.",
)
@json_option
@click.pass_context
def compile_command(
    ctx: click.Context,
    /,
    spec: Path,
    output: Path | None,
    spin: str | None,
    objects: bool,
    fallback: bool,
    as_json: bool,
    **planning: Any,
) -> None:
    """Compile SPEC (.spec or .json) into a folder that runs on its own."""
    if is_artifact(spec):
        raise click.UsageError(f"{spec} is compiled already: give the spec it was made from")
    system = read_equations(ctx, spec)
    if spin is not None:
        from ..algebra.spin.integrate import spin_integrated  # noqa: PLC0415
        from ..chem.spin_notes import warn_of_spatial  # noqa: PLC0415

        integrated = spin_integrated(system, spin)
        warn_of_spatial(system)
        system = integrated
    result = compiled(ctx, system, planning, fallback=fallback)
    program = Program(result.artifact)
    if result.artifact.manifest.target != "cuda":  # CUDA is compiled for the GPU that runs it
        program.build()
    folder = output or Path(f"{spec.stem if spec.suffix else system.name}_tcgen")
    program.save(folder, objects=objects)
    report = with_times(result.artifact.json("report.json"), result)
    if as_json:
        print_json(report)
    elif not ctx.obj["quiet"]:
        from ..report import print_report  # noqa: PLC0415  (loads tables)

        print_report(report, output_console(), most_arrays=10)
        click.echo(f"wrote {folder}/")


@dataclass(frozen=True, slots=True)
class Source:
    """A compiled DIR, or a SPEC that was compiled for a command; ``result`` is None for a DIR.

    The report has the extents that the command asks for.
    """

    system: System
    plan: FusionPlan
    artifact: Artifact
    report: dict[str, Any]
    result: Compilation | None


def read_source(ctx: click.Context, source: Path, planning: dict[str, Any]) -> Source:
    """Load a compiled DIR, or compile a SPEC with the options of the command line."""
    if is_artifact(source):
        refuse_planning(ctx, source, "extents")
        artifact = load_artifact(source)
        system, plan = read_artifact_system(artifact), read_plan(artifact)
        report = report_of(artifact, plan, extents_for(plan, planning["extents"]))
        return Source(system, plan, artifact, report, None)
    system = read_equations(ctx, source)
    result = compiled(ctx, system, planning)
    report = result.artifact.json("report.json")
    return Source(system, result.plan, result.artifact, report, result)


def read_equations(ctx: click.Context, source: Path) -> System:
    """The equations of a SPEC, whose warnings are printed."""
    system = read_system(source)
    print_warnings(ctx, system)
    return system


def compiled(
    ctx: click.Context, system: System, planning: dict[str, Any], *, fallback: bool = False
) -> Compilation:
    """Compile equations; show the stages, and with -v their times."""
    options = chosen_options(planning, chosen_target(ctx, planning))
    assumed = assumed_extents(system, options.extent_of)
    if assumed and not (ctx.obj["quiet"] or ctx.params.get("as_json")):
        shown = ", ".join(f"{name}={extent}" for name, extent in assumed.items())
        example = " ".join(f"-e {name}={extent // 2}" for name, extent in assumed.items())
        click.echo(f"planned for typical extents, {shown} (for others: {example})")
    with StatusLine(ctx.obj["quiet"]) as status:
        tracer = Tracer(lambda text: status.show(in_words(text, options.target)))
        result = compile_system(system, options, tracer, fallback=fallback)
    print_warnings(ctx, result)
    if ctx.obj["verbose"]:
        for stage, seconds in result.seconds:
            click.echo(f"{stage:<8} {seconds:8.3f} s", err=True)
    return result


def with_times(report: dict[str, Any], result: Compilation | None) -> dict[str, Any]:
    """A report with the times of stages and of measured variants, which artifacts do not hold."""
    if result is None:
        return {**report, "seconds": {}}
    seconds = dict(result.seconds)
    report["fusion"]["seconds"] = seconds["plan"]
    if "tuning" in report:
        report["tuning"] = [choice.row(times=True) for choice in result.choices]
    return {**report, "seconds": seconds}


def extents_for(plan: FusionPlan, given: tuple[tuple[str, int], ...]) -> dict[str, int]:
    """The planning extents with those of -e in their place; an ExtentError if these do not fit."""
    extents = plan.extent_of
    for name, value in given:
        if name not in extents:
            raise ExtentError(f"space {name} is not declared; there are: {', '.join(extents)}")
        if not 0 <= value <= MOST:
            raise ExtentError(f"extent {name}={value} is negative, or above 2^63 - 1")
    return {**extents, **dict(given)}
