"""Write the tables of options in docs/cli.md from the help texts of the commands.

    python docs/make_cli_page.py

Lines between ``<!-- options: NAME -->`` and ``<!-- end -->`` are generated: NAME is a command, or
``shared`` for the options of every command that plans a program, which the tables of these commands
leave out. The tests compare the committed page with the commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import click

from tcgen.cli.commands import main

PAGE = Path(__file__).resolve().parent / "cli.md"
PLANNERS = ("compile", "library", "report", "explain", "run", "solve")
EVERYWHERE = {"--json", "--verbose", "--quiet", "--help"}  # described at the top of the page
MARKED = re.compile(r"(<!-- options: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def records(name: str) -> list[tuple[str, str]]:
    """Options of a command and their help, in the order of its help text."""
    command = main.commands[name]
    context = click.Context(command, info_name=name)
    options = [param for param in command.params if isinstance(param, click.Option)]
    found = [
        option.get_help_record(context) for option in options if not EVERYWHERE & set(option.opts)
    ]
    return [record for record in found if record is not None]


def shared() -> list[tuple[str, str]]:
    """Options of every command that plans a program."""
    common = set.intersection(*(set(records(name)) for name in PLANNERS))
    return [record for record in records(PLANNERS[0]) if record in common]


def table(rows: Iterable[tuple[str, str]]) -> str:
    """The rows as a table of Markdown."""
    lines = ["| option | meaning |", "|---|---|"]
    for option, meaning in rows:
        cells = (f"`{option}`", " ".join(meaning.split()).replace("<spec>", "`SPEC`"))
        lines.append("| {} | {} |".format(*(cell.replace("|", "\\|") for cell in cells)))
    return "\n".join(lines) + "\n"


def filled(page: str) -> str:
    """The page with tables of today's options."""
    planning = shared()

    def replaced(match: re.Match[str]) -> str:
        name = match[2]
        rows = planning if name == "shared" else records(name)
        if name in PLANNERS:
            rows = [row for row in rows if row not in planning]
        return match[1] + table(rows) + match[3]

    return MARKED.sub(replaced, page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
