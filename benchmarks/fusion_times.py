"""Time to find and prove a plan of least memory.

    python benchmarks/fusion_times.py
    python benchmarks/fusion_times.py --objective peak ccsd ccsdt

Random trees of 60 nodes, a chain of 81 steps in which all arrays have four batch indices, random
graphs of 30 statements that share intermediates and add to them, and factored equations of coupled
cluster. Seconds are processor time, without the factoring; the gap is the relative distance
between value and proven bound.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import click

from tcgen.algebra import form_sequence
from tcgen.compiler.driver import read_system
from tcgen.fusion import plan_fusion
from tcgen.ir.program import Contract, FormulaSequence, Step
from tcgen.ir.system import planning_extents
from tcgen.ir.tensor import Index, Ref, Role, Space, Tensor
from tcgen.options import Options

ROOT = Path(__file__).parents[1]


def _load(name: str):
    path = ROOT / "tests" / "support" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


programs, brute = _load("random_programs"), _load("brute_force")
EQUATIONS = {
    "ccsd, spin-orbital": ("specs/ccsd_spin_orbital.spec", {"o": 10, "v": 40}),
    "ccsd, closed-shell": ("specs/ccsd_closed_shell.spec", {"o": 5, "v": 19}),
    "ccsdt, spin-orbital": ("tests/data/eqs/ccsdt_so.sym.json", {"o": 10, "v": 40}),
}
LETTERS = tuple(Index(name, Space(f"n{name}")) for name in "ijklmnpq")


def chain(links: int, batch: int) -> FormulaSequence:
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
    return FormulaSequence("chain", (b, m), (*inputs, *made), tuple(steps))


def tree(seed: int, nodes: int) -> FormulaSequence:
    """A random tree of so many nodes, inputs among them."""
    leaves = nodes // 2
    while True:
        program = programs.random_tree(seed, leaves, 1.0, loops=LETTERS[:6], rank=5)
        if len(program.steps) >= nodes:
            return program
        leaves += 1


def factored(path: str, extents: dict[str, int]) -> tuple[FormulaSequence, Options]:
    """The formula sequence of equations, and the options that it was made with."""
    system = read_system(ROOT / path)
    options = Options(extents=planning_extents(system, extents))
    return form_sequence(system, options), options


def small(program: FormulaSequence) -> tuple[FormulaSequence, Options]:
    """A made-up program with extents of 7, 20, 33 and so on."""
    extents = tuple(sorted((s.name, 7 + 13 * n) for n, s in enumerate(program.spaces)))
    return program, Options(extents=extents)


Case = tuple[str, Callable[[], tuple[FormulaSequence, Options]]]


def cases(count: int) -> list[Case]:
    """Names, and what makes the programs."""
    found: list[Case] = [
        (f"tree, seed {seed}", lambda seed=seed: small(tree(seed, 60))) for seed in range(count)
    ]
    found.append(("chain, 4 batch", lambda: small(chain(81, 4))))
    found += [
        (
            f"graph, seed {seed}",
            lambda seed=seed: small(brute.small_dag(seed, 30, 0.6, 0.3, letters=LETTERS, rank=4)),
        )
        for seed in range(count)
    ]
    return found + [(n, lambda given=given: factored(*given)) for n, given in EQUATIONS.items()]


@click.command()
@click.argument("kinds", nargs=-1)
@click.option("-n", "count", default=5, help="Random cases of each kind.")
@click.option("--objective", "objectives", multiple=True, default=("memory", "peak"))
def main(kinds: tuple[str, ...], count: int, objectives: tuple[str, ...]) -> None:
    """Print the time of each case, or of those whose names begin with a word of KINDS."""
    chosen = [(n, make) for n, make in cases(count) if not kinds or n.startswith(kinds)]
    click.echo(
        f"{'case':20} {'steps':>5} {'objective':>9} {'status':>9} {'value':>14} {'gap':>6} "
        f"{'seconds':>8}"
    )
    for name, make in chosen:
        program, options = make()
        for objective in objectives:
            start = time.process_time()
            solve = plan_fusion(program, replace(options, objective=objective)).solve
            seconds = time.process_time() - start
            gap = (solve.value - solve.bound) / max(1, solve.value)
            click.echo(
                f"{name:20} {len(program.steps):5} {objective:>9} {solve.status:>9} "
                f"{solve.value:14} {100 * gap:5.1f}% {seconds:8.2f}"
            )


if __name__ == "__main__":
    main()
