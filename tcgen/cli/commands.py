"""The command line: compile, report, explain, run, solve, convert, spin, list, doctor, cache.

Exit codes: 0 done; 1 the answer is wrong or a check failed; 2 bad input or usage; 3 cannot be done
here. Errors go to stderr; with --json one object goes to stdout and nothing else.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from .._version import __version__
from ..cache_files import remove_kept
from ..compiler.documents import (
    is_artifact,
    load_artifact,
    read_artifact_system,
    read_executed,
    read_plan,
    report_of,
)
from ..compiler.driver import Compilation, compile_system, read_system
from ..compiler.plan_cache import plans_kept
from ..compiler.progress import in_words
from ..compiler.target import default_target
from ..compiler.timings import times_kept
from ..compiler.tracer import Tracer
from ..errors import CacheWarning, ExtentError, SpecError, TcgenError
from ..ir.plan import FusionPlan
from ..ir.system import System, planning_extents
from ..options import MOST, parse_bytes
from ..resources import shipped_specs
from ..runtime.cpu.object_cache import cache_clear, cache_info
from ..runtime.program import Program
from .arrays_in_files import write_arrays
from .options import (
    chosen_options,
    chosen_planning,
    json_option,
    planning_options,
    refuse_planning,
)
from .output import (
    StatusLine,
    make_folder,
    output_console,
    print_json,
    print_text,
    print_warnings,
    show_warning,
    write_text,
)
from .solve_options import solve_options


class _Command(click.Command):
    """Takes -v and -q after the command too."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        for short, name in (("-v", "verbose"), ("-q", "quiet")):
            option = click.Option(
                [short, f"--{name}"],
                is_flag=True,
                hidden=True,
                expose_value=False,
                callback=_noted,
            )
            self.params.append(option)


