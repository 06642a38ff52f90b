"""Rewriting of systems: expansion, naive cost, permutations, symmetries, equal intermediates."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from support.messages import says
from tcgen.algebra import form_sequence
from tcgen.algebra.equations.inline import inline_all, keep_needed, naive_cost
from tcgen.algebra.equations.intermediates import merge_equal_intermediates
from tcgen.algebra.equations.normal_form import NormalForms
from tcgen.algebra.equations.permutations import fold_permutations, separate_permutations
from tcgen.algebra.equations.proven_symmetry import normalised, output_symmetry
from tcgen.algebra.sequence.brackets import choose_brackets
from tcgen.algebra.sequence.common_products import Workspace
from tcgen.errors import TcgenError
from tcgen.frontend import read_spec
from tcgen.interp import evaluate_program
from tcgen.ir.cost import Poly
from tcgen.ir.system import Equation, System
from tcgen.ir.tensor import Role, symmetry_group
from tcgen.options import Options
from tcgen.thresholds import AlgebraThresholds

HEAD = """
space o occupied
space v virtual
index i j k l m n : o
index a b c d : v
input f[o,o], h[o,v], t1[o,v], x[o,o], y[o,o]
input t2[o,o,v,v] antisymmetric (0,1) (2,3)
input v_oovv[o,o,v,v] antisymmetric (0,1) (2,3)
"""


def spec(body: str) -> System:
    return read_spec(HEAD + body, "case.spec")


def expand(system: System, named: bool) -> System:
    """The system with anonymous, or with all, intermediates inlined that are factors."""
    equations: list[Equation] = []
    known: dict[str, Equation] = {}
    for equation in system.equations:
        current = inline_all(equation, known)
        if (named or equation.anonymous) and equation.lhs.tensor.role is Role.TEMP:
            known[equation.lhs.tensor.name] = current
        equations.append(current)
    return keep_needed(replace(system, equations=tuple(equations)))


def test_brackets_and_names_are_inlined() -> None:
    system = spec("output r\nw[i,j] = f[i,j] + h[i,a]*t1[j,a]\nr[i,j] = (w[i,k] + x[i,k])*w[k,j]\n")
    (flat,) = expand(system, named=True).equations
    want = spec(
        "output r\nr[i,j] = f[i,k]*f[k,j] + h[i,a]*t1[k,a]*f[k,j] + f[i,k]*h[k,a]*t1[j,a]"
        " + h[i,a]*t1[k,a]*h[k,b]*t1[j,b] + x[i,k]*f[k,j] + x[i,k]*h[k,a]*t1[j,a]\n"
    )
    forms = NormalForms(complex_values=False)
    assert forms.vector(flat).value() == forms.vector(want.equations[0]).value()
    assert len(expand(system, named=False).equations) == 2


def test_square_of_a_name_has_its_own_sums() -> None:
    system = spec("output r\ns = x[i,j]*y[i,j]\nr = s*s\n")
    (flat,) = expand(system, named=True).equations
    assert len(flat.terms) == 1
    assert len(flat.terms[0].sums) == 4


def test_broadcast_that_is_summed_survives_inlining() -> None:
    system = spec("output r\nw[i,j] = x[i,i] + y[i,j]\nr[i] = sum(j) w[i,j]\n")
    (flat,) = expand(system, named=True).equations
    assert flat.terms[0].sums == system.equations[1].terms[0].sums
    assert "delta[j,j]" in expand(system, named=True).pretty()


def test_antisymmetrised_products_that_cancel_have_no_symmetry() -> None:
    """They are minus themselves, which no array may declare."""
    system = spec(
        "output r\ninput u[o]\nw[i,j,k] = P(i,j) u[i]*u[j]*u[k]\nw[i,j,k] += P(i,j) x[l,l]\n"
        "r[i] = sum(j,k) w[i,j,k]*w[k,i,j]\n"
    )
    derived = normalised(system, complex_values=False)
    assert [e.lhs.tensor.symmetry for e in derived.equations] == [(), ()]
    inputs = {t.name: np.ones([2 + (s.name == "o") for s in t.spaces]) for t in system.inputs}
    extents = {"o": 3, "v": 2}
    program = form_sequence(system, Options(extents=tuple(extents.items())))
    assert not evaluate_program(program, inputs, extents)["r"].any()


def test_naive_cost_of_a_long_product_of_brackets() -> None:
    """Terms are counted, not written out."""
    bracket = "(x[i,i] + y[i,i]*f[i,i])"
    system = spec(f"output r\nr[i] = {'*'.join([bracket] * 40)}\n")
    factors = sum(math.comb(40, n) * (40 + n) for n in range(41))
    assert naive_cost(system) == Poly.of(factors, [system.equations[-1].lhs.indices[0].space])


def test_naive_cost_counts_factors() -> None:
    system = spec("output r\nr[i,j] = P(i,j) (f[i,k] + h[i,a]*t1[k,a])*x[k,j]\n")
    assert str(naive_cost(system)) == "3 o^3 v + 2 o^3 + 2 o^2"  # P adds two images


def test_equal_permutations_share_one_intermediate() -> None:
    system = spec("output r\nr[i,j] = P(i,j) f[i,k]*x[k,j]\nr[i,j] += P(i,j) y[i,k]*x[k,j]\n")
    parts = separate_permutations(system.equations[0], {"r"})
    assert [len(p.terms) for p in parts] == [2, 2]
    assert parts[0].lhs.tensor.name == "r_p1"
    single = spec("output r\nr[i,j] = P(i,j) f[i,j]\n")
    (only,) = separate_permutations(single.equations[0], {"r"})
    assert [str(t.factors[0]) for t in only.terms] == ["f[i,j]", "f[j,i]"]


def test_permutations_written_out_are_folded() -> None:
    body = "r[i,j] = f[i,k]*x[k,j] - f[j,k]*x[k,i] + y[i,k]*x[k,j] - y[j,k]*x[k,i]\n"
    equation = spec("output r\n" + body).equations[0]
    forms = NormalForms(complex_values=False)
    folded = fold_permutations(equation, output_symmetry(equation, forms), forms, 100)
    assert [len(t.perms) for t in folded.terms] == [2, 2]
    assert len({t.perms for t in folded.terms}) == 1
    assert forms.vector(folded).value() == forms.vector(equation).value()


def test_symmetry_of_intermediates_is_derived() -> None:
    system = spec(
        "output e\ntau[i,j,a,b] = t2[i,j,a,b] + t1[i,a]*t1[j,b] - t1[i,b]*t1[j,a]\n"
        "e = tau[i,j,a,b]*v_oovv[i,j,a,b]\n"
    )
    tau = normalised(system).equations[0].lhs.tensor
    assert len(symmetry_group(tau)) == 4
    pair = spec("output e\nw[i,j,a,b] = t1[i,a]*t1[j,b]\ne = w[i,j,a,b]*t2[i,j,a,b]\n")
    w = normalised(pair).equations[0].lhs.tensor
    assert [s.perm for s in w.symmetry] == [(1, 0, 3, 2)]


def test_a_declared_symmetry_that_intermediates_prove_does_not_raise() -> None:
    normalised(
        spec(
            "output r[o,o] symmetric (0,1)\nw[i,j] = f[i,j] - x[i,j]\n"
            "u[i,j] = f[j,i] - x[j,i]\nr[i,j] = w[i,j] + u[i,j]\n"
        )
    )


def test_symmetry_that_does_not_follow_is_refused_by_name() -> None:
    with pytest.raises(TcgenError) as caught:
        normalised(spec("output r[o,o] antisymmetric (0,1)\nr[i,j] = f[i,j] + f[j,i]\n"))
    assert says(str(caught.value), "symmetry r r[j,i] -r[i,j]")


def test_hermitian_output_needs_conjugation_in_complex() -> None:
    spaces = "space o\nindex i j k : o\ninput h[o,o] hermitian (0)<->(1)\n"
    system = read_spec(
        spaces + "output r[o,o] hermitian (0)<->(1)\nr[i,j] = h[i,k]*h[k,j]\n", "h.spec"
    )
    normalised(system, complex_values=True)
    normalised(system, complex_values=False)
    bad = read_spec(
        spaces + "input g[o,o]\noutput r[o,o] hermitian (0)<->(1)\nr[i,j] = g[i,k]*g[j,k]\n",
        "g.spec",
    )
    normalised(bad, complex_values=False)
    with pytest.raises(TcgenError, match=r"conj\(r\[i,j\]\)"):
        normalised(bad, complex_values=True)


def test_equal_intermediates_become_one() -> None:
    system = spec(
        "output r\nu[i,j] = f[i,j] - 2*x[i,j]\nw[m,n] = 4*x[n,m] - 2*f[n,m]\n"
        "r[i,j] = u[i,k]*y[k,j] + w[i,k]*y[k,j]\n"
    )
    forms = NormalForms(complex_values=False)
    merged = merge_equal_intermediates(system, forms, AlgebraThresholds())
    assert [e.lhs.tensor.name for e in merged.equations] == ["u", "r"]
    flat, want = (expand(s, named=True).equations[-1] for s in (merged, system))
    assert forms.vector(flat).value() == forms.vector(want).value()


def test_bracket_is_multiplied_out_only_where_it_pays() -> None:
    forms = NormalForms(complex_values=False)
    space = Workspace({"o": 10, "v": 50}, forms, merge_equal=True, thresholds=AlgebraThresholds())
    kept = spec("output r\nr[i,j] = (f[i,k] + x[i,k])*y[k,j]\n")
    assert len(choose_brackets(kept, space).equations) == 2
    # a three-factor term is cheaper from its other end: (h t1) t1 costs o^2 v, not v o v
    opened = spec("output r\nr[i,a] = (t1[j,a]*h[j,b])*t1[i,b]\n")
    space = Workspace({"o": 2, "v": 50}, forms, True, AlgebraThresholds())
    assert len(choose_brackets(opened, space).equations) == 1
