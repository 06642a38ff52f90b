"""SymPy expressions: implied and explicit sums, ranges, functions, and second quantisation."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import sympy as sp
from sympy.physics.secondquant import AntiSymmetricTensor, PermutationOperator

import tcgen
from support.messages import mentions
from support.paths import ROOT
from tcgen.errors import SpecError, TcgenError
from tcgen.interp import evaluate_system
from tcgen.testing import assert_same_values, random_arrays

N, M = sp.symbols("n m", integer=True)
i, j, k = (sp.Idx(x, N) for x in "ijk")
a, b = (sp.Idx(x, M) for x in "ab")
A, B, x, y, R = (sp.IndexedBase(s) for s in "ABxyR")
Arrays = dict[str, np.ndarray]


def values(equations: object, **extents: int) -> tuple[Arrays, Arrays]:
    system = tcgen.from_sympy(equations)
    system.verify()
    arrays = random_arrays(system, extents)
    return arrays, evaluate_system(system, arrays, extents)


def test_implied_sums_and_rationals() -> None:
    arrays, out = values(sp.Eq(R[i, a], sp.Rational(1, 3) * A[i, j] * B[j, a] - B[i, a]), n=3, m=2)
    assert_same_values(out["R"], arrays["A"] @ arrays["B"] / 3 - arrays["B"])


def test_explicit_sums_with_symbols() -> None:
    c, d = sp.symbols("c d", integer=True)
    total = sp.Sum(A[c, d] * x[c] * x[d], (c, 0, N - 1), (d, 0, N - 1)) / 2
    arrays, out = values(total, n=4)
    squares, square = values(x[i] * x[i] / 2, n=4)
    assert_same_values(square["e"], squares["x"] @ squares["x"] / 2)
    assert_same_values(out["e"], arrays["x"] @ arrays["A"] @ arrays["x"] / 2)


def test_half_powers() -> None:
    half = sp.Rational(1, 2)
    whole = x[i] ** (3 * half) + y[i] * x[i] ** (-5 * half) + x[i] ** -half + x[i] ** half
    arrays, out = values(sp.Eq(R[i], whole), n=3)
    positive = arrays["x"]
    wanted = positive**1.5 + arrays["y"] * positive**-2.5 + positive**-0.5 + positive**0.5
    assert_same_values(out["R"], wanted)


def test_powers_of_sums_and_of_elements() -> None:
    c = sp.symbols("c", integer=True)
    norm = sp.Sum(x[c] ** 2, (c, 0, N - 1))
    arrays, out = values({sp.Symbol("s"): norm**2 + sp.Sum(x[c], (c, 0, N - 1)) * norm}, n=3)
    square, total = (arrays["x"] ** 2).sum(), arrays["x"].sum()
    assert_same_values(out["s"], square**2 + total * square)


def test_functions_denominators_and_deltas() -> None:
    right = sp.exp(x[i]) * A[i, j] / (2 + x[j] ** 2) + sp.sqrt(y[j] ** 2 + 1) * sp.KroneckerDelta(
        i, j
    )
    arrays, out = values(sp.Eq(R[i, j], right + sp.tanh(x[i]) * y[j]), n=3)
    u, v = arrays["x"], arrays["y"]
    wanted = np.exp(u)[:, None] * arrays["A"] / (2 + u**2)
    wanted += np.diag(np.sqrt(v**2 + 1)) + np.outer(np.tanh(u), v)
    assert_same_values(out["R"], wanted)


def test_a_delta_over_a_summed_index_renames() -> None:
    system = tcgen.from_sympy(sp.Eq(R[i], sp.KroneckerDelta(i, j) * x[j]))
    assert system.pretty() == "R[i] = x[i]\n"


def test_several_equations_and_intermediates() -> None:
    t = sp.IndexedBase("t")
    equations = [sp.Eq(t[i, a], A[i, j] * B[j, a]), sp.Eq(sp.Symbol("e"), t[i, a] * B[i, a])]
    system = tcgen.from_sympy(equations, name="pair")
    assert [t.name for t in system.outputs] == ["e"]
    arrays, out = values(equations, n=3, m=2)
    assert_same_values(out["e"], np.sum(arrays["A"] @ arrays["B"] * arrays["B"]))


def test_ranges_from_shapes_spaces_and_numbers() -> None:
    p, q = sp.symbols("p q", integer=True)
    shaped = sp.IndexedBase("S", shape=(N, M))
    assert tcgen.from_sympy(sp.Eq(R[sp.Idx("r", 3)], x[sp.Idx("r", 3)])).spaces[0].extent == 3
    out = tcgen.from_sympy(shaped[p, q] * shaped[p, q])
    assert [s.name for s in out.inputs[0].spaces] == ["n", "m"]
    named = tcgen.from_sympy(A[p, q] * A[q, p], spaces={"o": "p q"})
    assert [s.name for s in named.spaces] == ["o"]


def test_compile_takes_equations() -> None:
    program = tcgen.compile(sp.Eq(y[i], A[i, j] * x[j]), extents={"n": 4}, target="numpy")
    matrix, vector = np.arange(16.0).reshape(4, 4), np.arange(4.0)
    assert_same_values(program(A=matrix, x=vector)["y"], matrix @ vector)


@pytest.mark.parametrize(
    ("equations", "message"),
    [
        (A[sp.Symbol("p"), i], "index p A range"),
        (A[i, j] * x[j], "index i term e"),
        (sp.Eq(R[i, i], x[i]), "distinct"),
        (sp.gamma(x[i]) * y[i], "gamma"),
        (x[i] ** sp.Rational(1, 3) * y[i], "half powers"),
        (sp.exp(sp.Sum(x[i], (i, 0, N - 1))), "function"),
        (A[i, a] * A[a, i], "A axes"),
        ([], "equations"),
    ],
)
def test_messages(equations: object, message: str) -> None:
    with pytest.raises(SpecError, match=mentions(message)):
        tcgen.from_sympy(equations)


def test_compile_refuses_what_it_cannot_read() -> None:
    with pytest.raises(TcgenError, match=mentions("int")):
        tcgen.compile(3)


def fermions() -> tuple[sp.Symbol, ...]:
    below = sp.symbols("i j", below_fermi=True)
    above = sp.symbols("a b", above_fermi=True)
    k, l = sp.symbols("k l", below_fermi=True, cls=sp.Dummy)
    c = sp.Dummy("c", above_fermi=True)
    return (*below, *above, k, l, c)


def test_second_quantisation_terms() -> None:
    i, j, a, b, k, l, c = fermions()
    ring = (
        AntiSymmetricTensor("t", (a, c), (i, k))
        * AntiSymmetricTensor("v", (b, k), (j, c))
        * PermutationOperator(a, b)
        * PermutationOperator(i, j)
    )
    hole = AntiSymmetricTensor("t", (a, b), (k, l)) * AntiSymmetricTensor("v", (k, l), (i, j)) / 2
    system = tcgen.from_sympy({"r2(a,b,i,j)": ring + hole}, real=True)
    assert [t.name for t in system.inputs if t.name != "t2"] == ["v_oooo", "v_ovov"]
    extents = {"o": 3, "v": 4}
    arrays = random_arrays(system, extents)
    t2, ovov = arrays["t2"], arrays["v_ovov"]
    part = np.einsum("acik,kbjc->abij", t2, -ovov)  # <bk||jc> = -<kb||jc>
    part = part - part.transpose(1, 0, 2, 3)
    wanted = part - part.transpose(0, 1, 3, 2)
    wanted = wanted + np.einsum("abkl,klij->abij", t2, arrays["v_oooo"]) / 2
    assert_same_values(evaluate_system(system, arrays, extents)["r2"], wanted)


def test_second_quantisation_is_written_in_one_way() -> None:
    """SymPy's choice of dummies and of the copy behind P hangs on the hash seed; ours does not."""
    i, j, a, b, k, l, c = fermions()
    m, n = sp.symbols("m n", below_fermi=True, cls=sp.Dummy)
    d, e = sp.symbols("d e", above_fermi=True, cls=sp.Dummy)

    def pair(sign: int, x: sp.Symbol, y: sp.Symbol, sums: tuple[sp.Symbol, ...]) -> sp.Expr:
        p, q, r, s = sums
        one = AntiSymmetricTensor("t", (a, r), (x, p)) * AntiSymmetricTensor("t", (b, s), (y, q))
        return sign * one * AntiSymmetricTensor("v", (p, q), (r, s)) * PermutationOperator(a, b)

    hole = AntiSymmetricTensor("t", (a, b), (k, l)) * AntiSymmetricTensor("v", (k, l), (i, j)) / 2
    hole = hole + AntiSymmetricTensor("t", (a, b), (n, m)) * AntiSymmetricTensor(
        "v", (m, n), (i, j)
    )
    texts = {
        tcgen.from_sympy({"r2(a,b,i,j)": pair(*chosen) + hole}, real=True).pretty()
        for chosen in ((1, i, j, (k, l, c, d)), (-1, j, i, (m, k, e, d)), (1, i, j, (n, m, e, c)))
    }
    assert len(texts) == 1
    assert "-1/2*t2[a,b,k,l]*v_oooo[i,j,k,l]" in texts.pop()


@pytest.mark.slow
def test_sympys_ccd_does_not_depend_on_the_hash_seed() -> None:
    code = (
        "import sympy_ccd, tcgen\n"
        "energy, residual = sympy_ccd.ccd()\n"
        "print(tcgen.from_sympy({'e': energy, 'r2(a,b,i,j)': residual}).pretty())\n"
    )
    path = f"{ROOT}{os.pathsep}{ROOT / 'examples'}"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(texts) == 1
    assert b"r2[a,b,i,j] = " in texts.pop()


def test_second_quantisation_messages() -> None:
    p, q = sp.symbols("p q", cls=sp.Dummy)
    with pytest.raises(SpecError, match=mentions("Fermi level")):
        tcgen.from_sympy(AntiSymmetricTensor("f", (p,), (q,)))
    i, _, a, *_ = fermions()
    f = AntiSymmetricTensor("f", (i,), (a,))
    with pytest.raises(SpecError, match=mentions("index z")):
        tcgen.from_sympy({"r(z)": f})
