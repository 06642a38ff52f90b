"""Complex orbitals: terms that hold for real ones only are found, and what they need is said."""

from __future__ import annotations

import re

import pytest

import tcgen
from support.messages import mentions
from tcgen import SpecError
from tcgen.frontend import read_spec

HEAD = (
    "space o occupied graded strict\nspace v virtual graded strict\n"
    "index i j k l : o\nindex a b c d : v\n"
    "input f_ov[o,v] from fock, f_vv[v,v] hermitian (0)<->(1) from fock, e_o[o]\n"
    "input v_oovv[o,o,v,v] antisymmetric (0,1) (2,3) from eri(antisymmetric)\n"
    "input t1[o,v], t2[o,o,v,v] antisymmetric (0,1) (2,3)\n"
)


def for_complex_orbitals(method: str) -> str:
    """A shipped spec of real orbitals, declared as if it held for complex ones."""
    text = tcgen.spec_path(f"{method}_spin_orbital").read_text()
    text = text.replace("space o occupied", "space o occupied graded strict")
    text = text.replace("space v virtual", "space v virtual graded strict")
    text = text.replace("symmetry (0,1)<->(2,3)", "hermitian (0,1)<->(2,3)")
    text = re.sub(r"(f_\w+\[.,.\]) symmetric \(0,1\)", r"\1 hermitian (0)<->(1)", text)
    text = re.sub(
        r"(f_\w+\[.,.\](?: hermitian \(0\)<->\(1\))?) constant", r"\1 from fock constant", text
    )
    return re.sub(r"(?m)^(input +v_.*?)( constant)?$", r"\1 from eri(antisymmetric)\2", text)


@pytest.mark.parametrize(
    ("method", "terms"),
    [
        (
            "ccsd",
            {
                "f_ov[i,a]": "f_ov[i,a]",
                "v_oovv[i,j,a,b]": "v_oovv[i,j,a,b]",
                "t1[i,e]*v_ovvv[j,e,a,b]": "v_ovvv[j,e,a,b]",
                "t1[m,a]*v_ooov[i,j,m,b]": "v_ooov[i,j,m,b]",
            },
        ),
        (
            "ccd",
            {
                "v_oovv[i,j,a,b]": "v_oovv[i,j,a,b]",
                "f_oo[j,k]*t2[i,k,a,b]": "f_oo[j,k]",
                "v_oooo[i,j,k,l]*t2[k,l,a,b]": "v_oooo[i,j,k,l]",
                "t2[i,k,a,c]*v_ovov[j,c,k,b]": "v_ovov[j,c,k,b]",
            },
        ),
        (
            "lccsd",
            {
                "f_ov[i,a]": "f_ov[i,a]",
                "v_oovv[i,j,a,b]": "v_oovv[i,j,a,b]",
                "v_ooov[i,j,k,b]*t1[k,a]": "v_ooov[i,j,k,b]",
                "v_ovvv[j,c,a,b]*t1[i,c]": "v_ovvv[j,c,a,b]",
            },
        ),
        ("cepa0", {"v_oovv[i,j,a,b]": "v_oovv[i,j,a,b]"}),
    ],
)
def test_terms_of_shipped_equations_that_need_a_conjugate(
    method: str, terms: dict[str, str]
) -> None:
    text = for_complex_orbitals(method)
    with pytest.raises(SpecError) as caught:
        read_spec(text, "test.spec")
    found = {}
    for diagnostic in caught.value.diagnostics:
        pattern = r"(.*) holds for real orbitals only: complex ones need the conjugate of (.*)"
        match = re.fullmatch(pattern, diagnostic.message)
        assert match is not None, diagnostic
        found[match[1]] = match[2]
        assert f"conj({match[2]})" in diagnostic.advice
        assert match[2].split("[")[0] in diagnostic.source_line
    assert found == terms
    # Without strict, all terms conserve momenta.
    read_spec(text.replace(" strict", ""))


def test_the_advice_helps() -> None:
    text = for_complex_orbitals("cepa0")
    term = "r2[i,j,a,b]  = v_oovv[i,j,a,b]"
    assert term in text
    read_spec(text.replace(term, "r2[i,j,a,b]  = conj(v_oovv[i,j,a,b])"))


@pytest.mark.parametrize(
    "text",
    [
        "output e\ne = f_ov[i,a]*t1[i,a]",
        "output e\ne = conj(v_oovv[i,j,a,b])*v_oovv[i,j,a,b]/(e_o[i] + e_o[j])",
        "output e\ne = conj(t1[i,a])*t1[i,a] + v_oovv[i,j,a,b]*t1[i,a]*t1[j,b]",
        "output n\nn = sum(i,a) abs(t1[i,a])",
        "output n\nn = max(i) abs(e_o[i])",
        "output r\nr[i,j] = f_ov[i,a]*t1[j,a] + delta[i,j]",
        "output r\nr[a,b] = f_vv[a,b] - f_ov[i,b]*t1[i,a]",
        "output d\nd[a] = f_vv[a,a] + f_ov[i,a]*t1[i,a]",
        "output r\nr[i,a] = conj(f_ov[i,a] + conj(t1[i,a]))",
        "output r\nx[i,a] = f_ov[i,a]\nr[i,j,a,b] = P(i,j) P(a,b) x[i,a]*x[j,b]",
        # Directions of inputs without from follow from the equations.
        "input l1[o,v]\noutput e\ne = l1[i,a]*t1[i,a] + conj(l1[i,a])*f_ov[i,a]*0",
    ],
)
def test_equations_for_complex_orbitals(text: str) -> None:
    read_spec(HEAD + text)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (
            "output e\ne = v_oovv[i,j,a,b]*v_oovv[i,j,a,b]",
            "test.spec:9 conj(v_oovv[i,j,a,b]) bra ket",
        ),
        (
            "output e, s\ne = f_ov[i,a]*t1[i,a]\ns = t1[i,a]*t1[i,a]",
            "test.spec:10 t1[i,a]*t1[i,a] conj(t1[i,a])",
        ),
        ("output r\nr[i,a] = real(t1[i,a])", "test.spec:9 real(t1[i,a]) r[i,a] conj(..)"),
        (
            "input z[o,o] symmetric (0,1)\noutput r\nr[i,j] = z[i,j]",
            "test.spec:8 z symmetry real (1, 0) hermitian",
        ),
        (
            "input z[o,o] real\noutput r\nr[i,j] = z[i,j]",
            "test.spec:8 z real complex label",
        ),
    ],
)
def test_equations_for_real_orbitals(text: str, facts: str) -> None:
    with pytest.raises(SpecError, match=mentions(facts)):
        read_spec(HEAD + text, "test.spec")
