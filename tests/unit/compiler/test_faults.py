"""A fault of tcgen in a stage: a message that asks for a report, and the next plan in its place."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.command_line import invoke
from support.messages import mentions, says
from tcgen.compiler import limits, sequences
from tcgen.errors import MemoryLimitError, VerifyError
from tcgen.options import Options

TEXT = """space o = 3
index i j : o
input x[o,o], y[o,o], z[o,o]
output r
w[i,j] = x[i,j]*y[j,i]
q[i,j] = w[i,j]*z[i,j]
r = q[i,j]*z[j,i]
"""
ARRAYS = {name: np.arange(9.0).reshape(3, 3) + n for n, name in enumerate("xyz")}
X, Y, Z = ARRAYS.values()
VALUE = np.sum(X * Y.T * Z * Z.T)
INTERNAL = (VerifyError("loop 5 is not contiguous"), KeyError("right"), RuntimeError("generator"))


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "little.spec"
    path.write_text(TEXT)
    return path


def fails(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, where: Any, error: Any) -> None:
    """Let a function of a stage raise an error for some options, or return a broken level."""
    function = getattr(module, name)

    def faulty(given: object, options: Options, *more: object, **fields: Any) -> object:
        if where(options):
            if isinstance(error, Exception):
                raise error
            return error(function(given, options, *more, **fields))
        return function(given, options, *more, **fields)

    monkeypatch.setattr(module, name, faulty)


def without_visits(plan: Any) -> Any:
    return replace(plan, visits=plan.visits[:-1])


def in_memory(options: Options) -> bool:
    return options.objective == "memory"


@pytest.fixture(params=("plan", "checked plan", "module", "program"))
def stage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The stage that has a fault under the objective memory."""
    monkeypatch.setenv("TCGEN_PLAN_CACHE", "0")
    match request.param:
        case "plan":
            fails(monkeypatch, limits, "plan_fusion", in_memory, INTERNAL[1])
        case "checked plan":
            fails(monkeypatch, limits, "plan_fusion", in_memory, without_visits)
        case "module":
            fails(monkeypatch, limits, "lower_plan", in_memory, INTERNAL[0])
        case _:
            fails(monkeypatch, sequences, "form_sequences", lambda o: o.optimize, INTERNAL[2])
    return str(request.param).split()[-1]


def test_the_next_plan_runs_and_is_reported(stage: str, spec: Path) -> None:
    with pytest.warns(RuntimeWarning, match=mentions(f"fault stage {stage} little report")) as told:
        program = tcgen.compile(spec, target="numpy", objective="memory")
    assert len(told) == 1
    assert says(str(told[0].message), "--objective memory --target numpy instead")
    taken = "memory" if stage == "program" else "none"
    assert says(str(told[0].message), f"objective {taken}")
    assert program.report["fusion"]["objective"] == taken
    np.testing.assert_allclose(program(**ARRAYS)["r"], VALUE)


def test_the_command_line_warns_too(stage: str, spec: Path, tmp_path: Path) -> None:
    asked = ("compile", spec, "--objective", "memory", "--target", "numpy", "-o", tmp_path / "out")
    with warnings.catch_warnings():
        warnings.simplefilter("default", RuntimeWarning)
        result = invoke(*asked)
    assert result.exit_code == 0
    assert says(result.stderr, f"warning: fault stage {stage} little report instead")
    assert ("factoring as written" in result.stderr) == (stage == "program")


@pytest.mark.parametrize("error", [*INTERNAL, without_visits], ids=range(4))
def test_a_fault_of_all_plans_is_a_sentence(
    error: Any, monkeypatch: pytest.MonkeyPatch, spec: Path, tmp_path: Path
) -> None:
    fails(monkeypatch, limits, "plan_fusion", lambda _: True, error)
    with pytest.raises(VerifyError, match=mentions("fault stage plan little report")):
        tcgen.compile(spec, target="numpy", objective="time")
    result = invoke("compile", spec, "--target", "numpy", "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert says(result.stderr, "tcgen: error: fault stage plan little report")


def test_a_fault_is_the_message_where_the_next_plan_is_refused(
    monkeypatch: pytest.MonkeyPatch, spec: Path
) -> None:
    """The plain plan does not fit the limit: the fault is told, not advice for the other plan."""
    fails(monkeypatch, limits, "plan_fusion", lambda o: o.objective == "time", INTERNAL[0])
    with pytest.raises(VerifyError, match=mentions("fault --memory-limit 7")):
        tcgen.compile(spec, target="numpy", objective="time", memory_limit=7)


def test_a_limit_asks_for_the_least_peak_first(monkeypatch: pytest.MonkeyPatch, spec: Path) -> None:
    fails(monkeypatch, limits, "plan_fusion", lambda o: o.objective == "time", INTERNAL[0])
    with pytest.warns(RuntimeWarning, match=mentions("objective peak instead")):
        program = tcgen.compile(
            spec, target="numpy", objective="time", memory_limit=10_000, machine="flops=1e9"
        )
    assert program.report["fusion"]["objective"] == "peak"
    np.testing.assert_allclose(program(**ARRAYS)["r"], VALUE)


def test_the_errors_of_others_are_no_faults(monkeypatch: pytest.MonkeyPatch, spec: Path) -> None:
    def cancel(text: str) -> None:
        if text == "planning memory":
            raise KeyError("cancelled")

    with pytest.raises(KeyError, match="cancelled"):
        tcgen.compile(spec, target="numpy", progress=cancel)
    fails(monkeypatch, limits, "plan_fusion", lambda _: True, OSError("disk"))
    with pytest.raises(OSError, match="disk"):
        tcgen.compile(spec, target="numpy")


def test_a_machine_and_a_limit_that_nothing_keeps(spec: Path) -> None:
    """The plan without shared loops is compared; constants of a machine have no effect on it."""
    with pytest.raises(MemoryLimitError, match="7"):
        tcgen.compile(
            spec, target="numpy", objective="time", memory_limit=7, machine="flops=1e9,call=1"
        )
