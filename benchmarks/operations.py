"""Operation counts of the shipped term lists, verified and counted outside tcgen.

    python benchmarks/operations.py                         # all lists at the first sizes
    python benchmarks/operations.py ccsd_so --sizes all     # one list at all six sizes
    python benchmarks/operations.py --cost packed --json counts.json

Every sequence is written in its neutral form, evaluated by ``sequence_check.py`` at small extents
against the interpreter's values of the plain list, and counted there: multiply-adds of
contractions, and elements of terms with one factor. A table in Markdown goes to stdout. The packed
count is that of antisymmetric groups alone, found in the values of the arrays.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import sequence_check as check

from tcgen.algebra import form_sequence, neutral_sequence
from tcgen.compiler.driver import read_system
from tcgen.interp import evaluate_system
from tcgen.ir.program import FormulaSequence
from tcgen.ir.system import System
from tcgen.options import COSTS, Options
from tcgen.testing import random_arrays

EQS = Path(__file__).parent.parent / "tests" / "data" / "eqs"
SIZES = [(20, 100), (10, 50), (20, 200), (10, 100), (40, 160), (10, 500)]
SMALL = {"o": 5, "v": 6}  # below, wrong equations of triples can pass
NAMES = ["ccd_so", "ccsd_so", "ccsdt_so.sym", "rccd_sa", "rccsd_sa"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lists", nargs="*", default=NAMES, help="names in tests/data/eqs, or paths")
    parser.add_argument("--sizes", choices=("first", "all"), default="first")
    parser.add_argument("--cost", choices=COSTS, default="dense")
    parser.add_argument("--effort", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write all numbers here too")
    return parser.parse_args()


def arrays_of(system: System, program: FormulaSequence) -> tuple[check.Arrays, float]:
    """All arrays of a sequence at small extents, and the largest relative error of an output."""
    values = random_arrays(system, SMALL, dtype="float64", seed=1)
    inputs = {
        (t.family or t.name, tuple(s.name for s in t.spaces)): values[t.name] for t in system.inputs
    }
    arrays = check.evaluate(check.terms_of(neutral_sequence(program)), inputs, SMALL)
    expected = evaluate_system(system, values, SMALL)
    worst = 0.0
    for tensor in program.outputs:
        right = expected[tensor.name]
        found = arrays[tensor.name, tuple(s.name for s in tensor.spaces)]
        scale = max(float(np.abs(right).max()), 1e-300)
        worst = max(worst, float(np.abs(found - right).max()) / scale)
    return arrays, worst


def measured(system: System, extents: dict[str, int], cost: str, effort: int) -> dict[str, Any]:
    """Counts of one list at one size: each term alone and the whole search."""
    place = tuple(extents.items())
    alone = form_sequence(system, Options(extents=place, optimize=False, byte_weight=0.0))
    start = time.process_time()
    program = form_sequence(
        system, Options(extents=place, cost=cost, effort=effort, byte_weight=0.0)
    )
    seconds = time.process_time() - start
    arrays, error = arrays_of(system, program)
    if error > 1e-12:
        raise SystemExit(f"{system.name}: the sequence is wrong, relative error {error:.1e}")
    terms = check.terms_of(neutral_sequence(program))
    groups = check.antisymmetric_groups(arrays) if cost == "packed" else None
    contractions, single = check.count(terms, groups)
    before, _ = check.count(check.terms_of(neutral_sequence(alone)))
    return {
        "list": system.name,
        **extents,
        "cost": cost,
        "each_term": float(check.value(before, extents)),
        "multiply_adds": float(check.value(contractions, extents)),
        "polynomial": check.text(contractions, least=5),
        "single_terms": float(check.value(single, extents)),
        "added_elements": added(program, extents),
        "added_elements_each_term": added(alone, extents),
        "steps": len(program.steps),
        "seconds": round(seconds, 2),
        "error": error,
    }


def added(program: FormulaSequence, extents: dict[str, int]) -> int:
    """Elements added to an array that holds something already, contractions included."""
    total = 0
    for step in program.steps:
        if step.accumulate:
            size = 1
            for index in step.out.indices:
                size *= extents[index.space.name]
            total += size
    return total


def main() -> None:
    chosen = arguments()
    rows = []
    print("| list | o, v | each term alone | factored | leading terms | added elements | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for name in chosen.lists:
        path = Path(name) if name.endswith(".json") else EQS / f"{name}.json"
        system = read_system(path)
        for o, v in SIZES if chosen.sizes == "all" else SIZES[:1]:
            row = measured(system, {"o": o, "v": v}, chosen.cost, chosen.effort)
            rows.append(row)
            ratio = row["added_elements"] / max(1, row["added_elements_each_term"])
            print(
                f"| {row['list']} | {o}, {v} | {row['each_term']:.4e} | {row['multiply_adds']:.4e} "
                f"| {row['polynomial']} | {row['added_elements']:.2e} ({ratio:.2f}) "
                f"| {row['seconds']} |",
                flush=True,
            )
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