def _noted(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.obj[param.name] = ctx.obj[param.name] or value


class _Group(click.Group):
    """Turns an error that a user caused into its message and exit code."""

    command_class = _Command
    group_class = type  # groups inside are of this class

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except TcgenError as error:
            prefix = "" if isinstance(error, SpecError) else "tcgen: error: "
            click.echo(f"{prefix}{error}", err=True)
            ctx.exit(error.exit_code)
        except BrokenPipeError:
            raise  # the reader of our output has closed it; click ends quietly
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            click.echo(f"tcgen: error: {where}{error.strerror or error}", err=True)
            ctx.exit(2)
        except MemoryError as error:  # of arrays that are no program's, such as random inputs
            click.echo(f"tcgen: error: not enough memory: {error or 'no details'}", err=True)
            ctx.exit(3)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tcgen")
@click.option("-v", "--verbose", is_flag=True, help="Show the time of each stage on stderr.")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@click.pass_context
def main(ctx: click.Context, verbose: bool, quiet: bool) -> None:
    """Compile the equations of many-body methods to fused loop nests."""
    ctx.obj = {"verbose": verbose, "quiet": quiet}
    ctx.with_resource(warnings.catch_warnings())
    warnings.simplefilter("error", CacheWarning)  # the user can name another folder, and go on
    warnings.showwarning = partial(show_warning, ctx.obj)


@main.command("compile")
@click.argument("spec", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Folder to write.  [default: <spec>_tcgen/]",
)
@planning_options
@click.option(
    "--spin",
    type=click.Choice(("closed-shell", "unrestricted")),
    help="Integrate over spins first, as tcgen spin does.",
)
@click.option(
    "--objects",
    is_flag=True,
    help="Put the compiled objects into the folder, for such processors without a compiler.",
)
@click.option(
    "--fallback",
    is_flag=True,
    help="Put kernels for NumPy into the folder, too, for machines without a compiler.",
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
    system = read_system(spec)
    print_warnings(ctx, system)
    if spin is not None:
        from ..algebra.spin.integrate import spin_integrated  # noqa: PLC0415

        system = spin_integrated(system, spin)
    result = _compile(ctx, system, planning, fallback=fallback)
    program = Program(result.artifact)
    if result.artifact.manifest.target != "cuda":  # those are compiled for the GPU that runs them
        program.build()
    folder = output or Path(f"{spec.stem}_tcgen")
    program.save(folder, objects=objects)
    if as_json:
        print_json(_report_of(result))
        return
    if not ctx.obj["quiet"]:
        from ..report import print_report  # noqa: PLC0415  (tables are loaded when printed)

        print_report(_report_of(result), output_console(), most_arrays=10)
        click.echo(f"wrote {folder}/")


@main.command("report")
@click.argument("source", type=click.Path(path_type=Path))
@planning_options
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the report as one page that needs no network.",
)
@click.option(
    "--figures",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the page's drawings as SVG files.",
)
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    help="Predict the work, memory and traffic of a DIR on this many nodes.",
)
@click.option("--node-memory", metavar="BYTES", help="Memory of a node, for example 200GB.")
@click.option(
    "--network",
    type=click.IntRange(min=1),
    help="Bytes per second that a node receives or reads (default 10^9).",
)
@json_option
@click.pass_context
def report_command(
    ctx: click.Context,
    /,
    source: Path,
    html: Path | None,
    figures: Path | None,
    nodes: int | None,
    node_memory: str | None,
    network: int | None,
    as_json: bool,
    **planning: Any,
) -> None:
    """Show operations, memory, arrays and kernels of a compiled DIR or a SPEC, at any extents."""
    if nodes is not None or node_memory is not None or network is not None:
        if nodes is None or node_memory is None or html is not None or figures is not None:
            raise click.UsageError(
                "a report of nodes takes --nodes N and --node-memory BYTES together, and neither "
                "--html nor --figures"
            )
        if not is_artifact(source):
            raise click.UsageError(
                f"--nodes needs a compiled DIR: run tcgen compile {source} first"
            )
        refuse_planning(ctx, source, "extents")
        _report_nodes(source, planning["extents"], nodes, node_memory, network, as_json)
        return
    from ..report import figures as draw_figures  # noqa: PLC0415
    from ..report import print_report, report_html  # noqa: PLC0415

    if is_artifact(source):
        refuse_planning(ctx, source, "extents")
        artifact = load_artifact(source)
        system, plan = read_artifact_system(artifact), read_plan(artifact)
        report = report_of(artifact, plan, _extents_for(plan, planning["extents"]))
        report["seconds"] = {}
    else:
        system = read_system(source)
        print_warnings(ctx, system)
        result = _compile(ctx, system, planning)
        artifact, plan = result.artifact, result.plan
        report = _report_of(result)
    files: dict[Path, str] = {}
    if html is not None:
        executed = read_executed(artifact, plan)
        files[html] = report_html(system, plan, artifact.manifest, executed, report)
    if figures is not None:
        make_folder(figures)
        drawn = draw_figures(plan, artifact.manifest, report)
        files |= {figures / name: text for name, text in drawn.items()}
    for path, text in files.items():
        write_text(path, text)
    if as_json:
        print_json(report)
        return
    print_report(report, output_console())
    if not ctx.obj["quiet"]:
        for path in files:
            click.echo(f"wrote {path}")


# What ``explain --json`` prints of a report.
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


def _report_nodes(
    folder: Path,
    given: tuple[tuple[str, int], ...],
    nodes: int,
    node_memory: str,
    network: int | None,
    as_json: bool,
) -> None:
    from ..distributed.nodes import NETWORK, price_nodes  # noqa: PLC0415  (loads the planner)

    artifact = load_artifact(folder)
    extents = _extents_for(read_plan(artifact), given)
    memory = parse_bytes(node_memory)
    report = price_nodes(Program(artifact), extents, nodes, memory, network or NETWORK)
    if as_json:
        print_json({"schema": 1, "nodes": asdict(report)})
    else:
        for line in report.lines:
            click.echo(line)


@main.command("explain")
@click.argument("source", type=click.Path(path_type=Path))
@planning_options
@click.option(
    "--sequence",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the formula sequence as neutral JSON.",
)
@json_option
@click.pass_context
def explain_command(
    ctx: click.Context, /, source: Path, sequence: Path | None, as_json: bool, **planning: Any
) -> None:
    """Show the formula sequence of a compiled DIR or a SPEC, with the cost of each line."""
    from ..report import explain_text  # noqa: PLC0415

    if is_artifact(source):
        refuse_planning(ctx, source, "extents")
        artifact = load_artifact(source)
        plan = read_plan(artifact)
        extents = _extents_for(plan, planning["extents"])
    else:
        system = read_system(source)
        print_warnings(ctx, system)
        result = _compile(ctx, system, planning)
        artifact, plan, extents = result.artifact, result.plan, dict(result.plan.extents)
    report = report_of(artifact, plan, extents)
    if sequence is not None:
        from ..algebra.sequence.export import neutral_sequence  # noqa: PLC0415

        text = json.dumps(neutral_sequence(plan.program), indent=1) + "\n"
        write_text(sequence, text)
    if as_json:
        print_json({key: report[key] for key in _EXPLAINED if key in report})
    else:
        print_text(explain_text(plan, report))


