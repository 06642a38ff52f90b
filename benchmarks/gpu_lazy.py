"""Lazy arrays on a GPU beside CuPy's operations and CuPy's own fusion: chains and reductions.

The programs are those of Morton et al. (DelayRepay, DLS 2020, Table 1) that are element-wise,
stencils or reductions, and a softmax. Each is one function that is called with CuPy's arrays and
with lazy ones. ``lazy`` takes CuPy or a kernel, whichever a form of expression turned out to run
faster in; ``kernels`` are kernels alone; ``cupy`` runs operation by operation; ``fuse`` is
``cupy.fuse``, where it takes the program. Kernels are compiled beforehand: where they run, tcgen
plans nothing.

Before a result is computed, memory of its extents is filled with NaN and given back to CuPy's pool,
from which the result then comes; it is compared with that of ``cupy``. ``% of copy`` compares the
bytes of operands and results with the bandwidth of a copy.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gpu_measure
import numpy as np
from gpu_measure import medians

import tcgen
from tcgen.lazy_arrays import compile as kernels
from tcgen.lazy_arrays.compile import LazySystem, lazy_system
from tcgen.lazy_arrays.dispatch import wait_for_background
from tcgen.lazy_arrays.graph import linearize

WARM = 8  # calls after which a form has its kernel, and its measurements are over
TOLERANCE = 1e-10  # of the largest difference relative to the largest value
ELEMENTS = 2**25  # of the larger arrays
LEAST = "TCGEN_LAZY_MIN_ELEMENTS"
Work = Callable[..., Any]


@dataclass(frozen=True)
class Program:
    """A program on arrays.

    Attributes:
        work: a function of NumPy or CuPy and of the arrays.
        shapes: of the arrays at a number of elements.
    """

    work: Work
    shapes: Callable[[int], Sequence[tuple[int, ...]]]


def arc_distance(xp: Any, t1: Any, t2: Any, p1: Any, p2: Any) -> Any:
    near = xp.sin((t2 - t1) / 2) ** 2 + xp.cos(t1) * xp.cos(t2) * xp.sin((p2 - p1) / 2) ** 2
    return 2 * xp.arctan2(xp.sqrt(near), xp.sqrt(1 - near))


def harris(xp: Any, image: Any) -> Any:
    del xp
    dx, dy = image[1:, :-1] - image[:-1, :-1], image[:-1, 1:] - image[:-1, :-1]
    a, b, c = dx * dx, dy * dy, dx * dy
    return a * b - c * c - 0.05 * (a + b) ** 2


def laplacian(xp: Any, x: Any) -> Any:
    inner = 4 * x[1:-1, 1:-1] - x[:-2, 1:-1] - x[2:, 1:-1] - x[1:-1, :-2] - x[1:-1, 2:]
    return xp.abs(inner)


def specialconvolve(xp: Any, a: Any) -> Any:
    del xp
    rows = a[1:-1] + a[:-2] + a[2:]
    return rows[:, 1:-1] + rows[:, :-2] + rows[:, 2:] - 9 * a[1:-1, 1:-1]


def log_likelihood(xp: Any, d: Any) -> Any:
    return xp.log(xp.exp(-((d - 0.3) ** 2) / 0.5) / (math.sqrt(2 * math.pi) * 0.5)).sum()


def slope(xp: Any, x: Any, y: Any) -> Any:
    dx, dy = x - x.mean(), y - y.mean()
    return y.mean() - xp.sum(dx * dy) / xp.sum(dx**2) * x.mean()


def softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def line(count: int) -> tuple[int, ...]:
    """The extents of a vector."""
    return (count,)


def square(count: int) -> tuple[int, ...]:
    """The extents of a matrix with as many rows as columns."""
    return (math.isqrt(count),) * 2


PROGRAMS: dict[str, Program] = {
    "pythagorean": Program(lambda xp, x: xp.sin(x) ** 2 + xp.cos(x) ** 2, lambda n: [line(n)]),
    "vibr_energy": Program(
        lambda xp, h, a: xp.exp(-h * 0.5 - a * 0.25), lambda n: [line(n), line(n)]
    ),
    "arc_distance": Program(arc_distance, lambda n: [line(n)] * 4),
    "harris": Program(harris, lambda n: [square(n)]),
    "laplacian": Program(laplacian, lambda n: [square(n)]),
    "specialconvolve": Program(specialconvolve, lambda n: [square(n)]),
    "rosen": Program(
        lambda xp, x: xp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2),
        lambda n: [line(n)],
    ),
    "log_likelihood": Program(log_likelihood, lambda n: [line(n)]),
    "lstsqr": Program(slope, lambda n: [line(n), line(n)]),
    "l2norm": Program(lambda xp, x: xp.sqrt(xp.sum(xp.abs(x) ** 2, axis=1)), lambda n: [square(n)]),
    "l1norm": Program(
        lambda xp, x, y: xp.sum(xp.abs(x[:, None, :] - y), axis=-1),
        lambda n: [(max(1, math.isqrt(n // 64)), 64)] * 2,
    ),
    "softmax": Program(softmax, lambda n: [square(n)]),
}


def system_of(program: Program, arrays: Sequence[Any]) -> LazySystem:
    """The equations of all that the program computes: its operations wait for one kernel."""
    os.environ[LEAST] = "0"
    made = program.work(np, *map(tcgen.lazy, arrays))
    return lazy_system(linearize((made._node,)))


def prepare(folder: Path) -> None:
    """Save the compiled programs."""
    for name in PROGRAMS:
        gpu_measure.once(folder, f"lazy_{name}", partial(_save, folder, name))


def _save(folder: Path, name: str) -> None:
    program = PROGRAMS[name]
    arrays = [np.empty(shape) for shape in program.shapes(ELEMENTS)]  # nobody reads them
    kernel = kernels.kernel_of(system_of(program, arrays), "float64", "cuda")
    kernel.program.save(folder / "programs" / f"lazy_{name}")


def names(_: Path) -> list[str]:
    """All programs."""
    return list(PROGRAMS)


def adopt(folder: Path, name: str, arrays: Sequence[Any]) -> None:
    """Let lazy arrays find the compiled program."""
    key = (system_of(PROGRAMS[name], arrays).system, "float64", "cuda")
    compiled = tcgen.load(folder / "programs" / f"lazy_{name}")
    kernels.PROGRAMS.program(key, lambda: compiled.artifact)


def ways(program: Program, arrays: Sequence[Any]) -> dict[str, Callable[[], Any]]:
    """The program in each way; ``fuse`` only where CuPy takes it."""
    import cupy

    def by_lazy(least: str | None) -> Any:
        if least is None:
            os.environ.pop(LEAST, None)
        else:
            os.environ[LEAST] = least
        return tcgen.compute(program.work(np, *map(tcgen.lazy, arrays)))[0]

    found = {
        "lazy": partial(by_lazy, None),
        "kernels": partial(by_lazy, "0"),
        "cupy": partial(program.work, cupy, *arrays),
    }
    fused = cupy.fuse(partial(program.work, cupy))
    try:
        fused(*arrays)
    except Exception as error:  # CuPy has no error of its own for what it cannot fuse
        print(f"cupy.fuse: {type(error).__name__}: {error}"[:160], file=sys.stderr)
    else:
        found["fuse"] = partial(fused, *arrays)
    return found


def poison(like: Any) -> None:
    """Fill memory from which a result may come with NaN, and give it back to the pool."""
    import cupy

    filled = [cupy.full(like.shape, math.nan) for _ in range(4)]
    del filled


def measure(folder: Path, name: str, repeat: int) -> dict[str, Any]:
    """One row: the largest relative difference, and the median seconds in each way."""
    import cupy

    program = PROGRAMS[name]
    random = np.random.default_rng(0)  # CuPy's needs cuRAND
    arrays = [cupy.asarray(random.random(shape)) for shape in program.shapes(ELEMENTS)]
    adopt(folder, name, arrays)
    calls = ways(program, arrays)
    wanted = calls["cupy"]()
    differences = []
    for way in ("lazy", "kernels"):
        for _ in range(WARM if way == "lazy" else 1):
            poison(wanted)
            differences.append(gpu_measure.difference(calls[way](), wanted))
            wait_for_background()
    host: dict[str, float] = {}
    return {
        "case": name,
        "shapes": [list(array.shape) for array in arrays],
        "bytes": sum(array.nbytes for array in (*arrays, wanted)),
        "difference": max(differences, key=lambda d: math.inf if math.isnan(d) else d),
        "seconds": medians(calls, repeat, host),
        "host": host,
    }


def table(rows: Sequence[Mapping[str, Any]], roof: Mapping[str, float]) -> str:
    """Milliseconds of each way as Markdown, and factors by which ``lazy`` is faster."""
    names = ["lazy", "kernels", "cupy", "fuse"]
    heads = ["case", *(f"{n} ms" for n in names), "% of copy", "x cupy", "x fuse"]
    heads += [*(f"{n} host ms" for n in ("lazy", "cupy")), "difference"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in rows:
        seconds, lazy = row["seconds"], row["seconds"]["lazy"]
        cells = [row["case"], *(_number(seconds.get(n), 1e3) for n in names)]
        cells.append(f"{100 * row['bytes'] / lazy / roof['copy']:.0f}")
        cells += [_number(seconds.get(n), 1 / lazy) for n in ("cupy", "fuse")]
        cells += [_number(row["host"][n], 1e3) for n in ("lazy", "cupy")]
        lines.append("| " + " | ".join([*cells, f"{row['difference']:.0e}"]) + " |")
    mean = statistics.geometric_mean(r["seconds"]["cupy"] / r["seconds"]["lazy"] for r in rows)
    return "\n".join([*lines, f"geometric mean: {mean:.2f} times as fast as cupy"])


def _number(value: float | None, factor: float) -> str:
    return "" if value is None else f"{factor * value:.3g}"
