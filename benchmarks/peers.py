"""Common parts of benchmarks beside other programs: threads, fastest kernels, rounds, and rows.

The BLAS inside PySCF's wheels and TBLIS, which PySCF uses if pytblis is installed, do not know
recent processors and fall back to slow code. With AVX-512, OPENBLAS_CORETYPE is therefore set to
SkylakeX and BLIS_ARCH_TYPE to skx, unless an option of the benchmark says otherwise.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

CPUINFO = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
WIDE = "avx512f" in CPUINFO
HEADS = ("program", "median", "least", "tcgen's time in it")
Result = TypeVar("Result")


def add_options(parser: argparse.ArgumentParser) -> None:
    """``--threads``, ``--coretype`` and ``--tblis``."""
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--coretype", default="SkylakeX" if WIDE else "", help="of OpenBLAS")
    parser.add_argument("--tblis", default="skx" if WIDE else "", help="kernels of TBLIS")


def set_environment(options: argparse.Namespace) -> None:
    """Set what the libraries read when they are loaded; starts Python again where it differs."""
    count = str(options.threads)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    wanted = dict.fromkeys(names, count)
    wanted |= {"OPENBLAS_CORETYPE": options.coretype, "BLIS_ARCH_TYPE": options.tblis}
    wanted["OPENBLAS_L2_SIZE"] = ""
    if any(os.environ.get(name, "") != value for name, value in wanted.items()):
        os.environ.update(wanted)
        for name in [n for n, value in wanted.items() if not value]:
            del os.environ[name]
        os.execv(sys.executable, [sys.executable, *sys.argv])


def processors() -> list[str]:
    """Names of the machine's processors."""
    models = {x.split(":")[1].strip() for x in CPUINFO.splitlines() if "model name" in x}
    return sorted(models) or [platform.processor()]


def machine(options: argparse.Namespace) -> dict[str, Any]:
    """What results are kept with: the processor, the options above, and how busy it is."""
    of = {name: getattr(options, name) for name in ("threads", "coretype", "tblis")}
    return {"processor": processors(), **of, "load": os.getloadavg()}


def take_turns(
    programs: dict[str, Callable[[], Result]],
    repeat: int,
    check: Callable[[str, Result], None],
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of each program by round, in each of which all take their turns.

    A round before these warms up, and ``check`` gets what each program returned in it.
    """
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for round_ in range(repeat + 1):
        for name, run in programs.items():
            start = clock()
            found = run()
            seconds[name].append(clock() - start)
            if round_ == 0:
                check(name, found)
            del found  # before the next one needs memory
    return {name: values[1:] for name, values in seconds.items()}


def cells(name: str, seconds: dict[str, list[float]]) -> list[str]:
    """What stands under ``HEADS`` for a program; the ratio is the median of those of the rounds."""
    values = seconds[name]
    ratio = median(x / y for x, y in zip(seconds["tcgen"], values, strict=True))
    return [name, duration(median(values)), duration(min(values)), f"{ratio:.2f}"]


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    units = ((1, "s"), (1e-3, "ms"), (1e-6, "us"))
    size, unit = next((u for u in units if seconds >= u[0]), units[-1])
    return f"{seconds / size:.3g} {unit}"


def markdown(heads: tuple[str, ...], rows: list[list[str]]) -> str:
    """A table."""
    lines = [list(heads), ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
