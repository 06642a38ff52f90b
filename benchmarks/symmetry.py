"""Symmetry that is executed: ten equations with dense and with packed arrays, and without groups.

    OMP_NUM_THREADS=1 python benchmarks/symmetry.py                    # all of them
    OMP_NUM_THREADS=1 python benchmarks/symmetry.py ladder triples     # some
    OMP_NUM_THREADS=1 python benchmarks/symmetry.py --spec ccsd_spin_orbital -e o=10 -e v=90
    OMP_NUM_THREADS=1 python benchmarks/symmetry.py --spec tests/data/eqs/ccsdt_so.sym.json \\
        -e o=8 -e v=24 --cost packed --pack "t3 (0,1,2) (3,4,5)" --pack "r3 (0,1,2) (3,4,5)"

Three programs of each equation run in turn, with constants bound once: ``whole`` walks every
index, ``dense`` takes and returns whole arrays, and ``packed`` those of distinct values. The table
has the CPU time of the process (least of the rounds, in ms), the bytes that a program holds beside
the caller's arrays (MB), and for the ladder the time of a product of the packed matrices by the
BLAS of NumPy. Results are compared with each other. Compare times of one run only.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tcgen
from tcgen.compiler.driver import compile_system, read_system
from tcgen.frontend.spec.reader import read_spec
from tcgen.frontend.spec.writer import spec_text
from tcgen.ir.layouts import pack, unpack
from tcgen.ir.system import System
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.testing import random_arrays
from tcgen.thresholds import Thresholds
from tcgen.thresholds.cpu import CpuThresholds

HEAD = "space o\nspace v\nspace x\nindex i j k l m n : o\nindex a b c d e f : v\nindex q : x\n"
ANTI, SAME = "antisymmetric", "symmetric"
V_VVVV = f"input w[v,v,v,v] {ANTI} <(0,1) (2,3)> constant\n"
T2 = f"input t[o,o,v,v] {ANTI} <(0,1) (2,3)>\n"
R2 = f"output r[o,o,v,v] {ANTI} <(0,1) (2,3)>\n"
# Equations by name, with the extents of o, v and x. <(0,1)> is packed in the packed program.
EQUATIONS: dict[str, tuple[str, tuple[int, int, int]]] = {
    "ladder": (f"{V_VVVV}{T2}{R2}r[i,j,a,b] = 1/2*t[i,j,e,f]*w[a,b,e,f]", (20, 80, 1)),
    "triples": (
        f"{V_VVVV}input t[o,o,o,v,v,v] {ANTI} <(0,1,2) (3,4,5)>\n"
        f"output r[o,o,o,v,v,v] {ANTI} <(0,1,2) (3,4,5)>\n"
        "r[i,j,k,a,b,c] = 1/2*P(c/ab) w[a,b,e,f]*t[i,j,k,e,f,c]",
        (8, 26, 1),
    ),
    "holes": (
        f"input w[o,o,o,o] {ANTI} <(0,1) (2,3)> constant\n{T2}{R2}"
        "r[i,j,a,b] = 1/2*t[m,n,a,b]*w[m,n,i,j]",
        (24, 60, 1),
    ),
    "rings": (
        f"input w[o,v,v,o] constant\n{T2}{R2}r[i,j,a,b] = P(i,j) P(a,b) t[i,m,a,e]*w[m,b,e,j]",
        (16, 48, 1),
    ),
    "dressing": (
        f"input w[o,v,v,v] {ANTI} <(2,3)> constant\ninput t[o,v]\n{R2}"
        "r[i,j,a,b] = P(i,j) t[j,e]*w[i,e,a,b]",
        (16, 64, 1),
    ),
    "singles": (
        f"input w[o,v,v,v] {ANTI} <(2,3)> constant\n{T2}output r\n"
        "r[i,a] = 1/2*t[i,m,e,f]*w[m,a,e,f]",
        (16, 64, 1),
    ),
    "spin-adapted ladder": (
        f"input w[v,v,v,v] {SAME} <(0,1) (2,3)> symmetry (0,1)<->(2,3) constant\n"
        "input t[o,o,v,v] symmetry (0,2)<->(1,3)\noutput r\nr[i,j,a,b] = w[c,a,d,b]*t[i,j,c,d]",
        (12, 60, 1),
    ),
    "coulomb": (
        f"input w[v,v,v,v] {SAME} <(0,1) (2,3)> constant\ninput p[v,v] {SAME} <(0,1)>\n"
        f"output r[v,v] {SAME} <(0,1)>\nr[a,b] = w[a,b,c,d]*p[c,d]",
        (1, 72, 1),
    ),
    "density fitting": (
        f"input w[x,v,v] {SAME} <(1,2)> constant\ninput p[x,v,v] {SAME} <(1,2)>\n"
        "output r\nr[q] = w[q,a,b]*p[q,a,b]",
        (1, 90, 400),
    ),
    "sums": (
        f"input s[o,o,v,v] {ANTI} <(0,1) (2,3)>\n{T2}{R2}r[i,j,a,b] = t[i,j,a,b] + 2*s[i,j,a,b]",
        (20, 80, 1),
    ),
}
WHOLE = Thresholds(cpu=CpuThresholds(pair_flops=2**62))  # no contraction is large enough


def in_turn(calls: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """Least CPU times of some calls (ms), which take turns, after a turn that is not measured."""
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds + 1):
        for call, measured in zip(calls, times, strict=True):
            start = time.process_time()
            call()
            if turn:
                measured.append(time.process_time() - start)
    return [1000 * min(measured) for measured in times]


def bound_call(
    system: System,
    extents: dict[str, int],
    arrays: dict[str, Any],
    thresholds: Thresholds,
    cost: str = "dense",
) -> tuple[Callable[[], dict[str, Any]], Callable[[], float]]:
    """A call with constants bound, and the MB that it holds."""
    options = Options(extents=tuple(extents.items()), thresholds=thresholds, cost=cost)
    program = Program(compile_system(system, options).artifact)
    constants = {t.name for t in system.inputs if not t.volatile}
    bound = program.bind(**{name: arrays[name] for name in constants})
    given = {name: a for name, a in arrays.items() if name not in constants}
    return (lambda: bound(**given)), lambda: bound.allocated_bytes / 1e6


def stored_as(system: System, other: System, arrays: dict[str, Any], extents: Any) -> Any:
    """Arrays of one system as another one stores them."""
    tensors = {t.name: t for t in (*system.inputs, *system.outputs)}
    others = {t.name: t for t in (*other.inputs, *other.outputs)}
    return {
        name: pack(others[name], np.array(unpack(tensors[name], array, extents)))
        for name, array in arrays.items()
    }


def compare(name: str, rounds: int) -> None:
    """Measure the programs of one equation in turn, and print a line of the table."""
    text, (o, v, x) = EQUATIONS[name]
    extents = {"o": o, "v": v, "x": x}
    dense = read_spec(HEAD + re.sub(r"<(\([^>]*\))>", r"\1", text) + "\n")
    packed = read_spec(HEAD + re.sub(r"<(\([^>]*\))>", r"\1 packed \1", text) + "\n")
    arrays = random_arrays(dense, extents, seed=1)
    calls = {
        "whole": bound_call(dense, extents, arrays, WHOLE),
        "dense": bound_call(dense, extents, arrays, Thresholds()),
        "packed": bound_call(
            packed, extents, stored_as(dense, packed, arrays, extents), Thresholds()
        ),
    }
    right = calls["whole"][0]()["r"]
    found = {"r": calls["dense"][0]()["r"]}
    np.testing.assert_allclose(found["r"], right, atol=1e-9)
    (wanted,) = stored_as(dense, packed, found, extents).values()
    np.testing.assert_allclose(calls["packed"][0]()["r"], wanted, atol=1e-9)
    run = [call for call, _ in calls.values()]
    if name == "ladder":
        rng = np.random.default_rng(0)
        rows, columns = o * (o - 1) // 2, v * (v - 1) // 2
        t, w = rng.standard_normal((rows, columns)), rng.standard_normal((columns, columns))
        run.append(lambda: t @ w.T)
    times = in_turn(run, rounds)
    cells = [
        f"{ms:9.1f}{held():8.1f}" for ms, (_, held) in zip(times, calls.values(), strict=False)
    ]
    cells += [f"   dgemm {ms:.1f}" for ms in times[len(calls) :]]
    print(f"{name:20s}" + "".join(cells), flush=True)


def packed_system(system: System, packs: Sequence[str]) -> System:
    """A system with some antisymmetric inputs and outputs stored packed: ``t2 (0,1) (2,3)``."""
    text = spec_text(system)
    for packing in packs:
        name, groups = packing.split(maxsplit=1)
        tensor = next(t for t in system.tensors if t.name == name)
        axes = ",".join(space.name for space in tensor.spaces)
        declared = rf"\1 {name}[{axes}] {ANTI} {groups} packed {groups}"
        text = re.sub(rf"(?m)^(input|output) +{name}\b.*$", declared, text)
    return read_spec(text)


def whole_spec(given: argparse.Namespace, extents: dict[str, int]) -> None:
    """Measure a spec without groups, with them, and with packed arrays too, in turn."""
    path = Path(given.spec)
    dense = read_system(path if path.suffix else tcgen.spec_path(given.spec))
    arrays = random_arrays(dense, extents, seed=1)
    systems = {"whole": (dense, WHOLE), "groups": (dense, Thresholds())}
    if given.pack:
        systems["packed"] = (packed_system(dense, given.pack), Thresholds())
    calls = {
        title: bound_call(
            system, extents, stored_as(dense, system, arrays, extents), thresholds, given.cost
        )
        for title, (system, thresholds) in systems.items()
    }
    times = in_turn([call for call, _ in calls.values()], given.rounds)
    for (title, (_, held)), ms in zip(calls.items(), times, strict=True):
        print(f"{path.stem} {title:8s}{ms:9.1f} ms {held():8.1f} MB", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=", ".join(EQUATIONS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--spec", help="a shipped spec, or a file, instead of the equations")
    parser.add_argument("--cost", default="dense", help="what factoring minimises: dense, packed")
    parser.add_argument("--pack", action="append", default=[], help="such as 't2 (0,1) (2,3)'")
    parser.add_argument("-e", dest="extents", action="append", default=[], help="such as o=10")
    given = parser.parse_args()
    if given.spec:
        pairs = (text.split("=") for text in given.extents)
        whole_spec(given, {space: int(n) for space, n in pairs})
        return
    print(f"{'':20s}" + "".join(f"{t:>9s}{'MB':>8s}" for t in ("whole", "dense", "packed")))
    for name in given.names or EQUATIONS:
        compare(name, given.rounds)


if __name__ == "__main__":
    main()
