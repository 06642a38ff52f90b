"""Nests that hold products become one kernel where tiles fit a block and that is faster."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

import tcgen
from support.cuda_device import EmulatedDevice
from tcgen.compiler.driver import read_system
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.testing import assert_same_values, random_arrays

pytestmark = [
    pytest.mark.default_thresholds,
    pytest.mark.skipif(
        shutil.which("g++") is None, reason="no C compiler: the CUDA emulator needs g++"
    ),
]
ALLAM = """
space ni
space nj
space nk
space nl
index i : ni
index j : nj
index k : nk
index l : nl
input A[i,j], B[j,k,l], C[k,l]
output W
f1[j] = sum(i) A[i,j]
f2[j,k] = B[j,k,l]*C[k,l]
W[k] = f1[j]*f2[j,k]
"""
# Extents, form and launches; those of the host copy distinct elements of symmetric arrays as well.
CASES: dict[str, tuple[dict[str, int], str, int]] = {
    "Allam et al.": ({"ni": 10, "nj": 10, "nk": 12, "nl": 10}, "kernel", 2),
    "mp2_df": ({"o": 8, "v": 20, "x": 60}, "kernel", 2),
    "df_ladder": ({"o": 30, "v": 200, "x": 600}, "host", 8),
}


def system_of(name: str) -> System:
    if name in CASES and " " not in name:
        return read_system(tcgen.spec_path(name))
    return tcgen.read_spec(ALLAM)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CASES)
def test_the_form_of_a_nest(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report says which form a nest has, and that form computes the values."""
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", EmulatedDevice)
    system, (planned, form, launches) = system_of(name), CASES[name]
    program = tcgen.compile(
        system, extents=planned, target="cuda", objective="linear", machine="h100"
    )
    (nest,) = program.report["fusion"]["nests"]
    assert nest["form"] == form
    assert nest["seconds"] < nest["other_seconds"]
    assert program.report["launches"] <= launches
    small: dict[str, Any] = {space: 5 + 2 * n for n, space in enumerate(planned)}
    arrays = random_arrays(system, small, dtype="float64", seed=3)
    expected = evaluate_system(system, arrays, small, dtype="float64")
    assert_same_values(program(**arrays), expected, rtol=1e-10)
