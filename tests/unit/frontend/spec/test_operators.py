"""Rules 20 and 21 of the .spec language: permutation operators."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.campaigns import cases
from support.messages import says
from support.spec_texts import EXTENTS, OV, arrays, error, spec, value
from tcgen.frontend import read_spec
from tcgen.interp import evaluate_system
from tcgen.ir.system import Permutation


def test_rule_20_operators_reach_to_the_next_sign_and_apply_from_right_to_left() -> None:
    A = arrays()
    D = A["x"][:, None] - A["y"]
    got = value("r[i,j] = f[i,j] - 1/2*P(i,j) f[i,j]/(x[i] - y[j]) + g[i,j]")
    X = A["f"] / D
    np.testing.assert_allclose(got, A["f"] - (X - X.T) / 2 + A["g"], rtol=1e-12)
    head = OV + "input w[o,o,o]\noutput r\nr[i,j,k] = "
    w = np.random.default_rng(3).standard_normal((3, 3, 3))
    out = evaluate_system(spec("P(i,j) P(j,k) w[i,j,k]", head), {"w": w}, EXTENTS)["r"]
    inner = w - w.transpose(0, 2, 1)
    np.testing.assert_allclose(out, inner - inner.transpose(1, 0, 2), rtol=1e-12, atol=1e-12)


def test_rule_20_operators_inside_a_bracket_rename_left_indices() -> None:
    A = arrays()
    got = value("r[i,j] = s*(t + P(i,j) x[i]*y[j])")
    X = np.outer(A["x"], A["y"])
    np.testing.assert_allclose(got, A["s"] * (A["t"] + X - X.T), rtol=1e-12)
    got = value("r[i,j] = x[j]*(P(i,j) y[i])*(s + P(i,j) (x[i] + z[i]))")
    Y, XZ = A["y"][:, None] - A["y"], (A["x"] + A["z"])[:, None] - (A["x"] + A["z"])
    np.testing.assert_allclose(got, A["x"] * Y * (A["s"] + XZ), rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("r[i,j] = f[i,j]*P(i,j) g[i,j]", "operator product"),
        ("r[i] = P(i,k) f[i,k]*x[k]", "P S indices k"),
        ("r[i,a] = P(i,a) h[i,a]", "P indices spaces i o a v"),
        ("r[i,j] = P(ij) f[i,j]", "P(ij)"),
        ("r[i,j] = P(i) f[i,j]", "P(i)"),
        ("r[i,j] = P(i,i) f[i,j]", "i twice P(..)"),
        ("r[i,j] = P(ij,k) f[i,j]", "tuples P(..) length"),
        ("r[i,j] = P((i,j)/k) f[i,j]", "tuples slash"),
        ("r[i,j] = P(i,q) f[i,j]", "index q declared"),
        ("r[i,j] = f[i,j]/P(i,j) f[i,j]", "P product denominator"),
    ],
)
def test_rule_20_wrong_operators_are_explained(text: str, message: str) -> None:
    assert says(error(f"output r\n{text}"), message)


def test_rule_21_a_joined_pair_proposes_the_comma() -> None:
    assert "write P(i,j)\n" in error("output r\nr[i,j] = P(ij) f[i,j]") + "\n"


def operator_value(operator: str) -> np.ndarray:
    head = OV + f"input w[o,o,o,v,v,v]\noutput r\nr[i,j,k,a,b,c] = {operator} w[i,j,k,a,b,c]"
    w = np.random.default_rng(5).standard_normal((2, 2, 2, 3, 3, 3))
    system = read_spec(head)
    system.verify()
    assert len(system.equations) == 1
    return evaluate_system(system, {"w": w}, {"o": 2, "v": 3})["r"]


def renamed(order: str) -> np.ndarray:
    """w with the letters of ijkabc replaced by those of ``order``."""
    w = np.random.default_rng(5).standard_normal((2, 2, 2, 3, 3, 3))
    return np.einsum(f"{order}->ijkabc", w)


@pytest.mark.parametrize(
    ("operator", "terms"),
    [
        ("P(i,j)", "+ijkabc -jikabc"),
        ("P(ia,jb)", "+ijkabc -jikbac"),
        ("S(ia,jb)", "+ijkabc +jikbac"),
        ("S((i,a),(j,b))", "+ijkabc +jikbac"),
        ("P(i/jk)", "+ijkabc -jikabc -kjiabc"),
        ("P(i/j,k)", "+ijkabc -jikabc -kjiabc"),
        ("S(i/jk)", "+ijkabc +jikabc +kjiabc"),
        ("P(i,j,k)", "+ijkabc -ikjabc -jikabc +jkiabc +kijabc -kjiabc"),
        ("S(ia,jb,kc)", "+ijkabc +ikjacb +jikbac +jkibca +kijcab +kjicba"),
        ("P(i/j/k)", "+ijkabc -ikjabc -jikabc +kijabc -kjiabc +jkiabc"),
        ("P(i,j) P(a,b)", "+ijkabc -jikabc -ijkbac +jikbac"),
    ],
)
def test_rule_21_operators_are_the_terms_they_abbreviate(operator: str, terms: str) -> None:
    wanted = sum((1 if t[0] == "+" else -1) * renamed(t[1:]) for t in terms.split())
    np.testing.assert_allclose(operator_value(operator), wanted, rtol=1e-12, atol=1e-12)


def test_rule_21_two_by_two_has_six_terms() -> None:
    head = OV + "input w[o,o,o,o]\noutput r\nr[i,j,k,l] = P(ij/kl) w[i,j,k,l]"
    perms = read_spec(head).equations[0].terms[0].perms
    assert perms[0] == Permutation(1, (0, 1, 2, 3))
    assert [p.sign for p in perms] == [1, -1, -1, -1, -1, 1]
    assert perms[-1].images == (2, 3, 0, 1)


def test_rule_21_long_names_and_repeated_operators() -> None:
    head = "space o\nindex i1 i2 mu : o\ninput w[o,o,o]\noutput r\nr[i1,i2,mu] = "
    term = read_spec(head + "P(i1/i2,mu) w[i1,i2,mu]").equations[0].terms[0]
    assert [p.images for p in term.perms] == [(0, 1, 2), (1, 0, 2), (2, 1, 0)]
    twice = read_spec(head + "P(i1,mu) P(i1,mu) w[i1,i2,mu]").equations[0].terms[0]
    assert (twice.coeff, len(twice.perms)) == (2, 2)
    assert (
        read_spec(head + "w[i1,i2,mu] + S(i1,mu) P(i1,mu) w[i1,i2,mu]").equations[0].terms[1:] == ()
    )


@cases(15)
@given(st.lists(st.sampled_from(["P(i,j)", "S(i,j)", "P(i/jk)", "S(j,k)", "P(i,j,k)"]), max_size=3))
def test_rule_21_any_chain_of_operators_applies_from_right_to_left(chain: list[str]) -> None:
    single = {
        "P(i,j)": {"ijk": 1, "jik": -1},
        "S(i,j)": {"ijk": 1, "jik": 1},
        "P(i/jk)": {"ijk": 1, "jik": -1, "kji": -1},
        "S(j,k)": {"ijk": 1, "ikj": 1},
        "P(i,j,k)": {"".join(p): _sign(p) for p in itertools.permutations("ijk")},
    }
    w = np.random.default_rng(4).standard_normal((2, 2, 2))
    wanted = w
    for operator in reversed(chain):
        wanted = sum(s * np.einsum(f"{p}->ijk", wanted) for p, s in single[operator].items())
    text = OV + f"input w[o,o,o]\noutput r\nr[i,j,k] = {' '.join(chain)} w[i,j,k]"
    system = read_spec(text)
    got = evaluate_system(system, {"w": w}, {"o": 2, "v": 1})["r"]
    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


def _sign(order: tuple[str, ...]) -> int:
    return (-1) ** sum(a > b for a, b in itertools.combinations(order, 2))
