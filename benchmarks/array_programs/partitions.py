"""Partitions of the programs of Kristensen et al. by all algorithms and cost models.

    python -m benchmarks.array_programs.partitions [--model accesses] [--only heat_equation]

Costs are in elements for the models ``bytes`` and ``accesses`` (Figure 14 of the paper shows the
latter), and numbers of savings for the others. The paper's branch and bound proved the first ten
programs, and none of the last five.
"""

from __future__ import annotations

import argparse
import time

from tcgen.thresholds.planner import FusionThresholds

from .bohrium import PROGRAMS
from .cost_models import ALGORITHMS, COST_MODELS, partitioned
from .recorder import recorded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=list(COST_MODELS), default="accesses")
    parser.add_argument("--only", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--effort", type=int, default=1)
    options = parser.parse_args()
    most = FusionThresholds().partition_blocks * options.effort
    print(f"| program | operations | {' | '.join(ALGORITHMS)} | bound | status | seconds |")
    print(f"|---|---|{'---|' * len(ALGORITHMS)}---|---|---|")
    for name in options.only:
        operations = recorded(PROGRAMS[name])
        costs = []
        for algorithm in ALGORITHMS:
            start = time.process_time()
            found = partitioned(operations, algorithm, options.model, most)
            costs.append(f"{found.cost:,}")
        seconds = time.process_time() - start
        print(
            f"| {name} | {len(operations)} | {' | '.join(costs)} | {found.bound:,} "
            f"| {found.status} | {seconds:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
