"""A few characters ask for a bounded amount of work, and nesting ends in an error."""

from __future__ import annotations

from fractions import Fraction

import pytest

from support.messages import mentions
from tcgen.errors import SpecError
from tcgen.frontend import read_spec, read_terms
from tcgen.frontend.importers.pdaggerq import from_pdaggerq
from tcgen.frontend.importers.wicked import from_wicked
from tcgen.ir.system import System

HEAD = """space o
index i j k l m n : o
input x[o,o], y[o]
output r
"""


def only_term(system: System) -> tuple[Fraction, list[tuple[int, tuple[int, ...]]]]:
    (term,) = system.equations[0].terms
    return term.coeff, [(p.sign, p.images) for p in term.perms]


def test_an_operator_written_often_is_counted() -> None:
    """P(i,j) P(i,j) = 2 P(i,j)."""
    swapped = [(1, (0, 1)), (-1, (1, 0))]
    system = read_spec(f"{HEAD}r[i,j] = {'P(i,j) ' * 40}x[i,j]")
    assert only_term(system) == (2**39, swapped)
    listed = from_pdaggerq({"r(i,j)": [["1.0", *["P(i,j)"] * 40, "x(i,k)", "y(j,k)"]]})
    assert only_term(listed) == (2**39, swapped)


def test_operators_that_cancel_leave_nothing() -> None:
    """S(i,j) P(i,j) = 0, and then P(i,k) of it too."""
    for operators in ("P(i,j) S(i,j) ", "P(i,k) S(i,j) P(i,j) "):
        system = read_spec(f"{HEAD}r[i,j,k] = {operators}x[i,j]*y[k]")
        assert system.equations[0].terms == ()


@pytest.mark.parametrize("operator", ["P", "S"])
def test_too_many_permutations_are_refused_before_they_are_made(operator: str) -> None:
    letters = ",".join(f"i{n}" for n in range(12))
    factors = "*".join(f"y[i{n}]" for n in range(12))
    with pytest.raises(SpecError, match=mentions("12 20,000")):
        read_spec(f"{HEAD}r[{letters}] = {operator}({letters}) {factors}")
    slashed = letters.replace(",", "/")
    with pytest.raises(SpecError, match=mentions("12 20,000")):
        read_spec(f"{HEAD}r[{letters}] = {operator}({slashed}) {factors}")


def test_products_of_operators_are_bounded_too() -> None:
    first, second = (",".join(f"{x}{n}" for n in range(6)) for x in "ij")
    factors = "*".join(f"y[{i}]" for i in f"{first},{second}".split(","))
    with pytest.raises(SpecError, match=mentions("20,000 permutations")):
        read_spec(f"{HEAD}r[{first},{second}] = P({first}) P({second}) {factors}")


def test_antisymmetrised_targets_are_bounded() -> None:
    upper, lower = (",".join(f"{x}{n}" for n in range(10)) for x in "ov")
    pairs = " ".join(f"t^{{o{n}}}_{{v{n}}}" for n in range(10))
    with pytest.raises(SpecError, match=mentions("antisymmetrize 20,000")):
        from_wicked(f"r^{{{upper}}}_{{{lower}}} += {pairs}")


@pytest.mark.slow
def test_thousands_of_unknown_names() -> None:
    names = "+".join(f"unknown{n}[i]*y[i]" for n in range(5_000))
    with pytest.raises(SpecError) as caught:
        read_spec(f"{HEAD}r = {names}")
    assert len(caught.value.diagnostics) == 5_000


@pytest.mark.slow
def test_unknown_names_among_many_known_ones() -> None:
    known = ", ".join(f"known{n}[o]" for n in range(3000))
    terms = " + ".join(f"knowm{n}[i]*y[i]" for n in range(3000))
    with pytest.raises(SpecError, match=mentions("knowm0")) as caught:
        read_spec(f"{HEAD}input {known}\nr = {terms}")
    suggested = [d for d in caught.value.diagnostics if "did you mean known" in d.advice]
    assert 10 < len(suggested) < 100  # after that the search for similar names ends


@pytest.mark.slow
def test_a_long_chain_of_definitions_is_no_deep_nesting() -> None:
    lines = "\n".join(f"r{n} = r{n - 1}*y[i]*y[i]" for n in range(2000, 0, -1))
    system = read_spec(f"{HEAD}{lines}\nr0 = y[i]*y[i]\nr = r2000")
    assert [e.lhs.tensor.name for e in system.equations][:3] == ["r0", "r1", "r2"]
    with pytest.raises(SpecError, match=mentions("circular r0 r1 r2000")):
        read_spec(f"{HEAD}{lines}\nr0 = r2000\nr = r2000")


def test_each_of_many_cycles_is_reported() -> None:
    lines = "\n".join(f"q{n} = q{n} + y[i]*y[i]" for n in range(500))
    with pytest.raises(SpecError) as caught:
        read_spec(f"{HEAD}r = y[i]*y[i]\n{lines}")
    assert len(caught.value.diagnostics) == 500


@pytest.mark.parametrize(
    "right",
    [
        "(" * 3000 + "1" + ")" * 3000,
        "-" * 3000 + "1",
        "*".join(["y[i]"] * 3000),
        "P(i,j) " * 3000 + "x[i,j]",
        "exp(" * 3000 + "1" + ")" * 3000,
    ],
    ids=["brackets", "signs", "product", "operators", "functions"],
)
def test_deep_nesting_in_a_spec(right: str) -> None:
    with pytest.raises(SpecError, match=mentions("nested deeply")):
        read_spec(f"{HEAD}r = {right}")


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("depth", [100, 900, 100_000])
def test_deep_nesting_in_json(depth: int) -> None:
    term = f'{{"coef": 1, "factors": ["x[i]"], "perms": {nested(depth)}}}'
    with pytest.raises(SpecError):
        read_terms(f'{{"targets": [{{"out": "r[i]", "terms": [{term}]}}]}}', "e.json")
    with pytest.raises(SpecError):
        read_terms(f'{{"targets": [{{"out": "r[i]", "terms": {nested(depth)}}}]}}', "e.json")
    with pytest.raises(SpecError):
        from_pdaggerq(f'{{"target": {nested(depth)}}}')
    with pytest.raises(SpecError):
        from_pdaggerq(nested(depth))


@pytest.mark.parametrize("attribute", ["packed", "symmetric", "antisymmetric", "stored"])
def test_the_position_of_an_axis_may_have_many_digits(attribute: str) -> None:
    with pytest.raises(SpecError, match=mentions("axis 99999999999999999999")):
        read_spec(f"{HEAD}input g[o,o] {attribute} (0,{'9' * 5000})\nr = g[i,j]*x[i,j]")


def test_blanks_in_a_line_that_is_not_understood() -> None:
    with pytest.raises(SpecError):
        from_wicked("r^{o0}_{v0} +=" + " " * 5000 + "!")
    with pytest.raises(SpecError):
        read_terms(
            '{"targets": [{"out": "r[i]", "terms": [{"coef": 1, "factors": ["x%s!"]}]}]}'
            % (" " * 5000),
            "e.json",
        )


def test_the_first_hundred_errors_are_shown() -> None:
    names = "+".join(f"u{n}[i]" for n in range(1000))
    with pytest.raises(SpecError, match=mentions("u0 900 more errors")) as caught:
        read_spec(f"space o=2\nindex i : o\noutput r\nr = {names}\n")
    assert len(caught.value.diagnostics) == 1000
    assert str(caught.value).count("error: ") == 100
