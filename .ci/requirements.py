"""Prints requirements of pyproject.toml, one a line, as pip takes them.

python .ci/requirements.py [--oldest] [--extra EXTRA [PACKAGE...]]: the dependencies, or these
packages of an extra (all if none is named). ``--oldest`` pins each to its lower bound.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path


def pinned(requirement: str) -> str:
    """Return ``numpy>=2.0,!=2.3.0`` as ``numpy==2.0``; a package without a lower bound as it is."""
    name, _, bound = re.split(r"[;,]", requirement)[0].partition(">=")
    return f"{name}=={bound}" if bound else name


def main(*arguments: str) -> None:
    """Print one requirement a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oldest", action="store_true")
    parser.add_argument("--extra", nargs="+", metavar=("EXTRA", "PACKAGE"))
    options = parser.parse_args(arguments)
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    extra, *packages = options.extra or [""]
    lines = project["optional-dependencies"][extra] if extra else project["dependencies"]
    found = {re.split(r"[<>=!;\[ ]", line)[0]: line for line in lines}
    for name in packages or found:
        sys.stdout.write((pinned(found[name]) if options.oldest else found[name]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
