"""Arrays of complex conjugates that a GPU does not store, and those that it must."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from support import hand_modules as hand
from tcgen.interp.modules import run_module
from tcgen.ir.expr import Access, Call, Const, Expr, Prod, Sum
from tcgen.ir.loops import (
    Assign,
    Axis,
    BandVar,
    Gemm,
    Host,
    HostLoop,
    Kernel,
    Launch,
    Loop,
    LoopVar,
    Module,
    Stmt,
)
from tcgen.ir.tensor import Tensor
from tcgen.ir.thread_mapping import Tiles
from tcgen.lower.gpu.bind import bind_gpu
from tcgen.records.loops import launched

PLANNED = {"o": 10, "v": 40}
I, J = (BandVar(n, hand.O) for n in "ij")
A, B = (BandVar(n, hand.V) for n in "ab")
T, W = hand.at("t", "i", "a"), hand.at("w", "a", "b")
X = hand.at("x", "i", "a")  # the array of conjugates
CONJUGATE = Assign(X, Call("conj", T), band=(I, A))
PRODUCT = Assign(hand.at("r", "i", "b"), Prod((X, W)), band=(I, B, A))
TENSORS = (
    hand.tensor("t", hand.O, hand.V),
    hand.tensor("w", hand.V, hand.V),
    hand.output("r", hand.O, hand.V),
)


def program(
    kernels: tuple[Kernel, ...],
    host: tuple[Host, ...],
    tensors: tuple[Tensor, ...] = TENSORS,
    constant: tuple[Host, ...] = (),
    lives: Mapping[str, tuple[int, int]] = {},
    **changes: Any,
) -> Module:
    """A verified module.

    ``lives``: of buffers like x, which lives over all of it; ``changes``: of x.
    """
    statements = sum(len(k.body) for k in kernels)
    lives = {"x": (0, statements - 1), **lives}
    axes = Axis(hand.O), Axis(hand.V)
    own = (hand.local(n, *axes, place="arena", live=live) for n, live in lives.items())
    module = Module(
        "conjugates",
        "complex128",
        (hand.O, hand.V, hand.P),
        tensors,
        (
            *(hand.caller(t, "complex128") for t in tensors),
            *(replace(b, dtype="complex128", **(changes if b.name == "x" else {})) for b in own),
        ),
        kernels,
        constant,
        host,
    )
    module.verify()
    return module


def in_turn(*stmts: Stmt, **changes: Any) -> Module:
    """A launch for each statement."""
    kernels = tuple(Kernel(f"k{n}", (), (), (s,)) for n, s in enumerate(stmts))
    return program(kernels, tuple(Launch(k.name) for k in kernels), **changes)


def bound(module: Module) -> Module:
    """The module for a GPU, of the same values."""
    after = bind_gpu(module, PLANNED)
    after.verify()
    random = np.random.default_rng(4)
    for extents in ({"o": 3, "v": 5}, {"o": 1, "v": 2}, {"o": 0, "v": 3}):
        arrays = {}
        for tensor in module.tensors:
            values = random.standard_normal((*(extents[s.name] for s in tensor.spaces), 2))
            arrays[tensor.name] = values[..., 0] + 1j * values[..., 1]
        inputs = {t.name: arrays[t.name] for t in module.tensors if t.is_input}
        starts = {t.name: arrays[t.name] for t in module.tensors if t.accumulate}
        meant, found = (run_module(m, inputs, extents, out=starts) for m in (module, after))
        for name, value in meant.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-12)
    return after


def stores_it(module: Module) -> bool:
    return any(b.name == "x" for b in bound(module).buffers)


def of(target: Access, expr: Expr, *band: BandVar, **more: Any) -> Assign:
    return Assign(target, expr, band=band, **more)


R = hand.at("r", "i", "a")
READERS = {
    "a product": PRODUCT,
    "the second factor": replace(PRODUCT, expr=Prod((W, X))),
    "names exchanged": of(
        hand.at("r", "j", "a"), Prod((hand.at("x", "j", "b"), hand.at("w", "b", "a"))), J, A, B
    ),
    "elements": of(R, Sum((Prod((Const(Fraction(3)), X)), T)), I, A),
    "a sum of squares": of(R, Prod((hand.at("x", "i", "b"), hand.at("x", "i", "b"))), I, A, B),
    "elements of two rows": of(R, Prod((hand.at("x", "j", "a"), X)), I, A, J),
}


@pytest.mark.parametrize("name", READERS)
def test_a_reader_conjugates(name: str) -> None:
    after = bound(in_turn(CONJUGATE, READERS[name]))
    assert [b.name for b in after.buffers] == ["t", "w", "r"]
    (kernel,) = after.kernels
    products = ("a product", "the second factor", "names exchanged")
    assert isinstance(kernel.mapping, Tiles) == (name in products)


def test_all_readers_conjugate() -> None:
    more = replace(PRODUCT, accumulate=True, expr=Prod((W, X)))
    after = bound(in_turn(CONJUGATE, PRODUCT, replace(more, coeff=Fraction(-2))))
    assert [b.name for b in after.buffers] == ["t", "w", "r"]
    (kernel,) = after.kernels
    assert len(kernel.body) == 2


def test_what_is_conjugated_lives_as_long_as_its_readers() -> None:
    """Its memory is not given to an array that is made between."""
    y, z = hand.at("y", "i", "a"), hand.at("z", "i", "a")
    module = in_turn(
        of(y, Prod((T, T)), I, A),
        of(X, Call("conj", y), I, A),
        of(z, Prod((T, hand.at("t", "i", "b"))), I, A, B),
        of(hand.at("r", "i", "b"), Prod((z, W)), I, B, A),
        replace(PRODUCT, accumulate=True),
        lives={"y": (0, 1), "x": (1, 4), "z": (2, 3)},
    )
    after = bound(module)
    named = {b.name: b for b in after.buffers}
    assert "x" not in named
    assert named["y"].live[1] >= named["z"].live[1]


LOOP = LoopVar("c", hand.V)
OTHERS = {
    "times a number": in_turn(replace(CONJUGATE, coeff=Fraction(2)), PRODUCT),
    "conjugated again": in_turn(CONJUGATE, replace(PRODUCT, expr=Prod((Call("conj", X), W)))),
    "in a nest": in_turn(
        CONJUGATE, Loop(LOOP, (of(hand.at("r", "i", "c"), hand.at("x", "i", "c"), I),))
    ),
    "by the library": in_turn(CONJUGATE, Gemm(hand.at("r", "i", "b"), X, W, (), (I,), (B,), (A,))),
    "by one reader of two": in_turn(
        CONJUGATE,
        Gemm(hand.at("r", "i", "b"), X, W, (), (I,), (B,), (A,)),
        replace(PRODUCT, accumulate=True),
    ),
    "added to": in_turn(CONJUGATE, of(X, T, I, A, accumulate=True), PRODUCT),
}


@pytest.mark.parametrize("name", OTHERS)
def test_an_array_that_is_stored(name: str) -> None:
    assert stores_it(OTHERS[name])


CHANGED = hand.output("t", hand.O, hand.V, accumulate=True)


@pytest.mark.parametrize(
    ("stmts", "stored"),
    [
        ((CONJUGATE, of(T, hand.at("t", "i", "a"), I, A, accumulate=True), PRODUCT), True),
        ((CONJUGATE, PRODUCT, of(T, hand.at("r", "i", "a"), I, A, accumulate=True)), False),
        ((CONJUGATE, of(hand.at("t", "i", "b"), Prod((X, W)), I, B, A, accumulate=True)), True),
        ((of(T, hand.at("t", "i", "a"), I, A, accumulate=True), CONJUGATE, PRODUCT), False),
    ],
)
def test_an_array_that_changes(stmts: tuple[Stmt, ...], stored: bool) -> None:
    """Before its conjugates are read, after that, by their reader, and before they are made."""
    module = in_turn(*stmts, tensors=(CHANGED, *TENSORS[1:]))
    assert stores_it(module) == stored


def test_conjugates_that_are_kept_between_calls() -> None:
    """They are made once for a bound program."""
    kernels = tuple(Kernel(n, (), (), (s,)) for n, s in (("x", CONJUGATE), ("r", PRODUCT)))
    tensors = (replace(TENSORS[0], volatile=False), *TENSORS[1:])
    host = (Launch("r"),)
    assert stores_it(program(kernels, host, tensors, constant=(Launch("x"),), keep=True))


@pytest.mark.parametrize("inside", [True, False])
def test_conjugates_and_loops_of_the_host(inside: bool) -> None:
    """Readers inside of a later loop conjugate; those behind the loop that makes them cannot."""
    i = LoopVar("i", hand.O)
    row = Kernel("row", (), (i,), (replace(PRODUCT, band=(B, A)),))
    part = Kernel("part", (), (i,), (replace(CONJUGATE, band=(A,)),))
    whole = Kernel("whole", (), (), (CONJUGATE,)), Kernel("all", (), (), (PRODUCT,))
    kernels = (whole[0], row) if inside else (part, whole[1])
    first, second = (Launch(k.name) for k in kernels)
    host = (first, HostLoop(i, (second,))) if inside else (HostLoop(i, (first,)), second)
    module = program(kernels, host)
    after = bound(module)
    assert any(b.name == "x" for b in after.buffers) == (not inside)
    assert len(tuple(launched(after.host_volatile))) == (1 if inside else 2)
