"""Hand-written plans as generated code: every target gives the program's values, at odd extents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from support.marks import slow
from tcgen.emit import emit_artifact
from tcgen.interp import evaluate_program
from tcgen.ir.plan import FusionPlan
from tcgen.lower import lower_plan
from tcgen.options import Options
from tcgen.runtime.program import Program

NAMES = (
    "shared_producer",
    "accumulation",
    "tile_of_three",
    "recomputation",
    "host_loop",
    "triangular_pair",
    "triangular_images",
    "generated_tile",
    "nested_fusion",
)
RTOL = {"float64": 1e-12, "float32": 1e-5, "complex128": 1e-12}


def generated(plan: FusionPlan, target: str = "cpu", dtype: str = "float64") -> Program:
    module = lower_plan(plan, Options(dtype=dtype))
    module.verify()
    return Program(emit_artifact(module, target=target, planning_extents=plan.extents))


def assert_runs(
    compiled: Program, plan: FusionPlan, extents: Mapping[str, int], dtype: str = "float64"
) -> None:
    """The generated code equals the interpreter of the program."""
    rng = np.random.default_rng(7)
    arrays = {}
    for tensor in plan.program.inputs:
        shape = [extents[s.name] for s in tensor.spaces]
        values = rng.random(shape) + (1j * rng.random(shape) if dtype == "complex128" else 0)
        arrays[tensor.name] = np.asarray(values, dtype=dtype)
    wanted = evaluate_program(plan.program, arrays, extents)
    found = compiled(**arrays)
    for name, value in wanted.items():
        np.testing.assert_allclose(
            found[name], value, rtol=RTOL[dtype], atol=RTOL[dtype], err_msg=f"{name} {extents}"
        )


def test_every_hand_plan_is_compiled(hand_plans: ModuleType) -> None:
    assert tuple(make.__name__ for make in hand_plans.LEGAL) == NAMES


@pytest.mark.few(3)
@pytest.mark.parametrize("target", ["cpu", "numpy"])
@pytest.mark.parametrize("tile", [3, *slow(None, 2, 4, 5)])
@pytest.mark.parametrize("name", NAMES)
def test_generated_code_at_odd_extents(
    hand_plans: ModuleType, name: str, tile: int | None, target: str
) -> None:
    plan = hand_plans.retiled(getattr(hand_plans, name)(), tile)
    compiled = generated(plan, target)
    spaces = [s.name for s in plan.program.spaces]
    length = tile or 2
    for extent in (length - 1, length, length + 1, 2 * length + 3, 1, 0):
        assert_runs(compiled, plan, dict.fromkeys(spaces, extent))
        for space in spaces:
            assert_runs(compiled, plan, {**dict.fromkeys(spaces, 3), space: extent})


@pytest.mark.few(3)
@pytest.mark.parametrize("dtype", [*slow("float32"), "complex128"])
@pytest.mark.parametrize("name", NAMES)
def test_other_element_types(hand_plans: ModuleType, name: str, dtype: str) -> None:
    plan = getattr(hand_plans, name)()
    assert_runs(generated(plan, dtype=dtype), plan, plan.extent_of, dtype)


@pytest.mark.slow
def test_a_changed_plan_changes_the_source_and_not_the_result(hand_plans: ModuleType) -> None:
    plan = hand_plans.shared_producer()
    parted = replace(
        plan,
        loops=(),
        visits=tuple(replace(v, bind=(), loops=()) for v in plan.visits),
        arrays=tuple(replace(a, contracted=(), home=None) for a in plan.arrays),
    )
    programs = [generated(p) for p in (plan, hand_plans.retiled(plan, 3), parted)]
    assert len({p.source for p in programs}) == 3
    for compiled in programs:
        assert_runs(compiled, plan, plan.extent_of)
