"""Rules 11 to 16, 22, 24 and 25 of the .spec language: equations, expressions, errors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from support.messages import says
from support.spec_texts import DECLARED, EXTENTS, OV, arrays, error, spec, value
from tcgen.errors import SpecError
from tcgen.frontend import read_spec
from tcgen.interp import evaluate_system
from tcgen.ir.expr import Const, Pow, Prod, Quot, Sum
from tcgen.ir.system import Apply
from tcgen.ir.tensor import Ref, Role


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
    assert says(twice, "x.spec:8:6 r =")
    assert says(error("output r\nr[i] = x[i]\nr[a] += h[i,a]*x[i]"), "left r[o]")
    assert says(error("output r\nr[i] = x[i]\nx[i] = y[i]"), "input x left")
    for first in ("r[i,a] = h[i,a]", "r = 1", "r[a] = h[i,a]*x[i]"):
        assert says(error(f"output r[o]\n{first}\nr[i] += x[i]\nr[j] += y[j]"), "x.spec:7:1 r[o]")
    for first, index in (("r[i,i] = x[i]", "i"), ("r[i,z] = x[i]", "z")):
        assert says(error(f"output r[o]\n{first}\nr[i] += x[i]"), f"x.spec:7:5 index {index}")


def test_rule_12_the_order_of_equations_is_free() -> None:
    system = spec("output r\nr[i] = u[i] + w[i]\nu[i] = w[i] - x[i]\nw[i] = 2*x[i]")
    assert [e.lhs.tensor.name for e in system.equations] == ["w", "u", "r"]
    np.testing.assert_allclose(evaluate_system(system, arrays(), EXTENTS)["r"], 3 * arrays()["x"])


def test_rule_12_cycles_and_self_reference_are_errors() -> None:
    message = error("output r\nr[i] = u[i]\nu[i] = x[i] + 2*(w[i] + x[i])*s\nw[i] = u[i]")
    assert says(message, "x.spec:8:1 u -> w -> u")
    message = error("output r\nr[i] = x[i]\nr[i] += r[i]")
    assert says(message, "r definition")
    assert "output NAME accumulate" in message
    several = error("output r\nr[i] = u[i]\nu[i] = w[i]\nw[i] = u[i]\nk1 = k1 + 1\nk2[i] = k2[i]")
    assert says(several, "x.spec:8:1 u -> w -> u")
    assert says(several, "x.spec:10:1 k1 definition")
    assert says(several, "x.spec:11:1 k2 definition")


def test_rule_12_unused_names_are_left_out_with_a_warning() -> None:
    system = read_spec(OV + DECLARED + "output r\nr[i] = x[i]\nu[i] = w[i]\nw[i] = y[i]", "m.spec")
    assert [t.name for t in system.tensors if not t.is_input] == ["r"]
    assert says(system.warnings[0], "m.spec:8:1 u output computed")
    assert any(says(warning, "input y output") for warning in system.warnings)
    assert len(system.inputs) == 8


def test_rule_13_left_indices_are_distinct_used_and_broadcast() -> None:
    A = arrays()
    np.testing.assert_allclose(value("r[i,j] = x[i] - y[j]"), A["x"][:, None] - A["y"])
    assert says(error("output r\nr[i,i] = x[i]"), "x.spec:7:5 index i twice left")
    message = error("output r\nr[i,a] = x[i]")
    assert says(message, "x.spec:7:5 left index a term")


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
        ("2 s", "7:7", "operator missing 's'"),
        ("s (t)", "7:7", "s function operator"),
        ("s**t", "7:8", "exponent 't' integer"),
        ("s**0.5", "7:8", "exponent 0.5 integer"),
        ("s^2", "7:6", "'^'"),
        ("s*/t", "7:7", "'/'"),
        ("s/0", "7:7", "division 0"),
        ("s +", "7:8", "statement"),
        ("s = t", "7:7", "= statement"),
        ("s)", "7:6", "')'"),
        ("s*1e999", "7:7", "1e999 range"),
        ("s**12345", "7:8", "exponent 12345 1000"),
        ("0**-1", "7:5", "division 0"),
    ],
)
def test_rule_15_mistakes_in_expressions(text: str, place: str, message: str) -> None:
    found = error(f"output r\nr = {text}")
    assert says(found, message)
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
    assert says(message, "x.spec:7:12 sum denominator function power")


@pytest.mark.parametrize("name", ["sqrt", "exp", "log", "abs", "sin", "cos", "tanh", "conj"])
def test_rule_22_functions_act_element_by_element(name: str) -> None:
    x = np.abs(arrays()["x"])
    got = value(f"r[i] = {name}(abs(x[i]))")
    np.testing.assert_allclose(got, getattr(np, name)(x), rtol=1e-14)


def test_rule_22_real_and_imaginary_parts_and_an_unknown_function() -> None:
    assert np.all(value("r[i] = imag(x[i]) + real(s)") == arrays()["s"])
    message = error("output r\nr[i] = gamma(x[i])")
    assert says(message, "gamma function operator")
    assert says(message, "sqrt exp log abs sin cos tanh conj real imag")


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
        "many.spec:6:23: error: '$' is not allowed here",
        "many.spec:7:8: error: index i occurs once in a product and is not on the left",
        "many.spec:8:13: error: unknown is neither declared nor defined",
        "many.spec:9:9: error: y has 1 axes, not 2",
    ]
    assert str(caught.value).count("\n    ") >= 10


@pytest.mark.parametrize("text", ["*".join(["s"] * 3000), "(s*" * 600 + "(s + s)" + ")" * 600])
def test_rule_25_what_is_nested_too_deeply_is_refused_without_a_traceback(text: str) -> None:
    assert says(error(f"output r\nr = {text}"), "nested")


def test_rule_25_a_near_miss_gets_a_proposal() -> None:
    assert says(error("output r\ntau[i] = x[i]\nr[i] = taw[i]"), "tau")


def test_long_lines_are_shown_around_the_place() -> None:
    products = " + ".join("x[i]*x[i]" for _ in range(500))
    for line, place in ((f"e = q + {products}", "q"), (f"e = {products} + q", "q")):
        text = f"space o\nindex i : o\ninput x[o]\noutput e\n{line}\n"
        with pytest.raises(SpecError) as caught:
            read_spec(text)
        message, excerpt, marks, _ = str(caught.value).splitlines()
        assert says(message, "q declared")
        assert len(excerpt) < 150
        assert excerpt[marks.index("^")] == place
        assert marks.count("^") == 1
