"""Names are printed into programs: the level refuses other texts than identifiers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

import tcgen
from support.messages import mentions
from tcgen.errors import TcgenError, VerifyError
from tcgen.ir.system import Equation, System, Term
from tcgen.ir.tensor import Index, Ref, Role, Space, Tensor

BAD = ['x"""\nimport os', "x y", "5", "", "a\n", "N_{occ}", "x;", "é", "</script>", 5]


def system(space: str = "o", index: str = "i", tensor: str = "x", name: str = "s") -> System:
    o = Space(space)
    x, r = Tensor(tensor, (o,), Role.INPUT), Tensor("r", (o,), Role.OUTPUT)
    i = Index(index, o)
    return System(
        name, (o,), (x, r), (Equation(Ref(r, (i,)), (Term(Fraction(2), (Ref(x, (i,)),)),)),)
    )


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
@pytest.mark.parametrize("what", ["space", "index", "tensor", "name"])
@pytest.mark.parametrize("level", ["0", "1"])
def test_a_name_is_an_identifier(
    what: str, bad: str, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the other rules of the levels are not checked."""
    monkeypatch.setenv("TCGEN_VERIFY", level)
    system().verify()
    with pytest.raises(VerifyError, match=mentions("name")):
        system(**{what: bad}).verify()
    with pytest.raises(TcgenError, match=r"\bnames?\b"):
        tcgen.compile(system(**{what: bad}), extents={bad: 2} if what == "space" else {"o": 2})


def test_a_summed_index_has_a_name_too() -> None:
    whole = system()
    o = whole.spaces[0]
    i, k = whole.equations[0].lhs.indices[0], Index("k;", o)
    x = whole.inputs[0]
    term = Term(Fraction(1), (Ref(x, (i,)), Ref(x, (k,))), (k,))
    equation = replace(whole.equations[0], terms=(term,))
    with pytest.raises(VerifyError, match=mentions("'k;' index")):
        replace(whole, equations=(equation,)).verify()
