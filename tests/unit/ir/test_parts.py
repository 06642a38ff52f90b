"""Which loops can be divided, and why others cannot."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from support.hand_modules import O, V, at, local, module, output, tensor
from support.messages import mentions
from tcgen.errors import VerifyError
from tcgen.ir.expr import Call, Const, Expr, Pow, Prod, Quot, Sum
from tcgen.ir.loops import Assign, Axis, BandVar, Loop, LoopVar, Module, Parts, Stmt, Zero
from tcgen.ir.parts import parts_of

X, Y = tensor("x", O, V), output("y", O)
E, S = output("e"), output("s")
I, A = LoopVar("i", O), LoopVar("a", V)
a, j = BandVar("b", V), BandVar("j", O)
M = local("m", Axis(O), place="arena")
ADD = Assign(at("e"), at("x", "i", "b"), accumulate=True, band=(a,))
OWN = Assign(at("m", "i"), at("x", "i", "b"), band=(a,))


def made(*bodies: tuple[Stmt, ...], buffers: tuple = (M,)) -> Module:
    return module("hand", (X, Y, E, S), *bodies, buffers=buffers)


def behind(expr: Expr) -> Module:
    """A statement that reads what the loop over i has left in m and e."""
    sums = Assign(at("s"), expr, accumulate=True, band=(j,))
    return made((Zero("e"), Zero("s"), Loop(I, (OWN, ADD))), (sums,))


def test_loops_that_add_or_write_their_own_elements() -> None:
    assert parts_of(made((Zero("e"), Loop(I, (ADD,)))), (I,)) == Parts((I,), kernel="hand_0")
    nested = made((Zero("e"), Loop(A, (Loop(I, (replace(ADD, band=(a,)),)),))))
    assert parts_of(nested, (A, I)) == Parts((A, I), kernel="hand_0")
    assert parts_of(nested, (A,)) == Parts((A,), kernel="hand_0")
    assert isinstance(parts_of(nested, (I,)), str)
    own = replace(OWN, out=at("y", "i"))
    assert parts_of(made((Loop(I, (own,)),)), (I,)) == Parts((I,), kernel="hand_0")


@pytest.mark.parametrize(
    "expr",
    [
        at("m", "j"),
        Prod((at("m", "j"), at("m", "j"), at("x", "j", "b"))),
        Quot(at("m", "j"), at("x", "j", "b")),
        Call("abs", Pow(at("m", "j"), 3)),
        Sum((at("m", "j"), Prod((at("x", "j", "b"), at("e"))))),
    ],
)
def test_what_is_linear_behind_the_loops_adds_up(expr: Expr) -> None:
    sums = Assign(at("s"), expr, accumulate=True, band=(j, a))
    whole = made((Zero("e"), Zero("s"), Loop(I, (OWN, ADD))), (sums,))
    assert parts_of(whole, (I,)) == Parts((I,), cleared=("m",), kernel="hand_0")


@pytest.mark.parametrize(
    "expr",
    [
        Sum((at("m", "j"), Const(Fraction(1)))),
        Prod((at("e"), at("e"))),
        Prod((at("m", "j"), at("e"))),
        Quot(Const(Fraction(1)), at("m", "j")),
        Call("exp", at("m", "j")),
        Call("abs", at("e")),
        Pow(at("e"), 2),
    ],
)
def test_what_is_not_linear_does_not(expr: Expr) -> None:
    assert "linear" in str(parts_of(behind(expr), (I,)))


def test_other_reasons() -> None:
    carried = local("t", Axis(O, 1))
    total = Assign(at("t", None), at("x", "i", "b"), accumulate=True, band=(a,))
    module_of = made((Zero("t"), Loop(I, (total,))), (), buffers=(M, carried))
    assert "t" in str(parts_of(module_of, (I,)))
    one = Assign(at("s"), at("x", "i", "b"), band=(a,))
    assert "same elements of s" in str(parts_of(made((Loop(I, (one,)),)), (I,)))
    reads = Assign(at("y", "i"), Prod((at("x", "i", "b"), at("s"))), band=(a,))
    whole = (Zero("s"), Assign(at("s"), at("x", "j", "b"), accumulate=True, band=(j, a)))
    assert "whole of s" in str(parts_of(made(whole, (Loop(I, (reads,)),)), (I,)))


def test_results_beside_the_loops_belong_to_the_first_part() -> None:
    other = Assign(at("s"), at("x", "j", "b"), band=(j, a))
    divided = made((Zero("e"), Loop(I, (ADD,))), (other,))
    assert parts_of(divided, (I,)) == Parts((I,), once=("hand_1",), kernel="hand_0")
    together = made((Zero("e"), other, Loop(I, (ADD,))))
    assert "hand_0" in str(parts_of(together, (I,)))


def test_the_checker_proves_the_parts() -> None:
    divided = made((Zero("e"), Loop(I, (ADD,))), (Assign(at("s"), at("x", "j", "b"), band=(j, a)),))
    replace(divided, parts=Parts((I,), once=("hand_1",), kernel="hand_0")).verify()
    for wrong, words in (
        (Parts((I,)), "once hand_1"),
        (Parts((A,)), "a outermost loops"),
        (Parts((I,), cleared=("m",), once=("hand_1",), kernel="hand_0"), "cleared"),
        (Parts((I,), once=("hand_1",)), "kernel hand_0"),
    ):
        with pytest.raises(VerifyError, match=mentions(words)):
            replace(divided, parts=wrong).verify()
