"""What the measurements on a GPU share: programs prepared here, timed there by NumPy and CuPy.

A contraction or a program is compiled with products by the library where a model says so
(``tcgen``), and without (``generated``); once, if that is the same. Its inputs are random arrays
with the promised symmetries. Its outputs are filled with NaN, computed, and compared with those of
``cupy.einsum`` in the same run. Times are medians over CUDA events after one round that warms up. A
program is queued behind copies of a few milliseconds, so that the events measure the GPU and not
the CPU that queues; the time of the latter is ``host`` in the JSON.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

COPIED = 2**31  # bytes of the array whose copy measures the memory
AHEAD = 4  # such copies, behind which a program is queued
SIDE = 8192  # of the matrix product that measures the arithmetic
PREPARED = "prepared.json"
LONG = 3.0  # seconds of a reference that runs but once
Call = Callable[[], object]
Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A spec to measure.

    Attributes:
        name: of the case, with which the names of the programs' folders begin.
        spec: name of a file in ``specs``.
        extents: the first with a plan within the memory limit is measured.
        reference: the equations by einsum; returns the outputs to compare, by name.
        flops: what an algorithm that uses the symmetry of the results computes, for rates.
        bound: inputs that do not change between calls.
        planning: other arguments of ``tcgen.compile``.
    """

    name: str
    spec: str
    extents: tuple[dict[str, int], ...]
    reference: Callable[[Arrays, Callable[..., Any]], dict[str, Any]]
    flops: Callable[[dict[str, int]], float]
    bound: tuple[str, ...] = ()
    planning: Mapping[str, Any] | None = None


def once(folder: Path, name: str, make: Callable[[], Any]) -> Any:
    """What ``make`` returns, for JSON, or returned in an earlier call.

    ``prepared.json`` in the folder has the results by name, and those of another source are
    forgotten. So a preparation that was interrupted goes on where it was.
    """
    path, source = folder / PREPARED, source_digest()
    known = json.loads(path.read_text()) if path.is_file() else {}
    parts = known["parts"] if known.get("source") == source else {}
    if name not in parts:
        began = time.monotonic()
        parts[name] = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"source": source, "parts": parts}, indent=1) + "\n")
        print(f"prepared {name} in {time.monotonic() - began:.0f} s", flush=True)
    return parts[name]


@cache
def source_digest() -> str:
    """A digest of tcgen, its templates, the specs and these scripts."""
    root, digest = Path(__file__).resolve().parents[1], hashlib.sha256()
    for part in ("tcgen/**/*.py", "templates/**/*", "specs/*.spec", "benchmarks/gpu_*.py"):
        for path in sorted(p for p in root.glob(part) if p.is_file()):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def save_ways(folder: Path, name: str, compiled: Callable[..., Any]) -> None:
    """Save a program without products of the library, and with them if that is another one.

    Args:
        folder: gets ``programs/NAME_generated`` and perhaps ``programs/NAME_tcgen``.
        name: of the program.
        compiled: function of the option ``library`` that returns the program.
    """
    compiled(library=False).save(folder / "programs" / f"{name}_generated")
    chosen = compiled(library=True)
    if chosen.report["library"]:
        chosen.save(folder / "programs" / f"{name}_tcgen")


def ways(folder: Path, name: str) -> dict[str, Any]:
    """The programs of a name that were saved."""
    paths = {way: folder / "programs" / f"{name}_{way}" for way in ("generated", "tcgen")}
    return {way: package(path).program for way, path in paths.items() if path.exists()}


def prepare(folder: Path, cases: Sequence[Case]) -> dict[str, dict[str, int]]:
    """Save the compiled cases; their extents by name."""
    import tcgen

    def saved(case: Case) -> dict[str, int] | None:
        for extents in case.extents:
            options = {"extents": extents, "target": "cuda", **(case.planning or {})}
            try:
                save_ways(
                    folder, case.name, partial(tcgen.compile, tcgen.spec_path(case.spec), **options)
                )
            except tcgen.MemoryLimitError as error:
                print(f"{case.name} {extents}: {error}", file=sys.stderr)
                continue
            return extents
        return None

    chosen = {case.name: once(folder, case.name, partial(saved, case)) for case in cases}
    return {name: extents for name, extents in chosen.items() if extents is not None}


def package(path: Path) -> Any:
    """A compiled program as the package that its folder is."""
    spec = importlib.util.spec_from_file_location(path.name, path / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.name] = module
    spec.loader.exec_module(module)
    return module


def device_name() -> str:
    """The current GPU."""
    import cupy

    facts = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    name: str = facts["name"].decode()
    return name


def medians(
    calls: Mapping[str, Call], repeat: int, host: dict[str, float] | None = None
) -> dict[str, float]:
    """Median seconds of each call on the GPU; they take turns, and the first round warms up.

    Args:
        calls: by name.
        repeat: rounds.
        host: gets the median seconds in which the CPU queues each call.
    """
    import cupy

    source = cupy.ones(COPIED // 16)
    target = cupy.zeros_like(source)
    times: dict[str, list[float]] = {name: [] for name in calls}
    queueing: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeat + 1):
        for name, call in calls.items():
            first, last = cupy.cuda.Event(), cupy.cuda.Event()
            for _ in range(2 * AHEAD):
                cupy.copyto(target, source)
            first.record()
            start = time.perf_counter()
            call()
            queueing[name].append(time.perf_counter() - start)
            last.record()
            last.synchronize()
            times[name].append(cupy.cuda.get_elapsed_time(first, last) / 1e3)
    if host is not None:
        host.update((n, statistics.median(seconds[1:])) for n, seconds in queueing.items())
    return {name: statistics.median(seconds[1:]) for name, seconds in times.items()}


