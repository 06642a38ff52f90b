"""Time to find and prove a plan of least memory.

    python benchmarks/fusion_times.py

Random trees of 60 nodes, a chain of 81 steps in which all arrays have four batch indices, and
random graphs of 30 statements that share intermediates and add to them.
"""

from __future__ import annotations

import importlib.util
import time
from fractions import Fraction
from pathlib import Path

import click

from tcgen.config import Options
from tcgen.fusion import plan_fusion
from tcgen.ir.program import Contract, Program, Step
from tcgen.ir.tensor import Index, Ref, Role, Space, Tensor


def _load(name: str):
    path = Path(__file__).parents[1] / "tests" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


programs, brute = _load("random_programs"), _load("brute_force")
LETTERS = tuple(Index(name, Space(f"n{name}")) for name in "ijklmnpq")


def chain(links: int, batch: int) -> Program:
    """``T1 = A0 A1, T2 = T1 A2, ...``: matrices for every value of the batch indices."""
    b, m = Space("b"), Space("m")
    shared = tuple(Index(f"b{n}", b) for n in range(batch))
    row = Index("x0", m)

    def matrix(name: str, role: Role) -> Tensor:
        return Tensor(name, (*(b,) * batch, m, m), role)

    inputs = [matrix(f"A{n}", Role.INPUT) for n in range(links + 1)]
    steps, left, middle = [], inputs[0], Index("x1", m)
    made: list[Tensor] = []
    for n in range(links):
        column = Index(f"x{n + 2}", m)
        role = Role.OUTPUT if n == links - 1 else Role.TEMP
        out = matrix(f"T{n}", role)
        op = Contract(
            Ref(left, (*shared, row, middle)), Ref(inputs[n + 1], (*shared, middle, column))
        )
        steps.append(Step(n, Ref(out, (*shared, row, column)), op, Fraction(1), False, (middle,)))
        made.append(out)
        left, middle = out, column
    return Program("chain", (b, m), (*inputs, *made), tuple(steps))


def tree(seed: int, nodes: int) -> Program:
    """A random tree of so many nodes, inputs among them."""
    leaves = nodes // 2
    while True:
        program = programs.random_tree(seed, leaves, 1.0, loops=LETTERS[:6], rank=5)
        if len(program.steps) >= nodes:
            return program
        leaves += 1


@click.command()
@click.option("-n", "count", default=5, help="Random cases of each kind.")
@click.option("--objective", "objectives", multiple=True, default=("memory", "peak"))
def main(count: int, objectives: tuple[str, ...]) -> None:
    """Print the time of each case."""
    cases: list[tuple[str, Program]] = [
        (f"tree, seed {seed}", tree(seed, 60)) for seed in range(count)
    ]
    cases.append(("chain, 4 batch", chain(81, 4)))
    cases += [
        (f"graph, seed {seed}", brute.small_dag(seed, 30, 0.6, 0.3, letters=LETTERS, rank=4))
        for seed in range(count)
    ]
    click.echo(f"{'case':16} {'nodes':>6} {'objective':>10} {'status':>9} {'seconds':>8}")
    for name, program in cases:
        extents = tuple(sorted((s.name, 7 + 13 * n) for n, s in enumerate(program.spaces)))
        for objective in objectives:
            start = time.perf_counter()
            plan = plan_fusion(program, Options(extents=extents, objective=objective))
            seconds = time.perf_counter() - start
            click.echo(
                f"{name:16} {len(program.steps):6} {objective:>10} {plan.solve.status:>9} "
                f"{seconds:8.2f}"
            )


if __name__ == "__main__":
    main()