@main.command("run")
@click.argument("source", type=click.Path(path_type=Path))
@planning_options
@click.option("--inputs", type=click.Path(path_type=Path), help="Arrays by name, .npz or .h5.")
@click.option(
    "--random",
    "seed",
    type=click.IntRange(min=0),
    help="Seed of random inputs (default 0).",
)
@click.option("--output", type=click.Path(path_type=Path), help="Write the results, .npz.")
@click.option("--save-inputs", type=click.Path(path_type=Path), help="Write the inputs, .npz.")
@click.option("--check", is_flag=True, help="Compare with the interpreter; exit 1 if wrong.")
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Timed runs, after one to warm up.",
)
@click.option(
    "--scheduler", metavar="ADDRESS", help="Run a DIR on the workers of a dask scheduler."
)
@click.option("--mpi", is_flag=True, help="Run a DIR on the ranks of mpirun.")
@click.option(
    "--worker-memory",
    metavar="BYTES",
    default="4GiB",
    show_default=True,
    help="Largest number of bytes that one worker may use.",
)
@json_option
@click.pass_context
def run_command(
    ctx: click.Context,
    /,
    source: Path,
    inputs: Path | None,
    seed: int | None,
    output: Path | None,
    save_inputs: Path | None,
    check: bool,
    repeat: int,
    scheduler: str | None,
    mpi: bool,
    worker_memory: str,
    as_json: bool,
    **planning: Any,
) -> None:
    """Run a compiled DIR or a SPEC on given or random inputs."""
    if scheduler is not None or mpi:
        if scheduler is not None and mpi:
            raise click.UsageError("give --scheduler or --mpi, not both")
        if inputs is None or check or save_inputs is not None or repeat > 1:
            raise click.UsageError(
                "--scheduler and --mpi run once, on arrays in a file: give --inputs FILE, and "
                "neither --random, --check, --repeat nor --save-inputs"
            )
        if not is_artifact(source):
            raise click.UsageError(f"workers need a compiled DIR: run tcgen compile {source} first")
        refuse_planning(ctx, source)
        _run_on_workers(ctx, source, inputs, scheduler, worker_memory, output, as_json)
        return
    from . import run as trial  # noqa: PLC0415  (loads the interpreter)

    if inputs is not None and seed is not None:
        raise click.UsageError("give --inputs or --random, not both")
    if output is not None and output == save_inputs:
        raise click.UsageError(f"--output and --save-inputs are both {output}: give two files")
    seconds: tuple[tuple[str, float], ...] = ()
    if is_artifact(source):
        refuse_planning(ctx, source, "extents", "memory_limit")
        artifact = load_artifact(source)
        system = read_artifact_system(artifact)
        if planning["memory_limit"] is not None:
            artifact = artifact.with_memory_limit(parse_bytes(planning["memory_limit"]))
        defaults = dict(artifact.manifest.planning_extents)
    else:
        system = read_system(source)
        print_warnings(ctx, system)
        artifact, defaults = None, {}
    given = {**defaults, **dict(planning["extents"])}
    dtype = artifact.manifest.dtype if artifact else planning["dtype"]
    case = (
        trial.read_inputs(system, inputs, given)
        if inputs is not None
        else trial.random_inputs(system, dict(planning_extents(system, given)), dtype, seed or 0)
    )
    for name, extent in planning["extents"]:
        if case.extents.get(name, extent) != extent:
            raise ExtentError(
                f"-e {name}={extent} contradicts the arrays in {inputs}, where space {name} has "
                f"extent {case.extents[name]}: leave it out, extents come from the arrays"
            )
    if artifact is None:
        extents = tuple((space, max(1, n)) for space, n in case.extents.items())  # 0 needs no plan
        result = _compile(ctx, system, {**planning, "extents": extents})
        artifact, seconds = result.artifact, result.seconds
    if save_inputs is not None:
        write_arrays(save_inputs, {**case.inputs, **case.starts})
    with StatusLine(ctx.obj["quiet"]) as status:
        program = Program(artifact)
        outcome = trial.run(program, system, case, repeat=repeat, check=check, status=status)
    if output is not None:
        write_arrays(output, outcome.outputs)
    if as_json:
        report = report_of(artifact, read_plan(artifact), case.extents)
        print_json({**report, **outcome.numbers, "seconds": dict(seconds)})
    elif not ctx.obj["quiet"]:
        for line in outcome.lines:
            click.echo(line)
    if outcome.failure:
        click.echo(f"tcgen: error: {outcome.failure}", err=True)
        ctx.exit(1)


