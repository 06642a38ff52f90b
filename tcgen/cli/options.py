"""Options of the command line that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from ..options import (
    COSTS,
    DTYPES,
    OBJECTIVES,
    TARGETS,
    Machine,
    Options,
    parse_bytes,
    parse_extents,
    parse_machine,
)

F = TypeVar("F", bound=Callable[..., Any])


def _parsed_extents(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, int], ...]:
    extents: dict[str, int] = {}
    for value in values:
        space, equals, number = value.partition("=")
        if not equals or not space.strip():
            raise click.BadParameter(f"{value!r} is not SPACE=N; write for example -e o=10")
        try:
            extent = int(number)
        except ValueError:
            raise click.BadParameter(f"{number!r} in {value!r} is not a whole number") from None
        name = space.strip()
        if extents.setdefault(name, extent) != extent:
            raise click.BadParameter(f"{name} is given twice, as {extents[name]} and {extent}")
    return tuple(extents.items())


def _together(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    def apply(command: F) -> F:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


extents_option = click.option(
    "-e",
    "extents",
    metavar="SPACE=N",
    multiple=True,
    callback=_parsed_extents,
    help="Extent of a space, for example -e o=10.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object to stdout."
)
memory_limit_option = click.option(
    "--memory-limit", metavar="BYTES", help="Most the program may allocate, for example 8GiB."
)
planning_options = _together(
    extents_option,
    click.option("--target", type=click.Choice(TARGETS), help="Default: cpu if a compiler works."),
    click.option("--dtype", type=click.Choice(DTYPES), default="float64", show_default=True),
    memory_limit_option,
    click.option("--objective", type=click.Choice(OBJECTIVES), default="none", show_default=True),
    click.option(
        "--machine",
        metavar="CONSTANTS",
        help="For time and --pareto, for example flops=2e11,bandwidth=1e11.",
    ),
    click.option("--pareto", is_flag=True, help="Also plan for a row of memory limits."),
    click.option("--effort", type=click.IntRange(min=1), default=1, show_default=True),
    click.option(
        "--cost",
        type=click.Choice(COSTS),
        default="dense",
        show_default=True,
        help="What factoring makes small: all multiply-adds, or one of those equal by symmetry.",
    ),
    click.option(
        "--add-weight",
        type=click.FloatRange(min=0),
        default=1.0,
        show_default=True,
        help="Flops that an addition counts.",
    ),
    click.option(
        "--byte-weight",
        type=click.FloatRange(min=0),
        default=0.0,
        show_default=True,
        help="Flops that a byte read or written by a step counts.",
    ),
    click.option("--no-optimize", is_flag=True, help="Keep the factoring as written."),
    click.option("--sliced", multiple=True, metavar="INPUT", help="Read this input in slices."),
    click.option(
        "--tune", is_flag=True, help="Measure here how each matrix product is computed best."
    ),
)


def refuse_planning(ctx: click.Context, source: Path, *allowed: str) -> None:
    """Refuse options that shape a plan where the plan is that of a compiled folder.

    Args:
        ctx: of the command.
        source: the folder.
        allowed: parameter names that the command honours for a folder too.

    Raises:
        click.UsageError: naming the options.
    """
    shaping = [f.name for f in fields(Options) if f.name != "optimize"] + ["no_optimize"]
    refused = [
        param.opts[0]
        for param in ctx.command.params
        if param.name in shaping
        and param.name not in allowed
        and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    ]
    if refused:
        raise click.UsageError(
            f"{source} is compiled already, {', '.join(refused)} would change nothing: "
            f"compile the spec again with it, or give the spec instead of the folder"
        )


def chosen_options(planning: dict[str, Any], target: str) -> Options:
    """The options of a compilation.

    Args:
        planning: values of ``planning_options`` by parameter name.
        target: that is used where none was asked for.
    """
    limit, machine = planning["memory_limit"], planning["machine"]
    return Options(
        extents=parse_extents(dict(planning["extents"])),
        target=target,
        dtype=planning["dtype"],
        memory_limit=None if limit is None else parse_bytes(limit),
        objective=planning["objective"],
        optimize=not planning["no_optimize"],
        effort=planning["effort"],
        cost=planning["cost"],
        add_weight=planning["add_weight"],
        byte_weight=planning["byte_weight"],
        pareto=planning["pareto"],
        machine=Machine() if machine is None else parse_machine(machine),
        sliced=planning["sliced"],
        tune=planning["tune"],
    )
