"""The tests of random cases with their full counts, which take hours, or with a share of them.

    python benchmarks/campaign.py                       # all cases of all campaigns
    python benchmarks/campaign.py --seed 7 --only fusion
    python benchmarks/campaign.py --share 0.1 --list

Another seed draws other cases. ``.ci/run`` takes a twentieth, with a seed from the commit.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]


@click.command()
@click.option("--seed", default=0, help="Draw other cases for each seed.")
@click.option("--share", default=1.0, help="Share of the full counts.", show_default=True)
@click.option("--only", metavar="NAME", help="Campaigns whose test has this in its name, as -k.")
@click.option("--processes", default="auto", help="Processes of pytest-xdist.", show_default=True)
@click.option("--list", "listed", is_flag=True, help="Name the campaigns and run none.")
def main(seed: int, share: float, only: str | None, processes: str, listed: bool) -> None:
    """Run the campaigns; the exit code is that of pytest."""
    command = [sys.executable, "-m", "pytest", f"--campaign={share}", f"--campaign-seed={seed}"]
    command += ["-k", only] if only else []
    command += ["--collect-only", "-q", "-n", "0"] if listed else ["-n", processes, "--durations=0"]
    sys.exit(subprocess.run(command, cwd=ROOT, check=False).returncode)


if __name__ == "__main__":
    main()