def _run_on_workers(
    ctx: click.Context,
    folder: Path,
    inputs: Path,
    scheduler: str | None,
    memory: str,
    output: Path | None,
    as_json: bool,
) -> None:
    from . import many_workers  # noqa: PLC0415  (loads the engines)

    with many_workers.workers(scheduler) as (where, prints):
        show = prints and not ctx.obj["quiet"] and Console(stderr=True).is_terminal

        def progress(done: int, tasks: int) -> None:
            if show:
                click.echo(f"\r{done} of {tasks} tasks", err=True, nl=done == tasks)

        program = Program(load_artifact(folder))
        outcome = many_workers.run_on_workers(program, where, inputs, memory, progress)
    if not prints:
        return
    if output is not None:
        write_arrays(output, outcome.outputs)
    if as_json:
        print_json({"schema": 1, **outcome.numbers})
    elif not ctx.obj["quiet"]:
        for line in outcome.lines:
            click.echo(line)


@main.command("solve")
@click.argument("source", metavar="SPEC")
@solve_options
@planning_options
@json_option
@click.pass_context
def solve_command(ctx: click.Context, /, source: str, as_json: bool, **chosen: Any) -> None:
    """Solve the equations of SPEC, a file or a shipped name, for a molecule (needs PySCF)."""
    from . import solve as calculation  # noqa: PLC0415  (loads the interpreter)

    quiet = ctx.obj["quiet"]
    target = chosen["target"] or ("cpu" if chosen["tune"] else default_target(_say(ctx)))
    with StatusLine(quiet) as status:

        def show(line: str) -> None:
            status.clear()
            click.echo(line, err=as_json)

        solution = calculation.solve(
            source,
            chosen,
            show=False if quiet else show,
            progress=status.show,
            extents=dict(chosen["extents"]),
            target=target,
            dtype=chosen["dtype"],
            memory_limit=chosen["memory_limit"],
            planning=chosen_planning(chosen),
        )
    if as_json:
        print_json({"schema": 1, **solution.as_json()})
    if not solution.converged:
        worst = max(solution.residual_norms.values())
        click.echo(
            f"tcgen: error: not converged: the largest residual norm is {worst:.1e} after "
            f"{solution.iterations} iterations: raise --max-cycle, or try --damping 0.3",
            err=True,
        )
        ctx.exit(1)


@main.command("convert")
@click.argument("source", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File to write.  [default: stdout]"
)
@click.option("--real", is_flag=True, help="Orbitals are real: bra and ket may be exchanged.")
@click.pass_context
def convert_command(ctx: click.Context, /, source: Path, output: Path | None, real: bool) -> None:
    """Write FILE (.spec, .json, or what pdaggerq or wick&d printed) as a .spec."""
    from ..frontend import read_printed, spec_text  # noqa: PLC0415  (loaded where files are read)
    from ..frontend.source import read_text  # noqa: PLC0415

    if real and source.suffix in (".spec", ".json"):
        raise click.UsageError(
            "--real applies to .txt and .jsonl files: leave it out, or declare symmetry in the file"
        )
    system = (
        read_printed(read_text(source), str(source), real=True) if real else read_system(source)
    )
    print_warnings(ctx, system)
    text = spec_text(system)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)


