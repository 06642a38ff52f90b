"""Check and measure everything on a GPU by one command, in at most seven minutes there.

    python benchmarks/gpu_all.py prepare DIR             # here: tcgen, no GPU
    python DIR/gpu_all.py run DIR [--minutes 7]          # there: NumPy and CuPy alone
    python DIR/gpu_all.py check DIR [--sample]           # there: compare only

``prepare`` compiles all programs, computes the results of small ones by the interpreter, and copies
the scripts and tcgen's package into DIR. After an interruption the next call makes what is missing,
or all of it if the source has changed. ``run`` compiles the sources by NVRTC on all cores; runs the
tests ``-m gpu``, if it starts in a checkout and pytest is there; compares the small programs
(``gpu_check``), some of them under compute-sanitizer if that is installed; measures a copy and a
product of matrices by cuBLAS, the ceilings of all else; and then, beside CuPy, PyTorch and
cuTENSOR, contractions of the TCCG suite and random ones (``gpu_contractions``), programs of quantum
chemistry (``gpu_programs``), and lazy arrays (``gpu_lazy``). Each part has a share of the minutes,
and what it leaves over goes to the next ones; what does not fit is named, not measured.
DIR/gpu_all.json has all figures, also after an interruption, and DIR/gpu_all.md the tables of
RESULTS.md. The exit status is 1 if a result differs or a part fails, and 3 where no GPU can run.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gpu_check
import gpu_contractions
import gpu_measure

# Modules with functions prepare, names, measure and table; the last one needs tcgen's package.
SECTIONS = {"gpu_contractions": 3.0, "gpu_programs": 3.0, "gpu_lazy": 1.0}
# Shares of the minutes of what comes before them: compilations, tests, checks, compute-sanitizer.
COMPILING, TESTS, CHECKS, SANITIZER = 2.0, 1.0, 1.5, 1.0
GPU_TESTS = tuple(f"tests/cuda/test_{name}.py" for name in ("runtime", "programs", "epilogue"))
MINUTES = 7.0
REPORT, TABLES = "gpu_all.json", "gpu_all.md"


class Clock:
    """Divides the minutes of a run among its parts by their shares."""

    def __init__(self, minutes: float, shares: float) -> None:
        self._end, self._shares = time.monotonic() + 60 * minutes, shares

    def part(self, share: float) -> Callable[[], float]:
        """A function that returns the seconds that are left of the next part, of that share."""
        now = time.monotonic()
        stop = now + (self._end - now) * share / self._shares
        self._shares -= share
        return lambda: stop - time.monotonic()


def prepare(folder: Path) -> None:
    """Write everything that the other machine needs."""
    import tcgen

    (folder / "programs").mkdir(parents=True, exist_ok=True)
    for path in Path(__file__).resolve().parent.glob("gpu_*.py"):
        shutil.copy(path, folder)
    package = Path(tcgen.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(package, folder / package.name, ignore=ignored, dirs_exist_ok=True)
    # Templates lie beside the package of a checkout, and inside that of a wheel.
    templates = package.parent / "templates"
    if templates.is_dir():
        shutil.copytree(templates, folder / templates.name, dirs_exist_ok=True)
    gpu_check.prepare(folder)
    for name in SECTIONS:
        importlib.import_module(name).prepare(folder)
        print(f"prepared {name}", flush=True)


def compile_all(folder: Path, left: Callable[[], float]) -> dict[str, Any]:
    """Compile the sources on all cores; CuPy stores the results for later loads."""
    paths = sorted(p for p in (folder / "programs").iterdir() if p.is_dir())

    def build(path: Path) -> str:
        if left() <= 0:
            return "left out"
        try:
            gpu_measure.package(path).program.build()
        except Exception as problem:  # said again where the program runs
            return f"{type(problem).__name__}: {problem}"
        return "built"

    began = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(pool.map(build, paths))
    counts = {text: outcomes.count(text) for text in ("built", "left out")}
    failed = {p.name: o for p, o in zip(paths, outcomes, strict=True) if o not in counts}
    return {**counts, "failed": failed, "seconds": time.monotonic() - began}


def command(words: list[str], seconds: float) -> dict[str, Any]:
    """The exit status and the last lines of a command."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=max(1.0, seconds)
        )
    except subprocess.TimeoutExpired:
        return {"left_out": f"after {seconds:.0f} s"}
    return {"status": done.returncode, "output": (done.stdout + done.stderr)[-2000:]}


def gpu_tests(left: Callable[[], float]) -> dict[str, Any]:
    """The tests on a device, in a checkout."""
    missing = [path for path in GPU_TESTS if not Path(path).is_file()]
    if missing or importlib.util.find_spec("pytest") is None:
        return {"left_out": f"no {missing[0]} here" if missing else "no pytest"}
    return command([sys.executable, "-m", "pytest", "-q", "-m", "gpu", *GPU_TESTS], left())


def sanitizer(folder: Path, left: Callable[[], float]) -> dict[str, Any]:
    """A sample of the programs under compute-sanitizer."""
    found = shutil.which("compute-sanitizer")
    if found is None:
        return {"left_out": "no compute-sanitizer"}
    script = [sys.executable, str(folder / Path(__file__).name), "check", str(folder), "--sample"]
    return command([found, "--error-exitcode", "9", *script], left())


