"""How compile time and flops grow with the number of terms and with the extents.

    python benchmarks/growth.py                                 # tables in Markdown
    python benchmarks/growth.py --terms 10,100,1000,5000 --json growth.json
    python benchmarks/growth.py --plot growth.svg               # with matplotlib installed

Random systems have terms of two to four factors from 24 tensors, some of them repeated under other
names of the indices, and a fifth of the terms in named intermediates. They are compiled with all
documents for the target numpy. Of each stage the seconds are given, and the exponent by which
its time grew from one size to the next: 1 is linear. The coupled-cluster lists are factored at
several extents: the exponent by which their flops grow is the power of the leading terms.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
from functools import partial
from math import log
from pathlib import Path
from typing import Any

from tcgen.algebra import form_sequence
from tcgen.compiler.driver import compile_system, read_system
from tcgen.compiler.tracer import Tracer
from tcgen.frontend import read_spec
from tcgen.options import Options

EQS = Path(__file__).parent.parent / "tests" / "data" / "eqs"
LISTS = ("ccd_so", "ccsd_so", "ccsdt_so.sym")
OCCUPIED = (10, 20, 40, 80)
STAGES = ("read", "program", "plan", "module", "emit")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--terms", default="10,30,100,300,1000", help="sizes of random systems")
    parser.add_argument(
        "--lists", nargs="*", default=LISTS, help="names in tests/data/eqs, or paths"
    )
    parser.add_argument("--effort", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write all numbers here too")
    parser.add_argument("--plot", type=Path, help="draw seconds against terms (needs matplotlib)")
    return parser.parse_args()


def random_spec(terms: int) -> str:
    """A spec of as many terms: the same for each run."""
    draw = random.Random(terms)
    shapes = {f"t{n}": draw.choice(("oo", "ov", "vv", "oovv", "ovov")) for n in range(24)}
    letters = {"o": "ijklmn", "v": "abcdef"}
    lines: list[str] = []
    for number in range(terms):
        names = draw.choices(sorted(shapes), k=draw.choice((2, 2, 3, 3, 4)))
        factors = [
            f"{n}[{','.join(draw.choice(letters[s][:4]) for s in shapes[n])}]" for n in names
        ]
        used = dict.fromkeys(c for f in factors for c in f[f.index("[") :] if c.isalpha())
        product = f"{draw.choice(('', '1/2*', '2*'))}sum({','.join(used)}) {'*'.join(factors)}"
        if number % 5 == 0:
            lines.append(f"w{number} = {product}")
            product = f"w{number}*w{draw.choice(range(0, number + 1, 5))}"
        lines.append(f"e += {product}")
    inputs = ", ".join(f"{name}[{','.join(axes)}]" for name, axes in shapes.items())
    head = "space o = 4\nspace v = 8\nindex i j k l m n : o\nindex a b c d e1 f : v\n"
    return f"{head}input {inputs}\noutput e\n" + "\n".join(lines).replace("e]", "e1]") + "\n"


def compiled(terms: int, effort: int) -> dict[str, Any]:
    """Seconds of each stage, and flops."""
    tracer = Tracer()
    system = tracer.run("read", lambda: read_spec(random_spec(terms)))
    done = compile_system(system, Options(target="numpy", effort=effort), tracer)
    seconds = dict(done.seconds)
    flops = done.program.flops().value(dict(done.plan.extents))
    row = {stage: seconds.get(stage, 0.0) for stage in STAGES}
    return {"terms": terms, "steps": len(done.program.steps), "flops": int(flops), **row}


def exponent(small: tuple[float, float], large: tuple[float, float]) -> str:
    """The power by which a value grew, from two pairs of size and value; below 0.05 is noise."""
    if min(small[1], large[1]) < 0.05:
        return ""
    return f"{log(large[1] / small[1]) / log(large[0] / small[0]):.2f}"


def growth_in_terms(sizes: list[int], effort: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    print("| terms | steps | " + " | ".join(f"{s} s | power" for s in STAGES) + " |")
    print("|" + "---|" * (2 + 2 * len(STAGES)))
    for terms in sizes:
        row = compiled(terms, effort)
        cells = []
        for stage in STAGES:
            grew = ""
            if rows:
                grew = exponent((rows[-1]["terms"], rows[-1][stage]), (terms, row[stage]))
            cells.append(f"{row[stage]:.2f} | {grew}")
        print(f"| {terms:,} | {row['steps']:,} | " + " | ".join(cells) + " |", flush=True)
        rows.append(row)
    return rows


def growth_in_extents(lists: list[str], effort: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    print("\n| list | terms | o | v | s | flops | power |\n|---|---|---|---|---|---|---|")
    for name in lists:
        path = Path(name) if name.endswith(".json") else EQS / f"{name}.json"
        system = read_system(path)
        terms = sum(len(e.terms) for e in system.equations)
        before: tuple[float, float] | None = None
        for o in OCCUPIED:
            extents = {"o": o, "v": 5 * o}
            tracer = Tracer()
            options = Options(extents=tuple(extents.items()), effort=effort, byte_weight=0.0)
            program = tracer.run("program", partial(form_sequence, system, options))
            seconds, flops = tracer.seconds["program"], float(program.flops().value(extents))
            grew = "" if before is None else exponent(before, (o, flops))
            print(
                f"| {path.stem} | {terms} | {o} | {5 * o} | {seconds:.2f} | {flops:.4e} | {grew} |"
            )
            rows.append({"list": path.stem, "o": o, "v": 5 * o, "seconds": seconds, "flops": flops})
            before = (o, flops)
    return rows


def draw(path: Path, rows: list[dict[str, Any]]) -> None:
    """Seconds of each stage against the number of terms, both logarithmic."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    terms = [row["terms"] for row in rows]
    for stage in STAGES:
        axes.loglog(terms, [max(row[stage], 1e-3) for row in rows], marker="o", label=stage)
    axes.set(xlabel="terms", ylabel="seconds")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TCGEN_CACHE_DIR"] = folder  # plans of earlier runs would take no time
        sizes = [int(n) for n in options.terms.split(",")]
        systems = growth_in_terms(sizes, options.effort)
        lists = growth_in_extents(list(options.lists), options.effort)
    if options.json is not None:
        options.json.write_text(json.dumps({"systems": systems, "lists": lists}, indent=1) + "\n")
    if options.plot is not None:
        draw(options.plot, systems)


if __name__ == "__main__":
    main()
