"""Programs that are checked on a GPU: every spec, with inputs and the interpreter's results.

``prepare`` compiles the specs in three element types, double precision also fused, and
contractions; ``check`` runs them at small extents, on the edges of tiles, and compares. A program
that fails counts as a fault, like a difference, and the next one runs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gpu_measure import once, package

TOLERANCE = {"float64": 1e-11, "float32": 1e-4, "complex128": 1e-11}
SMALL = ((3, 5), (5, 3), (1, 1), (2, 17))
PLANNED = 10, 40
# Elements of the largest array, as of quadruples, that the interpreter is asked for.
MOST = 200_000
# Programs that compute-sanitizer runs: tiles, an epilogue, sums, a nest, and transposed tiles.
SAMPLE = ("energies_float64_linear", "mp2_df_complex128_none", "contraction_ae_dcbe_dcba")
# Subscripts in C order, with one extent for all letters.
CONTRACTIONS = (
    ("ae,dcbe->dcba", 72),
    ("dca,cbd->ba", 304),
    ("dfae,cebf->dcba", 72),
    ("aged,cbfg->fedcba", 20),
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
    specs = Path(__file__).resolve().parents[1] / "specs"
    energies = _made(folder / "specs") / "energies.spec"
    energies.write_text(ENERGIES)
    programs = []
    for path in (energies, *sorted(specs.glob("*.spec"))):
        if not names or path.stem in names:
            for dtype in TOLERANCE:
                make = partial(_spec, folder, path, dtype)
                programs += once(folder, f"{path.stem}_{dtype}", make)
    if not names or "contractions" in names:
        for case in CONTRACTIONS:
            programs.append(once(folder, case[0], partial(_contraction, folder, *case)))
    (folder / "checks.json").write_text(json.dumps(programs, indent=1) + "\n")


def _spec(folder: Path, path: Path, dtype: str) -> list[dict[str, Any]]:
    """Prepare the programs of a spec in one element type."""
    import tcgen
    from tcgen.compiler.driver import read_system
    from tcgen.interp import evaluate_system
    from tcgen.testing import random_arrays, split_starts

    system = read_system(path)
    bases = [s.name for s in system.spaces if not s.parts]

    def extents(pair: tuple[int, int]) -> dict[str, int]:
        return {b: {"o": pair[0]}.get(b, pair[1]) for b in bases}

    data, programs = [], []
    for number, pair in enumerate(SMALL):
        if _largest(system, extents(pair)) > MOST:
            continue
        arrays = random_arrays(system, extents(pair), dtype=dtype, seed=number)
        inputs, starts = split_starts(system, arrays)
        wanted = evaluate_system(system, inputs, extents(pair), out=starts, dtype=dtype)
        data.append(f"{path.stem}_{dtype}_{number}.npz")
        _keep(folder, data[-1], inputs, starts, wanted)
    for objective in ("none", "linear") if dtype == "float64" else ("none",):
        program = tcgen.compile(
            path, extents=extents(PLANNED), target="cuda", dtype=dtype, objective=objective
        )
        name = f"{path.stem}_{dtype}_{objective}"
        program.save(_made(folder / "programs") / name)
        programs.append({"name": name, "spec": path.stem, "dtype": dtype, "data": data})
    return programs


def _largest(system: Any, extents: Mapping[str, int]) -> int:
    """Elements of the largest array of a system."""
    return max(
        math.prod(sum(extents[b.name] for b in s.bases) for s in t.spaces) for t in system.tensors
    )


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
    return {"name": name, "spec": "contractions", "dtype": "float64", "data": data}


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


def check(
    folder: Path,
    names: tuple[str, ...] = (),
    more: Callable[[], bool] = lambda: True,
) -> list[dict[str, Any]]:
    """Faults of every program of a folder, or of some, for as long as there is ``more`` time."""
    rows = []
    for entry in json.loads((folder / "checks.json").read_text()):
        if names and entry["name"] not in names:
            continue
        if not more():
            rows.append({"program": entry["name"], "left_out": True, "faults": []})
            continue
        row = {"program": entry["name"], "faults": faults(folder, entry)}
        print("wrong" if row["faults"] else "right", json.dumps(row), flush=True)
        rows.append(row)
    return rows


def faults(folder: Path, entry: dict[str, Any]) -> list[str]:
    """What is wrong with one program."""
    found: list[str] = []
    try:
        program = package(folder / "programs" / entry["name"]).program
        for data in entry["data"]:
            found += differences(program, folder / "data" / data, TOLERANCE[entry["dtype"]])
    except Exception as problem:  # of the driver, of CuPy, of the program: the others still run
        found.append(f"{type(problem).__name__}: {problem}")
    return found
