"""Random systems on threads and processes, in slices and in parts, beside the interpreter."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tcgen
from support.campaigns import cases
from tcgen import PlanError
from tcgen.compiler.driver import compile_system
from tcgen.distributed.slicing import sliceable_spaces
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.options import Options
from tcgen.testing import assert_same_values, extents_for, random_arrays, systems


def drawn(draw: st.DrawFn) -> tuple[System, dict[str, int]]:
    system = draw(systems(generated=False, accumulate=False))
    return system, draw(extents_for(system))


CASES = st.composite(drawn)()
PRODUCT = """
space o = 3
space v = 4
index i j : o
index a : v
input f[o,o], t[o,v]
output r
r[i,a] = f[i,j]*t[j,a]
"""


def distributed(
    system: System, extents: Mapping[str, int], bound: int, pool: Executor, **options: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Results of two calls on a pool, and those of the equations; the first inputs are bound."""
    along = options.pop("along", None)
    chosen = Options(
        extents=tuple(sorted(extents.items())), optimize=False, target="numpy", **options
    )
    program = tcgen.Program(compile_system(system, chosen).artifact)
    arrays = random_arrays(system, extents, seed=1)
    inputs = {t.name: arrays[t.name] for t in system.inputs if t.name in arrays}
    expected = evaluate_system(system, inputs, extents)
    names = list(inputs)
    held = {n: inputs[n] for n in names[:bound] if np.ndim(inputs[n])}
    rest = {n: a for n, a in inputs.items() if n not in held}
    with (
        program.distribute(pool, task_seconds=0, along=along) as run,
        run.bind(**held) as ready,
    ):
        first, second = ready(**rest), ready(**rest)
        assert ready.report.bytes_moved == ready.report.bytes_predicted
    assert all(np.array_equal(first[n], second[n], equal_nan=True) for n in first)
    return first, expected


@cases(12, 1000)
@given(case=CASES, data=st.data())
def test_slices_of_random_systems_make_the_whole(case, data) -> None:
    system, extents = case
    spaces = sliceable_spaces(system)
    along = data.draw(st.sampled_from(spaces)) if spaces else None
    bound, workers = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 4))
    try:
        with ThreadPoolExecutor(workers) as pool:
            found, expected = distributed(system, extents, bound, pool, along=along)
    except PlanError:  # a diagonal, a delta or a packed pair along the space
        return
    assert_same_values(found, expected, rtol=1e-10, atol=1e-10)


@cases(8, 500)
@given(
    case=CASES,
    objective=st.sampled_from(["linear", "memory"]),
    bound=st.integers(0, 3),
    workers=st.integers(1, 4),
)
def test_parts_of_random_systems_make_the_whole(case, objective, bound, workers) -> None:
    try:
        with ThreadPoolExecutor(workers) as pool:
            found, expected = distributed(*case, bound, pool, objective=objective)
    except PlanError:
        return
    assert_same_values(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_random_systems_on_processes_make_the_whole() -> None:
    fixed = tcgen.read_spec(PRODUCT)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:

        @settings(
            max_examples=60,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=CASES, objective=st.sampled_from(["none", "linear", "memory"]), data=st.data())
        def check(case, objective: str, data) -> None:
            spaces = sliceable_spaces(case[0]) if objective == "none" else ()
            along = data.draw(st.sampled_from(spaces)) if spaces else None
            bound = data.draw(st.integers(0, 3))
            try:
                found, expected = distributed(*case, bound, pool, objective=objective, along=along)
            except PlanError:
                return
            assert_same_values(found, expected, rtol=1e-10, atol=1e-10)

        check()
        found, expected = distributed(fixed, {"o": 3, "v": 4}, 1, pool, along="v")
        assert_same_values(found, expected, rtol=1e-10, atol=1e-10)
