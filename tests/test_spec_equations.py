"""Rules 11 to 22, 24 and 25 of the .spec language: equations and expressions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcgen.errors import SpecError
from tcgen.frontend import read_spec
from tcgen.interp import evaluate_system
from tcgen.ir.expr import Const, Pow, Prod, Quot, Sum
from tcgen.ir.system import Apply, Permutation, System
from tcgen.ir.tensor import Ref, Role

OV = "space o\nspace v\nindex i j k l m n : o\nindex a b c d : v\n"
EXTENTS = {"o": 3, "v": 4}
DECLARED = "input x[o], y[o], z[o], f[o,o], g[o,o], h[o,v], s, t\n"


def spec(text: str, head: str = OV + DECLARED) -> System:
    system = read_spec(head + text)
    system.verify()
    return system


def error(text: str, head: str = OV + DECLARED) -> str:
    with pytest.raises(SpecError) as caught:
        read_spec(head + text, "x.spec")
    return str(caught.value)


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    shapes = {"x": (3,), "y": (3,), "z": (3,), "f": (3, 3), "g": (3, 3), "h": (3, 4)}
    return {n: rng.standard_normal(shape) for n, shape in {**shapes, "s": (), "t": ()}.items()}


def value(text: str, name: str = "r") -> np.ndarray:
    """The output ``r`` of equations over the declared inputs."""
    return evaluate_system(spec(f"output {name}\n{text}"), arrays(), EXTENTS)[name]


def test_rule_11_lines_of_one_name_add_up_whatever_their_letters() -> None:
    A = arrays()
    got = value("r[i,j] = f[i,j]\nr[j,i] += 2*f[j,k]*g[k,i]\nr[k,l] -= f[k,i]*f[i,j]*g[j,l]")
    wanted = A["f"] + 2 * A["f"] @ A["g"] - A["f"] @ A["f"] @ A["g"]
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_rule_11_without_an_equals_sign_it_starts_from_zero_or_from_the_given_array() -> None:
    A = arrays()
    np.testing.assert_allclose(value("r[i] -= x[i]"), -A["x"])
    system = spec("output r accumulate\nr[i] += x[i]")
    assert system.outputs[0].accumulate
    out = evaluate_system(system, A, EXTENTS, out={"r": A["y"]})
    np.testing.assert_allclose(out["r"], A["y"] + A["x"])


def test_rule_11_mistakes_on_the_left() -> None:
    twice = error("output r\nr[i] = x[i]\nr[i] = y[i]")
    assert "x.spec:8:6: error: r is assigned with = after its first line" in twice
    assert "the left side does not fit r[o]" in error("output r\nr[i] = x[i]\nr[a] += h[i,a]*x[i]")
    assert "input x stands on the left" in error("output r\nr[i] = x[i]\nx[i] = y[i]")


def test_rule_12_the_order_of_equations_is_free() -> None:
    system = spec("output r\nr[i] = u[i] + w[i]\nu[i] = w[i] - x[i]\nw[i] = 2*x[i]")
    assert [e.lhs.tensor.name for e in system.equations] == ["w", "u", "r"]
    np.testing.assert_allclose(evaluate_system(system, arrays(), EXTENTS)["r"], 3 * arrays()["x"])


def test_rule_12_cycles_and_self_reference_are_errors() -> None:
    message = error("output r\nr[i] = u[i]\nu[i] = x[i] + 2*(w[i] + x[i])*s\nw[i] = u[i]")
    assert "x.spec:8:1: error: these names need each other: u -> w -> u" in message
    message = error("output r\nr[i] = x[i]\nr[i] += r[i]")
    assert "r is read inside its own definition" in message
    assert "output NAME accumulate" in message


def test_rule_12_unused_names_are_left_out_with_a_warning() -> None:
    system = read_spec(OV + DECLARED + "output r\nr[i] = x[i]\nu[i] = w[i]\nw[i] = y[i]", "m.spec")
    assert [t.name for t in system.tensors if not t.is_input] == ["r"]
    assert system.warnings[0] == "m.spec:8:1: u is not needed by any output and is not computed"
    assert "input y is not read by any output" in system.warnings
    assert len(system.inputs) == 8


def test_rule_13_left_indices_are_distinct_used_and_broadcast() -> None:
    A = arrays()
    np.testing.assert_allclose(value("r[i,j] = x[i] - y[j]"), A["x"][:, None] - A["y"])
    assert "x.spec:7:5: error: index i stands twice on the left" in error("output r\nr[i,i] = x[i]")
    message = error("output r\nr[i,a] = x[i]")
    assert "x.spec:7:5: error: left index a occurs in no term on the right" in message


def test_rule_14_a_named_scalar_keeps_its_sums_to_itself() -> None:
    A = arrays()
    assert float(value("u = x[k]*y[k]\nr = u*u")) == pytest.approx((A["x"] @ A["y"]) ** 2)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1/4*s", "s/4"),
        ("s/t*2", "2*s/t"),
        ("s/t/2", "s/(2*t)"),
        ("-s**2", "-(s*s)"),
        ("2*s**-2", "2/(s*s)"),
        ("s**(-1)*t", "t/s"),
        ("s*-t", "-s*t"),
        ("2 - -s + +t", "2+s+t"),
        ("0.25*s + 1e-3 + .5", "s/4 + 0.501"),
        ("2**3*s - 2**-1", "8*s - 0.5"),
        ("(1/2 - 1/3)*s", "s/6"),
        ("s - (t - (s - t))*2", "3*s - 4*t"),
        ("s/(s + t*2)*t", "s*t/(s+2*t)"),
        ("s*t/(2*(3 - 1))", "s*t/4"),
        ("((s))*((2*t))", "2*s*t"),
    ],
)
def test_rule_15_precedence_and_numbers(text: str, wanted: str) -> None:
    A = {k: float(v) for k, v in arrays().items() if k in ("s", "t")}
    assert float(value(f"r = {text}")) == pytest.approx(eval(wanted, A))


def test_rule_15_numbers_are_exact() -> None:
    terms = spec("output r\nr = 1/3*s + 0.1*t").equations[0].terms
    assert [t.coeff for t in terms] == [Fraction(1, 3), Fraction(1, 10)]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("2 s", "7:7", "an operator is missing before 's'"),
        ("s (t)", "7:7", "s is no function and no operator"),
        ("s**t", "7:8", "the exponent 't' is no integer"),
        ("s**0.5", "7:8", "the exponent 0.5 is no integer"),
        ("s^2", "7:6", "'^' is no character of the language"),
        ("s*/t", "7:7", "unexpected '/'"),
        ("s/0", "7:7", "division by the number 0"),
        ("s +", "7:8", "the statement ends too early"),
        ("s = t", "7:7", "a second = in one statement"),
        ("s)", "7:6", "unexpected ')'"),
        ("s*1e999", "7:7", "1e999 is outside the range of floating-point numbers"),
        ("s**12345", "7:8", "the exponent 12345 is above 1000"),
        ("0**-1", "7:5", "division by the number 0"),
    ],
)
def test_rule_15_mistakes_in_expressions(text: str, place: str, message: str) -> None:
    found = error(f"output r\nr = {text}")
    assert message in found
    assert f"x.spec:{place}: error" in found


def test_rule_16_brackets_become_anonymous_intermediates() -> None:
    system = spec("input _b1[o]\noutput r\nr[i] = (x[i] + f[i,k]*y[k])*(s + t) + _b1[i]")
    anonymous = [e for e in system.equations if e.anonymous]
    assert [str(e.lhs) for e in anonymous] == ["_b2[i]", "_b3"]
    assert all(e.lhs.tensor.role is Role.TEMP for e in anonymous)
    A = arrays()
    got = value("r[i] = (x[i] + f[i,k]*y[k])*(s + t)")
    np.testing.assert_allclose(got, (A["x"] + A["f"] @ A["y"]) * (A["s"] + A["t"]), rtol=1e-12)


def test_rule_16_a_bracket_that_is_a_whole_term_needs_no_intermediate() -> None:
    system = spec("output r\nr[i] = -2*(x[i] - (y[i] + 3*z[i]))")
    assert len(system.equations) == 1
    assert [t.coeff for t in system.equations[0].terms] == [-2, 2, 6]
    assert len(spec("output r\nr[i,j] = P(i,j) (f[i,k]*g[k,j])").equations) == 1
    assert len(spec("output r\nr[i,j] = P(i,j) (f[i,k]*g[k,j] + f[i,j])").equations) == 2


def test_rule_16_denominators_functions_and_bases_are_atoms() -> None:
    system = spec("output r\nr[i] = x[i]/(y[i] - s)*z[i]**2")
    (term,) = system.equations[0].terms
    reference, quotient, power = term.factors
    assert isinstance(reference, Ref)
    match quotient, power:
        case Apply(Quot(Const(Fraction(numerator=1)), Sum((Ref(), Prod())))), Apply(Pow(Ref(), 2)):
            pass
        case _:
            pytest.fail(str(term))
    message = error("output r\nr[i] = exp(sum(k) f[i,k])")
    assert "x.spec:7:12: error: sum stands inside a denominator, function or power" in message


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
    assert "index k occurs once in a product and is not on the left" in message
    assert "write sum(k) or put k on the left" in message


def test_rule_17_the_caret_points_at_the_index() -> None:
    message = error("output r\nr[i] = f[i,k]*s")
    assert "    r[i] = f[i,k]*s\n               ^\n" in message


def test_rule_18_an_index_in_and_outside_a_bracket_in_two_readings_is_refused() -> None:
    message = error("output r\nr = (x[k]*y[k])*(x[k]*y[k])")
    assert (
        "x.spec:7:8: error: index k occurs twice inside this bracket and again outside" in message
    )
    assert "rename one, drop the bracket, or name it" in message
    assert "occurs twice inside this bracket" in error("output r\nr = (s + t*(x[k]*y[k] + s))*z[k]")
    assert "occurs twice inside this bracket" in error("output r\nr[i] = (f[k,k])*f[i,k]*x[k]")
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


@settings(derandomize=True, deadline=None, max_examples=60)
@given(sums(2))
def test_rule_17_brackets_mean_what_they_multiply_out_to(terms: Sums) -> None:
    check_multiplied_out(terms)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=1000)
@given(sums(2))
def test_rule_17_many_brackets_mean_what_they_multiply_out_to(terms: Sums) -> None:
    check_multiplied_out(terms)


def check_multiplied_out(terms: Sums) -> None:
    """Same value as the expanded products, or the same complaint, or that of rule 18."""
    wanted, _ = attempt(written(multiplied_out(terms)))
    got, complaint = attempt(written(terms))
    if got is None or wanted is None:
        assert got is None
        assert wanted is None or "again outside it" in complaint
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
        ("r[i] = sum(i) f[i,i]", "sum(i) binds i, which stands on the left"),
        ("r = sum(k) (x[k] + s)", "k of sum(k) does not occur in every product of the term"),
        ("r = s*(sum(k) x[k]*s)*x[k]", "sum(k) binds k, which also occurs outside its term"),
        ("r = sum(k) x[k]*(s + sum(k) y[k])", "sum(k) binds k, which a sum around it binds"),
        ("r = sum(k) sum(k) x[k]", "k is already bound by another sum(..)"),
        ("r = sum(k,k) f[k,k]", "k is summed twice"),
        ("r = sum(i/j) f[i,j]", "sum takes no slash"),
    ],
)
def test_rule_19_wrong_sums_are_explained(text: str, message: str) -> None:
    assert message in error(f"output r\n{text}")


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
        ("r[i,j] = f[i,j]*P(i,j) g[i,j]", "an operator stands inside a product"),
        ("r[i] = P(i,k) f[i,k]*x[k]", "P and S rename indices of the left side; k is not there"),
        ("r[i,a] = P(i,a) h[i,a]", "P exchanges indices of different spaces: i of o and a of v"),
        ("r[i,j] = P(ij) f[i,j]", "P(ij) exchanges nothing"),
        ("r[i,j] = P(i) f[i,j]", "P(i) exchanges nothing"),
        ("r[i,j] = P(i,i) f[i,j]", "i stands twice in P(..)"),
        ("r[i,j] = P(ij,k) f[i,j]", "the tuples of P(..) differ in length"),
        ("r[i,j] = P((i,j)/k) f[i,j]", "no tuples beside a slash"),
        ("r[i,j] = P(i,q) f[i,j]", "index q is not declared"),
        ("r[i,j] = f[i,j]/P(i,j) f[i,j]", "P stands inside a product or denominator"),
    ],
)
def test_rule_20_wrong_operators_are_explained(text: str, message: str) -> None:
    assert message in error(f"output r\n{text}")


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


@settings(derandomize=True, deadline=None, max_examples=15)
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


@pytest.mark.parametrize("name", ["sqrt", "exp", "log", "abs", "sin", "cos", "tanh", "conj"])
def test_rule_22_functions_act_element_by_element(name: str) -> None:
    x = np.abs(arrays()["x"])
    got = value(f"r[i] = {name}(abs(x[i]))")
    np.testing.assert_allclose(got, getattr(np, name)(x), rtol=1e-14)


def test_rule_22_real_and_imaginary_parts_and_an_unknown_function() -> None:
    assert np.all(value("r[i] = imag(x[i]) + real(s)") == arrays()["s"])
    message = error("output r\nr[i] = sinh(x[i])")
    assert "sinh is no function and no operator" in message
    assert "functions: sqrt exp log abs sin cos tanh conj real imag" in message


def test_rule_24_extent_zero_gives_empty_sums() -> None:
    system = spec("output r, u\nr = s + f[i,j]*g[i,j]\nu[i] = f[i,j]*x[j]")
    empty = {n: np.zeros([0 if k == 3 else k for k in a.shape]) for n, a in arrays().items()}
    out = evaluate_system(system, {**empty, "s": np.array(2.0)}, {"o": 0, "v": 4})
    assert float(out["r"]) == 2.0
    assert out["u"].shape == (0,)


def test_rule_25_all_errors_come_in_one_go_first_first() -> None:
    text = (
        "space o\nindex i j : o\ninput x[o] symmetric (0,4)\ninput y[o], w[q]\noutput e, r\n"
        "e = x[i]*y[i] + zz[i] $ 2\ne += y[i]\nr[i] = y[i]*unknown[i]*y[j]\nr[i] += y[i,j]\n"
    )
    with pytest.raises(SpecError) as caught:
        read_spec(text, "many.spec")
    found = [str(d).splitlines()[0] for d in caught.value.diagnostics]
    assert found == [
        "many.spec:3:25: error: x has no axis 4",
        "many.spec:4:15: error: q is neither a space nor an index",
        "many.spec:6:23: error: '$' is no character of the language",
        "many.spec:7:8: error: index i occurs once in a product and is not on the left",
        "many.spec:8:13: error: unknown is neither declared nor defined",
        "many.spec:9:9: error: y has 1 axes, not 2",
    ]
    assert str(caught.value).count("\n    ") >= 10


@pytest.mark.parametrize("text", ["*".join(["s"] * 3000), "(s*" * 600 + "(s + s)" + ")" * 600])
def test_rule_25_what_is_nested_too_deeply_is_refused_without_a_traceback(text: str) -> None:
    assert "this expression is nested too deeply" in error(f"output r\nr = {text}")


def test_rule_25_a_near_miss_gets_a_proposal() -> None:
    assert "did you mean tau?" in error("output r\ntau[i] = x[i]\nr[i] = taw[i]")


def test_long_lines_are_shown_around_the_place() -> None:
    products = " + ".join("x[i]*x[i]" for _ in range(500))
    for line, place in ((f"e = q + {products}", "q"), (f"e = {products} + q", "q")):
        text = f"space o\nindex i : o\ninput x[o]\noutput e\n{line}\n"
        with pytest.raises(SpecError) as caught:
            read_spec(text)
        message, excerpt, marks, _ = str(caught.value).splitlines()
        assert "q is neither declared nor defined" in message
        assert len(excerpt) < 150
        assert excerpt[marks.index("^")] == place
        assert marks.count("^") == 1
