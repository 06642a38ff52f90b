"""Equations on the page: every shipped spec is well-formed MathML with all of its names."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

import tcgen
from support.paths import ROOT
from tcgen.compiler.driver import read_system
from tcgen.report.mathml import mathml


def one(latex: str) -> str:
    """The right-hand side of one line."""
    found = re.search(r"<mo>=</mo>(.*)</mtd>", mathml(f"x &= {latex}"))
    assert found
    return found[1]


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\tfrac{1}{2}", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
        ("-v", "<mo>−</mo><mi>v</mi>"),
        (
            r"v^{\mathrm{oo\_v}}_{ij}",
            "<msubsup><mi>v</mi><mrow><mi>i</mi><mi>j</mi></mrow>"
            '<mi mathvariant="normal">oo_v</mi></msubsup>',
        ),
        (
            r"\sum_{i} x_{i}",
            "<munder><mo>∑</mo><mi>i</mi></munder><msub><mi>x</mi><mi>i</mi></msub>",
        ),
        (r"\tau_{i_{1}}", "<msub><mi>τ</mi><mrow><msub><mi>i</mi><mn>1</mn></msub></mrow></msub>"),
        (
            r"\frac{1}{\left(a + b\right)^{2}}",
            "<mfrac><mn>1</mn><mrow><msup><mrow><mo>(</mo><mi>a</mi><mo>+</mo><mi>b</mi>"
            "<mo>)</mo></mrow><mn>2</mn></msup></mrow></mfrac>",
        ),
        (r"\sqrt{x}", "<msqrt><mi>x</mi></msqrt>"),
        (
            r"\operatorname{exp}\left(x\right)",
            "<mi>exp</mi><mrow><mo>(</mo><mi>x</mi><mo>)</mo></mrow>",
        ),
    ],
)
def test_latex_becomes_mathml(latex: str, expected: str) -> None:
    assert one(latex) == expected


@pytest.mark.few(12)
@pytest.mark.parametrize("name", sorted(p.stem for p in (ROOT / "specs").glob("*.spec")))
def test_shipped_specs_are_well_formed(name: str) -> None:
    system = read_system(tcgen.spec_path(name))
    root = ET.fromstring(mathml(system.latex()))
    (table,) = root
    assert len(table) == system.latex().count(" \\\\\n") + 1
    assert all(len(row) == 2 for row in table)
    assert not re.search(r"[\\{}^]", "".join(root.itertext()))


NAMES = (
    "i",
    "p0_",
    "p_0_",
    "i_1",
    "i1",
    "_",
    "__",
    "_i",
    "alpha",
    "i_alpha",
    "I_a_b",
    "x2_",
    "frac",
)


@pytest.mark.parametrize("index", NAMES)
@pytest.mark.parametrize(
    "right",
    [
        "exp(x[{i}])*x[{i}]",
        "(x[{i}] + 1)**2/(2 + x[{i}])",
        "sqrt(maximum(x[{i}],2)**2)",
        "sum({i}2_) delta[{i},{i}2_]*x[{i}2_]",
    ],
)
def test_any_legal_name_of_an_index_is_typeset(index: str, right: str) -> None:
    """An index such as p0_ ended compilations with a KeyError."""
    text = right.format(i=index)
    system = tcgen.read_spec(
        f"space o\nindex {index} {index}2_ : o\ninput x[o]\noutput r\nr[{index}] = {text}"
    )
    ET.fromstring(mathml(system.latex()))


def test_a_tensor_of_any_name_is_typeset() -> None:
    for name in NAMES:
        system = tcgen.read_spec(f"space o\nindex k : o\ninput {name}[o]\noutput r\n"
                                 f"r[k] = exp({name}[k]) + {name}[k]**2")  # fmt: skip
        ET.fromstring(mathml(system.latex()))
