"""Random systems on the threads of an executor, in slices and in parts, beside the interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from hypothesis import given
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


def distributed(
    system: System, extents: Mapping[str, int], bound: int, workers: int, **options: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Results of two calls on workers, and those of the equations; the first inputs are bound."""
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
        ThreadPoolExecutor(workers) as pool,
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
        found, expected = distributed(system, extents, bound, workers, along=along)
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
        found, expected = distributed(*case, bound, workers, objective=objective)
    except PlanError:
        return
    assert_same_values(found, expected, rtol=1e-10, atol=1e-10)
