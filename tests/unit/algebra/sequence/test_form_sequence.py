"""form_sequence: binary order, sharing, phases, maps, edge cases and determinism."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from support.messages import mentions
from tcgen.algebra import form_sequence
from tcgen.errors import ExtentError
from tcgen.frontend import read_spec
from tcgen.interp import evaluate_program, evaluate_system
from tcgen.ir.pretty.equations import pretty_step
from tcgen.ir.program import Add, Contract, FormulaSequence, Map, Phase, Produce
from tcgen.ir.system import assumed_extents
from tcgen.options import Options
from tcgen.testing import random_arrays

HEAD = """
space o occupied
space v virtual
space x auxiliary
index i j k l : o
index a b c d : v
index P Q : x
"""
EXTENTS = (("o", 10), ("v", 50), ("x", 200))


def program(body: str, optimize: bool = True, dtype: str = "float64") -> FormulaSequence:
    system = read_spec(HEAD + body, "case.spec")
    result = form_sequence(system, Options(extents=EXTENTS, optimize=optimize, dtype=dtype))
    result.verify()
    return result


def kinds(result: FormulaSequence) -> list[str]:
    return [type(s.op).__name__ for s in result.steps]


def test_cheapest_order_under_the_extents() -> None:
    result = program(
        "input b[x,v,v], t[o,o,v,v]\noutput r\nr[i,j,a,b] = b[P,a,c]*b[P,b,d]*t[i,j,c,d]\n"
    )
    assert str(result.flops(Contract)) == "2 o^2 v^4 + 2 v^4 x"
    assert len(result.steps) == 2


@pytest.mark.parametrize(
    ("body", "flops"),
    [
        ("input p[o,v], q[o,v], w[o]\noutput r\nr[a,b] = w[i]*p[i,a]*q[i,b]\n", "2 o v^2 + 2 o v"),
        ("input p[o], q[v]\noutput r\nr[i,a] = p[i]*q[a]\n", "2 o v"),
        ("input p[o,v], q[o,v]\noutput r\nr[i] = p[i,a]*q[i,a]\n", "2 o v"),
        ("input p[o], q[o], w[v]\noutput r\nr[i,a] = p[k]*q[k] + p[i]*w[a]\n", "2 o v + 2 o"),
        ("input p, q, w[o]\noutput r\nr[i] = p*q*w[i]\n", "2 o + 2"),
        ("input p[o,v], q[v]\noutput r\nr = sum(i) p[i,a]*q[a]\n", "2 v"),
    ],
    ids=["hyper", "outer", "batch", "broadcast", "scalars", "private sum"],
)
def test_kinds_of_product(body: str, flops: str) -> None:
    assert str(program(body).flops(Contract)) == flops


def test_product_of_nine_factors() -> None:
    factors = "*".join(f"p{n}[{'ijkl'[n % 4]},{'ijkl'[(n + 1) % 4]}]" for n in range(9))
    inputs = ", ".join(f"p{n}[o,o]" for n in range(9))
    result = program(f"input {inputs}\noutput r\nr = {factors}\n")
    assert sum(isinstance(s.op, Contract) for s in result.steps) == 8


def test_mp2_energy_is_one_map() -> None:
    result = program(
        "input g[o,v,o,v] symmetry (0,1)<->(2,3)\ninput e_o[o], e_v[v]\noutput e\n"
        "e = (2*g[i,a,j,b] - g[i,b,j,a])*g[i,a,j,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])\n"
    )
    assert kinds(result) == ["Map"]
    assert result.intermediates == ()


def test_a_product_of_references_stays_a_contraction() -> None:
    result = program(
        "input g[o,v], h[o,v]\noutput e\nw[i,a] = g[i,a] + h[i,a]\ne = w[i,a]*w[i,a]\n"
    )
    assert "Map" not in kinds(result)


def test_costly_expression_is_evaluated_once_on_its_own_indices() -> None:
    result = program(
        "input b[x,o,v], e[o], f[v]\noutput m\nm[P,Q] = b[P,i,a]*b[Q,i,a]*exp(e[i] - f[a])\n"
    )
    assert kinds(result) == ["Map", "Contract", "Contract"]
    assert result.steps[0].out.tensor.rank == 2


def test_equal_products_are_computed_once() -> None:
    body = (
        "input g[o,o,v,v] antisymmetric (0,1) (2,3)\ninput t[o,o,v,v] antisymmetric (0,1) (2,3)\n"
        "input s[o,v], u[v,v]\noutput r, q\n"
        "r[a,b] = g[k,l,c,d]*t[k,l,c,a]*u[d,b]\n"
        "q[a,b] = t[i,j,b,c]*g[j,i,a,c] + s[i,a]*s[i,b]\n"
    )
    shared, apart = program(body), program(body, optimize=False)
    assert sum(isinstance(s.op, Contract) for s in shared.steps) == 3
    assert sum(isinstance(s.op, Contract) for s in apart.steps) == 4


def test_square_of_one_reference() -> None:
    # p*p is one array, read twice
    result = program("input p[o,o]\noutput r\nr = p[i,j]*p[i,j]*p[k,l]*p[k,l]\n")
    assert [pretty_step(s) for s in result.steps] == [
        "s0: x1 = sum(i,j) p[i,j] * p[i,j]",
        "s1: r = x1 * x1",
    ]


def test_permutation_is_applied_once_to_a_sum() -> None:
    result = program(
        "input f[o,o], t[o,o,v], u[o,o,v]\noutput r\n"
        "r[i,j,a] = P(i,j) f[i,k]*t[k,j,a]\nr[i,j,a] += P(i,j) f[i,k]*u[k,j,a]\n"
    )
    read = [s for s in result.steps if isinstance(s.op, Add) and s.out.tensor.name == "r"]
    assert len(read) == 2


def test_phases_follow_the_inputs() -> None:
    result = program(
        "input b[x,o,o] constant\ninput f[o,o] constant\ninput t[o,o] volatile\noutput r, c\n"
        "w[i,j,k,l] = b[P,i,j]*b[P,k,l]\nr[i,j] = w[i,k,j,l]*t[k,l] + f[i,k]*f[k,j]\n"
        "c[i,j] = f[i,k]*f[k,j]\n"
    )
    phases = {s.out.tensor.name: s.phase for s in result.steps}
    assert phases["r"] is Phase.VOLATILE
    assert phases["c"] is Phase.CONSTANT
    for step in result.steps:  # one phase for each array
        assert phases[step.out.tensor.name] is step.phase
    volatile = [s for s in result.steps if s.phase is Phase.VOLATILE]
    assert sum(isinstance(s.op, Contract) for s in volatile) == 1
    assert sum(isinstance(s.op, Contract) for s in result.steps) == 3  # f*f and b*b are done once


def test_generated_input_is_produced_before_its_first_use() -> None:
    result = program("input b[x,v,v] generated\ninput t[v,v]\noutput r\nr[P] = b[P,a,c]*t[a,c]\n")
    assert [isinstance(s.op, Produce) for s in result.steps] == [True, False]


def test_zero_equation_is_a_map_of_zero() -> None:
    result = program(
        "input t[o,o] antisymmetric (0,1)\ninput s[o,o] symmetric (0,1)\noutput r, q\n"
        "r = t[i,j]*s[i,j]\nz[i] = t[i,i]\nq[i] = z[i]*s[i,i]\n"
    )
    assert kinds(result) == ["Map", "Map"]
    assert result.intermediates == ()


def test_output_that_accumulates() -> None:
    result = program("input f[o,o]\noutput r accumulate\nr[i,j] = f[i,k]*f[k,j] + f[j,i]\n")
    assert all(s.accumulate for s in result.steps)


def test_output_that_is_a_copy_and_one_that_is_read() -> None:
    result = program(
        "input f[o,o]\noutput r, q, s\nr[i,j] = f[i,k]*f[k,j]\nq[i,j] = r[i,j]\ns[i,j] = 2*r[j,i]\n"
    )
    assert kinds(result) == ["Contract", "Add", "Add"]


def test_names_of_the_user_are_not_taken() -> None:
    result = program(
        "input x1[o,o], r_p1[o,o]\noutput r\n"
        "r[i,j] = P(i,j) (x1[i,k]*r_p1[k,l]*x1[l,j] + x1[i,k]*r_p1[k,j])\n"
    )
    assert len({t.name for t in result.tensors}) == len(result.tensors)


def test_without_optimize_the_users_intermediates_stay() -> None:
    body = "input f[o,o], y[o,o]\noutput r\nw[i,j] = 2*f[j,i]\nr[i,j] = w[i,k]*y[k,j]\n"
    assert [t.name for t in program(body, optimize=False).intermediates] == ["w"]
    assert program(body).intermediates == ()


def test_optimizing_is_never_worse() -> None:
    body = (
        "input f[o,o], g[o,v], t[o,v]\noutput r\ns[i,j] = f[i,j] + g[i,a]*t[j,a]\n"
        "r[i,a] = (s[i,k] + f[k,i])*t[k,a] + s[i,k]*g[k,a]\n"
    )
    extents = dict(EXTENTS)
    assert program(body).flops().value(extents) <= program(body, False).flops().value(extents)


def test_missing_extent_names_the_space() -> None:
    body = "input f[o,v,x]\noutput r\nr[i] = sum(a,P) f[i,a,P]\n"
    head = "space o\nspace v\nspace x\nindex i : o\nindex a : v\nindex P : x\n"
    with pytest.raises(ExtentError, match=mentions("v x -e v=10 x=10")):
        form_sequence(read_spec(head + body, "case.spec"), Options(extents=(("o", 10),)))
    typical = read_spec(HEAD + body, "case.spec")
    assert assumed_extents(typical, {"o": 10}) == {"v": 100, "x": 400}
    assert len(form_sequence(typical, Options(extents=(("o", 10),))).steps) == 1
    text = "space o = 10\nspace unused\nindex i : o\ninput f[o,o]\noutput r\nr = f[i,i]\n"
    default = read_spec(text, "d.spec")
    assert len(form_sequence(default, Options()).steps) == 1


_SCRIPT = """
from pathlib import Path
from tcgen.algebra import form_sequence
from tcgen.options import Options
from tcgen.testing import random_arrays
from tcgen.frontend import read
system = read(Path("tests/data/specs/ccsd_closed_shell.spec"))
print(form_sequence(system, Options(extents=(("o", 20), ("v", 100)))).pretty())
"""


@pytest.mark.slow
def test_same_steps_under_any_hash_seed(request: pytest.FixtureRequest) -> None:
    texts = [
        subprocess.run(
            [sys.executable, "-c", _SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(request.config.rootpath)},
            cwd=request.config.rootpath,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert texts[0] == texts[1]


def test_map_reads_every_element_once() -> None:
    result = program(
        "input e[o], f[v], t[o,v]\noutput r\nd[i,a] = e[i] - f[a]\nr[i,a] = t[i,a]/d[i,a]\n"
    )
    assert kinds(result) == ["Map"]
    assert isinstance(result.steps[0].op, Map)
    assert str(result.flops()) == "2 o v"


THC = """
index R S W : x
input lo[x,o], lv[x,v], xo[o,x], xv[v,x], z[x,x], n[o,o] antisymmetric (0,1)
output e, y
e = (-xo[i,P]*xo[i,Q]*lo[W,i]*xv[a,P]*xv[a,Q]*lv[W,a]*z[Q,R]
     *xo[j,R]*xo[j,S]*lo[W,j]*xv[b,R]*xv[b,S]*lv[W,b]*z[S,P])
y[i,j] = n[i,k]*n[k,l]*n[l,j]*z[P,P]*z[Q,Q] + n[j,k]*n[k,l]*n[l,i]*z[P,P]
"""


def test_products_of_many_factors_are_equal_in_any_order() -> None:
    """Half of the integrals are the others with exchanged pairs, though split the other way."""
    system = read_spec(HEAD + THC)
    options = Options(extents=(("o", 20), ("v", 100), ("x", 300)), target="numpy")
    result = form_sequence(system, options)
    four = [s for s in result.steps if len(s.out.indices) == 4 and isinstance(s.op, Contract)]
    integrals = [s for s in four if s.sums]
    assert len(integrals) == 1
    assert len(four) == 2
    small = {"o": 2, "v": 3, "x": 4}
    arrays = random_arrays(system, small, seed=0)
    expected, found = (
        evaluate_system(system, arrays, small),
        evaluate_program(result, arrays, small),
    )
    for name in ("e", "y"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12)
