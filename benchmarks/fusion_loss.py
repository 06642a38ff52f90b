"""Memory lost by the linearised objective, Eq. (10) of Allam et al., against the exact static sum.

    python benchmarks/fusion_loss.py -n 1000

Random trees of 4 to 8 inputs over 6 loops, arrays of up to 5 axes, under several ranges of extents.
Inputs are generated, so that they count and fuse as in the paper. For each range: trees whose
linearised plan is not of least memory, and the median and largest ratio of its memory among these.
"""

from __future__ import annotations

import importlib.util
import random
import statistics
from collections.abc import Callable
from pathlib import Path

import click

from tcgen.fusion import plan_fusion
from tcgen.fusion.placement.memory import once_elements
from tcgen.ir.plan import FusionPlan
from tcgen.ir.tensor import Index, Role, Space
from tcgen.options import Options

_path = Path(__file__).parents[1] / "tests" / "support" / "random_programs.py"
_spec = importlib.util.spec_from_file_location("random_programs", _path)
assert _spec is not None
assert _spec.loader is not None
programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)

LOOPS = tuple(Index(name, Space(f"n{name}")) for name in "ijklmn")
RANGES: dict[str, Callable[[random.Random], int]] = {
    "log-uniform 5..3000": lambda rng: round(5 * 600 ** rng.random()),
    "uniform 5..3000": lambda rng: rng.randint(5, 3000),
    "100 or 3000": lambda rng: rng.choice((100, 3000)),
    "2..12": lambda rng: rng.randint(2, 12),
}


def static(plan: FusionPlan) -> int:
    """Elements of all arrays but the results."""
    return sum(n for a, n in once_elements(plan).items() if a.tensor.role is not Role.OUTPUT)


@click.command()
@click.option("-n", "count", default=1000, help="Random trees for each range of extents.")
def main(count: int) -> None:
    """Print a table of the losses."""
    click.echo(f"{'extents':22} {'trees':>6} {'not least':>10} {'median':>8} {'largest':>8}")
    for name, draw in RANGES.items():
        ratios = []
        for seed in range(count):
            rng = random.Random(seed)
            program = programs.random_tree(seed, rng.randint(4, 8), 1.0, loops=LOOPS, rank=5)
            extents = tuple(sorted((s.name, draw(rng)) for s in program.spaces))
            least, linear = (
                static(plan_fusion(program, Options(extents=extents, objective=objective)))
                for objective in ("memory", "linear")
            )
            ratios.append(linear / least if least else 1.0)
        worse = [r for r in ratios if r > 1]
        click.echo(
            f"{name:22} {count:6} {len(worse):4} {100 * len(worse) / count:4.1f}% "
            f"{statistics.median(worse or [1]):8.3f} {max(ratios):8.2f}",
        )


if __name__ == "__main__":
    main()
