"""Programs give the values of their systems, in few operations, and so does the neutral form."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.campaigns import cases
from support.marks import slow, slow_where
from support.messages import mentions
from support.paths import DATA, ROOT
from tcgen.algebra import form_sequence, neutral_sequence
from tcgen.errors import TcgenError
from tcgen.frontend import read, read_spec
from tcgen.interp import evaluate_program, evaluate_system
from tcgen.ir.program import Contract, FormulaSequence
from tcgen.ir.system import System
from tcgen.options import Options
from tcgen.testing import assert_same_values, random_arrays, split_starts
from tcgen.testing.strategies import extents_for, systems

LONG = re.compile(r"ccsdt|r?ccsd_|rccd_|t_")  # equations of which a sequence takes seconds
FILES = slow_where(
    lambda path: LONG.match(path.name),
    sorted(p for folder in ("eqs", "equations", "specs") for p in (DATA / folder).iterdir()),
)
LARGE = {"o": 20, "v": 100, "x": 300, "q": 8}
SMALL = {"o": 3, "v": 4, "x": 5, "q": 2}


def bases(system: System) -> list[str]:
    return list(dict.fromkeys(b.name for s in system.spaces for b in s.bases))


@cache
def sequence(system: System, optimize: bool = True, byte_weight: float = 10) -> FormulaSequence:
    extents = tuple((n, LARGE[n]) for n in bases(system))
    options = Options(extents=extents, optimize=optimize, byte_weight=byte_weight)
    program = form_sequence(system, options)
    program.verify()
    return program


@pytest.mark.few(10)
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_values_of_the_equations(path: Path, optimize: bool) -> None:
    system = read(path)
    extents = {n: SMALL[n] for n in bases(system)}
    inputs, starts = split_starts(system, random_arrays(system, extents))
    found = evaluate_program(sequence(system, optimize), inputs, extents, starts)
    assert_same_values(found, evaluate_system(system, inputs, extents, starts))


# Multiply-adds of the best single-term order, permutations applied to products, at (20, 100).
SINGLE_TERM = {
    "ccd_so.json": 7.024e10,
    "ccd_so.sym.json": 7.024e10,
    "ccsd_so.json": 1.0092e11,
    "ccsd_so.sym.json": 1.0092e11,
    "ccsdt_so.sym.json": 1.8806e14,
    "rccsd_sa.json": 2.431e11,
    "rccsd_sa.sym.json": 2.431e11,
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", slow_where(LONG.match, SINGLE_TERM))
def test_no_more_operations_than_the_best_single_term_order(name: str) -> None:
    program = sequence(read(DATA / "eqs" / name))
    assert program.flops(Contract).value(LARGE) / 2 <= SINGLE_TERM[name] * 1.001


PAGE = (ROOT / "docs" / "operations.md").read_text()
# The first table of the page.
ROWS = {
    "CCD, spin-orbital": "ccd_so.json",
    "CCSD, spin-orbital": "ccsd_so.json",
    "CCSDT, spin-orbital": "ccsdt_so.sym.json",
    "CCD, closed shell": "rccd_sa.json",
    "CCSD, closed shell": "rccsd_sa.json",
}


@pytest.mark.few(1)
@pytest.mark.parametrize("row", slow_where(lambda row: "CCSD" in row, ROWS))
def test_counts_are_those_of_the_page(row: str) -> None:
    cells = re.search(rf"^\| {row} \| (\S+) \| (\S+) \|", PAGE, re.MULTILINE)
    assert cells
    system = read(DATA / "eqs" / ROWS[row])
    for shown, optimize in zip(cells.groups(), (False, True), strict=True):
        # The page counts operations, so that bytes decide between equal ones only.
        count = sequence(system, optimize, byte_weight=1).flops(Contract).value(LARGE) / 2
        assert count == pytest.approx(float(shown), rel=1e-3)


@pytest.mark.few(5)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_optimizing_is_never_worse(path: Path) -> None:
    system = read(path)
    best, plain = (sequence(system, optimize).flops().value(LARGE) for optimize in (True, False))
    assert best <= plain


@pytest.mark.parametrize("name", ["ccd_so.json", *slow("ccsd_so.json", "rccsd_sa.sym.json")])
def test_neutral_form_has_the_same_values(name: str) -> None:
    system = read(DATA / "eqs" / name)
    extents = {n: SMALL[n] for n in bases(system)}
    inputs, _ = split_starts(system, random_arrays(system, extents))
    blocks = {
        (t.family or t.name, tuple(s.name for s in t.spaces)): inputs[t.name] for t in system.inputs
    }
    found = evaluate_statements(neutral_sequence(sequence(system)), blocks, extents)
    want = evaluate_system(system, inputs, extents)
    assert_same_values({name: found[name] for name in want}, want)


def evaluate_statements(
    form: dict[str, Any], blocks: dict[tuple[str, tuple[str, ...]], Any], extents: dict[str, int]
) -> dict[str, Any]:
    """Values of a neutral sequence, by einsum."""
    values: dict[str, Any] = {}

    def parse(text: str) -> tuple[str, list[str]]:
        name, _, rest = text.rstrip("]").partition("[")
        return name, rest.split(",") if rest else []

    def space(index: str) -> str:
        return "o" if index[0] in "ijklmno" else "v"

    for statement in form["statements"]:
        out, left = parse(statement["out"])
        total = values.get(out, np.zeros([extents[space(i)] for i in left]))
        for term in statement["terms"]:
            factors = [parse(f) for f in term["factors"]]
            assert len(factors) <= 2
            names = list(dict.fromkeys(i for _, ix in (*factors, ("", left)) for i in ix))
            operands: list[Any] = []
            for name, indices in factors:
                array = values.get(name)
                if array is None:
                    array = blocks[name, tuple(space(i) for i in indices)]
                operands += [array, [names.index(i) for i in indices]]
            product = np.einsum(*operands, [names.index(i) for i in left])
            total = total + float(Fraction(term["coef"])) * product
        values[out] = total
    return values


def test_neutral_form_of_denominators_and_brackets() -> None:
    program = sequence(read(DATA / "specs" / "mp2_closed_shell.spec"))
    (statement,) = neutral_sequence(program)["statements"]
    assert statement["out"] == "e"
    assert statement["terms"] == [
        {
            "coef": coeff,
            "factors": [first, "g[i,a,j,b]"],
            "denom": ["e_o[i]", "e_o[j]", "-e_v[a]", "-e_v[b]"],
        }
        for coeff, first in (("2", "g[i,a,j,b]"), ("-1", "g[i,b,j,a]"))
    ]


def test_neutral_form_renames_indices_by_space() -> None:
    text = (
        "space o occupied = 3\nspace v virtual = 4\nindex p q : o\nindex x1 y : v\n"
        "input t[o,v]\noutput r\nr[p,q] = t[p,x1]*t[q,x1] + t[p,y]*t[q,y]\n"
    )
    (statement,) = neutral_sequence(form_sequence(read_spec(text), Options()))["statements"]
    assert statement == {
        "out": "r[i,j]",
        "terms": [{"coef": "2", "factors": ["t[i,a]", "t[j,a]"]}],
    }


def test_neutral_form_names_the_step_that_it_cannot_express() -> None:
    text = "space o occupied = 3\nindex i : o\ninput t[o]\noutput r\nr[i] = exp(t[i])\n"
    with pytest.raises(TcgenError, match=mentions("s0 function exp(t[i])")):
        neutral_sequence(form_sequence(read_spec(text), Options()))


def check_random(data: st.DataObject) -> None:
    system = data.draw(systems())
    extents = data.draw(extents_for(system))
    inputs, starts = split_starts(system, random_arrays(system, extents))
    options = Options(
        extents=tuple((n, 7) for n in bases(system)), optimize=data.draw(st.booleans())
    )
    program = form_sequence(system, options)
    program.verify()
    found = evaluate_program(program, inputs, extents, starts)
    assert_same_values(found, evaluate_system(system, inputs, extents, starts))


@cases(60, 2000)
@given(st.data())
def test_random_systems(data: st.DataObject) -> None:
    check_random(data)


@pytest.mark.parametrize("made", ["c*delta[b,d]", "c*u[d]*delta[b,d]"])
@pytest.mark.parametrize("read", ["cos(r[b])", "u[b]*exp(r[b])", "exp(r[b])/(r[b] + 2)"])
def test_elements_that_are_equal_along_a_summed_axis(made: str, read: str) -> None:
    """A map that sums over an axis keeps the array whose elements are the same along it."""
    text = f"""
        space v = 5
        index b d : v
        input c, u[v]
        output e
        r[d] = sum(b) {made}
        e = sum(b) {read}
    """
    system, extents = read_spec(text), {"v": 4}
    arrays = random_arrays(system, extents, dtype="float64", seed=0)
    wanted = evaluate_system(system, arrays, extents)
    for optimize in (True, False):
        found = evaluate_program(sequence(system, optimize), arrays, extents)
        assert_same_values(found, wanted)
