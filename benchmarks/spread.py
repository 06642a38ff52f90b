"""Spread of the operation count over equivalent notations of the same equations.

    python benchmarks/spread.py tests/data/eqs/ccsd_so.sym.json -e o=20 -e v=100 -n 20

For each list: the multiply-adds of the sequence for the equations as given, the least and the most
over ``n`` random rewritings (names of tensors and indices, order of equations, terms and factors,
permuted representative of each diagram, order of indices on symmetric tensors), and their spread.
"""

from __future__ import annotations

from pathlib import Path

import click

from tcgen.algebra import form_sequence
from tcgen.compiler.driver import read_system
from tcgen.ir.program import Contract
from tcgen.ir.system import System
from tcgen.options import Options
from tcgen.testing import rewritten


def multiply_adds(system: System, extents: dict[str, int], effort: int) -> int:
    """Of all contractions of the sequence."""
    options = Options(extents=tuple(extents.items()), effort=effort, byte_weight=0.0)
    program = form_sequence(system, options)
    contractions = (s for s in program.steps if isinstance(s.op, Contract))
    return sum(s.flops.value(extents) // 2 for s in contractions)


@click.command()
@click.argument("lists", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("-e", "pairs", multiple=True, default=("o=20", "v=100"), help="Extent, o=20.")
@click.option("-n", "count", default=20, help="Number of rewritings.")
@click.option("--effort", default=1, help="As for tcgen compile.")
def main(lists: tuple[Path, ...], pairs: tuple[str, ...], count: int, effort: int) -> None:
    """Print a table of the counts and their spread."""
    extents = {name: int(value) for name, value in (p.split("=") for p in pairs)}
    click.echo(f"{'list':24} {'as given':>12} {'least':>12} {'most':>12} {'spread':>8}")
    for path in lists:
        system = read_system(path)
        given = multiply_adds(system, extents, effort)
        found = [
            multiply_adds(rewritten(system, seed).system, extents, effort) for seed in range(count)
        ]
        every = [given, *found]
        spread = (max(every) - min(every)) / min(every)
        name = path.name.removesuffix(".json")
        click.echo(f"{name:24} {given:12.5e} {min(found):12.5e} {max(found):12.5e} {spread:8.2%}")


if __name__ == "__main__":
    main()
