"""Flops that a module executes: counted by the interpreter, and by C that counts as it runs."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tcgen.emit import emit_artifact
from tcgen.interp import run_module
from tcgen.ir.executed import executed_by, flops_at_a_point, totals
from tcgen.ir.loops import Assign, Gemm, Module
from tcgen.runtime.program import Program

Arrays = Mapping[str, Any]


def reported(module: Module, extents: Mapping[str, int]) -> dict[int, int]:
    """What reports say, by step; steps that execute nothing are left out."""
    found = totals(executed_by(module), extents)
    steps = {step: counts.flops for step, counts in found.steps.items() if counts.flops}
    assert sum(steps.values()) == found.per_call.flops + found.once.flops
    return steps


def interpreted(
    module: Module, inputs: Arrays, starts: Arrays, extents: Mapping[str, int]
) -> dict[int, int]:
    """Flops of all points that the interpreter computes, by step."""
    buffers = {buffer.name: buffer for buffer in module.buffers}
    steps: Counter[int] = Counter()

    def executed(stmt: Assign | Gemm, points: int) -> None:
        assert stmt.step is not None
        steps[stmt.step] += points * flops_at_a_point(stmt, buffers)

    run_module(module, inputs, extents, out=starts, executed=executed)
    return {step: flops for step, flops in steps.items() if flops}


def counted_by_c(
    module: Module, inputs: Arrays, starts: Arrays, planning: tuple[tuple[str, int], ...]
) -> dict[int, int]:
    """Flops by step that the generated C counts in one call that binds and runs."""
    program = Program(emit_artifact(module, target="cpu", planning_extents=planning, counted=True))
    out = {name: start.copy() for name, start in starts.items()}
    program(**inputs, **({"out": out} if out else {}))
    library = program._execution.backend._linked.get().library  # type: ignore[attr-defined]
    steps = 1 + max(reported(module, program.extents_for(**inputs)))
    counters = (ctypes.c_int64 * steps).in_dll(library, "tc_counted")
    counted = {step: flops for step, flops in enumerate(counters) if flops}
    ctypes.memset(counters, 0, ctypes.sizeof(counters))  # equal code is loaded once
    return counted
