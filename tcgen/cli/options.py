"""Options of the command line that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from ..compiler.target import default_target, for_machine
from ..options import Options, Planning, described, parse_bytes, parse_extents

F = TypeVar("F", bound=Callable[..., Any])
_PLANNING = [option.name for option in fields(Planning)]


class Written(click.Path):
    """The type of an option that names a file or folder to write.

    Options for the same kind of content, ``holds``, may name one file.
    """

    def __init__(self, holds: str = "", **more: Any) -> None:
        super().__init__(path_type=Path, **more)
        self.holds = holds


class Command(click.Command):
    """A command that accepts -v and -q after its name, and refuses to write what it reads."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        for short, name in (("-v", "verbose"), ("-q", "quiet")):
            option = click.Option(
                [short, f"--{name}"],
                is_flag=True,
                hidden=True,
                expose_value=False,
                callback=_set_flag,
            )
            self.params.append(option)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        _refuse_one_file(ctx)
        return super().invoke(ctx)


def _refuse_one_file(ctx: click.Context) -> None:
    """Refuse two parameters that name one file if one of them is written."""
    seen: dict[Path, click.Parameter] = {}
    for param in ctx.command.params:
        path = ctx.params.get(param.name or "")
        # Devices and pipes may be named twice, and a folder is not written into another's file.
        if not isinstance(path, Path) or (path.exists() and not path.is_file()):
            continue
        other = seen.setdefault(path.resolve(), param)
        kinds = [x.type.holds for x in (other, param) if isinstance(x.type, Written)]
        if other is not param and kinds and not (len(kinds) == 2 and kinds[0] == kinds[1] != ""):
            names = " and ".join(_shown_name(x) for x in (other, param))
            raise click.UsageError(f"{names} are both {path}: give two files")


def _shown_name(param: click.Parameter) -> str:
    """The long name of an option, or the word for an argument."""
    return param.human_readable_name if isinstance(param, click.Argument) else param.opts[-1]


def _set_flag(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.obj[param.name] = ctx.obj[param.name] or value


def _parsed_extents(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, int], ...]:
    extents: dict[str, int] = {}
    for value in values:
        space, equals, number = value.partition("=")
        if not equals or not space.strip():
            raise click.BadParameter(f"{value!r:.80} is not SPACE=N; write for example -e o=10")
        try:
            extent = int(number)
        except ValueError:
            shown = f"{number!r:.40} in {value!r:.40}"
            raise click.BadParameter(f"{shown} is not an integer of few digits") from None
        name = space.strip()
        if extents.setdefault(name, extent) != extent:
            raise click.BadParameter(f"{name} is given twice, as {extents[name]} and {extent}")
    return tuple(extents.items())


PATH = click.Path(path_type=Path)


def option(*names: str, **more: Any) -> Callable[[F], F]:
    """An option whose default, if there is one, is part of its help."""
    return click.option(*names, show_default="default" in more, **more)


def together(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """One decorator that applies several, the first one outermost."""

    def apply(command: F) -> F:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


def _made_from(record: Iterable[Field[Any]]) -> Iterator[Callable[[F], F]]:
    """An option of the command line for each described field of a record."""
    for field in record:
        info = described(field)
        if info is None:
            continue
        name, default = field.name.replace("_", "-"), field.default
        more: dict[str, Any] = {"help": info.help}
        match default:
            case True:
                name = f"no-{name}"
                more |= {"is_flag": True, "callback": lambda _ctx, _param, on: not on}
            case False:
                more["is_flag"] = True
            case str():
                more |= {"type": click.Choice(info.choices), "default": default}
            case int():
                more |= {"type": click.IntRange(min=info.least), "default": default}
            case float():
                more |= {"type": click.FloatRange(min=info.least), "default": default}
            case _:
                more |= {"metavar": info.metavar, "multiple": isinstance(default, tuple)}
        if field.name == "target":
            del more["default"]  # depends on the machine
        yield option(f"--{name}", field.name, **more)


json_option = option("--json", "as_json", is_flag=True, help="Print one JSON object to stdout.")
planning_options = together(
    option(
        "-e",
        "extents",
        metavar="SPACE=N",
        multiple=True,
        callback=_parsed_extents,
        help="Extent of a space, for example -e o=10.",
    ),
    *_made_from(option for option in fields(Options) if option.name not in _PLANNING),
    *_made_from(fields(Planning)),
)


def output_option(text: str, holds: str = "") -> Callable[[F], F]:
    """The option -o with its help text, and the kind of content that it writes."""
    return option("-o", "--output", type=Written(holds), help=text)


def refuse_planning(ctx: click.Context, source: Path, *allowed: str) -> None:
    """Refuse options that shape a plan if the source is a compiled folder, which has its plan.

    A click.UsageError names them. The parameters ``allowed`` are accepted also for a folder.
    """
    shaping = [option.name for option in fields(Options)]
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


def chosen_planning(planning: dict[str, Any]) -> Planning:
    """The record of planning from values by parameter name."""
    return Planning(**{name: planning[name] for name in _PLANNING})


def chosen_target(ctx: click.Context, planning: dict[str, Any]) -> str:
    """The target named by --target, or the default one; a warning says why it is numpy."""
    if planning["target"] or planning["tune"]:
        return planning["target"] or "cpu"
    if ctx.obj["quiet"]:
        return default_target()
    return default_target(lambda text: click.echo(f"tcgen: {text}", err=True))


def chosen_options(planning: dict[str, Any], target: str) -> Options:
    """The options of a compilation from the values of ``planning_options``."""
    limit = planning["memory_limit"]
    chosen = for_machine(chosen_planning(planning), target)
    return Options(
        extents=parse_extents(dict(planning["extents"])),
        target=target,
        dtype=planning["dtype"],
        memory_limit=None if limit is None else parse_bytes(limit),
        **{name: getattr(chosen, name) for name in _PLANNING},
    )
