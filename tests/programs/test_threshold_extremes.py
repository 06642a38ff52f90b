"""Programs give right values whatever the thresholds: with each record at both ends of its ranges.

``pytest --thresholds=smallest`` (or ``largest``) runs any other test of values so.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest

import tcgen
from support.cuda_device import EmulatedDevice
from support.marks import slow
from tcgen.compiler.driver import compile_system, read_system
from tcgen.frontend.einsum import subscripts_system
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.testing import assert_same_values, random_arrays, split_starts
from tcgen.thresholds import Thresholds, largest, smallest

RECORDS = tuple(field.name for field in fields(Thresholds))
ENDS = {"smallest": smallest, "largest": largest}
EXTENTS = {"o": 3, "v": 5, "O": 2, "V": 4, "x": 7, "q": 3}
SPECS = (
    *("mp2_closed_shell", "df_ladder"),
    *slow("mp2_df", "sosmp2_laplace_df", "drpa", "ccd_spin_orbital", "cc2_df"),
    *slow("t_closed_shell", "ccsd_closed_shell"),
)
CONTRACTIONS = (
    pytest.param("ab,bc->ac", {"a": 37, "b": 19, "c": 23}, marks=pytest.mark.slow),
    ("adb,cd->cba", {"a": 17, "b": 6, "c": 13, "d": 21}),
    ("aged,cbfg->fedcba", {"a": 5, "b": 3, "c": 4, "d": 3, "e": 2, "f": 3, "g": 7}),
    pytest.param("abc,b->ca", {"a": 9, "b": 40, "c": 33}, marks=pytest.mark.slow),
    pytest.param("xab,xbc->xac", {"x": 3, "a": 9, "b": 11, "c": 10}, marks=pytest.mark.slow),
    pytest.param("abcd,abcd->", {"a": 7, "b": 8, "c": 9, "d": 10}, marks=pytest.mark.slow),
    ("ab->ba", {"a": 45, "b": 67}),
)


def thresholds(record: str, end: str) -> Thresholds:
    """All thresholds, with one record at one end of its ranges."""
    usual = Thresholds()
    return replace(usual, **{record: ENDS[end](getattr(usual, record))})


def values(record: Any) -> Iterator[Any]:
    for field in fields(record):
        value = getattr(record, field.name)
        yield from values(value) if is_dataclass(value) else [value]


def check(system: System, chosen: Options) -> None:
    extents = dict(chosen.extents)
    inputs, starts = split_starts(system, random_arrays(system, extents, dtype="float64", seed=1))
    expected = evaluate_system(system, inputs, extents, out=starts)
    program = Program(compile_system(system, chosen).artifact)
    actual = program(**inputs, out={n: np.array(a) for n, a in starts.items()})
    assert_same_values(actual, expected, rtol=1e-10, atol=1e-10)


@pytest.fixture(autouse=True)
def _device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", EmulatedDevice)


def needs_compiler(target: str) -> None:
    compiler = {"cpu": "cc", "cuda": "g++"}.get(target)
    if compiler and shutil.which(compiler) is None:
        pytest.skip(f"no C compiler: {compiler} is not installed")


@pytest.mark.parametrize("end", ENDS)
def test_the_ends_differ_from_the_defaults(end: str) -> None:
    usual = Thresholds()
    for record in RECORDS:
        at_end = getattr(thresholds(record, end), record)
        for low, value, high in zip(
            values(smallest(at_end)), values(at_end), values(largest(at_end)), strict=True
        ):
            assert low <= value <= high
        assert at_end != getattr(usual, record) or not fields(at_end)


@pytest.mark.few(16)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    ("record", "target", "objective"),
    [
        ("planner", "numpy", "none"),
        ("planner", "numpy", "linear"),
        ("planner", "numpy", "memory"),
        ("planner", "numpy", "peak"),
        ("planner", "numpy", "time"),
        ("planner", "numpy", "kernels"),
        ("cpu", "cpu", "none"),
        ("cpu", "cpu", "peak"),
        ("gpu", "cuda", "none"),
        ("gpu", "cuda", "peak"),
    ],
)
@pytest.mark.parametrize("name", SPECS)
def test_specs(name: str, record: str, target: str, objective: str, end: str) -> None:
    needs_compiler(target)
    system = read_system(tcgen.spec_path(name))
    extents = tuple(sorted((s.name, EXTENTS[s.name]) for s in system.spaces if not s.parts))
    options = Options(extents, target, objective=objective, thresholds=thresholds(record, end))
    check(system, options)


@pytest.mark.few(6)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(("record", "target"), [("cpu", "cpu"), ("gpu", "cuda")])
@pytest.mark.parametrize(("subscripts", "extents"), CONTRACTIONS)
def test_contractions(
    subscripts: str, extents: dict[str, int], record: str, target: str, end: str
) -> None:
    needs_compiler(target)
    system = subscripts_system(subscripts)
    options = Options(tuple(sorted(extents.items())), target, thresholds=thresholds(record, end))
    check(system, options)