def ceilings(repeat: int) -> dict[str, float]:
    """Bytes a second of a copy, read and written, and flops a second of a product by cuBLAS."""
    import cupy

    def copy() -> float:
        source = cupy.ones(COPIED // 8)
        target = cupy.zeros_like(source)
        seconds = medians({"copy": lambda: cupy.copyto(target, source)}, repeat)
        return 2 * COPIED / seconds["copy"]

    def dgemm() -> float:
        a = cupy.asarray(np.random.default_rng(0).standard_normal((SIDE, SIDE)))
        product = cupy.empty_like(a)
        seconds = medians({"dgemm": lambda: cupy.matmul(a, a, out=product)}, repeat)
        return 2 * SIDE**3 / seconds["dgemm"]

    return {"copy": copy(), "dgemm": dgemm()}


def inputs_of(program: Any, extents: dict[str, int]) -> dict[str, Any]:
    """Random inputs on the GPU with their promised symmetries; orbital energies have a gap."""
    import cupy

    random = np.random.default_rng(0)  # CuPy's needs cuRAND
    arrays = {}
    for tensor in program.manifest.tensors:
        if tensor.role == "output":
            continue
        lengths = [program.manifest.extent(s.name, extents) for s in tensor.spaces]
        stored = tensor.stored()
        shape = [
            lengths[axis] * (lengths[axis] + 1) // 2 if pair else lengths[axis]
            for axis, pair in stored
        ]
        value = cupy.asarray(random.standard_normal(shape) / math.sqrt(max(lengths, default=1)))
        if tensor.name.startswith("e_"):
            value = abs(value) + 1 if tensor.spaces[0].name == "v" else -abs(value) - 1
        groups = [(axis, axis + 1) if pair else (axis,) for axis, pair in stored]
        for symmetry in tensor.symmetry:
            turned = [
                next(n for n, g in enumerate(groups) if symmetry.perm[axis] in g)
                for axis, _ in stored
            ]
            if turned != sorted(turned):  # else it lies within packed pairs
                value = (value + symmetry.sign * value.transpose(turned)) / 2
        arrays[tensor.name] = cupy.ascontiguousarray(value)
    return arrays


def poisoned(program: Any, extents: dict[str, int]) -> dict[str, Any]:
    """Arrays for the outputs, filled with NaN."""
    import cupy

    return {
        t.name: cupy.full([program.manifest.extent(s.name, extents) for s in t.spaces], math.nan)
        for t in program.manifest.tensors
        if t.role == "output"
    }


def difference(found: Any, wanted: Any) -> float:
    """Largest difference relative to the largest value; NaN where a value was not computed."""
    return float(abs(found - wanted).max() / abs(wanted).max())


def measure(folder: Path, case: Case, extents: dict[str, int], repeat: int) -> dict[str, Any]:
    """One case: the largest relative difference, and the median seconds of each program."""
    import cupy

    programs = ways(folder, case.name)
    arrays = inputs_of(next(iter(programs.values())), extents)
    constant = {n: arrays[n] for n in case.bound}
    changing = {n: a for n, a in arrays.items() if n not in constant}
    wanted: dict[str, Any] = {}

    def by_einsum() -> None:
        wanted.update(case.reference(arrays, cupy.einsum))

    first, last = cupy.cuda.Event(), cupy.cuda.Event()
    first.record()
    by_einsum()
    last.record()
    last.synchronize()
    seconds = {"einsum": cupy.cuda.get_elapsed_time(first, last) / 1e3}
    if seconds["einsum"] < LONG:
        seconds = medians({"einsum": by_einsum}, 1)
    host: dict[str, float] = {}
    differences: dict[str, float] = {}
    out: dict[str, Any] = {}
    for way, program in programs.items():  # one after the other: each binds arrays of its own
        ready = program.bind(**constant) if constant else program
        out = poisoned(program, extents)
        ready(**changing, out=out)
        differences[way] = max(difference(out[n], value) for n, value in wanted.items())
        call = partial(ready, **changing, out=out)
        seconds |= medians({way: call}, repeat, host)
        del ready, call
        cupy.get_default_memory_pool().free_all_blocks()
    return {
        "case": case.name,
        "extents": extents,
        "flops": case.flops(extents),
        "bytes": sum(a.nbytes for a in (*arrays.values(), *out.values())),
        "difference": max(differences.values(), key=lambda d: math.inf if math.isnan(d) else d),
        "seconds": seconds,
        "host": host,
    }


def table(rows: Sequence[Mapping[str, Any]], roof: Mapping[str, float]) -> str:
    """The programs of each case as Markdown, with shares of the two ceilings."""
    heads = ["case", "extents", "program", "ms", "host ms", "TF", "% of dgemm", "% of copy"]
    heads += ["x einsum", "difference"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in rows:
        for way in row["host"]:
            seconds = row["seconds"][way]
            rate = row["flops"] / seconds
            cells = [
                row["case"],
                " ".join(f"{n}={x}" for n, x in row["extents"].items()),
                way,
                f"{1e3 * seconds:.2f}",
                f"{1e3 * row['host'][way]:.2f}",
                f"{1e-12 * rate:.1f}",
                f"{100 * rate / roof['dgemm']:.0f}",
                f"{100 * row['bytes'] / seconds / roof['copy']:.0f}",
                f"{row['seconds']['einsum'] / seconds:.2f}",
                f"{row['difference']:.0e}",
            ]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
