"""Equations in LaTeX, and what systems show of themselves."""

from __future__ import annotations

import tcgen

TEXT = """
space o
space v
index i j k : o
index a b : v
input v_oovv[o,o,v,v], t2[o,o,v,v], e_o[o], tau[o,v]
output e, r
e = 1/4*v_oovv[i,j,a,b]*t2[i,j,a,b]/(e_o[i] + e_o[j])
r[i1,j,a,b] = v_oovv[i1,j,a,b] - P(i1,j) P(a,b) tau[i1,a]*tau[j,b] + 2*tau[i1,a]**2*tau[j,b]
"""


def test_equations_in_latex() -> None:
    lines = tcgen.read_spec(TEXT).latex().split(" \\\\\n")
    assert lines == [
        r"e &= \tfrac{1}{4} \sum_{ijab} v^{\mathrm{oovv}}_{ijab} \mathrm{t2}_{ijab} "
        r"\frac{1}{e^{\mathrm{o}}_{i} + e^{\mathrm{o}}_{j}}",
        r"r_{i_{1}jab} &= v^{\mathrm{oovv}}_{i_{1}jab}",
        r"&\quad - \left(1 - P_{ab} - P_{i_{1}j} + P_{i_{1}j} P_{ab}\right) "
        r"\tau_{i_{1}a} \tau_{jb}",
        r"&\quad + 2 \tau_{i_{1}a}^{2} \tau_{jb}",
    ]


def test_a_system_shows_itself_shortly() -> None:
    system = tcgen.read_spec(TEXT, "doubles.spec")
    shown = "<System doubles(v_oovv[o,o,v,v], t2[o,o,v,v], e_o[o], tau[o,v]) -> e, r[o,o,v,v]>"
    assert repr(system) == shown
    html = system._repr_html_()
    assert "&lt;System doubles" in html
    assert "$$\\begin{aligned}\ne &amp;= " in html
