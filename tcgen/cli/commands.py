"""The command ``tcgen``: its options, its subcommands, and the exit codes of errors.

Exit codes: 0 done; 1 the answer is wrong or a check failed; 2 bad input or usage; 3 not possible on
this machine. Errors go to stderr; with --json one object goes to stdout and nothing else.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import click

from .._version import __version__
from ..errors import CacheWarning, SpecError, TcgenError
from .compile import compile_command
from .library import library_command
from .machine import cache_group, doctor_command
from .output import show_warning
from .report import explain_command, report_command
from .run import run_command
from .solve import solve_command
from .specs import convert_command, derive_command, list_command, spin_command


class _Group(click.Group):
    """A group that turns an error that a user caused into its message and exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except TcgenError as error:
            prefix = "" if isinstance(error, SpecError) else "tcgen: error: "
            click.echo(f"{prefix}{error}", err=True)
            ctx.exit(error.exit_code)
        except BrokenPipeError:
            raise  # click ends quietly
        except OSError as error:
            file = f"{error.filename}: " if error.filename else ""
            click.echo(f"tcgen: error: {file}{error.strerror or error}", err=True)
            ctx.exit(2)
        except MemoryError as error:
            # Arrays outside of programs, such as random inputs.
            click.echo(f"tcgen: error: not enough memory: {error or 'no details'}", err=True)
            ctx.exit(3)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tcgen")
@click.option("-v", "--verbose", is_flag=True, help="Show the time of each stage on stderr.")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors.")
@click.pass_context
def main(ctx: click.Context, verbose: bool, quiet: bool) -> None:
    """Compile the equations of many-body methods to fused loop nests."""
    ctx.obj = {"verbose": verbose, "quiet": quiet}
    ctx.with_resource(warnings.catch_warnings())
    # An error, so that the user names another folder of the cache.
    warnings.simplefilter("error", CacheWarning)
    warnings.showwarning = partial(show_warning, ctx.obj)


for _command in (
    compile_command,
    report_command,
    explain_command,
    run_command,
    solve_command,
    library_command,
    convert_command,
    spin_command,
    derive_command,
    list_command,
    doctor_command,
    cache_group,
):
    main.add_command(_command)


if __name__ == "__main__":
    main()
