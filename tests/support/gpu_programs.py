"""Modules bound to a GPU, and their programs beside what the modules mean."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tcgen.emit import emit_artifact
from tcgen.interp.modules import run_module
from tcgen.ir.expr import Prod
from tcgen.ir.loops import Assign, Gemm, Loop, Module, Stmt
from tcgen.ir.tensor import Role, element_type
from tcgen.lower.gpu.bind import bind_gpu
from tcgen.records.loops import stored_shape
from tcgen.runtime.program import Program
from tcgen.thresholds.gpu import GpuThresholds

TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "complex128": 1e-12}


def on_gpu(
    module: Module, planned: dict[str, int], thresholds: GpuThresholds = GpuThresholds()
) -> tuple[Module, Program]:
    bound = bind_gpu(module, planned, thresholds)
    bound.verify()
    planning = tuple(planned.items())
    return bound, Program(emit_artifact(bound, target="cuda", planning_extents=planning))


def generated(module: Module) -> Module:
    """The module with assignments for its matrix products, which generated kernels compute."""

    def assignment(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Loop):
            return replace(stmt, body=tuple(map(assignment, stmt.body)))
        if not isinstance(stmt, Gemm):
            return stmt
        band = (*stmt.batch, *stmt.m, *stmt.n, *stmt.k)
        product = Prod((stmt.a, stmt.b))
        return Assign(stmt.out, product, stmt.coeff, stmt.accumulate, band, step=stmt.step)

    kernels = (replace(k, body=tuple(map(assignment, k.body))) for k in module.kernels)
    return replace(module, kernels=tuple(kernels))


def compare(
    module: Module, meant: Module, program: Program, extents: dict[str, int]
) -> dict[str, Any]:
    """Run both modules' meaning and the program; the inputs by name."""
    random = np.random.default_rng(7)
    inputs: dict[str, Any] = {}
    starts: dict[str, Any] = {}
    for tensor, entry in zip(module.tensors, program.manifest.tensors, strict=True):
        shape = stored_shape(entry, extents)
        dtype = element_type(tensor, module.dtype)
        values = random.uniform(-1, 1, shape)
        if dtype == "complex128":
            values = values + 1j * random.uniform(-1, 1, shape)
        if tensor.role is Role.OUTPUT:
            if tensor.accumulate:
                starts[tensor.name] = np.asarray(values, dtype)
        elif tensor.default is None:
            inputs[tensor.name] = np.asarray(values, dtype)
    expected = run_module(module, inputs, extents, out=starts)
    again = run_module(meant, inputs, extents, out=starts)
    actual = program(**inputs, out={n: a.copy() for n, a in starts.items()})
    for name, reference in expected.items():
        scale = max(1.0, float(np.max(np.abs(reference), initial=0)))
        for found in (again[name], actual[name]):
            error = float(np.max(np.abs(found - reference), initial=0)) / scale
            assert error < TOLERANCE[module.dtype], f"{name}: {error}"
    return inputs
