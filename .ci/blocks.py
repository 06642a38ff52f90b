"""The blocks of ``.ci/run``: the cost of each, the paths that ask for it, and the choice of a run.

    python .ci/blocks.py            # names of blocks for this commit; reasons on stderr
    python .ci/blocks.py --all      # names of all blocks
    python .ci/blocks.py BLOCK...   # these names, if there are such blocks

A run has room for ``MINUTES`` of blocks. It takes first the two that the commit's hash draws, so
that every block has its turn, then those that the last fifty commits touch, the most touched first.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

# Wall minutes for all blocks of a run, on two cores of which one is kept busy by other work: half
# an hour less the static checks, the README's commands and the installation of the extras.
MINUTES = 15
COMMITS = 50
DRAWN = 2


@dataclass(frozen=True)
class Block:
    """One function ``block_NAME`` of ``.ci/run``.

    Attributes:
        name: name of the function, with ``-`` for ``_``.
        minutes: wall time on two cores of which one is kept busy.
        paths: prefixes of the paths whose changes ask for the block.
    """

    name: str
    minutes: float
    paths: tuple[str, ...]


_CHEM = ("tcgen/chem/", "tests/chem/", "specs/")
_ALGEBRA = (
    "tcgen/algebra/",
    "tcgen/frontend/",
    "tcgen/ir/",
    "tcgen/interp/",
    "tcgen/probes/",
    "tcgen/testing/",
)
_LOOPS = ("tcgen/fusion/", "tcgen/lower/", "tcgen/thresholds/", "tcgen/hardware.py")
_CPU = ("tcgen/emit/c/", "templates/c/", "tcgen/runtime/", "tcgen/artifact/", "tcgen/records/")
_GPU = ("tcgen/emit/cuda/", "templates/cuda/", "tcgen/lower/gpu/", "tcgen/runtime/gpu/")
_ARRAYS = ("tcgen/lazy_arrays/", "tcgen/contraction/")
_BLOCKS = ("tcgen/blocks/", "templates/c/blocks/", "tests/unit/blocks/")
_WORKERS = ("tcgen/distributed/", "tcgen/artifact/", "tcgen/records/")
_NATIVE = ("tcgen/native/", "templates/native/", "templates/c/", "tcgen/emit/c/", "tcgen/artifact/")
_VERSIONS = ("pyproject.toml", ".ci/")

BLOCKS = (
    Block("oldest", 5, (*_VERSIONS, *_ARRAYS, "tcgen/frontend/", "tcgen/fusion/", "tcgen/cli/")),
    Block("newest", 5, (*_VERSIONS, *_ARRAYS, *_CHEM, "tcgen/frontend/", "tcgen/cli/")),
    Block("docs", 4, ("docs/", "README.md", "examples/", "CHANGELOG.md")),
    Block("examples", 2, ("examples/", *_CHEM, "tcgen/compiler/")),
    Block("chem", 6, (*_CHEM, "tests/support/")),
    Block("tools", 6, ("tcgen/report/", "templates/", "tcgen/emit/c/", "docs/notebooks/")),
    Block("native", 9, (*_NATIVE, "tests/unit/native/", "examples/native/")),
    Block("workers", 3, (*_WORKERS, "examples/many_workers.py")),
    Block("ptx", 1, _GPU),
    Block("nvrtc", 4, _GPU),
    Block("smallest-values", 4, (*_LOOPS, *_CPU, *_ARRAYS)),
    Block("largest-values", 5, (*_LOOPS, *_CPU, *_ARRAYS)),
    Block("smallest-gpu", 1, (*_LOOPS, *_GPU)),
    Block("largest-gpu", 1, (*_LOOPS, *_GPU)),
    Block("slow-algebra", 8, (*_ALGEBRA, "tests/unit/algebra/", "tests/unit/frontend/")),
    Block("slow-loops", 6, (*_LOOPS, "tests/unit/fusion/", "tests/unit/lower/")),
    Block("slow-programs", 8, (*_CPU, *_LOOPS, *_BLOCKS, "tests/programs/", "tests/support/")),
    Block("architectures", 5, _GPU),
    Block("slow-arrays", 3, (*_ARRAYS, *_WORKERS, "tests/unit/lazy_arrays/")),
    Block("slow-gpu", 10, (*_GPU, "tests/cuda/")),
    Block("slow-chem", 9, (*_CHEM, *_ALGEBRA)),
    Block("campaign-programs", 9, (*_ALGEBRA, *_LOOPS, *_CPU, *_BLOCKS)),
    Block("campaign-arrays", 4, (*_ARRAYS, *_WORKERS)),
)


def _git(*command: str) -> str:
    return subprocess.run(["git", *command], check=True, capture_output=True, text=True).stdout


def touched_paths(commits: int) -> list[str]:
    """Return the path of each change of the last commits, a path as often as it was changed."""
    log = _git("log", f"-{commits}", "--name-only", "--no-renames", "--format=")
    return [line for line in log.splitlines() if line]


def choose(paths: Sequence[str], number: int, minutes: float = MINUTES) -> dict[str, str]:
    """Return the blocks of a run by name, with the reason for each.

    Args:
        paths: changed paths, a path as often as it was changed.
        number: number from which the drawn blocks follow, such as the hash of the commit.
        minutes: room of the run. Blocks that do not fit any more are left to other commits.
    """
    changes = {b.name: sum(p.startswith(b.paths) for p in paths) for b in BLOCKS}
    step = len(BLOCKS) // DRAWN
    drawn = [BLOCKS[(number + n * step) % len(BLOCKS)] for n in range(DRAWN)]
    touched = sorted((b for b in BLOCKS if changes[b.name]), key=lambda b: -changes[b.name])
    taken: dict[str, str] = {}
    room = minutes
    for block in (*drawn, *touched):
        if block.name in taken or block.minutes > room:
            continue
        room -= block.minutes
        count = changes[block.name]
        taken[block.name] = "drawn by the hash" if block in drawn else f"{count} changes"
    return taken


def main(*arguments: str) -> None:
    """Print the names of the blocks to run."""
    names = [b.name for b in BLOCKS]
    if unknown := [a for a in arguments if a not in (*names, "--all")]:
        sys.exit(f"{unknown[0]} is not a block; the blocks are {', '.join(names)}")
    if "--all" in arguments:
        arguments = tuple(names)
    if arguments:
        chosen = dict.fromkeys(arguments, "asked for")
    else:
        chosen = choose(touched_paths(COMMITS), int(_git("rev-parse", "HEAD")[:8], 16))
    for block in BLOCKS:
        reason = chosen.get(block.name, "not in this run")
        sys.stderr.write(f"{block.name:18} {block.minutes:4} min  {reason}\n")
    sys.stdout.write("".join(f"{name}\n" for name in chosen))


if __name__ == "__main__":
    main(*sys.argv[1:])
