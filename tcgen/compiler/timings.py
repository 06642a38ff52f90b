"""Times of all variants of a matrix product on this machine or its GPU: measured once, then cached.

One program holds all variants. It runs them in turn, so that a change of the machine's speed
affects all of them; variants that are far behind drop out. The cache on disk has a file for each
benchmark, named by a hash of the generated code, the extents, and the GPU, or the processor with
its compiler, BLAS and threads.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..artifact.folder import Artifact
from ..cache_files import cache_folder, list_files, read_text, write_text
from ..emit import emit_artifact
from ..environment import openmp_threads
from ..ir.tensor import Role, element_type
from ..lower.cpu.product_variants import ProductBenchmark
from ..records.loops import stored_shape
from ..runtime.cpu.blas import blas_library, get_threads
from ..runtime.cpu.toolchain import extra_flags, probe_compiler, processor
from ..runtime.execution import Execution
from ..runtime.gpu.backend import GpuBackend
from ..runtime.host_device import HostDevice, new_array
from ..runtime.program import Program

Array = npt.NDArray[Any]
Timer: TypeAlias = Callable[[Callable[[], object], str], float]
Rounds: TypeAlias = list[list[float]]  # seconds, by variant and round

# A product is repeated until one measurement takes this many seconds.
_SHORTEST = 0.005
# Numbers of rounds, each for the variants that took at most a factor of the smallest time.
_STAGES = ((3, 1.5), (6, 1.1))
# A variant replaces the modelled one only if it takes at most this part of its time.
_CLEARLY_FASTER = 0.95


def time_variants(benchmark: ProductBenchmark, timer: Timer | None = None) -> Rounds:
    """Seconds of each variant in each round, from the cache or measured now.

    The program of all variants is for this CPU or for the GPU of this process. ``timer`` runs a
    call of the named variant and returns its seconds; it is a clock by default. Variants that
    dropped out have fewer rounds.
    """
    artifact = emit_artifact(
        benchmark.module, target=benchmark.target, planning_extents=benchmark.extents
    )
    execution = Execution(artifact)
    path = _folder() / f"{_key(execution)}.json"
    rounds = _read(path, benchmark.variants)
    if rounds is None:
        rounds = _measured(execution, benchmark.variants, timer or _clocked)
        write_text(path, json.dumps(dict(zip(benchmark.variants, rounds, strict=True))) + "\n")
    return rounds


def fastest_variant(rounds: Rounds) -> int:
    """Number of the fastest variant; 0, the modelled one, unless another one is clearly faster.

    Times of the same round are compared, because the speed of a machine may change between rounds.
    A variant is clearly faster if its median ratio is below 0.95 and it wins three rounds of four.

    Example:
        >>> fastest_variant([[1.0, 2.0, 1.0, 1.0], [0.9, 1.8, 0.7, 0.9], [0.8]])
        1
        >>> fastest_variant([[1.0, 2.0, 1.0, 1.0], [0.97, 1.9, 0.99, 0.98], [0.98]])
        0
    """
    modelled = rounds[0]
    best, least = 0, _CLEARLY_FASTER
    for number, times in enumerate(rounds):
        if len(times) < len(modelled):
            continue  # dropped out
        ratios = sorted(s / t for s, t in zip(times, modelled, strict=True))
        if median(ratios) < least and ratios[3 * len(ratios) // 4] < 1:
            best, least = number, median(ratios)
    return best


def cached_times() -> tuple[Path, ...]:
    """The files of the cache; an UnavailableError if their folder cannot be read."""
    return list_files(_folder(), ".json")


def _clocked(call: Callable[[], object], _: str) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _measured(execution: Execution, variants: Sequence[str], timer: Timer) -> Rounds:
    program, device, numbers = Program(execution.artifact), execution.device, range(len(variants))
    arguments, results = _arguments(execution.artifact)
    inputs = {name: device.put(array) for name, array in arguments.items()}
    out = {name: device.put(array) for name, array in results.items()}
    program.build()
    # Repetitions of the product in one measurement.
    repeats = [1 for _ in numbers]

    def seconds(n: int) -> float:
        given: dict[str, Any] = {**inputs, f"times{n}": np.zeros(repeats[n], out["target"].dtype)}

        def call() -> None:
            program(out=out, **given)
            device.wait()

        return timer(call, variants[n]) / repeats[n]

    latest = []
    for n in numbers:
        seconds(n)  # warm-up
        latest.append(seconds(n))
        repeats[n] = max(1, ceil(_SHORTEST / max(latest[n], 1e-9)))
    rounds: Rounds = [[] for _ in numbers]
    remaining = list(numbers)
    for count, factor in _STAGES:
        least = min(latest[n] for n in remaining)
        remaining = [n for n in remaining if n == 0 or latest[n] <= factor * least]
        for _ in range(count):
            for n in remaining:
                rounds[n].append(seconds(n))
        latest = [median(r) if r else 0.0 for r in rounds]
    return rounds


def _arguments(artifact: Artifact) -> tuple[dict[str, Array], dict[str, Array]]:
    """Random inputs, and a result whose first element starts a cache line."""
    manifest = artifact.manifest
    extents = dict(manifest.planning_extents)
    numbers = np.random.default_rng(0).random(4093) - 0.5
    inputs, out = {}, {}
    for tensor in manifest.tensors:
        shape = stored_shape(tensor, extents)
        dtype = element_type(tensor, manifest.dtype)
        if tensor.role is Role.OUTPUT:
            out[tensor.name] = HostDevice(reuse=True).empty(shape, dtype)
            out[tensor.name][...] = 0
            continue
        inputs[tensor.name] = new_array(shape, dtype)
        flat = inputs[tensor.name].reshape(-1)
        for start in range(0, flat.size, numbers.size):
            part = flat[start : start + numbers.size]
            part[...] = numbers[: part.size]
    return inputs, out


def _key(execution: Execution) -> str:
    """A hash of everything that the times depend on."""
    artifact, backend = execution.artifact, execution.backend
    machine = backend.device.describe() if isinstance(backend, GpuBackend) else _this_cpu()
    sources = [(path, text) for path, text in artifact.files if path.endswith((".c", ".cu"))]
    parts = (machine, artifact.manifest.planning_extents, sources)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _this_cpu() -> tuple[Any, ...]:
    """The processor with its compiler, libraries and threads."""
    compiler = probe_compiler()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = (get_threads(), openmp_threads(), cores)
    software = (compiler.version, compiler.command, compiler.flags, extra_flags(), blas_library())
    return processor(), software, threads


def _folder() -> Path:
    return cache_folder("times")


def _read(path: Path, variants: Sequence[str]) -> Rounds | None:
    """Times from the cache; None if the file is missing or damaged."""
    try:
        times = json.loads(read_text(path))
        rounds = [[float(t) for t in times[variant]] for variant in variants]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return rounds if rounds[0] and all(t > 0 for r in rounds for t in r) else None