def section(
    name: str, folder: Path, repeat: int, left: Callable[[], float], write: Callable[[Any], None]
) -> dict[str, Any]:
    """The rows of a section, with names of cases that differ, fail, or did not fit."""
    found: dict[str, Any] = {"rows": [], "wrong": {}, "left_out": []}
    try:
        module = importlib.import_module(name)
        names = module.names(folder)
    except Exception as problem:
        return {**found, "wrong": {name: f"{type(problem).__name__}: {problem}"}}
    import cupy

    for case in names:
        if left() <= 0:
            found["left_out"].append(case)
            continue
        try:
            row = module.measure(folder, case, repeat)
        except Exception as problem:  # of the driver, of CuPy, of the program: the others still run
            found["wrong"][case] = f"{type(problem).__name__}: {problem}"
        else:
            found["rows"].append(row)
            if not row["difference"] < module.TOLERANCE:
                found["wrong"][case] = f"differs by {row['difference']:.1e}"
        print(name, case, found["wrong"].get(case, "right"), flush=True)
        cupy.get_default_memory_pool().free_all_blocks()
        write(found)
    return found


def tables(figures: dict[str, Any]) -> str:
    """All tables as Markdown, and what is missing in them."""
    roof = figures["ceilings"]
    copy, dgemm = 1e-12 * roof["copy"], 1e-12 * roof["dgemm"]
    lines = [
        f"{figures['device']}, CuPy {figures['cupy']}: a copy moves {copy:.2f} TB/s, dgemm "
        f"computes {dgemm:.1f} Tflop/s; {figures['seconds']:.0f} s in all.",
        f"cuTENSOR: {figures['cutensor']}.",
    ]
    for name in SECTIONS:
        found = figures.get(name, {})
        if found.get("rows"):
            lines += [
                "",
                f"## {name}",
                "",
                importlib.import_module(name).table(found["rows"], roof),
            ]
        lines += [f"{case}: {why}" for case, why in found.get("wrong", {}).items()]
        if found.get("left_out"):
            lines.append(f"Not measured: {', '.join(found['left_out'])}.")
    return "\n".join([*lines, ""])


def faults_of(figures: dict[str, Any]) -> list[str]:
    """What went wrong, in words; nothing measured is a fault as well."""
    found = [f"{row['program']}: {f}" for row in figures["checks"] for f in row["faults"]]
    commands = {name: figures[name] for name in ("tests", "sanitizer")}
    found += [f"{name}: {c['output']}" for name, c in commands.items() if c.get("status", 0)]
    for name in SECTIONS:
        found += [f"{name}: {case}: {why}" for case, why in figures[name]["wrong"].items()]
    if not any(figures[name]["rows"] for name in SECTIONS):
        found.append("nothing was measured")
    return found


def run(folder: Path, minutes: float, repeat: int) -> int:
    """Check and measure; 1 if there were faults."""
    import cupy

    began = time.monotonic()
    clock = Clock(minutes, COMPILING + TESTS + CHECKS + SANITIZER + sum(SECTIONS.values()))
    figures: dict[str, Any] = {"device": gpu_measure.device_name(), "cupy": cupy.__version__}
    figures["cutensor"] = gpu_contractions.cutensor_module()[1]

    def write(name: str, found: Any) -> None:
        figures[name] = found
        figures["seconds"] = time.monotonic() - began
        (folder / REPORT).write_text(json.dumps(figures, indent=1) + "\n")

    write("compiled", compile_all(folder, clock.part(COMPILING)))
    write("tests", gpu_tests(clock.part(TESTS)))
    left = clock.part(CHECKS)
    write("checks", gpu_check.check(folder, more=lambda: left() > 0))
    write("sanitizer", sanitizer(folder, clock.part(SANITIZER)))
    write("ceilings", gpu_measure.ceilings(repeat))
    for name, share in SECTIONS.items():
        own = clock.part(share)
        write(name, section(name, folder, repeat, own, lambda rows, n=name: write(n, rows)))
    text = tables(figures)
    (folder / TABLES).write_text(text)
    print(text)
    faults = faults_of(figures)
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def obstacle(folder: Path) -> str | None:
    """Why nothing can run here, or None."""
    if not (folder / "programs").is_dir():
        return f"{folder} has no programs: run gpu_all.py prepare {folder} first, where tcgen is"
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
    except Exception as problem:  # an import, or an error of the driver
        return f"no GPU can run here ({problem}): install a driver and CuPy (cupy-cuda13x)"
    return None


def main() -> int:
    """Prepare, check or run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("prepare", "check", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of a run (7)")
    parser.add_argument("--repeat", type=int, default=5, help="timed rounds (5)")
    parser.add_argument("--sample", action="store_true", help="check a few programs")
    options = parser.parse_args()
    if not 0 < options.minutes < math.inf or options.repeat < 1:
        parser.error("--minutes and --repeat are greater than 0")
    reason = obstacle(options.folder) if options.what == "run" else None
    if reason is not None:
        print(f"gpu_all: {reason}", file=sys.stderr)
        return 3
    if options.what == "run":
        return run(options.folder, options.minutes, options.repeat)
    if options.what == "check":
        rows = gpu_check.check(options.folder, gpu_check.SAMPLE if options.sample else ())
        return 1 if not rows or any(row["faults"] for row in rows) else 0
    prepare(options.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