@main.command("spin")
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--closed-shell", "form", flag_value="closed-shell", help="For an RHF reference.")
@click.option(
    "--unrestricted", "form", flag_value="unrestricted", help="For a UHF or ROHF reference."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File to write.  [default: stdout]"
)
@click.pass_context
def spin_command(ctx: click.Context, /, spec: Path, form: str | None, output: Path | None) -> None:
    """Write SPEC, which is over spin orbitals, as a .spec over spatial orbitals."""
    from ..chem.spin_notes import annotated_spec  # noqa: PLC0415

    if form is None:
        raise click.UsageError("give --closed-shell or --unrestricted")
    system = read_system(spec)
    print_warnings(ctx, system)
    text = annotated_spec(system, form)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)


@main.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the specs that ship with tcgen; commands take their names as SPEC."""
    described = {
        name: _first_comment(path.read_text(encoding="utf-8"))
        for name, path in shipped_specs().items()
    }
    if as_json:
        print_json({"schema": 1, "specs": described})
        return
    print_text("".join(f"{name}\n    {text}\n" for name, text in described.items()))


def _first_comment(text: str) -> str:
    """The first line of a spec, which says what it is."""
    return text.partition("\n")[0].removeprefix("#").strip()


@main.command("doctor")
@json_option
def doctor_command(as_json: bool) -> None:
    """Show what works on this machine, and what to install."""
    from .doctor import examine, print_findings  # noqa: PLC0415

    findings = examine()
    if as_json:
        print_json({"schema": 1, "findings": findings})
    else:
        print_findings(findings, output_console())


@main.group("cache")
def cache_group() -> None:
    """Show or clear the compiled objects, plans and measured times kept between runs."""


@cache_group.command("info")
@json_option
def cache_info_command(as_json: bool) -> None:
    """Show where the cache is, and how many objects, plans, times and bytes it holds."""
    info, plans, times = cache_info(), plans_kept(), times_kept()
    count = info["bytes"] + sum(p.stat().st_size for p in (*plans, *times))
    if as_json:
        print_json({**info, "plans": len(plans), "times": len(times), "bytes": count})
    else:
        held = f"{info['objects']} objects, {len(plans)} plans, {len(times)} times, {count:,} bytes"
        click.echo(f"{info['folder']}: {held}")


@cache_group.command("clear")
def cache_clear_command() -> None:
    """Remove every compiled object, plan and measured time from the cache."""
    plans, times = plans_kept(), times_kept()
    remove_kept((*plans, *times))
    click.echo(f"removed {cache_clear()} objects, {len(plans)} plans and {len(times)} times")


def _say(ctx: click.Context) -> Callable[[str], None] | None:
    """Prints a line on stderr, unless the command is quiet."""
    return None if ctx.obj["quiet"] else lambda text: click.echo(f"tcgen: {text}", err=True)


def _compile(
    ctx: click.Context, system: System, planning: dict[str, Any], *, fallback: bool = False
) -> Compilation:
    target = planning["target"] or ("cpu" if planning["tune"] else default_target(_say(ctx)))
    options = chosen_options(planning, target)
    with StatusLine(ctx.obj["quiet"]) as status:
        tracer = Tracer(lambda text: status.show(in_words(text, options.target)))
        result = compile_system(system, options, tracer, fallback=fallback)
    print_warnings(ctx, result)
    if ctx.obj["verbose"]:
        for stage, seconds in result.seconds:
            click.echo(f"{stage:<8} {seconds:8.3f} s", err=True)
    return result


def _report_of(result: Compilation) -> dict[str, Any]:
    report = result.artifact.json("report.json")
    seconds = dict(result.seconds)
    report["fusion"]["seconds"] = seconds["plan"]
    if "tuning" in report:
        report["tuning"] = [choice.row(times=True) for choice in result.choices]
    return {**report, "seconds": seconds}


def _extents_for(plan: FusionPlan, given: tuple[tuple[str, int], ...]) -> dict[str, int]:
    extents = plan.extent_of
    for name, value in given:
        if name not in extents:
            raise ExtentError(f"space {name} is not declared; there are: {', '.join(extents)}")
        if not 0 <= value <= MOST:
            raise ExtentError(f"extent {name}={value} is negative, or above 2^63 - 1")
    return {**extents, **dict(given)}


if __name__ == "__main__":
    main()
