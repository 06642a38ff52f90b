"""CUDA programs with inputs and reference results, for a machine with a GPU and few packages.

    python benchmarks/gpu_folder.py prepare FOLDER                    # here: tcgen, no GPU
    python FOLDER/gpu_folder.py check FOLDER [--quick] [--json FILE]  # there: NumPy and CuPy alone

``prepare`` compiles every spec in three element types, double precision also fused, with the
interpreter's results at small extents; and contractions of the TCCG kind, which are named
``contractions``. ``check`` runs the programs on the GPU, compares, and then times the contractions
and the larger programs at their planning extents: median over CUDA events after warm-up. A program
that fails counts as a fault, like a difference, and the next one runs; the file is written after
each. The exit status is 1 if there were faults. ``--spec NAME`` selects one spec, in both.
``compute-sanitizer python FOLDER/gpu_folder.py check FOLDER --quick`` only compares, under NVIDIA's
tool.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gpu_measure import copy_scripts, medians, package

TOLERANCE = {"float64": 1e-11, "float32": 1e-4, "complex128": 1e-11}
SMALL = ((3, 5), (5, 3), (1, 1), (2, 17))
TIMED = {"ccsd_closed_shell": (20, 100), "t_closed_shell": (10, 40), "df_ladder": (30, 120)}
REPEAT = 7
# Subscripts in C order and the extent of each letter: intensli, ao2mo, ccsd and ccsd_t shapes.
CONTRACTIONS = (
    ("adb,cd->cba", 312),
    ("aebd,ce->dcba", 72),
    ("ae,dcbe->dcba", 72),
    ("dca,cbd->ba", 304),
    ("da,cdb->cba", 304),
    ("ceda,dbe->cba", 72),
    ("fbea,ecfd->dcba", 72),
    ("dfae,cebf->dcba", 72),
    ("aged,cbfg->fedcba", 20),
    ("badg,cgfe->fedcba", 20),
)
# Amplitudes and an energy in the epilogue of one contraction, whose result is never stored.
ENERGIES = """
space o occupied
space v virtual
space x auxiliary
index i j : o
index a b : v
index P : x
input b_ov[x,o,v], e_o[o], e_v[v]
output t2, e
g[i,a,j,b] = b_ov[P,i,a]*b_ov[P,j,b]
t2[i,j,a,b] = g[i,a,j,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])
e = g[i,a,j,b]*g[i,a,j,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])
"""


def prepare(folder: Path, names: tuple[str, ...] = ()) -> None:
    """Write programs, inputs and answers; ``names`` of specs, all of them where there are none."""
    import tcgen
    from tcgen.compiler.driver import read_system
    from tcgen.interp import evaluate_system
    from tcgen.testing import random_arrays, split_starts

    specs = Path(__file__).resolve().parents[1] / "specs"
    copy_scripts(folder, __file__)
    energies = _made(folder / "specs") / "energies.spec"
    energies.write_text(ENERGIES)
    programs = []
    for path in (energies, *sorted(specs.glob("*.spec"))):
        if names and path.stem not in names:
            continue
        system = read_system(path)
        bases = [s.name for s in system.spaces if not s.parts]

        def extents(pair: tuple[int, int], bases: list[str] = bases) -> dict[str, int]:
            return {b: {"o": pair[0]}.get(b, pair[1]) for b in bases}

        for dtype in TOLERANCE:
            data = []
            for number, pair in enumerate(SMALL):
                arrays = random_arrays(system, extents(pair), dtype=dtype, seed=number)
                inputs, starts = split_starts(system, arrays)
                wanted = evaluate_system(system, inputs, extents(pair), out=starts, dtype=dtype)
                data.append(f"{path.stem}_{dtype}_{number}.npz")
                _keep(folder, data[-1], inputs, starts, wanted)
            for objective in ("none", "linear") if dtype == "float64" else ("none",):
                planned = extents(TIMED.get(path.stem, (10, 40)))
                program = tcgen.compile(
                    path, extents=planned, target="cuda", dtype=dtype, objective=objective
                )
                name = f"{path.stem}_{dtype}_{objective}"
                program.save(_made(folder / "programs") / name)
                timed = path.stem in TIMED and (dtype, objective) == ("float64", "none")
                programs.append(
                    {
                        "name": name,
                        "spec": path.stem,
                        "dtype": dtype,
                        "data": data,
                        "timed": planned if timed else None,
                    }
                )
        print(f"prepared {path.stem}", flush=True)
    if not names or "contractions" in names:
        programs += [_contraction(folder, *case) for case in CONTRACTIONS]
        print("prepared contractions", flush=True)
    (folder / "programs.json").write_text(json.dumps(programs, indent=1) + "\n")


def _contraction(folder: Path, subscripts: str, extent: int) -> dict[str, Any]:
    """Prepare one contraction of two arrays, whose letters all have one extent."""
    import tcgen

    name = "contraction_" + subscripts.replace(",", "_").replace("->", "_")
    operands = subscripts.partition("->")[0].split(",")
    planned = dict.fromkeys(sorted(set("".join(operands))), extent)
    tcgen.compile(subscripts, extents=planned, target="cuda").save(
        _made(folder / "programs") / name
    )
    data, random = [], np.random.default_rng(0)
    for small in (1, 3, 7):
        arrays = [random.random([small] * len(letters)) for letters in operands]
        data.append(f"{name}_{small}.npz")
        inputs = {f"x{n}": a for n, a in enumerate(arrays)}
        _keep(folder, data[-1], inputs, {}, {"y": np.einsum(subscripts, *arrays)})
    entry = {"name": name, "spec": "contractions", "dtype": "float64"}
    return {**entry, "data": data, "timed": planned}


def _keep(folder: Path, name: str, *groups: Mapping[str, Any]) -> None:
    """Write inputs, the arrays that results start from, and right results."""
    kinds = zip(("in", "start", "out"), groups, strict=True)
    np.savez(
        _made(folder / "data") / name,
        **{f"{kind}:{n}": a for kind, group in kinds for n, a in group.items()},
    )


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def differences(program: Any, data: Path, tolerance: float) -> Iterator[str]:
    """Results that are not what the interpreter gave, each with its error."""
    with np.load(data) as arrays:
        groups: dict[str, dict[str, Any]] = {"in": {}, "start": {}, "out": {}}
        for key, value in arrays.items():
            kind, _, name = key.partition(":")
            groups[kind][name] = value
    found = program(**groups["in"], out=groups["start"])
    for name, value in groups["out"].items():
        scale = max(1.0, float(np.max(np.abs(value), initial=0)))
        error = float(np.max(np.abs(found[name] - value), initial=0)) / scale
        if not error < tolerance:
            yield f"{data.stem}: {name} differs by {error:.1e}"


def seconds_of(program: Any, extents: dict[str, int]) -> float:
    """Median time of one call with random arrays on the GPU."""
    import cupy

    manifest, random = program.manifest, np.random.default_rng(0)  # CuPy's needs cuRAND
    arrays = {
        t.name: cupy.asarray(random.random([manifest.extent(s, extents) for s in t.spaces]) + 0.5)
        for t in manifest.tensors
        if t.role != "output" and t.default is None
    }
    out = dict(program(**arrays))
    return medians({"program": lambda: program(**arrays, out=out)}, REPEAT)["program"]


def check(folder: Path, *, quick: bool, report: Path | None, names: tuple[str, ...] = ()) -> int:
    """Run every program of a folder, or those of some specs; 0 if all are right."""
    rows, wrong = [], 0
    for entry in json.loads((folder / "programs.json").read_text()):
        if names and entry["spec"] not in names:
            continue
        row = outcome(folder, entry, quick=quick)
        print("wrong" if row["faults"] else "right", json.dumps(row), flush=True)
        wrong += bool(row["faults"])
        rows.append(row)
        if report is not None:
            report.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if wrong or not rows else 0


def outcome(folder: Path, entry: dict[str, Any], *, quick: bool) -> dict[str, Any]:
    """What is wrong with one program, and its time if nothing is."""
    row: dict[str, Any] = {"program": entry["name"], "faults": []}
    try:
        program = package(folder / "programs" / entry["name"]).program
        for data in entry["data"]:
            row["faults"] += differences(program, folder / "data" / data, TOLERANCE[entry["dtype"]])
        if entry["timed"] and not quick and not row["faults"]:
            row["seconds"] = seconds_of(program, entry["timed"])
            flops = program.report["operations"]["sequence"]
            row["gflops"] = 1e-9 * flops / row["seconds"]
    except Exception as problem:  # of the driver, of CuPy, of the program: the others still run
        row["faults"].append(f"{type(problem).__name__}: {problem}")
    return row


def main() -> int:
    """Prepare or check."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("what", choices=("prepare", "check"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--spec", action="append", default=[], help="this one only")
    parser.add_argument("--quick", action="store_true", help="compare only")
    parser.add_argument("--json", type=Path, help="write the outcome")
    options = parser.parse_args()
    names = tuple(options.spec)
    if options.what == "check":
        return check(options.folder, quick=options.quick, report=options.json, names=names)
    prepare(options.folder, names)
    return 0


if __name__ == "__main__":
    sys.exit(main())
