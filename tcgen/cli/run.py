"""``tcgen run``: a compiled DIR or a SPEC on given or random arrays, here or on workers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from ..artifact.folder import Artifact
from ..compiler.documents import (
    is_artifact,
    load_artifact,
    read_artifact_system,
    read_plan,
    report_of,
)
from ..errors import ArgumentError, ExtentError
from ..ir.system import System, planning_extents
from ..options import parse_bytes
from ..runtime.program import Program
from .arrays_in_files import is_hdf5, read_arrays, stored_names, write_arrays
from .compile import compiled, read_equations
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
from .output import StatusLine, print_json

if TYPE_CHECKING:
    from ..distributed.executor import Engine
    from .timed_run import Case, Outcome

_run_options = together(
    option("--inputs", type=PATH, help="Arrays by name, .npz or .h5."),
    option(
        "--random", "seed", type=click.IntRange(min=0), help="Seed of random inputs (default 0)."
    ),
    option("--output", type=Written(), help="Write the results, .npz."),
    option("--save-inputs", type=Written(), help="Write the inputs, .npz."),
    option("--check", is_flag=True, help="Compare with the interpreter; exit 1 if wrong."),
    option(
        "--repeat", type=click.IntRange(min=1), default=1, help="Timed runs, after one to warm up."
    ),
    option("--scheduler", metavar="ADDRESS", help="Run a DIR on the workers of a dask scheduler."),
    option("--mpi", is_flag=True, help="Run a DIR on the ranks of mpirun."),
    option("--devices", metavar="NUMBERS", help="Run a DIR on GPUs of this machine: 0,1."),
    option(
        "--worker-memory",
        metavar="BYTES",
        help="Largest number of bytes that one worker may use (4GiB; what is free on a GPU).",
    ),
)


@click.command("run", cls=Command)
@click.argument("source", type=PATH)
@planning_options
@_run_options
@json_option
@click.pass_context
def run_command(ctx: click.Context, /, source: Path, as_json: bool, **chosen: Any) -> None:
    """Run a compiled DIR or a SPEC on given or random inputs."""
    if chosen["scheduler"] is not None or chosen["mpi"] or chosen["devices"] is not None:
        outcome = _run_on_workers(ctx, source, chosen)
        report = {"schema": 1}
    else:
        outcome, report = _run_here(ctx, source, chosen)
    if outcome is None:
        return
    if chosen["output"] is not None:
        write_arrays(chosen["output"], outcome.outputs)
    if as_json:
        print_json({**report, **outcome.numbers})
    elif not ctx.obj["quiet"]:
        for line in outcome.lines:
            click.echo(line)
    if outcome.failure:
        click.echo(f"tcgen: error: {outcome.failure}", err=True)
        ctx.exit(1)


def _run_here(
    ctx: click.Context, source: Path, chosen: dict[str, Any]
) -> tuple[Outcome, dict[str, Any]]:
    """Run in this process; also the report of the program."""
    from . import timed_run  # noqa: PLC0415  (loads the interpreter)

    if chosen["inputs"] is not None and chosen["seed"] is not None:
        raise click.UsageError("give --inputs or --random, not both")
    if chosen["worker_memory"] is not None:
        raise click.UsageError(
            "--worker-memory is that of workers: add --scheduler, --mpi or --devices, or give "
            "--memory-limit"
        )
    artifact: Artifact | None = None
    seconds: tuple[tuple[str, float], ...] = ()
    if is_artifact(source):
        artifact = _limited_artifact(ctx, source, chosen)
        system = read_artifact_system(artifact)
    else:
        system = read_equations(ctx, source)
    case = _read_case(system, artifact, chosen)
    if artifact is None:
        # A plan needs extents of at least 1.
        extents = tuple((space, max(1, n)) for space, n in case.extents.items())
        result = compiled(ctx, system, {**chosen, "extents": extents})
        artifact, seconds = result.artifact, result.seconds
    if chosen["save_inputs"] is not None:
        write_arrays(chosen["save_inputs"], {**case.inputs, **case.starts})
    report = report_of(artifact, read_plan(artifact), case.extents)
    flops = sum(report["operations"][key] for key in ("executed_per_call", "executed_once"))
    repeat, check, quiet = chosen["repeat"], chosen["check"], ctx.obj["quiet"]
    with StatusLine(quiet) as status:
        program = Program(artifact)
        outcome = timed_run.run(
            program, system, case, flops, repeat=repeat, check=check, status=status
        )
    return outcome, {**report, "seconds": dict(seconds)}


def _limited_artifact(ctx: click.Context, folder: Path, chosen: dict[str, Any]) -> Artifact:
    """A compiled DIR, with the memory limit of the command line."""
    refuse_planning(ctx, folder, "extents", "memory_limit")
    artifact = load_artifact(folder)
    if chosen["memory_limit"] is None:
        return artifact
    return artifact.with_memory_limit(parse_bytes(chosen["memory_limit"]))


def _read_case(system: System, artifact: Artifact | None, chosen: dict[str, Any]) -> Case:
    """The inputs from a file, or random ones; extents of -e must agree with the file."""
    from . import timed_run  # noqa: PLC0415

    defaults = dict(artifact.manifest.planning_extents) if artifact else {}
    given = {**defaults, **dict(chosen["extents"])}
    dtype = artifact.manifest.dtype if artifact else chosen["dtype"]
    path: Path | None = chosen["inputs"]
    if path is None:
        extents = dict(planning_extents(system, given))
        return timed_run.random_inputs(system, extents, dtype, chosen["seed"] or 0)
    case = timed_run.read_inputs(system, path, given)
    for name, extent in chosen["extents"]:
        if case.extents.get(name, extent) != extent:
            raise ExtentError(
                f"-e {name}={extent} contradicts the arrays in {path}, where space {name} has "
                f"extent {case.extents[name]}: leave it out, extents come from the arrays"
            )
    return case


def _run_on_workers(ctx: click.Context, folder: Path, chosen: dict[str, Any]) -> Outcome | None:
    """Run a compiled DIR once on workers; None on a rank of MPI that prints nothing."""
    import numpy as np  # noqa: PLC0415

    from ..distributed.distribute import distribute  # noqa: PLC0415  (loads the engines)
    from .timed_run import Outcome, describe  # noqa: PLC0415

    where = {"--" + name: chosen[name] for name in ("scheduler", "devices", "mpi")}
    given = [name for name, value in where.items() if value]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} were given: choose one")
    with_check = chosen["check"] or chosen["save_inputs"] is not None or chosen["repeat"] > 1
    if chosen["inputs"] is None or with_check:
        raise click.UsageError(
            f"{given[0] if given else '--devices'} runs once, on arrays in a file: give --inputs "
            f"FILE, and neither --random, --check, --repeat nor --save-inputs"
        )

    def read() -> tuple[str, tuple[Program, dict[str, Any]]]:
        if not is_artifact(folder):
            raise ArgumentError(f"workers need a compiled DIR: run tcgen compile {folder} first")
        refuse_planning(ctx, folder)
        program = Program(load_artifact(folder))
        return f"run {folder}", (program, _worker_inputs(program, chosen["inputs"]))

    with _workers(chosen["scheduler"], chosen["devices"]) as (engine, prints):
        show = prints and not ctx.obj["quiet"] and Console(stderr=True).is_terminal

        def progress(done: int, tasks: int) -> None:
            if show:
                click.echo(f"\r{done} of {tasks} tasks", err=True, nl=done == tasks)

        program, inputs = engine.agreed(read)
        memory = chosen["worker_memory"]
        with distribute(program, engine, memory, progress=progress).bind(**inputs) as run:
            outputs, report = run(), run.report
    if not prints:
        return None
    lines = [describe(name, np.asarray(value)) for name, value in outputs.items()]
    return Outcome(outputs, {"distributed": asdict(report)}, (*lines, *str(report).split("\n")), "")


@contextmanager
def _workers(scheduler: str | None, devices: str | None) -> Iterator[tuple[Engine, bool]]:
    """The engine of GPUs, a dask scheduler, or ranks of mpirun; True if this process prints."""
    from ..distributed.distribute import dask_client, engine_of, mpi_world  # noqa: PLC0415

    if devices is not None:
        if not re.fullmatch(r"\d+(,\d+)*", devices):
            raise click.UsageError(f"--devices {devices}: give numbers of GPUs, as 0,1")
        yield engine_of([int(number) for number in devices.split(",")]), True
        return
    if scheduler is None:
        world = mpi_world()
        yield engine_of(world), world.rank == 0
        return
    client = dask_client(scheduler)
    try:
        yield engine_of(client), True
    finally:
        client.close()


def _worker_inputs(program: Program, path: Path) -> dict[str, Any]:
    """The arrays in a file, all of which are inputs; workers read those in an HDF5 file."""
    from ..distributed.stored import stored  # noqa: PLC0415

    names = stored_names(path) if is_hdf5(path) else ()
    arrays = {name: stored(path, name) for name in names} if names else read_arrays(path)
    wanted = [t.name for t in program.manifest.tensors if t.role != "output" and t.default is None]
    missing = [name for name in wanted if name not in arrays]
    if missing:
        raise ArgumentError(f"{path} has no array {', '.join(missing)}: add it to the file")
    return dict(arrays)
