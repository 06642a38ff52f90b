"""Numbers that no program can hold are refused where they stand, however they are written."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import pytest

from support.messages import mentions, says
from tcgen.errors import SpecError
from tcgen.frontend.exact_numbers import rational
from tcgen.frontend.importers.pdaggerq import from_pdaggerq
from tcgen.frontend.importers.wicked import from_wicked
from tcgen.frontend.spec.reader import read_spec
from tcgen.frontend.terms import read_terms
from tcgen.interp import evaluate_system

HEAD = "space o = 2\nindex i : o\ninput x[o]\n"
RANGE = "outside range"


@pytest.mark.parametrize(
    ("number", "message"),
    [
        ("9" * 5000, "1000 digits"),
        ("0." + "1" * 5000, "1000 digits"),
        ("1e999999999", RANGE),
        ("1e-999999999", RANGE),
        ("1e309", RANGE),
        ("1e300*1e300", RANGE),
        ("1e-300*1e-300", RANGE),
        ("1e300/1e-300", RANGE),
        ("10**1000", RANGE),
        ("(1e-300)**1000", RANGE),
        ("((1 + 1e-9)**1000)**1000", "ratio 1000 digits"),
        ("(((9**1000)**1000)**1000)", RANGE),
        ("cos(1e300*1e300)", RANGE),
    ],
)
def test_in_an_equation(number: str, message: str) -> None:
    with pytest.raises(SpecError, match=mentions(message)) as caught:
        read_spec(f"{HEAD}output e\ne = {number}*x[i]*x[i]\n", "n.spec")
    assert str(caught.value).startswith("n.spec:5:")


@pytest.mark.parametrize("number", ["1e999999999", "9" * 5000, "1e300/1e-300", "-1e400"])
def test_as_a_default(number: str) -> None:
    with pytest.raises(SpecError, match=f"{mentions(RANGE)}|1000 digits"):
        read_spec(f"{HEAD}input s = {number}\noutput e\ne = s*x[i]*x[i]\n")


@pytest.mark.parametrize("extent", ["1e999999999", "9" * 5000, "9223372036854775808", "0", "1.5"])
def test_as_an_extent(extent: str) -> None:
    with pytest.raises(SpecError, match=mentions("integer 1 2^63 - 1")):
        read_spec(f"space o = {extent}\nindex i : o\ninput x[o]\noutput e\ne = x[i]*x[i]\n")


def test_as_an_exponent() -> None:
    with pytest.raises(SpecError, match=mentions("1000 digits")):
        read_spec(f"{HEAD}output e\ne = x[i]**{'9' * 5000}*x[i]\n")


@pytest.mark.parametrize("coef", ['"1e999999999"', "1e999", '"1/' + "9" * 5000 + '"', "9" * 5000])
def test_in_a_term_list(coef: str) -> None:
    text = '{"targets": [{"out": "e", "terms": [{"coef": %s, "factors": ["x[i]", "x[i]"]}]}]}'
    with pytest.raises(SpecError, match=r"number|JSON"):
        read_terms(text % coef, "e.json")


def test_in_printed_equations() -> None:
    with pytest.raises(SpecError, match=mentions("number")):
        from_pdaggerq({"e": [["1e999999999", "f(i,a)", "t1(a,i)"]]})
    line = {
        "target": {"name": "e", "indices": [], "classes": [], "is_intermediate": False},
        "is_assignment": True,
        "coeff": 1.0,
        "coeff_rational": "1e999999999",
        "operands": [{"name": "t1", "indices": ["a", "i"], "classes": ["v", "o"]}],
    }
    with pytest.raises(SpecError, match=mentions(RANGE)):
        from_pdaggerq(json.dumps(line))


def test_numbers_near_the_ends_of_the_range() -> None:
    system = read_spec(f"{HEAD}output e\ne = 1.7e308*x[i]*x[i] + 5e-324*x[i]*x[i]\n")
    assert float(evaluate_system(system, {"x": [0.0, 0.5]}, {"o": 2})["e"]) == 1.7e308 / 4


def coefficient(system: Any) -> Fraction:
    return system.equations[0].terms[0].coeff


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0.1", "1/10"),
        ("1.3", "13/10"),
        ("0.01", "1/100"),
        ("0.333", "333/1000"),
        ("0.33333", "33333/100000"),
        ("+0.1000000", "1/10"),
        ("0.271828", "271828/1000000"),
        # Output of the newest pdaggerq and of earlier ones.
        ("-0.0277778", "-1/36"),
        ("0.016667", "1/60"),
        ("0.333333333333", "1/3"),
        ("0.00173611111111", "1/576"),
        ("1e-3", "1/1000"),
        ("3/8", "3/8"),
    ],
)
def test_a_printed_decimal_is_what_it_says_or_the_fraction_that_was_rounded(
    text: str, wanted: str
) -> None:
    system = from_pdaggerq([[text, "f(i,a)", "t1(a,i)"]])
    assert coefficient(system) == Fraction(wanted)


@pytest.mark.parametrize(("text", "wanted"), [("0.1", "1/10"), ("0.333333", "333333/1000000")])
def test_wicked_prints_fractions_so_a_decimal_is_exact(text: str, wanted: str) -> None:
    assert coefficient(from_wicked(f"r^{{}}_{{}} += {text} f^{{o0}}_{{o0}}")) == Fraction(wanted)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [("0.001", "1/1000"), ("0.01", "1/100"), ("0.33333", "33333/100000"), ("3", "3")],
)
def test_a_short_float_of_json_lines_is_a_decimal(value: str, wanted: str) -> None:
    line = (
        '{"target": {"name": "e", "indices": [], "classes": []}, "is_assignment": true, "coeff": '
        + value
        + ', "operands": [{"name": "x", "indices": ["i"], "classes": ["o"]}]}'
    )
    assert coefficient(from_pdaggerq(line)) == Fraction(wanted)


@pytest.mark.parametrize("value", ["1e400", "NaN", "1" + "0" * 400, '"1/0"', "true", "[]"])
def test_no_number_of_json_lines_escapes(value: str) -> None:
    line = (
        '{"target": {"name": "e", "indices": [], "classes": []}, "is_assignment": true, "coeff": '
        + value
        + ', "operands": [{"name": "x", "indices": ["i"], "classes": ["o"]}]}'
    )
    with pytest.raises(SpecError):
        from_pdaggerq(line)


@pytest.mark.parametrize("coeff", ["1/", "-1/0", "1/0", ".", "1.5/2", "/", "9" * 5000])
def test_a_malformed_coefficient_is_refused(coeff: str) -> None:
    with pytest.raises(SpecError, match=r"number|divides by 0|digits|wick&d"):
        from_wicked(f"r^{{o0}}_{{v0}} += {coeff} t^{{o0}}_{{v0}}")
    with pytest.raises(SpecError, match=r"number|divides by 0|digits"):
        from_pdaggerq([[coeff, "f(i,a)", "t1(a,i)"]])


def printed(value: float) -> str:
    """The number as pdaggerq prints it: by the six digits of ten times it, at least three."""
    digits = f"{10 * value:.6f}".partition(".")[2]
    zeros = len(digits) - len(digits.rstrip("0"))
    return f"{value:.{max(3, 7 - (zeros - 1 if zeros > 3 else 0))}f}"


def test_printed_ratios_of_factorials_are_right_or_not_exact() -> None:
    """A decimal that rounds several ratios is none of them: it is a guess, of which users hear."""
    orders = [math.factorial(n) for n in range(1, 7)]
    denominators = {a * b * c * d for a in orders for b in orders for c in orders for d in orders}
    recognised = 0
    for denominator in sorted(denominators):
        for numerator in (1, 2, 3, 5):
            wanted = Fraction(numerator, denominator)
            found, is_certain = rational(printed(numerator / denominator))
            assert found == wanted or not is_certain, wanted
            recognised += found == wanted
    assert all(rational(printed(1 / d)) == (Fraction(1, d), True) for d in (576, 1152, 1440, 14400))
    assert recognised > len(denominators)


@pytest.mark.parametrize("text", ["0.000150", "-0.000127", "0.000069", "0.0000019"])
def test_a_decimal_of_several_ratios_stays_as_printed(text: str) -> None:
    assert rational(text) == (Fraction(text), False)
    (warning,) = from_pdaggerq([[text, "x1(i,a)", "y1(a,i)"]]).warnings
    assert says(warning, f"{text} x1(i,a) to_strings('ir')")


def test_coefficients_that_are_guessed_are_named() -> None:
    strings = [["+0.0008681", "x1(i,a)", "y1(a,i)"], ["-0.0000019", "x1(i,a)", "y1(a,i)"]]
    system = from_pdaggerq(strings, filename="eq.txt")
    assert [t.coeff for t in system.equations[0].terms] == [
        Fraction(1, 1152),
        -Fraction("0.0000019"),
    ]
    (warning,) = system.warnings
    assert says(warning, "eq.txt:2 -0.0000019 to_strings('ir')")
    (warning,) = from_pdaggerq([["+0.000", "x1(i,a)", "y1(a,i)"], *strings[:1]]).warnings
    assert says(warning, "0.000")
