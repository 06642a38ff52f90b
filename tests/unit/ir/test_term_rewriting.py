"""Rewriting of flat terms: the same rules for front ends and for algebra."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tcgen.frontend import read_spec
from tcgen.ir.expr import Delta
from tcgen.ir.system import Term
from tcgen.ir.tensor import Index, Ref, Role, Space, Tensor
from tcgen.ir.term_rewriting import fresh_index, rename_term, resolve_deltas

O, V = Space("o", 3), Space("v", 4)
I, J, A = Index("i", O), Index("j", O), Index("a", V)
X = Tensor("x", (O,), Role.INPUT)


@pytest.mark.parametrize(
    ("factors", "sums", "product", "left"),
    [
        # sum(i) delta[i,i]*x[i] is sum(i) x[i]: the delta is 1
        ((Delta(I, I), Ref(X, (I,))), (I,), "x[i]", (I,)),
        # sum(i) delta[i,i] is the extent, which no factor but the delta says
        ((Delta(I, I),), (I,), "Delta", (I,)),
        # r[i] = delta[i,i]*x[i]: the delta of a left index is 1 too
        ((Delta(I, I), Ref(X, (I,))), (), "x[i]", ()),
        # sum(j) delta[i,j]*x[j] is x[i]
        ((Delta(I, J), Ref(X, (J,))), (J,), "x[i]", ()),
    ],
)
def test_resolved_deltas(factors, sums, product: str, left) -> None:
    done = resolve_deltas(Term(Fraction(1), factors, sums))
    assert done is not None
    assert done.sums == left
    assert [str(f) if isinstance(f, Ref) else "Delta" for f in done.factors] == [product]


def test_delta_over_disjoint_spaces_is_zero() -> None:
    assert resolve_deltas(Term(Fraction(1), (Delta(I, A),), (I, A))) is None


def test_a_delta_of_an_index_with_itself_is_one_in_a_spec() -> None:
    system = read_spec(
        "space o = 3\nindex i : o\ninput x[o]\noutput e\ne = delta[i,i]*x[i]\n", "a.spec"
    )
    assert system.pretty() == "e = sum(i) x[i]\n"


def test_fresh_index_keeps_a_free_name() -> None:
    assert fresh_index(I, {"k"}) == I
    assert fresh_index(I, {"i"}).name == "i1"
    assert fresh_index(Index("i1", O), {"i1", "i2"}).name == "i3"


def test_rename_term_renames_sums_and_all_at_once() -> None:
    term = Term(Fraction(1), (Ref(X, (I,)), Ref(X, (J,))), (J,))
    renamed = rename_term(term, {I: J, J: I})
    assert [str(f) for f in renamed.factors] == ["x[j]", "x[i]"]
    assert renamed.sums == (I,)
