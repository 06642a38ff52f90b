"""Calls of a library in C beside calls of the same programs in Python.

    taskset -c 0 python benchmarks/library.py
    taskset -c 0 python benchmarks/library.py --case ccsd:o=15,v=80 --case mp2_df:o=15,v=80,x=300
    taskset -c 0 python benchmarks/library.py --archs x86-64-v3,x86-64-v4 --case ccsd:o=8,v=30
    python benchmarks/library.py --build
    python benchmarks/library.py --older CHECKOUT

Each case is a spec at some extents; the defaults are tiny, so that the overhead of a call shows. A
round times C and Python in turn; the table has medians of the processor time of a call in seconds,
and of the ratios. C is called with its layout and with a plan, bound if the program has constants,
as Python is; ``--fortran-order`` compares the two orders of arrays, ``--archs`` kernels chosen at
run time with native ones. The BLAS is SciPy's for both; results must be equal. ``--build`` has the
processor time of CMake and the compiler for CCSD, (T) and MP2, ``--older`` that of calls in Python
beside those of another checkout. Needs CMake and a C compiler.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

CASES = ("ccsd:o=2,v=3", "mp2_df:o=2,v=3,x=4", "t:o=2,v=3")
SECONDS = 0.2  # of a round of one program, at least
POINTER, INT64, SIZE = ctypes.c_void_p, ctypes.c_int64, ctypes.c_size_t


class Options(ctypes.Structure):
    """tcgen_options."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("threads", "check", "part", "blas_serial")),
        *(("first", INT64), ("last", INT64)),
        *((name, POINTER) for name in ("blas", "stop", "plan")),
    )


def built(sources: list[Any], folder: Path, **options: Any) -> ctypes.CDLL:
    """The library of some programs."""
    import tcgen

    tcgen.library(sources, folder / "lib", name="lib", **options)
    for command in (["-S", folder / "lib", "-B", folder / "build"], ["--build", folder / "build"]):
        subprocess.run(["cmake", *command], check=True, capture_output=True)
    return ctypes.CDLL(str(folder / "build" / "liblib.so"))


def calls(program: Any, library: ctypes.CDLL, extents: dict[str, int], arrays: Any) -> Any:
    """The call in Python, that in C, the same with a plan; and the results of C."""
    import numpy as np

    from tcgen.records.loops import stored_shape
    from tcgen.runtime.cpu.blas import blas_pointers, blas_threads

    manifest = program.manifest
    name, bases = f"lib_{manifest.name}", manifest.bases
    n = (INT64 * len(bases))(*(extents[b] for b in bases))
    given = [np.ascontiguousarray(arrays[t.name]) for t in manifest.tensors if t.is_input]
    made = {t.name: np.zeros(stored_shape(t, extents)) for t in manifest.outputs}

    def table(values: Any) -> Any:
        return (POINTER * len(values))(*(a.ctypes.data for a in values))

    def memory(count: int) -> tuple[Any, Any]:
        keep.append(np.empty(count + 64, np.uint8))
        return POINTER(keep[-1].ctypes.data + -keep[-1].ctypes.data % 64), SIZE(count)

    def number(suffix: str, *more: Any) -> int:
        function = getattr(library, name + suffix)
        function.restype = INT64
        return int(function(*more))

    keep: list[Any] = [given, blas_threads().__enter__()]
    inputs, outputs = table(given), table(list(made.values()))
    pointers = blas_pointers()
    blas = (POINTER * len(pointers))(*pointers) if all(pointers) else None
    workspace = memory(number("_workspace_bytes", n, 1))
    plan = memory(number("_plan_bytes"))
    assert number("_plan", n, 1, *plan) == 0
    constant = {t.name: arrays[t.name] for t in manifest.tensors if t.is_input and not t.volatile}
    binds = bool(manifest.host_constant)
    state = memory(number("_state_bytes", n)) if binds else ()
    function = getattr(library, name + ("_call" if binds else ""))
    arguments = (n, inputs, outputs, *state, *workspace)

    def chosen(plan: Any) -> Any:
        options = Options(threads=1, blas_serial=1, plan=plan)
        options.blas = None if blas is None else ctypes.addressof(blas)
        keep.append(options)
        return ctypes.byref(options)

    layout, planned = chosen(None), chosen(plan[0].value)
    if binds:
        assert getattr(library, f"{name}_bind")(n, inputs, *state, *workspace, layout) == 0
    python = program.bind(**constant) if binds else program
    rest = {k: v for k, v in arrays.items() if not (binds and k in constant)}
    keep += [arguments, blas]
    return (
        lambda: python(**rest),
        lambda: function(*arguments, layout),
        lambda: function(*arguments, planned),
        made,
        keep,
    )


def seconds(call: Callable[[], object], count: int) -> float:
    """Processor time of a call."""
    begun = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - begun) / count


def prepared(
    system: Any, extents: dict[str, int], arrays: Any, folder: Path, archs: str = "native"
) -> tuple[list[Any], dict[str, Any], Any]:
    """The three calls of a program, after one of each in Python and C; its results in C; what
    keeps them alive.
    """
    import numpy as np

    import tcgen

    program = tcgen.compile(system, extents=extents, target="cpu")
    library = built([program.save(folder / "program")], folder, archs=archs)
    python, *native, made, keep = calls(program, library, extents, arrays)
    expected = python()
    assert native[0]() == 0
    assert archs != "native" or all(np.array_equal(made[k], expected[k]) for k in expected)
    return [python, *native], made, keep


