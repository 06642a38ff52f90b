"""Prints the oldest versions that pyproject.toml allows, as pip takes them.

python .ci/oldest_versions.py [EXTRA PACKAGE...]: of the dependencies, or of these packages of an
extra. A package without a lower bound stays without one.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path


def pinned(requirement: str) -> str:
    """``numpy>=2.0`` as ``numpy==2.0``."""
    return requirement.partition(";")[0].strip().replace(">=", "==")


def main(extra: str = "", *packages: str) -> None:
    """Print one requirement a line."""
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    wanted = project["optional-dependencies"][extra] if extra else project["dependencies"]
    names = {re.split(r"[<>=;\[ ]", line)[0]: pinned(line) for line in wanted}
    sys.stdout.write("\n".join(names[name] for name in packages or names) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
