"""Check, then measure, on a machine with a GPU.

    python benchmarks/gpu_check.py [--quick] [--json FILE]

1. Runs the specs at small and odd extents on the GPU, in three element types and fused, and
   compares with the interpreter; stops with status 1 at the first difference.
2. Measures contractions of the TCCG kind (sizes are arguments of the code): GFLOP/s of the kernel,
   of CuPy's einsum on the same arrays, and of a plain matrix product, which is the roof. Times are
   medians over CUDA events, after warm-up, the two taken in turn.
3. Measures whole programs (CCSD, (T), density fitting): time of one call with arrays on the GPU.

Under ``compute-sanitizer python benchmarks/gpu_check.py --quick`` the first part alone is run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gpu_folder import CONTRACTIONS, ENERGIES

import tcgen
from tcgen.compiler.driver import read_system
from tcgen.frontend.spec.reader import read_spec
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.runtime.gpu.cupy_device import open_device
from tcgen.testing import random_arrays, split_starts

SPECS = Path(__file__).resolve().parents[1] / "specs"
TOLERANCE = {"float64": 1e-11, "float32": 1e-4, "complex128": 1e-11}
REPEAT = 7
PROGRAMS = (("ccsd_closed_shell", 20, 100), ("t_closed_shell", 10, 40), ("df_ladder", 30, 120))


def extents_of(system: System, occupied: int, virtual: int) -> dict[str, int]:
    """Extents by base space; what is neither o nor v is as large as v."""
    bases = [s.name for s in system.spaces if not s.parts]
    return {b: {"o": occupied, "v": virtual}.get(b, virtual) for b in bases}


def check() -> None:
    """Every spec on the GPU against the interpreter; raises AssertionError at a difference."""
    systems = {path.stem: read_system(path) for path in sorted(SPECS.glob("*.spec"))}
    systems["energies"] = read_spec(ENERGIES)
    for stem, system in systems.items():
        for dtype, objective in (*((d, "none") for d in TOLERANCE), ("float64", "linear")):
            program = tcgen.compile(
                system,
                extents=extents_of(system, 10, 40),
                target="cuda",
                dtype=dtype,
                objective=objective,
            )
            for occupied, virtual in ((3, 5), (5, 3), (1, 1)):
                extents = extents_of(system, occupied, virtual)
                arrays = random_arrays(system, extents, dtype=dtype, seed=1)
                inputs, starts = split_starts(system, arrays)
                wanted = evaluate_system(system, inputs, extents, out=starts)
                found = program(**inputs, out={n: a.copy() for n, a in starts.items()})
                for name, value in wanted.items():
                    scale = max(1.0, float(np.max(np.abs(value), initial=0)))
                    error = float(np.max(np.abs(found[name] - value), initial=0)) / scale
                    assert error < TOLERANCE[dtype], (stem, dtype, extents, name, error)
            print(f"right  {stem:24s} {dtype} {objective}", flush=True)


def median_seconds(cupy: Any, calls: tuple[Callable[[], object], ...]) -> list[float]:
    """Median time on the GPU of each of some calls, taken in turn."""
    times: list[list[float]] = [[] for _ in calls]
    for n in range(REPEAT + 2):
        for call, seconds in zip(calls, times, strict=True):
            first, last = cupy.cuda.Event(), cupy.cuda.Event()
            first.record()
            call()
            last.record()
            last.synchronize()
            if n >= 2:
                seconds.append(cupy.cuda.get_elapsed_time(first, last) / 1e3)
    return [statistics.median(t) for t in times]


def measure_contractions(cupy: Any) -> list[dict[str, Any]]:
    """GFLOP/s of the generated kernels, CuPy's einsum and a plain product of 4096."""
    rows: list[dict[str, Any]] = []
    side = 4096
    a = cupy.random.random((side, side))
    (seconds,) = median_seconds(cupy, (lambda: a @ a,))
    rows.append({"case": f"matmul {side}", "gflops": 2e-9 * side**3 / seconds})
    print(f"plain product of {side}: {rows[0]['gflops']:.0f} GFLOP/s")
    for subscripts, extent in CONTRACTIONS:
        inputs, _ = subscripts.split("->")
        letters = sorted(set(inputs) - {","})
        extents = dict.fromkeys(letters, extent)
        arrays = [
            cupy.random.random(tuple(extents[x] for x in operand)) for operand in inputs.split(",")
        ]
        program = tcgen.compile(subscripts, extents=extents, target="cuda")
        ours = program(x0=arrays[0], x1=arrays[1])["y"]
        theirs = cupy.einsum(subscripts, *arrays)
        error = float(cupy.max(cupy.abs(ours - theirs)) / cupy.max(cupy.abs(theirs)))
        assert error < 1e-11, (subscripts, error)
        out = {"y": ours}

        def run(arrays: list[Any] = arrays, out: Any = out, program: Any = program) -> object:
            return program(x0=arrays[0], x1=arrays[1], out=out)

        def einsum(arrays: list[Any] = arrays, subscripts: str = subscripts) -> object:
            return cupy.ascontiguousarray(cupy.einsum(subscripts, *arrays))

        mine, other = median_seconds(cupy, (run, einsum))
        flops = 2.0 * float(extent) ** len(letters)
        moved = 8 * (sum(x.size for x in arrays) + ours.size)
        row = {
            "case": subscripts,
            "extent": extent,
            "gflops": 1e-9 * flops / mine,
            "einsum_gflops": 1e-9 * flops / other,
            "gbytes_per_second": 1e-9 * moved / mine,
        }
        rows.append(row)
        print(
            f"{subscripts:22s} {extent:4d} {row['gflops']:9.0f} GFLOP/s, einsum "
            f"{row['einsum_gflops']:9.0f}, {row['gbytes_per_second']:7.0f} GB/s, error {error:.0e}",
            flush=True,
        )
    return rows


def measure_programs(cupy: Any) -> list[dict[str, Any]]:
    """Time of one call of whole programs, inputs and results on the GPU."""
    rows = []
    for name, occupied, virtual in PROGRAMS:
        system = read_system(SPECS / f"{name}.spec")
        extents = extents_of(system, occupied, virtual)
        program = tcgen.compile(system, extents=extents, target="cuda")
        inputs, starts = split_starts(system, random_arrays(system, extents, seed=1))
        there = {n: cupy.asarray(a) for n, a in inputs.items()}
        out = {n: cupy.asarray(a) for n, a in starts.items()}

        def run(there: Any = there, out: Any = out, program: Any = program) -> object:
            return program(**there, out=out)

        run()
        (seconds,) = median_seconds(cupy, (run,))
        flops = program.report["operations"]["sequence"]
        row = {"program": name, "extents": extents, "seconds": seconds}
        rows.append({**row, "gflops": 1e-9 * flops / seconds})
        print(f"{name:24s} o={occupied} v={virtual} {seconds:.4f} s, {1e-9 * flops / seconds:.0f}")
    return rows


def main() -> int:
    """Check, measure, write; 0 if all is right."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="check only")
    parser.add_argument("--json", type=Path, help="write the figures")
    options = parser.parse_args()
    try:
        device = open_device()
    except tcgen.TcgenError as problem:
        print(f"gpu_check: {problem}", file=sys.stderr)
        return problem.exit_code
    print(device.describe())
    check()
    if options.quick:
        return 0
    import cupy

    figures = {
        "device": device.describe(),
        "contractions": measure_contractions(cupy),
        "programs": measure_programs(cupy),
    }
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
