"""Random systems of equations: the generated C, the numpy target and the interpreter agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.campaigns import cases
from tcgen.compiler.driver import compile_system
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.testing import (
    assert_same_values,
    extents_for,
    random_arrays,
    split_starts,
    systems,
)

TOLERANCE = {"float64": 1e-10, "complex128": 1e-10, "float32": 1e-4}


def check(
    system: System,
    extents: dict[str, int],
    dtype: str,
    monkeypatch: pytest.MonkeyPatch,
    **options: object,
) -> None:
    inputs, starts = split_starts(system, random_arrays(system, extents, dtype=dtype, seed=1))
    expected = evaluate_system(system, inputs, extents, out=starts, dtype=dtype)
    chosen = Options(extents=tuple(sorted(extents.items())), dtype=dtype, **options)
    program = Program(compile_system(system, chosen).artifact)
    with monkeypatch.context() as patch:
        for function in ("numpy.einsum", "opt_einsum.contract"):
            patch.setattr(function, _forbidden)
        actual = program(**inputs, out={n: a.copy() for n, a in starts.items()})
    assert_same_values(actual, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def _forbidden(*_: object, **__: object) -> None:
    raise AssertionError("the plan must run, not einsum")


def drawn(draw: st.DrawFn) -> tuple[System, dict[str, int]]:
    system = draw(systems())
    return system, draw(extents_for(system))


CASES = st.composite(drawn)()


@cases(12, 2000)
@given(case=CASES)
def test_generated_c_equals_the_interpreter(case, monkeypatch) -> None:
    check(*case, "float64", monkeypatch, target="cpu")


@pytest.mark.slow
@cases(3, 1000)
@given(case=CASES, dtype=st.sampled_from(["float32", "complex128"]))
def test_other_element_types(case, dtype: str, monkeypatch) -> None:
    check(*case, dtype, monkeypatch, target="cpu")


@cases(8, 1000)
@given(case=CASES)
def test_fused_plans_equal_the_interpreter(case, monkeypatch) -> None:
    check(*case, "float64", monkeypatch, target="cpu", objective="linear")


@cases(30, 1000)
@given(
    case=CASES,
    optimize=st.booleans(),
    objective=st.sampled_from(["none", "linear", "kernels"]),
)
def test_numpy_target_equals_the_interpreter(case, optimize, objective, monkeypatch) -> None:
    check(*case, "float64", monkeypatch, target="numpy", optimize=optimize, objective=objective)
