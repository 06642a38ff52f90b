"""Rules 17 to 19 of the .spec language: which index is summed where."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.campaigns import cases
from support.messages import says
from support.spec_texts import EXTENTS, OV, arrays, error, spec, value
from tcgen.errors import SpecError
from tcgen.interp import evaluate_system


def test_rule_17_implied_sums() -> None:
    A = arrays()
    np.testing.assert_allclose(value("r[i] = f[i,k]*x[k]"), A["f"] @ A["x"])
    hyper = np.einsum("k,k,k->", A["x"], A["y"], A["z"])
    np.testing.assert_allclose(value("r = x[k]*y[k]*z[k]"), hyper)
    np.testing.assert_allclose(value("r = f[i,i]"), np.trace(A["f"]))
    np.testing.assert_allclose(value("r[i] = f[i,i]"), np.diag(A["f"]))
    np.testing.assert_allclose(value("r = x[k]/y[k]"), np.sum(A["x"] / A["y"]))
    np.testing.assert_allclose(value("r = x[k]*exp(y[k]*z[k])"), A["x"] @ np.exp(A["y"] * A["z"]))
    bracket = (A["x"] + A["s"]) @ (A["y"] * A["z"])
    np.testing.assert_allclose(value("r = y[k]*z[k]*(x[k] + s)"), bracket)
    np.testing.assert_allclose(value("r = s*(x[k]*y[k] + t)"), A["s"] * (A["x"] @ A["y"] + A["t"]))


@pytest.mark.parametrize(
    "text",
    [
        "x[k]",
        "x[k]*exp(y[j])*x[j]",
        "exp(x[k]*y[k])",
        "x[k]**2",
        "s/x[k]",
        "(x[k] + s)*y[k]",
        "s*(x[j]*y[j] + f[k,j]*x[j])",
    ],
)
def test_rule_17_a_lonely_index_is_an_error(text: str) -> None:
    message = error(f"output r\nr = {text}")
    assert says(message, "index k once product left")
    assert says(message, "sum(k) k left")


@pytest.mark.parametrize("atom", ["exp(x[k]*y[k])", "1/(x[k]*y[k] + s)", "(x[k] + y[k])**2"])
def test_rule_16_a_sum_that_is_meant_inside_an_atom_is_to_be_named(atom: str) -> None:
    advice = "sum k function denominator power name"
    assert says(error(f"output r\nr = {atom}"), advice)
    assert not says(error("output r\nr = exp(x[k])*s"), advice)


def test_rule_17_the_caret_points_at_the_index() -> None:
    message = error("output r\nr[i] = f[i,k]*s")
    assert "    r[i] = f[i,k]*s\n               ^\n" in message


def test_rule_18_an_index_in_and_outside_a_bracket_in_two_readings_is_refused() -> None:
    message = error("output r\nr = (x[k]*y[k])*(x[k]*y[k])")
    assert says(message, "x.spec:7:8 index k twice bracket")
    assert says(message, "rename bracket name")
    assert says(error("output r\nr = (s + t*(x[k]*y[k] + s))*z[k]"), "twice bracket")
    assert says(error("output r\nr[i] = (f[k,k])*f[i,k]*x[k]"), "twice bracket")
    head = OV + "input g[o,v,o,v]\n"
    system = spec("output r\nr = (2*g[i,a,j,b] - g[i,b,j,a])*g[i,a,j,b]", head)
    g = np.random.default_rng(1).standard_normal((3, 4, 3, 4))
    wanted = np.sum((2 * g - g.transpose(0, 3, 2, 1)) * g)
    np.testing.assert_allclose(evaluate_system(system, {"g": g}, EXTENTS)["r"], wanted)


LEAVES = ("x[i]", "x[k]", "y[k]", "y[l]", "f[i,k]", "f[k,l]", "g[l,k]", "s", "2")
Sums = list[list[object]]


def sums(depth: int) -> st.SearchStrategy[Sums]:
    """Sums of products of leaves and, to a depth, of sums in brackets."""
    leaf: st.SearchStrategy[object] = st.sampled_from(LEAVES)
    factor = leaf if depth == 0 else st.one_of(leaf, leaf, sums(depth - 1))
    return st.lists(st.lists(factor, min_size=1, max_size=3), min_size=1, max_size=2)


def written(terms: Sums) -> str:
    products = (
        "*".join(f if isinstance(f, str) else f"({written(f)})" for f in term) for term in terms
    )
    return " + ".join(products)


def multiplied_out(terms: Sums) -> list[list[object]]:
    found: list[list[object]] = []
    for term in terms:
        choices = [[[f]] if isinstance(f, str) else multiplied_out(f) for f in term]
        found += [[x for part in pick for x in part] for pick in itertools.product(*choices)]
    return found


@cases(60, 1000)
@given(sums(2))
def test_rule_17_brackets_mean_what_they_multiply_out_to(terms: Sums) -> None:
    check_multiplied_out(terms)


def check_multiplied_out(terms: Sums) -> None:
    """Same value as the expanded products, or the same complaint, or that of rule 18."""
    wanted, _ = attempt(written(multiplied_out(terms)))
    got, complaint = attempt(written(terms))
    if got is None or wanted is None:
        assert got is None
        assert wanted is None or says(complaint, "outside")
    else:
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


def attempt(right: str) -> tuple[np.ndarray | None, str]:
    """Value of a right side, or None and the complaint."""
    try:
        return value(f"r[i] = x[i]*s + {right}"), ""
    except SpecError as problem:
        return None, str(problem)


def test_rule_19_sum_binds_in_the_rest_of_its_term() -> None:
    A = arrays()
    np.testing.assert_allclose(value("r = sum(i) x[i]"), A["x"].sum())
    np.testing.assert_allclose(
        value("r = s - 2*sum(i,j) f[i,j] + t"), A["s"] - 2 * A["f"].sum() + A["t"]
    )
    np.testing.assert_allclose(value("r = sum(k) exp(x[k])"), np.exp(A["x"]).sum())
    np.testing.assert_allclose(
        value("r = sum(k) s*(x[k]*y[k] + z[k])"), A["s"] * (A["x"] * A["y"] + A["z"]).sum()
    )
    np.testing.assert_allclose(value("r = sum(i) x[i] + x[i]*y[i]"), A["x"].sum() + A["x"] @ A["y"])
    np.testing.assert_allclose(value("r = s*(t + sum(i) x[i])"), A["s"] * (A["t"] + A["x"].sum()))
    np.testing.assert_allclose(value("r = sum(i) (sum(j) f[i,j])"), A["f"].sum())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("r[i] = sum(i) f[i,i]", "sum(i) i left"),
        ("r = sum(k) (x[k] + s)", "k sum(k) product term"),
        ("r = s*(sum(k) x[k]*s)*x[k]", "sum(k) k term"),
        ("r = sum(k) x[k]*(s + sum(k) y[k])", "sum(k) k sum"),
        ("r = sum(k) sum(k) x[k]", "k bound sum(..)"),
        ("r = sum(k,k) f[k,k]", "k twice"),
        ("r = sum(i/j) f[i,j]", "sum slash"),
    ],
)
def test_rule_19_wrong_sums_are_explained(text: str, message: str) -> None:
    assert says(error(f"output r\n{text}"), message)