def deviation(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest difference of two sets of results, relative to the largest element of each."""
    return max(
        float(abs(one[name] - other[name]).max() / (abs(one[name]).max() or 1)) for name in one
    )


def read_case(case: str) -> tuple[Any, dict[str, int]]:
    """Equations and extents of SPEC:SPACE=N,SPACE=N."""
    import tcgen

    spec, _, numbers = case.partition(":")
    pairs = (pair.partition("=") for pair in numbers.split(","))
    extents = {space: int(number) for space, _, number in pairs}
    return tcgen.read_spec_file(tcgen.spec_path(spec)), extents


def measure(case: str, rounds: int, *, fortran_order: bool, archs: str | None) -> dict[str, Any]:
    """One row of the table."""
    from tcgen.native.fortran_order import in_fortran_order
    from tcgen.testing import random_arrays

    system, extents = read_case(case)
    arrays = random_arrays(system, extents, seed=1)
    with tempfile.TemporaryDirectory() as scratch:
        timed, made, *keep = prepared(system, extents, arrays, Path(scratch) / "c")
        if fortran_order:
            reversed_ = in_fortran_order(system)
            arrays = random_arrays(reversed_, extents, seed=1)
            others, *more = prepared(reversed_, extents, arrays, Path(scratch) / "f")
            timed.append(others[2])
            keep += more
        if archs:
            folder = Path(scratch) / "a"
            others, chosen, *more = prepared(system, extents, arrays, folder, archs)
            timed.append(others[2])
            keep += more
        count = max(1, int(SECONDS / max(1e-7, seconds(timed[0], 3))))
        times = [[seconds(call, count) for call in timed] for _ in range(rounds)]
    medians = [statistics.median(column) for column in zip(*times, strict=True)]
    row = {"case": case, **dict(zip(("python", "c", "c with a plan"), medians, strict=False))}
    row["c / python"] = statistics.median(t[1] / t[0] for t in times)
    if fortran_order:
        row["fortran order / c order"] = statistics.median(t[3] / t[2] for t in times)
    if archs:
        row["native / chosen"] = statistics.median(t[2] / t[-1] for t in times)
        row["deviation"] = deviation(made, chosen)
    return row


def build_seconds() -> float:
    """Processor time of CMake and the compiler for the library of CCSD, (T) and MP2."""
    with tempfile.TemporaryDirectory() as scratch:
        specs = ["ccsd_closed_shell", "t_closed_shell", "mp2_closed_shell"]
        begun = resource.getrusage(resource.RUSAGE_CHILDREN)
        built(specs, Path(scratch), extents={"o": 15, "v": 80})
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime


def serve(case: str) -> None:
    """Print the processor time of a call in Python for each line of the standard input."""
    import tcgen
    from tcgen.testing import random_arrays

    tcgen.set_threads(1)
    system, extents = read_case(case)
    program = tcgen.compile(system, extents=extents, target="cpu")
    arrays = random_arrays(system, extents, seed=1)
    constant = {t.name: arrays[t.name] for t in system.inputs if not t.volatile}
    binds = bool(program.manifest.host_constant)
    called: Any = program.bind(**constant) if binds else program
    rest = {k: v for k, v in arrays.items() if not (binds and k in constant)}
    count = max(1, int(SECONDS / max(1e-7, seconds(lambda: called(**rest), 3))))
    for _ in sys.stdin:
        print(seconds(lambda: called(**rest), count), flush=True)


def compare_checkouts(older: Path, cases: Iterable[str], rounds: int) -> None:
    """Print the time of a call in Python by another checkout beside that of this one."""
    print("| case | older | this | older / this |\n|---|---|---|---|")
    for case in cases:
        servers = [
            subprocess.Popen(
                [sys.executable, __file__, "--serve", case],
                env={**os.environ, "PYTHONPATH": str(folder)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for folder in (older, Path(__file__).parents[1])
        ]
        times = [[answer(server) for server in servers] for _ in range(rounds)]
        for server in servers:
            server.communicate()
        medians = [statistics.median(column) for column in zip(*times, strict=True)]
        ratio = statistics.median(t[0] / t[1] for t in times)
        print(f"| {case} | {medians[0]:.3g} | {medians[1]:.3g} | {ratio:.3f} |", flush=True)


def answer(server: subprocess.Popen[str]) -> float:
    """One measurement of a process that serves."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write("\n")
    server.stdin.flush()
    return float(server.stdout.readline())


def main() -> None:
    """Measure, print a table, and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--case", action="append", help="SPEC:SPACE=N,SPACE=N, repeatable")
    parser.add_argument("--fortran-order", action="store_true", help="compare the two orders of C")
    parser.add_argument("--archs", help="compare these kernels, chosen at run time, with native")
    parser.add_argument("--build", action="store_true", help="time the build of a library")
    parser.add_argument("--older", type=Path, help="compare calls in Python with this checkout")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()

    cases = options.case or CASES
    if options.serve:
        return serve(options.serve)
    if options.older:
        return compare_checkouts(options.older, cases, options.rounds)
    if options.build:
        return print(f"{build_seconds():.1f} s")

    import tcgen

    tcgen.set_threads(1)
    rows = []
    for case in cases:
        more = {"fortran_order": options.fortran_order, "archs": options.archs}
        rows.append(measure(case, options.rounds, **more))
        if len(rows) == 1:
            print(f"| {' | '.join(rows[0])} |\n{'|---' * len(rows[0])}|")
        numbers = (f"{v:.3g}" for k, v in rows[-1].items() if k != "case")
        print(f"| {case} | {' | '.join(numbers)} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
