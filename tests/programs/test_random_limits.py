"""Random systems under memory limits and objectives: right values within the limit, or refused."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.campaigns import cases
from tcgen.compiler.driver import Compilation, compile_system
from tcgen.compiler.limits import planned_use
from tcgen.errors import ArgumentError, MemoryLimitError
from tcgen.interp import evaluate_system, run_module
from tcgen.ir.system import System
from tcgen.ir.tensor import Role
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.testing import assert_same_values, random_arrays, split_starts, systems

OBJECTIVES = ("time", "memory", "peak")


@st.composite
def programs(draw: st.DrawFn) -> tuple[System, Options, float | None]:
    """Equations, options, and the limit in parts of what a call needs without one.

    The auxiliary space is the largest one, as in density fitting; o may be larger than v.
    """
    system = draw(systems(max_equations=5, functions=draw(st.booleans())))
    bases = {s.name for s in system.spaces if not s.parts}
    extents = {name: draw(st.integers(1, 11 if name == "x" else 5)) for name in sorted(bases)}
    large = [t.name for t in system.inputs if len(t.spaces) > 1 and t.role is Role.INPUT]
    sliced = draw(st.sampled_from([(), (), *((name,) for name in large)]))
    options = Options(
        extents=tuple(extents.items()),
        objective=draw(st.sampled_from(OBJECTIVES)),
        sliced=sliced,
        optimize=draw(st.booleans()),
    )
    return system, options, draw(st.sampled_from((0.9, 0.7, 0.5, 0.3, 0.1, None)))


def compiled(system: System, options: Options, share: float | None) -> Compilation | None:
    """The program within a share of its memory; None where the sliced input is needed whole.

    A limit that is refused is raised to the bytes that the message asks for.
    """
    try:
        result = compile_system(system, options)
    except ArgumentError as error:
        if not str(error).startswith("sliced input"):
            raise
        return None
    if share is None:
        return result
    limit = int(share * planned_use(result.module, options).peak)
    within = replace(options, memory_limit=limit)
    try:
        result = compile_system(system, within)
    except MemoryLimitError as error:
        (needed,) = re.findall(r"Raise the limit to (\d+) or more", str(error))
        within = replace(options, memory_limit=int(needed))
        result = compile_system(system, within)
    assert planned_use(result.module, within).peak <= within.memory_limit
    return result


def check(system: System, options: Options, share: float | None, *, built: bool) -> None:
    result = compiled(system, options, share)
    if result is None:
        return
    extents = dict(options.extents)
    inputs, starts = split_starts(system, random_arrays(system, extents, seed=1))
    expected = evaluate_system(system, inputs, extents, out=starts)
    out: dict[str, Any] = {name: array.copy() for name, array in starts.items()}
    if built:
        actual = Program(result.artifact)(**inputs, out=out)
    else:
        actual = run_module(result.module, inputs, extents, out=out)
    assert_same_values(actual, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.filterwarnings("ignore:output .* is zero")
@cases(5, 300)
@given(case=programs())
def test_loops_within_a_limit_equal_the_equations(case) -> None:
    check(*case, built=False)


@pytest.mark.slow
@cases(3, 100)
@given(case=programs())
def test_generated_c_within_a_limit_equals_the_equations(case) -> None:
    check(*case, built=True)


def few_seconds(options: Options) -> Options:
    """The options with short searches."""
    planner = options.thresholds.planner
    fusion = planner.fusion
    time, memory = replace(fusion.time, seconds=0.5), replace(fusion.memory, seconds=0.5)
    planner = replace(planner, fusion=replace(fusion, time=time, memory=memory))
    return replace(options, thresholds=replace(options.thresholds, planner=planner))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:output .* is zero")
@cases(4, 200)
@given(
    system=systems(max_equations=3),
    extents=st.fixed_dictionaries({s: st.integers(2, 9) for s in "ovx"}),
    optimize=st.booleans(),
)
def test_a_larger_limit_takes_no_more_time(
    system: System, extents: dict[str, int], optimize: bool
) -> None:
    """And is not refused where a smaller one is not; predictions are as good as 3 %."""
    named = {s.name for s in system.spaces if not s.parts}
    sizes = tuple((name, n) for name, n in extents.items() if name in named)
    options = few_seconds(Options(extents=sizes, objective="time", optimize=optimize))
    peak = planned_use(compile_system(system, options, documents=False).module, options).peak
    seconds: list[float] = []
    for share in (0.15, 0.3, 0.5, 0.8, 1.0, 1.5):
        within = replace(options, memory_limit=int(share * peak))
        try:
            made = compile_system(system, within, documents=False)
        except MemoryLimitError:
            assert not seconds
            continue
        assert planned_use(made.module, within).peak <= int(share * peak)
        assert made.plan.solve.value is not None
        seconds.append(float(made.plan.solve.value))
    assert all(more <= 1.03 * less for less, more in itertools.pairwise(seconds))
