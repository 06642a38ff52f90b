"""Every rule of level 4 has a module that breaks it; the text is stable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from support import hand_modules as hand
from support.messages import mentions
from tcgen.errors import VerifyError
from tcgen.interp import run_module
from tcgen.ir.expr import Access, Prod, Subscript
from tcgen.ir.loops import (
    Assign,
    Axis,
    BandVar,
    Buffer,
    Fetch,
    Gemm,
    HostLoop,
    Kernel,
    Launch,
    Loop,
    LoopVar,
    Module,
    Zero,
)
from tcgen.ir.pretty.loops import format_statement
from tcgen.ir.tensor import Packing, Ref, Role, Space, Tensor

N, M = Space("n"), Space("m")
Q = Space("q", parts=(N, M))
X, Y = Tensor("X", (N, M), Role.INPUT), Tensor("Y", (M, N), Role.INPUT)
R = Tensor("R", (N, N), Role.OUTPUT)


def place(buffer: str, *names: str | None) -> Access:
    return Access(buffer, tuple(Subscript(name) for name in names))


i, j, k = BandVar("i", N), BandVar("j", N), BandVar("k", M)
LOOP = LoopVar("i", N)
PRODUCT = Gemm(
    place("R", "i", "j"), place("X", "i", "k"), place("Y", "k", "j"), (), (i,), (j,), (k,)
)
ROW = Loop(
    LOOP,
    (
        Zero("t"),
        Assign(place("t", None, "j"), place("X", "i", "k"), accumulate=True, band=(j, k)),
        Assign(place("R", "i", "j"), place("t", None, "j"), band=(j,)),
    ),
    parallel=True,
)


def caller(tensor: Tensor) -> Buffer:
    axes = tuple(Axis(s) for s in tensor.spaces)
    return Buffer(tensor.name, axes, tuple(range(tensor.rank)), "float64", "caller", tensor)


def module(*body: object, host_vars: tuple[LoopVar, ...] = ()) -> Module:
    return Module(
        "m",
        "float64",
        (N, M, Q),
        (X, Y, R),
        (
            caller(X),
            caller(Y),
            caller(R),
            Buffer("t", (Axis(N, 1), Axis(N)), (0, 1), "float64", "private", live=(0, 2)),
            Buffer("s", (), (), "float64", "register"),
        ),
        (Kernel("k", (), host_vars, body),),  # type: ignore[arg-type]
        (),
        (Launch("k"),),
    )


def test_the_models_are_right() -> None:
    rng = np.random.default_rng(0)
    arrays = {"X": rng.random((3, 2)), "Y": rng.random((2, 3))}
    for body, wanted in (
        (PRODUCT, arrays["X"] @ arrays["Y"]),
        (ROW, np.repeat(arrays["X"].sum(axis=1)[:, None], 3, axis=1)),
    ):
        good = module(body)
        good.verify()
        np.testing.assert_allclose(run_module(good, arrays, {"n": 3, "m": 2})["R"], wanted)


def test_text() -> None:
    assert format_statement(PRODUCT) == "gemm R[i,j] = X[i,k] * Y[k,j]   m(i:n) n(j:n) k(k:m)"
    assert format_statement(ROW).splitlines() == [
        "parallel for i:n:",
        "  zero t",
        "  t[0,j] += X[i,k]   for j:n, k:m",
        "  R[i,j] = t[0,j]   for j:n",
    ]
    tile = BandVar("i", N, "i0", 4)
    half = Assign(
        place("R", "i", "j"), place("s"), Fraction(1, 2), False, (tile, j), (), 1, ("i", "j")
    )
    assert (
        format_statement(half) == "R[i,j] = 1/2 * s   for i:n[i0+4], j:n   parallel 1   block i,j"
    )


def assign(out: Access, expr: Access, *band: BandVar, **fields: object) -> Assign:
    return Assign(out, expr, band=band, **fields)  # type: ignore[arg-type]


def loop(*body: object, **fields: object) -> Loop:
    return Loop(LOOP, body, **fields)  # type: ignore[arg-type]


BAD_STATEMENTS: list[tuple[object, str]] = [
    (Zero("u"), "u buffer"),
    (assign(place("u"), place("s")), "u buffer"),
    (assign(place("R", "i"), place("s"), i), "2 subscripts"),
    (assign(place("R", "i", "z"), place("s"), i), "z scope"),
    (assign(place("R", "i", "j"), place("s"), i, j, i), "i twice"),
    (loop(loop()), "loop i"),
    (loop(assign(place("R", "i", "j"), place("s"), i, j)), "i twice"),
    (loop(assign(place("R", "i", "j"), place("s"), j), vector=True), "i vector single"),
    (
        Loop(LoopVar("j", N), (loop(assign(place("R", "j", "j"), place("s")), vector=True),)),
        "i vector R",
    ),
    (assign(place("R", "i", None), place("s"), i), "contracted"),
    (assign(place("t", "i", "j"), place("s"), i, j), "contracted axis"),
    (assign(place("R", "i", "k"), place("s"), i, k), "m start"),
    (assign(place("R", "i", "j"), place("s"), BandVar("i", N, "i0", 2), j), "tile"),
    (assign(place("R", "i", "j"), place("s"), replace(i, base="i0"), j), "base tile"),
    (assign(place("R", "i", "j"), place("s"), replace(i, below="j"), j), "below j"),
    (Loop(LoopVar("i", N, below="j"), ()), "below j"),
    (Loop(LoopVar("i", N, 2), (assign(place("R", "i", "j"), place("s"), j),)), "base tile"),
    (assign(place("R", "i", "j"), place("X", "i", "k"), i, k, j), "overwritten"),
    (assign(place("R", "i", "j"), place("s"), i, j, orbit=(("i", "z"),)), "orbit i,z"),
    (assign(place("R", "i", "j"), place("s"), i, j, parallel=3), "3 parallel"),
    (
        assign(place("R", "i", "i"), place("X", "i", "k"), k, i, accumulate=True, parallel=1),
        "parallel target",
    ),
    (assign(place("R", "i", "j"), place("s"), i, j, block=("i", "i")), "block two variables"),
    (Assign(place("s"), Ref(X, ()), band=()), "leaf level"),
    (loop(assign(place("s"), place("s")), parallel=False), ""),
    (loop(Zero("R"), parallel=True), "R zeroed"),
    (
        loop(assign(place("R", "j", "j"), place("s"), j), parallel=True),
        "R i",
    ),
    (
        loop(
            assign(place("R", "i", "j"), place("s"), j),
            assign(place("s"), place("R", "j", "i"), j, accumulate=True),
            parallel=True,
        ),
        "R i axis",
    ),
    (
        loop(assign(place("R", "i", "j"), place("s"), j, parallel=1), parallel=True),
        "parallel loop",
    ),
    (
        Loop(LoopVar("l", N), (loop(assign(place("R", "i", "l"), place("s")), parallel=True),)),
        "outermost",
    ),
    (replace(PRODUCT, m=(j,), n=(i,)), "group"),
    (replace(PRODUCT, out=place("R", "i", "i")), "i 2"),
    (replace(PRODUCT, a=place("R", "i", "j"), k=(j,)), "twice"),
    (replace(PRODUCT, out=place("X", "i", "k"), a=place("X", "i", "k")), "read written"),
    (replace(PRODUCT, m=(replace(i, below="q"),)), "below q"),
    (replace(PRODUCT, batch=(BandVar("z", N),)), "batch z"),
]  # fmt: skip


@pytest.mark.parametrize(("stmt", "message"), BAD_STATEMENTS)
def test_broken_statements(stmt: object, message: str) -> None:
    broken = module(stmt)
    if not message:
        broken.verify()
        return
    with pytest.raises(VerifyError, match=mentions(message)) as caught:
        broken.verify()
    assert str(caught.value).startswith("module m: ")


def changed_buffer(which: str, **fields: object) -> Callable[[Module], Module]:
    def change(m: Module) -> Module:
        return replace(
            m,
            buffers=tuple(
                replace(b, **fields) if b.name == which else b  # type: ignore[arg-type]
                for b in m.buffers
            ),
        )

    return change


def looped(m: Module, var: LoopVar) -> Module:
    return replace(m, host_volatile=(HostLoop(var, m.host_volatile),))


BAD_MODULES: list[tuple[Callable[[Module], Module], str]] = [
    (changed_buffer("t", name="s"), "s"),
    (changed_buffer("t", place="stack"), "stack"),
    (changed_buffer("t", order=(0, 0)), "order permutation"),
    (changed_buffer("t", place="register"), "register one element"),
    (changed_buffer("t", packed=(Packing(0),)), "packed axes 0 differ"),
    (changed_buffer("R", packed=(Packing(1),)), "adjacent"),
    (changed_buffer("X", packed=(Packing(0),)), "packed axes 0 differ"),
    (changed_buffer("X", axes=(Axis(N, 2), Axis(M))), "buffer"),
    (changed_buffer("X", order=(1, 0), packed=()), ""),
    (changed_buffer("X", dtype="float32"), "matrix product float64 float32"),
    (changed_buffer("R", packed=(Packing(0),)), "R packed"),
    (
        changed_buffer("Y", place="arena", live=(1, 1)),
        "statements 1..1 0..0",
    ),
    (lambda m: replace(m, host_volatile=()), "launch kernel once"),
    (lambda m: replace(m, host_volatile=(Launch("q"),)), "launch q"),
    (lambda m: replace(m, host_volatile=(*m.host_volatile, *m.host_volatile)), "kernel once"),
    (lambda m: replace(m, kernels=m.kernels * 2), "kernels k"),
    (
        lambda m: replace(m, kernels=(replace(m.kernels[0], host_vars=(LoopVar("h", N),)),)),
        "host variable",
    ),
    (
        lambda m: looped(m, LoopVar("h", N, below="g")),
        "host loop h below g",
    ),
    (
        lambda m: looped(looped(m, LoopVar("h", N)), LoopVar("h", N)),
        "loop h",
    ),
    (lambda m: replace(m, host_volatile=(Fetch("X", (None, None)), Launch("k"))), "fetch X"),
    (
        lambda m: changed_buffer("X", place="arena")(
            replace(m, host_volatile=(Fetch("X", (None,)), Launch("k")))
        ),
        "2 ranges",
    ),
    (
        lambda m: changed_buffer("X", place="arena")(
            replace(m, host_volatile=(Fetch("X", (LOOP, None)), Launch("k")))
        ),
        "range axis",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), BAD_MODULES)
def test_broken_modules(change: Callable[[Module], Module], message: str) -> None:
    broken = change(module(PRODUCT))
    if not message:
        broken.verify()
        return
    with pytest.raises(VerifyError, match=mentions(message)):
        broken.verify()


def test_a_group_must_be_contiguous() -> None:
    """Variables of m that are not adjacent, and a slice that is not the slowest of its group."""
    z = BandVar("z", N)
    three = Buffer("w", (Axis(N), Axis(M), Axis(N)), (0, 1, 2), "float64", "arena")
    wide = Gemm(
        place("w", "i", "k", "z"), place("X", "i", "q"), place("v", "q", "k", "z"),
        (), (i,), (k, z), (BandVar("q", M),),
    )  # fmt: skip
    joined = Buffer("v", (Axis(M), Axis(M), Axis(Q)), (0, 1, 2), "float64", "arena")
    plain = replace(joined, axes=(Axis(M), Axis(M), Axis(N)))
    base = module(wide)
    replace(base, buffers=(*base.buffers, three, plain)).verify()
    with pytest.raises(VerifyError, match=mentions("z part axis")):
        replace(base, buffers=(*base.buffers, three, joined)).verify()
    transposed = replace(plain, order=(2, 0, 1))
    with pytest.raises(VerifyError, match=mentions("k z adjacent")):
        replace(base, buffers=(*base.buffers, three, transposed)).verify()
    strided = replace(three, order=(1, 2, 0))
    replace(base, buffers=(*base.buffers, strided, plain)).verify()
    batch = module(
        Gemm(
            place("w", "z", "k", "i"),
            place("X", "z", "k"),
            place("Y", "k", "i"),
            (i, k),
            (z,),
            (),
            (),
        )
    )
    with pytest.raises(VerifyError, match=mentions("group axis")):
        replace(batch, buffers=(*batch.buffers, three)).verify()


def test_a_missing_zero_and_a_short_life_show_as_nan() -> None:
    arrays = {"X": np.ones((3, 2)), "Y": np.ones((2, 3))}
    forgotten = module(replace(ROW, body=ROW.body[1:]))
    forgotten.verify()
    assert np.isnan(run_module(forgotten, arrays, {"n": 3, "m": 2})["R"]).all()


def test_orbit_counts_arrangements() -> None:
    """A sum over i >= j >= l of the number of arrangements counts every point of the cube."""
    one, two = BandVar("j", N, below="i"), BandVar("l", N, below="j")
    e = Tensor("e", (), Role.OUTPUT)
    total = Assign(
        place("e"),
        Prod((place("c"),)),
        band=(i, one, two),
        orbit=(("i", "j", "l"),),
    )
    c = Tensor("c", (), Role.INPUT)
    m = replace(module(total), tensors=(c, e), buffers=(caller(c), caller(e)))
    m.verify()
    assert run_module(m, {"c": 1.0}, {"n": 4, "m": 1})["e"] == 64


def test_numbers_that_threads_add_up_are_not_read_meanwhile() -> None:
    made = hand.orbits()
    (kernel,) = made.kernels
    start, rows = kernel.body
    assert isinstance(rows, Loop)
    (columns,) = rows.body
    assert isinstance(columns, Loop)
    read = Assign(place("n"), place("e"), accumulate=True)
    body = (start, replace(rows, body=(replace(columns, body=(*columns.body, read)),)))
    broken = replace(made, kernels=(replace(kernel, body=body),))
    with pytest.raises(VerifyError, match=mentions("loop a0 parallel e")):
        broken.verify()
