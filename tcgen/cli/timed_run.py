"""One run of a program on given or random arrays, timed and checked."""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..interp import evaluate_system
from ..ir.layouts import unpack
from ..ir.system import System, planning_extents
from ..probes import random_arrays, split_starts
from ..runtime.program import Program
from ..runtime.symmetry import check_symmetry
from .arrays_in_files import Arrays, read_arrays
from .output import StatusLine


@dataclass(frozen=True, slots=True)
class Case:
    """Inputs of a run; accumulating outputs are added to the arrays ``starts``."""

    inputs: Arrays
    starts: Arrays
    extents: dict[str, int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Arrays of a run, numbers for --json, lines of text, and the failure of a check, or ''."""

    outputs: Arrays
    numbers: dict[str, Any]
    lines: tuple[str, ...]
    failure: str


def random_inputs(system: System, extents: dict[str, int], dtype: str, seed: int) -> Case:
    """Random arrays with the declared symmetries, whose denominators are not close to 0."""
    arrays = random_arrays(system, extents, dtype=dtype, seed=seed)
    return Case(*split_starts(system, arrays), extents)


def read_inputs(system: System, path: Path, given: Mapping[str, int]) -> Case:
    """Arrays from an .npz or HDF5 file; extents from their shapes, or else from ``given``."""
    arrays = read_arrays(path)
    extents = dict(given)
    for tensor in (*system.inputs, *system.outputs):
        if tensor.name in arrays and not tensor.storage.packed:
            shape = arrays[tensor.name].shape
            if len(shape) == tensor.rank:
                for axis, length in zip(tensor.stored_order, shape, strict=True):
                    if not tensor.spaces[axis].parts:
                        extents[tensor.spaces[axis].name] = length
    extents = dict(planning_extents(system, extents))
    return Case(*split_starts(system, arrays), extents)


def run(
    program: Program,
    system: System,
    case: Case,
    flops: int,
    *,
    repeat: int,
    check: bool,
    status: StatusLine,
) -> Outcome:
    """Run once to warm up, then ``repeat`` times; with ``check`` compare with the interpreter."""
    status.show("compiling")
    program.build()
    outputs, numbers = _timed(program, case, repeat, status)
    numbers["gflops"] = flops / max(numbers["time_seconds"], 1e-9) / 1e9
    failure = ""
    if check:
        status.show("computing the results in the interpreter, to compare")
        failure = _check(system, case, outputs, numbers, program.manifest.dtype)
    lines = [describe(name, value) for name, value in outputs.items()]
    speed = f"{numbers['gflops']:.3g} Gflop/s"
    lines.append(f"time {numbers['time_seconds']:.6f} s (median of {repeat}), {speed}")
    lines.append(f"peak {numbers['peak_bytes_measured']:,} bytes allocated beyond the inputs")
    if check:
        lines.append(
            f"check: max error {numbers['max_abs_error']:.2e} absolute, "
            f"{numbers['max_rel_error']:.2e} relative"
        )
    return Outcome(outputs, numbers, tuple(lines), failure)


@contextlib.contextmanager
def _in_a_thread(status: StatusLine) -> Iterator[ThreadPoolExecutor]:
    """A thread for the kernels: the main thread must be free to react to Ctrl-C."""
    worker = ThreadPoolExecutor(1)
    try:
        yield worker
    except KeyboardInterrupt:
        status.clear()
        sys.stderr.write("Aborted!\n")
        sys.stderr.flush()
        os._exit(1)  # other exits join the thread
    finally:
        worker.shutdown()


def _timed(
    program: Program, case: Case, repeat: int, status: StatusLine
) -> tuple[Arrays, dict[str, Any]]:
    times = []
    outputs: Arrays = {}
    given: dict[str, Any] = dict(case.inputs)
    with _in_a_thread(status) as worker:
        for n in range(repeat + 1):
            status.show(f"run {n} of {repeat}" if n > 0 else "running once to warm up")
            out = {name: start.copy() for name, start in case.starts.items()}
            start = time.perf_counter()
            call = partial(program, out=out, **given)
            outputs = worker.submit(call).result()
            if n > 0:
                times.append(time.perf_counter() - start)
    numbers = {
        "time_seconds": statistics.median(times),
        "peak_bytes_measured": program.allocated_bytes,
    }
    return outputs, numbers


def _check(system: System, case: Case, outputs: Arrays, numbers: dict[str, Any], dtype: str) -> str:
    for tensor in system.inputs:
        if tensor.symmetry and tensor.name in case.inputs:
            array = unpack(tensor, case.inputs[tensor.name], case.extents)
            check_symmetry(tensor.name, array, [(s.perm, s.sign, s.conj) for s in tensor.symmetry])
    expected = evaluate_system(system, case.inputs, case.extents, out=case.starts, dtype=dtype)
    tolerance = _tolerance(dtype)
    worst_abs = worst_rel = 0.0
    failure = ""
    for name, reference in expected.items():
        if reference.size == 0:
            continue
        result = outputs[name]
        equal = (result == reference) | (np.isnan(result) & np.isnan(reference))  # inf - inf is NaN
        with np.errstate(invalid="ignore"):
            error = float(np.max(np.where(equal, 0, np.abs(result - reference))))
        scale = float(np.max(np.abs(reference), initial=0, where=np.isfinite(reference)))
        relative = error / scale if scale else error
        if scale and relative > tolerance:
            change = _cancelled(system, case, name, reference, dtype)
            relative = error * tolerance / change if change > scale else relative
        # max() of Python drops NaN.
        worst_abs = float(np.maximum(worst_abs, error))
        worst_rel = float(np.maximum(worst_rel, relative))
        if not relative <= tolerance:
            failure = f"{name} differs from the interpreter by {relative:.2e} (limit {tolerance})"
    numbers["max_abs_error"], numbers["max_rel_error"] = worst_abs, worst_rel
    return failure


def _tolerance(dtype: str) -> float:
    """Largest relative error that rounding explains."""
    return 1e-4 if dtype == "float32" else 1e-10


def _cancelled(
    system: System, case: Case, name: str, reference: np.ndarray[Any, Any], dtype: str
) -> float:
    """Largest change of a result if each term of the equations changes by the tolerance.

    A result that is smaller than this change is zero except for rounding, such as (T) of one
    electron pair. Errors are then relative to the terms that cancel, not to the result.
    """
    rng, tolerance = np.random.default_rng(0), _tolerance(dtype)
    equations = tuple(
        replace(
            equation,
            terms=tuple(
                replace(t, coeff=t.coeff * (1 + Fraction(tolerance * rng.uniform(-1, 1))))
                for t in equation.terms
            ),
        )
        for equation in system.equations
    )
    moved = evaluate_system(
        replace(system, equations=equations),
        case.inputs,
        case.extents,
        out=case.starts,
        dtype=dtype,
    )
    with np.errstate(invalid="ignore"):
        change = np.abs(moved[name] - reference)
    return float(np.max(change, initial=0, where=np.isfinite(change)))


def describe(name: str, value: np.ndarray[Any, Any]) -> str:
    """A line for a result: a number, or shape and norm."""
    if value.ndim == 0:
        return f"{name} = {value[()]:.12f}"
    shape = " x ".join(str(n) for n in value.shape)
    return f"{name}  {shape}  norm {np.linalg.norm(value.ravel()):.12f}"
