"""What the command line prints and writes."""

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

from ..cache_files import whole_file
from ..errors import UnavailableError
from ..ir.system import System

if TYPE_CHECKING:
    from ..compiler.driver import Compilation


def output_console() -> Console:
    """Standard output; a pipe gets wide lines, since nobody's window limits them."""
    return Console() if sys.stdout.isatty() else Console(width=120)


def print_text(text: str) -> None:
    """Lines on standard output; a terminal gets them broken between words, so not in numbers."""
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
    """What is being done, on a line of the terminal that the next text replaces.

    It stands on standard error. Nothing is shown in a pipe, or if the command is quiet. The line is
    gone at the end of the ``with`` block.

    Args:
        quiet: show nothing.
    """

    def __init__(self, quiet: bool) -> None:
        console = Console(stderr=True)
        shown = not quiet and console.is_terminal
        self._spinner = Spinner("dots", style="status.spinner")
        self._live = (
            Live(
                self._spinner,
                console=console,
                refresh_per_second=12.5,  # the steps of the spinner
                transient=True,
                redirect_stdout=False,  # it may be a file
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
        """Remove the line, which lines of standard output need before they are printed."""
        if self._live is not None:
            self._live.stop()


def show_warning(settings: dict[str, bool], message: Warning | str, *_: object) -> None:
    """A warning without the place in tcgen's own source that raised it."""
    if not settings["quiet"]:
        click.echo(f"tcgen: warning: {message}", err=True)


def print_warnings(ctx: click.Context, source: System | Compilation) -> None:
    """What there is to say about equations that were accepted, or that were compiled."""
    if not ctx.obj["quiet"]:
        for message in source.warnings:
            click.echo(f"tcgen: warning: {message}", err=True)


def print_json(value: dict[str, Any]) -> None:
    """One object on standard output."""
    sys.stdout.write(json.dumps(value, indent=1) + "\n")


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, where there is none.

    Raises:
        UnavailableError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnavailableError(f"cannot write to {path}: {error.strerror}") from error


def write_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all.

    Raises:
        UnavailableError: it cannot be written.
    """
    try:
        with whole_file(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise UnavailableError(f"cannot write {path}: {error.strerror}") from error
