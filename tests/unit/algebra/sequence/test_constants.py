"""Constant inputs: what runs once is weighed against what runs at each call."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import tcgen
from support.messages import mentions
from tcgen.algebra import form_sequence
from tcgen.errors import ArgumentError
from tcgen.interp import evaluate_program, evaluate_system
from tcgen.ir.program import Phase
from tcgen.ir.system import System
from tcgen.options import Options
from tcgen.testing import assert_same_values, random_arrays

DRESSED = """
space o = 4
space v = 12
space all = o + v
index i m n : o
index a e : v
index p q r s p1 q1 r1 s1 : all
input g[all,all,all,all] constant, t1[o,v] constant, r2[o,o,v]
output s1
L[p,q] = delta[p,q] - delta[a,p]*t1[m,a]*delta[m,q]
R[p,q] = delta[p,q] + delta[p,e]*t1[i,e]*delta[i,q]
D[p,q,r,s] = L[p,p1]*L[q,q1]*g[p1,q1,r1,s1]*R[r1,r]*R[s1,s]
s1[i] = D[n,m,i,e]*r2[m,n,e]
"""
RING = """
space o = 3
space v = 9
space x = 30
index i j k : o
index a b c : v
index Q : x
input b[x,o,v] constant, t[o,v,o,v] symmetry (0,1)<->(2,3)
output r, e
K[i,a,j,b] = b[Q,i,a]*b[Q,j,b]
r[i,a,j,b] = 2*K[i,a,j,b] + 2*K[i,a,k,c]*t[k,c,j,b] + 2*t[i,a,k,c]*K[k,c,j,b]
e = K[i,a,j,b]*t[i,a,j,b]
"""
VECTOR = """
space n = 40
index i j k : n
input A[n,n] constant, B[n,n] constant, x[n]
output y
y[i] = A[i,j]*B[j,k]*x[k]
"""
SQUARE = """
space o = 3
space v = 9
space x = 30
index i j k l : o
index a b c d : v
index Q : x
input b[x,o,v], t[o,v,o,v] symmetry (0,1)<->(2,3)
output r
r[i,a,j,b] = 2*b[Q,i,a]*b[Q,j,b] + 2*b[Q,i,a]*b[Q,k,c]*t[k,c,j,b]
           + 2*t[i,a,k,c]*b[Q,k,c]*b[Q,j,b] + 2*t[i,a,k,c]*b[Q,k,c]*b[Q,l,d]*t[l,d,j,b]
"""


def flops(system: System, calls: int) -> tuple[int, int]:
    """Flops once, and per call."""
    extents = {s.name: s.extent for s in system.spaces if s.extent}
    options = Options(calls=calls, extents=tuple(sorted(extents.items())), byte_weight=0.0)
    program = form_sequence(system, options)
    program.verify()
    arrays = random_arrays(system, extents, seed=1)
    assert_same_values(
        evaluate_program(program, arrays, extents), evaluate_system(system, arrays, extents)
    )
    parts = dict.fromkeys(Phase, 0)
    for step in program.steps:
        parts[step.phase] += step.flops.value(extents)
    return parts[Phase.CONSTANT], parts[Phase.VOLATILE]


@pytest.mark.few(4)
@pytest.mark.parametrize("calls", [1, 20, 10_000])
@pytest.mark.parametrize("text", [DRESSED, RING, VECTOR], ids=["dressed", "ring", "vector"])
def test_constants_only_help(text: str, calls: int) -> None:
    volatile, without = flops(tcgen.read_spec(text.replace("constant", "")), calls)
    assert not volatile
    once, each = flops(tcgen.read_spec(text), calls)
    assert once + calls * each <= calls * without
    assert each <= without


def test_the_number_of_calls_decides_what_is_computed_once() -> None:
    system = tcgen.read_spec(VECTOR)
    assert flops(system, 1) == (0, 2 * 2 * 40**2)
    assert flops(system, 10_000) == (2 * 40**3, 2 * 40**2)


def test_a_perfect_square_is_one_product() -> None:
    once, each = flops(tcgen.read_spec(SQUARE), 1)
    size = 3 * 9
    assert not once
    assert each <= 4 * 30 * size**2 + 3 * 30 * size  # b + t*b, and its square


@pytest.mark.parametrize("given", ["t1", ("t1",), ["t1"]])
def test_inputs_are_marked_by_keywords(given: str | Sequence[str]) -> None:
    text = DRESSED.replace("t1[o,v] constant", "t1[o,v]")
    program = tcgen.compile(text, target="numpy", constant=given, volatile="g")
    assert repr(program.bind(t1=[[0.0] * 12] * 4)).startswith("<spec, bound(g, r2)")
    system = tcgen.jvp(tcgen.read_spec(text), {"r2": "d"}, constant=given)
    assert [t.name for t in system.inputs if not t.volatile] == ["g", "t1"]
    norm = tcgen.read_spec("space o = 2\nindex i : o\ninput x[o], t1\noutput e\ne = t1*x[i]*x[i]\n")
    assert [t.name for t in tcgen.derivative(norm, "x", constant=given).inputs if not t.volatile]


def test_marks_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ArgumentError, match=mentions("constant='w' g t1 r2")):
        tcgen.compile(DRESSED, constant="w")
    with pytest.raises(ArgumentError, match=mentions("t1 constant volatile")):
        tcgen.compile(DRESSED, constant="t1", volatile=["t1"])
