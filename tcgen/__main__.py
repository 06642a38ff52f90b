"""The command ``tcgen``, also as ``python -m tcgen``: quiet when interrupted while it loads."""

from __future__ import annotations

import sys


def main() -> None:
    """Load the command line and run it."""
    try:
        from .cli.commands import main as command  # noqa: PLC0415  (takes long enough for a Ctrl-C)
    except KeyboardInterrupt:
        sys.exit("Aborted!")
    command(prog_name="tcgen")


if __name__ == "__main__":
    main()
