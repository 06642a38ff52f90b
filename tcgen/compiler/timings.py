"""How long each way to compute a matrix product takes on this machine; measured once, kept on disk.

All ways are compiled as one program, and take turns, so that they meet the same machine; those that
are far behind drop out. What was measured is kept in the cache: its key is the C of all ways, the
extents, and what the time depends on beside them: processor, compiler, BLAS and threads.
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
from ..artifact.sizes import stored_shape
from ..atomic_file import keep_text
from ..emit import emit_artifact
from ..environment import cache_dir, openmp_threads
from ..lower.cpu.product_benchmark import ProductBenchmark
from ..runtime.cpu.blas import blas_library
from ..runtime.cpu.threads import get_threads
from ..runtime.cpu.toolchain import probe_compiler, processor
from ..runtime.host_device import HostDevice, new_array
from ..runtime.program import Program

Array = npt.NDArray[Any]
Timer: TypeAlias = Callable[[Callable[[], object], str], float]
Rounds: TypeAlias = list[list[float]]  # seconds of one product, by way and round

_LEAST = 0.005  # seconds that one time takes at least, by computing the product again and again
_STAGES = ((3, 1.5), (6, 1.1))  # rounds, for ways that took up to so many times the least before
_CLEAR = 0.95  # of the given way's time: another one must be clearly faster


def time_ways(made: ProductBenchmark, timer: Timer | None = None) -> Rounds:
    """Seconds of each way by round, kept or measured; ways that are slow have fewer rounds.

    Args:
        made: the program of all ways.
        timer: runs a call and returns its seconds; it is told the way. By default a clock.

    Raises:
        BuildError: there is no C compiler, or it failed.
        MemoryLimitError: this machine has no memory for the arrays.
    """
    artifact = emit_artifact(made.module, target="cpu", planning_extents=made.extents)
    path = _folder() / f"{_key(artifact)}.json"
    found = _read(path, made.variants)
    if found is None:
        found = _measured(artifact, made.variants, timer or _clocked)
        keep_text(path, json.dumps(dict(zip(made.variants, found, strict=True))) + "\n")
    return found


def fastest_way(rounds: Rounds) -> int:
    """Number of the way to take: the given one, the first, where no other is clearly faster.

    Compared are times of the same round: the speed of a machine may change between rounds. Another
    way must have the better median, and win three rounds out of four.

    Example:
        >>> fastest_way([[1.0, 2.0, 1.0, 1.0], [0.9, 1.8, 0.7, 0.9], [0.8]])
        1
        >>> fastest_way([[1.0, 2.0, 1.0, 1.0], [0.97, 1.9, 0.99, 0.98], [0.98]])
        0
    """
    given = rounds[0]
    best, least = 0, _CLEAR
    for number, way in enumerate(rounds):
        if len(way) < len(given):
            continue  # it dropped out
        ratios = sorted(s / t for s, t in zip(way, given, strict=True))
        if median(ratios) < least and ratios[3 * len(ratios) // 4] < 1:
            best, least = number, median(ratios)
    return best


def times_kept() -> tuple[Path, ...]:
    """The files of the cache."""
    return tuple(p for p in _folder().glob("*.json") if p.is_file())


def _clocked(call: Callable[[], object], _: str) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _measured(artifact: Artifact, ways: Sequence[str], timer: Timer) -> Rounds:
    program, numbers = Program(artifact), range(len(ways))
    inputs, out = _arguments(artifact)
    program.build()
    often = [1 for _ in numbers]

    def once(n: int) -> float:
        given = {**inputs, f"times{n}": np.zeros(often[n], out["target"].dtype)}
        return timer(lambda: program(out=out, **given), ways[n]) / often[n]

    latest = []
    for n in numbers:
        once(n)  # warms up
        latest.append(once(n))
        often[n] = max(1, ceil(_LEAST / max(latest[n], 1e-9)))
    rounds: Rounds = [[] for _ in numbers]
    left = list(numbers)
    for count, most in _STAGES:
        least = min(latest[n] for n in left)
        left = [n for n in left if n == 0 or latest[n] <= most * least]
        for _ in range(count):
            for n in left:
                rounds[n].append(once(n))
        latest = [median(r) if r else 0.0 for r in rounds]
    return rounds


def _arguments(artifact: Artifact) -> tuple[dict[str, Array], dict[str, Array]]:
    """Inputs with arbitrary numbers, and a result that starts on a cache line."""
    manifest = artifact.manifest
    extents = dict(manifest.planning_extents)
    numbers = np.random.default_rng(0).random(4093) - 0.5
    inputs, out = {}, {}
    for tensor in manifest.tensors:
        shape = stored_shape(tensor, manifest, extents)
        if tensor.role == "output":
            out[tensor.name] = HostDevice(reuse=True).empty(shape, tensor.dtype)
            out[tensor.name][...] = 0
            continue
        inputs[tensor.name] = new_array(shape, tensor.dtype)
        flat = inputs[tensor.name].reshape(-1)
        for start in range(0, flat.size, numbers.size):
            part = flat[start : start + numbers.size]
            part[...] = numbers[: part.size]
    return inputs, out


def _key(artifact: Artifact) -> str:
    """What times depend on."""
    compiler = probe_compiler()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = (get_threads(), openmp_threads(), cores)
    machine = (processor(), compiler.version, compiler.command, compiler.flags, blas_library())
    sources = [(path, text) for path, text in artifact.files if path.endswith(".c")]
    parts = (machine, threads, artifact.manifest.planning_extents, sources)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _folder() -> Path:
    return cache_dir() / "times"


def _read(path: Path, ways: Sequence[str]) -> Rounds | None:
    """What was measured; None where nothing was, or where the file is damaged."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        rounds = [[float(t) for t in kept[way]] for way in ways]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return rounds if rounds[0] and all(t > 0 for times in rounds for t in times) else None
