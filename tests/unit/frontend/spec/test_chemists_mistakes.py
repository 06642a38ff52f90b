"""Slips of someone who types equations from a paper: the message says what to write instead."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tcgen
from support.messages import mentions, says
from tcgen.cli.commands import main
from tcgen.errors import CheckError, DtypeError, ExtentError, SpecError
from tcgen.frontend import read_spec
from tcgen.runtime.symmetry import check_symmetry

HEAD = "space o\nspace v\nindex i j k : o\nindex a b : v\ninput t[o,v], f[o,o]\n"
DOUBLES = """
space o
space v
index i j : o
index a b : v
input e_o[o], t2[o,o,v,v] antisymmetric (0,1) (2,3)
output r
r[i,j,a,b] = t2[i,j,a,b]*e_o[i]
"""


def error(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        read_spec(HEAD + text, "x.spec")
    return str(caught.value)


def invoke(*args: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False)


@pytest.mark.parametrize(
    ("body", "place", "advice"),
    [
        ("t[i,a]*t[i,a] \u2212 1", "7:19", "minus -"),
        ("t[i,a]\u00b7t[i,a]", "7:11", "* product"),
        ("\u2211 t[i,a]*t[i,a]", "7:5", "sum(i,a)"),
        ("t[i',a]*t[i',a]", "7:8", "letters digits _ i1"),
        ("t[\u03b1,a]*t[\u03b1,a]", "7:7", "letters digits _"),
        ("\u00a0t[i,a]*t[i,a]", "7:5", "space"),
        ("t[i,a]*t[i,a];", "7:18", "statement line"),
        ("t[i,a] \\\n*t[i,a]", "7:12", "line bracket"),
        ("t[i,a]*t[i,a] +\nt[j,b]*t[j,b]", "7:20", "next line"),
        ("t(i,a)*t[i,a]", "7:6", "indices square brackets t[..]"),
        ("t[ia]*t[i,a]", "7:7", "commas i,a"),
        ("(1 - P(i,j)) f[i,j]", "7:16", "P(i,j)"),
        ("sum(i,a)*t[i,a]", "7:13", "sum(i,a) '*'"),
    ],
)
def test_what_stands_in_papers_is_refused_with_what_to_write(
    body: str, place: str, advice: str
) -> None:
    message = error(f"output e\ne = {body}\n")
    assert f"x.spec:{place}: error: " in message
    assert says(message, advice)


def test_round_brackets_around_axes() -> None:
    message = error("input g(o,v)\noutput e\ne = t[i,a]*t[i,a]\n")
    assert says(message, "x.spec:6:8 axes square brackets")
    assert "input t2[o,o,v,v]" in message


def test_an_input_that_is_an_output_too() -> None:
    message = error("output t\nt[i,a] = 2*t[i,a]\n")
    assert says(message, "x.spec:6:8 t input output")
    assert says(message, "name t_new")


@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_a_transposed_input_is_shown_the_shape_that_the_others_give_it(target: str) -> None:
    program = tcgen.compile(DOUBLES, extents={"o": 2, "v": 3}, target=target)
    t2 = np.zeros((2, 2, 3, 3))
    message = "shape (2, 2, v, v) (3, 3, 2, 2)"
    with pytest.raises(ExtentError, match=mentions(message)):
        program(e_o=np.ones(2), t2=t2.transpose(2, 3, 0, 1))
    with pytest.raises(DtypeError, match=mentions("t2 float64 None array")):
        program(e_o=np.ones(2), t2=None)
    single = np.zeros((2, 2, 3, 3), np.float32)
    with pytest.raises(DtypeError, match=mentions('out["r"] float64 float32 array')):
        program(e_o=np.ones(2), t2=t2, out={"r": single})


def test_the_expected_shape_comes_from_arrays_that_are_right() -> None:
    spec = DOUBLES.replace("input e_o[o],", "input f[v,v], e_o[o],")
    program = tcgen.compile(
        spec.replace("*e_o[i]", "*e_o[i]*f[a,b]"), extents={"o": 2, "v": 3}, target="numpy"
    )
    with pytest.raises(ExtentError, match=mentions("shape (4, 4, 5, 5) (5, 5, 4, 4)")):
        program(f=np.ones((5, 5)), e_o=np.ones(4), t2=np.zeros((5, 5, 4, 4)))


def test_an_element_that_must_vanish_is_called_so() -> None:
    x = np.zeros((3, 3))
    x[1, 1] = 0.5
    with pytest.raises(CheckError, match=mentions("element [1, 1] zero 5.000e-01")):
        check_symmetry("x", x, [((1, 0), -1, False)])
    z = np.zeros((3, 3), complex)
    z[1, 1] = 0.5j
    with pytest.raises(CheckError, match=mentions("element [1, 1] real")):
        check_symmetry("z", z, [((1, 0), 1, True)])
    with pytest.raises(CheckError, match=mentions("element [1, 1] imaginary")):
        check_symmetry("z", z / 0.5j, [((1, 0), -1, True)])


ZERO = HEAD + "input w[o,o] antisymmetric (0,1), s[o,o] symmetric (0,1)\noutput e, r\n"


@pytest.mark.parametrize("e", ["w[i,j]*s[i,j]", "t[i,a]*t[i,a] - t[j,b]*t[j,b]"])
def test_an_energy_that_is_always_zero_is_pointed_out(e: str, tmp_path: Path) -> None:
    text = f"{ZERO}e = {e}\nr[i,j] = w[i,j] + s[i,j] + f[i,j]*t[i,a]*t[j,a]\n"
    spec = tmp_path / "z.spec"
    spec.write_text(text)
    result = invoke("explain", spec, "-e", "o=2", "-e", "v=3")
    assert result.exit_code == 0
    assert says(result.stderr.splitlines()[-1], "warning output e zero")
    assert "output r" not in result.stderr
    assert "warning" not in invoke("-q", "explain", spec, "-e", "o=2", "-e", "v=3").stderr
    with pytest.warns(UserWarning, match=mentions("output e zero cancel")):
        tcgen.compile(text, extents={"o": 2, "v": 3}, target="numpy")
    # Equations made by a program, such as a derivative, may be zero.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tcgen.compile(read_spec(text), extents={"o": 2, "v": 3}, target="numpy")


def test_an_output_that_is_not_zero_does_not_raise() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tcgen.compile(DOUBLES, extents={"o": 2, "v": 3}, target="numpy")


def test_an_extent_that_the_arrays_contradict_is_refused(tmp_path: Path) -> None:
    mp2 = tcgen.spec_path("mp2_closed_shell")
    inputs, folder = tmp_path / "in.npz", tmp_path / "mp2"
    extents = ("-e", "o=2", "-e", "v=3")
    assert invoke("-q", "run", mp2, *extents, "--save-inputs", inputs).exit_code == 0
    assert invoke("-q", "compile", mp2, *extents, "-o", folder).exit_code == 0
    for source in (mp2, folder):
        assert invoke("-q", "run", source, "--inputs", inputs, *extents).exit_code == 0
        result = invoke("run", source, "--inputs", inputs, "-e", "o=5")
        assert result.exit_code == 2
        assert says(result.stderr, f"-e o=5 {inputs}")
        assert says(result.stderr, "space o extent 2")


def test_right_sides_are_read_where_the_name_on_the_left_is_at_fault() -> None:
    text = """
    space o = 2
    index i j : o
    input y[o]
    output r
    r[i,a] = x[i]*y[j]
    y[i] = n[i]
    exp[i] = m[i]
    """
    with pytest.raises(SpecError) as caught:
        tcgen.compile(text)
    facts = ("index a declared", "x declared", "y left", "n declared", "exp reserved", "m declared")
    for diagnostic, expected in zip(caught.value.diagnostics, facts, strict=True):
        assert says(diagnostic.message, expected)
