"""Small systems have the fewest flops of all orders, sharings and common factors."""

from __future__ import annotations

import numpy as np
import pytest

import tcgen
from support.campaigns import numbers
from support.operation_oracle import least_flops, random_system, terms_of
from tcgen.algebra import form_sequence
from tcgen.frontend import read_spec
from tcgen.interp import evaluate_program, evaluate_system
from tcgen.ir.program import PROVEN, FormulaSequence
from tcgen.options import Options
from tcgen.testing import random_arrays

EXTENTS = {"a": 10, "b": 20, "c": 30, "d": 8}
SMALL = {"a": 2, "b": 3, "c": 4, "d": 5}
HEAD = """
space a
space b
space c
space d
index i : a
index j : b
index k : c
index l : d
"""
CHAIN = HEAD + "input P[a,b], S[b,c], Q[c,d]\noutput w, z\n"
RANDOM = 2000


def sequence(text: str, extents: dict[str, int] = EXTENTS) -> FormulaSequence:
    """The sequence of fewest flops, whatever bytes it moves."""
    options = Options(extents=tuple(extents.items()), byte_weight=0.0)
    return form_sequence(read_spec(text, "case"), options)


def check_values(text: str, program: FormulaSequence) -> None:
    """Both levels have the same values."""
    system = read_spec(text, "case")
    arrays = random_arrays(system, SMALL)
    values = evaluate_program(program, arrays, SMALL)
    for name, expected in evaluate_system(system, arrays, SMALL).items():
        np.testing.assert_allclose(values[name], expected, rtol=1e-10, atol=1e-10, err_msg=text)


@pytest.mark.parametrize(
    "equations",
    [
        "w[i,k] = P[i,j]*S[j,k]\nz[i,l] = P[i,j]*S[j,k]*Q[k,l]\n",
        "w[i,k] = P[i,j]*S[j,k]\nz[i,l] = w[i,k]*Q[k,l]\n",
        "z[i,l] = Q[k,l]*P[i,j]*S[j,k]\nw[i,k] = S[j,k]*P[i,j]\n",
        "x[j,l] = S[j,k]*Q[k,l]\nz[i,l] = P[i,j]*x[j,l]\nw[i,k] = P[i,j]*S[j,k]\n",
        "w[i,k] = P[i,j]*S[j,k]\nz[i,l] = 3*P[i,j]*S[j,k]*Q[k,l]\nz[i,l] -= 2*w[i,k]*Q[k,l]\n",
    ],
)
def test_an_output_is_read_however_the_equations_are_written(equations: str) -> None:
    program = sequence(CHAIN + equations)
    assert program.flops().value(EXTENTS) == 2 * (10 * 20 * 30 + 10 * 30 * 8)
    assert program.optimality == PROVEN
    check_values(CHAIN + equations, program)


@pytest.mark.parametrize(
    ("equation", "flops"),
    [
        # (R + Q)[i,j,k] is added first: 6000, and two products of 12000 follow.
        ("z[i,k] = P[i,j]*S[j,k]*R[i,k] + P[i,j]*Q[i,j,k]*S[j,k]", 30_000),
        ("z[i,k] = P[i,j]*S[j,k] + P[i,j]*Q[i,j,k]", 18_000),
        # One loop with two multiplications and an addition: 3 flops at 6000 points.
        ("z[i] = Q[i,j,k]*P[i,j]*Q[i,j,k]", 18_000),
    ],
)
def test_an_index_of_three_factors(equation: str, flops: int) -> None:
    text = f"{HEAD}input P[a,b], S[b,c], R[a,c], Q[a,b,c]\noutput z\n{equation}\n"
    program = sequence(text)
    assert program.flops().value(EXTENTS) <= flops
    assert program.flops().value(EXTENTS) <= program.naive.value(EXTENTS)
    check_values(text, program)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", numbers(15, RANDOM))
def test_random_systems_have_the_fewest_flops(seed: int) -> None:
    text, extents = random_system(seed)
    program = sequence(text, extents)
    system = read_spec(text, "case")
    letters = {
        i.name: extents[i.space.name]
        for e in system.equations
        for t in e.terms
        for i in (*t.indices, *e.lhs.indices)
    }
    found = program.flops().value(extents)
    assert found <= least_flops(terms_of(system), letters), text
    assert found <= program.naive.value(extents), text
    check_values(text, program)


def test_reports_say_what_is_proven() -> None:
    text = CHAIN + "w[i,k] = P[i,j]*S[j,k]\nz[i,l] = P[i,j]*S[j,k]*Q[k,l]\n"
    program = tcgen.compile(text, extents=EXTENTS, target="numpy", byte_weight=0.0)
    assert program.report["operations"]["optimality"] == PROVEN
    assert PROVEN in program.explain()
    alone = tcgen.compile(text, extents=EXTENTS, target="numpy", optimize=False)
    assert alone.report["operations"]["optimality"] == "optimal for each term"


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["mp2_closed_shell", "mp2_spin_orbital", "a3a"])
def test_never_more_than_naive(name: str) -> None:
    program = tcgen.compile(tcgen.spec_path(name), extents={"o": 5, "v": 8}, target="numpy")
    operations = program.report["operations"]
    assert operations["sequence"] <= operations["naive"]
