"""Output of the command line: text, JSON, warnings, a status line, and files."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from ..errors import UnavailableError
from ..ir.system import System

if TYPE_CHECKING:
    from ..compiler.driver import Compilation


def output_console() -> Console:
    """Standard output; lines are 120 characters wide if it is not a terminal."""
    return Console() if sys.stdout.isatty() else Console(width=120)


def print_text(text: str) -> None:
    """Print lines; on a terminal they are broken between words, so that numbers stay whole."""
    if not sys.stdout.isatty():
        click.echo(text, nl=False)
        return
    width = shutil.get_terminal_size().columns
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        broken = textwrap.wrap(
            line,
            width,
            subsequent_indent=indent,
            drop_whitespace=True,
            replace_whitespace=False,
            break_long_words=False,
            break_on_hyphens=False,
        )
        click.echo("\n".join(broken))


class StatusLine:
    """A line of the terminal that shows the present stage, on standard error.

    Nothing is shown in a pipe, or by a quiet command. The ``with`` block removes the line.
    """

    def __init__(self, quiet: bool) -> None:
        console = Console(stderr=True)
        shown = not quiet and console.is_terminal
        self._spinner = Spinner("dots", style="status.spinner")
        self._live = (
            Live(
                self._spinner,
                console=console,
                refresh_per_second=12.5,  # speed of the spinner
                transient=True,
                redirect_stdout=False,
            )
            if shown
            else None
        )

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, text: str) -> None:
        """Replace the line; a longer text than the terminal's lines is cut."""
        if self._live is not None:
            self._spinner.update(text=Text(text, no_wrap=True, overflow="ellipsis"))
            self._live.start()
            self._live.refresh()

    def clear(self) -> None:
        """Remove the line, before lines are printed on standard output."""
        if self._live is not None:
            self._live.stop()


def show_warning(settings: dict[str, bool], message: Warning | str, *_: object) -> None:
    """Print a warning without the line of tcgen's source that raised it."""
    if not settings["quiet"]:
        click.echo(f"tcgen: warning: {message}", err=True)


def print_warnings(ctx: click.Context, source: System | Compilation) -> None:
    """Print the warnings of equations or of a compilation."""
    if not ctx.obj["quiet"]:
        for message in source.warnings:
            click.echo(f"tcgen: warning: {message}", err=True)


def print_json(value: dict[str, Any]) -> None:
    """Print one object on standard output."""
    sys.stdout.write(json.dumps(value, indent=1) + "\n")


def make_folder(path: Path) -> None:
    """Make a folder and its parents, unless they exist; an UnavailableError if this fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnavailableError(f"cannot write to {path}: {error.strerror}") from error
