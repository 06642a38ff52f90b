"""Intermediates of complex programs that are made of real arrays are real."""

from __future__ import annotations

import numpy as np
import pytest

import tcgen
from tcgen.algebra import form_sequence
from tcgen.interp import evaluate_system
from tcgen.options import Options
from tcgen.testing import random_arrays

HEAD = """
space o = 3
space v = 4
index i j k : o
index a b c : v
"""
SYSTEMS = {
    "a real product": (
        "input x[o,v] real, y[v,o] real, z[o]\noutput r\nP[i,j] = x[i,a]*y[a,j]\n"
        "r[i] = P[i,j]*P[j,k]*z[k]",
        {"P"},
    ),
    "a complex factor": (
        "input x[o,v] real, y[v,o]\noutput r\nP[i,j] = x[i,a]*y[a,j]\nr[i,j] = P[i,k]*P[k,j]",
        set(),
    ),
    "a number that is not real": (
        "input x[o,v] real, y[v,o] real, s[o] real\noutput r\n"
        "P[i,j] = x[i,a]*y[a,j] + 1j*s[i]*s[j]\nr[i,j] = P[i,k]*P[k,j]",
        set(),
    ),
    "a root that may be complex": (
        "input s[o] real, x[o,v] real, y[v,o] real\noutput r\nP[i] = sqrt(s[i])\n"
        "Q[i,j] = x[i,a]*y[a,j]\nr[i] = P[i]*Q[i,j]*P[j]",
        {"Q"},
    ),
    "a sum that a complex product reads": (
        "input x[o,v] real, y[o,v] real, z[v,o]\noutput r\nP[i,a] = x[i,a] + y[i,a]\n"
        "r[i,j] = P[i,a]*z[a,j]",
        set(),
    ),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_which_intermediates_are_real(name: str) -> None:
    text, real = SYSTEMS[name]
    system = tcgen.read_spec(HEAD + text + "\n")
    program = form_sequence(system, Options(dtype="complex128", optimize=False))
    found = {t.name for t in program.intermediates if t.real}
    assert found & {"P", "Q"} == real
    other = form_sequence(system, Options(dtype="float64", optimize=False))
    assert not any(t.real for t in other.intermediates)


def test_a_gpu_takes_real_factors_as_they_are() -> None:
    """There an intermediate is real even if no product makes it and a complex product reads it."""
    system = tcgen.read_spec(HEAD + SYSTEMS["a sum that a complex product reads"][0] + "\n")
    options = Options(dtype="complex128", optimize=False, target="cuda")
    assert [t.name for t in form_sequence(system, options).intermediates if t.real] == ["P"]


@pytest.mark.few(10)
@pytest.mark.parametrize("target", ["cpu", "numpy"])
@pytest.mark.parametrize("objective", ["none", "linear", "time"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_values(name: str, objective: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCGEN_VERIFY", "2")
    system = tcgen.read_spec(HEAD + SYSTEMS[name][0] + "\n")
    program = tcgen.compile(system, dtype="complex128", objective=objective, target=target)
    for extents in ({"o": 3, "v": 4}, {"o": 5, "v": 2}, {"o": 1, "v": 0}):
        arrays = random_arrays(system, extents, dtype="complex128", seed=2)
        wanted = evaluate_system(system, arrays, extents, dtype="complex128")["r"]
        np.testing.assert_allclose(program(**arrays)["r"], wanted, rtol=1e-12, atol=1e-12)
