"""Large packed operands are unpacked slice by slice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import tcgen
from tcgen.compiler.driver import read_system
from tcgen.interp import evaluate_system
from tcgen.lower.cpu import sliced_operands as slices
from tcgen.testing import random_arrays

HEAD = """
space o occupied
space v virtual
index i j : o
index a b c d : v
"""
CASES = {
    "sum over half a pair": "input v[v,v,v,v] symmetric (0,1) (2,3) packed (0,1) (2,3)\n"
    "input t[o,o,v,v]\noutput r\nr[i,j,a,b] = t[i,j,a,b] - 1/2*v[c,a,d,b]*t[i,j,c,d]",
    "sum over a pair": "input v[v,v,v,v] antisymmetric (0,1) (2,3) packed (0,1) (2,3)\n"
    "input t[o,o,v,v]\noutput r\nr[i,j,a,b] = v[a,b,c,d]*t[i,j,c,d]",
    "one pair": "input v[o,v,v,v] symmetric (2,3) packed (2,3)\n"
    "input t[o,v]\noutput r\nr[i,j,a,b] = v[i,c,a,b]*t[j,c]",
    "pair in front": "input v[v,v,o] symmetric (0,1) packed (0,1)\n"
    "input t[o,v]\noutput r\nr[i,a,j] = v[a,b,i]*t[j,b]",
}


@pytest.fixture(autouse=True)
def small_slices() -> Iterator[None]:
    """Slices of small operands."""
    with mock.patch.object(slices, "_SLICE", 20):
        yield


def spec(tmp_path: Path, text: str) -> Path:
    """A file with the equations."""
    path = tmp_path / "slices.spec"
    path.write_text(HEAD + text + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", CASES)
def test_slices(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values at planning extents and at others; scratch is a part of the operand."""
    monkeypatch.setenv("TCGEN_VERIFY", "2")
    path = spec(tmp_path, CASES[name])
    system = read_system(path)
    program = tcgen.compile(path, extents={"o": 5, "v": 7}, target="cpu", optimize=False)
    assert "tmp1_" in program.source
    for extents in ({"o": 5, "v": 7}, {"o": 1, "v": 4}, {"o": 2, "v": 1}, {"o": 3, "v": 0}):
        arrays = random_arrays(system, extents, dtype="float64", seed=3)
        wanted = evaluate_system(system, arrays, extents)["r"]
        np.testing.assert_allclose(program(**arrays)["r"], wanted, rtol=1e-11, atol=1e-11)


def test_threads(tmp_path: Path) -> None:
    """The statements inside the loop over slices share the threads."""
    path = spec(tmp_path, CASES["sum over half a pair"])
    extents = {"o": 9, "v": 14}
    arrays = random_arrays(read_system(path), extents, dtype="float64", seed=3)
    program = tcgen.compile(path, extents=extents, target="cpu", optimize=False)
    tcgen.set_threads(1)
    one = program(**arrays)["r"]
    tcgen.set_threads(3)
    try:
        three = program(**arrays)["r"]
    finally:
        tcgen.set_threads(None)
    np.testing.assert_allclose(three, one, rtol=1e-13)
