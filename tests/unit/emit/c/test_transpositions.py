"""Copies between layouts are transposed by squares in registers."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import pytest

import tcgen
from support import hand_modules as hand
from tcgen.emit import emit_artifact
from tcgen.frontend.spec.reader import read_spec
from tcgen.interp import evaluate_system
from tcgen.interp.modules import run_module
from tcgen.ir.expr import Const, Prod
from tcgen.ir.loops import Assign, BandVar, Stmt
from tcgen.ir.tensor import Packing, Storage, Tensor
from tcgen.runtime.program import Program
from tcgen.testing import random_arrays

HEAD = """
space o = 11
space v = 37
index i j : o
index a b : v
"""
COPIES = {
    "matrix": "input x[v,o]\noutput y[o,v]\ny[i,a] = -3*x[a,i]",
    "added": "input x[v,o], z[o,v]\noutput y[o,v]\ny[i,a] = z[i,a]\ny[i,a] += 1/2*x[a,i]",
    "joined axes": "input x[o,v,o]\noutput y[o,o,v]\ny[j,i,a] = x[i,a,j]",
    "axes around": "input x[o,o,v]\noutput y[v,o,o]\ny[a,i,j] = x[i,j,a]",
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("name", COPIES)
def test_transpositions(name: str, dtype: str) -> None:
    """Rows and columns that are no multiple of a square, none, and one."""
    text = HEAD + COPIES[name] + "\n"
    system = read_spec(text)
    program = tcgen.compile(text, target="cpu", dtype=dtype)
    assert ("tc_transpose_" in program.source) == (dtype != "complex128")
    for extents in ((11, 37), (37, 11), (8, 16), (1, 40), (5, 1), (3, 0), (33, 65)):
        named = dict(zip("ov", extents, strict=True))
        arrays = random_arrays(system, named, dtype=dtype, seed=5)
        wanted = evaluate_system(system, arrays, named)["y"]
        tolerance = 1e-6 if dtype == "float32" else 1e-13
        np.testing.assert_allclose(program(**arrays)["y"], wanted, rtol=tolerance, atol=tolerance)


def test_blocks_are_divided_among_threads() -> None:
    program = tcgen.compile(HEAD + COPIES["joined axes"] + "\n", extents={"o": 70, "v": 90})
    x = np.random.default_rng(0).random((70, 90, 70))
    for threads in (1, 3):
        tcgen.set_threads(threads)
        try:
            np.testing.assert_array_equal(program(x=x)["y"], x.transpose(2, 0, 1))
        finally:
            tcgen.set_threads(None)


def test_a_diagonal_is_no_transposition() -> None:
    x = np.random.default_rng(0).random((4, 4, 6, 4))
    got = tcgen.einsum("jjkj,k->kj", x, np.ones(6), optimize=False)
    np.testing.assert_allclose(got, np.einsum("jjkj,k->kj", x, np.ones(6)))
    program = tcgen.compile(HEAD + "input x[o,o,v,o]\noutput y[o,v]\ny[i,a] = x[i,i,a,i]\n")
    x = np.random.default_rng(0).random((9, 9, 70, 9))
    np.testing.assert_array_equal(program(x=x)["y"], np.einsum("iiai->ia", x))


def triangle(random: Random, number: int) -> tuple[Tensor, Tensor, tuple[Stmt, ...]]:
    """An array, a result, and a triangle of a blocked copy, with random axes and bounds.

    The copy is plain or a product, and is added to the result, a whole array in a random order or a
    packed one. The second variable is bounded by the first, which may be bounded by the third.
    """
    strict, packed = random.random() < 0.5, random.random() < 0.5
    names = random.sample(["a", "b", "c"], 3)
    a, b, c = (BandVar(n, hand.V) for n in names)
    b = BandVar(b.name, hand.V, below=a.name, strict=strict)
    order = random.choice([(c, a, b), (c, a, b), (c, a, b), (a, c, b), (a, b, c)])
    if not packed and order[0] == c and random.random() < 0.5:
        order = (c, BandVar(a.name, hand.V, below=c.name, strict=strict), b)
    pair = tuple(
        random.sample([v.name for v in random.choice([(a, b), (a, b), (a, c), (b, c)])], 2)
    )
    axes = random.sample(names, 3)
    x = hand.tensor(f"x{number}", *[hand.V] * 3, storage=Storage(tuple(random.sample(range(3), 3))))
    first = random.choice((0, 1))
    target = hand.at(f"r{number}", *([c.name, *names[:2]] if first else names))
    storage = Storage((), (Packing(first, strict),))
    if not packed:
        storage = Storage(tuple(random.sample(range(3), 3)))
    out = hand.output(f"r{number}", *[hand.V] * 3, storage=storage)
    source = hand.at(x.name, *axes)
    copy = Assign(
        target,
        source if random.random() < 0.7 else Prod((source, hand.at(x.name, *reversed(axes)))),
        Fraction(random.choice((1, -1, 3)), 2),
        accumulate=True,
        band=order,
        parallel=random.randint(0, 3),
        block=pair,
    )
    whole = (BandVar(a.name, hand.V), b if packed else BandVar(b.name, hand.V), c)
    return x, out, (Assign(target, Const(Fraction(2)), band=whole), copy)


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_blocks_of_triangles(dtype: str) -> None:
    random = Random(7)
    made = [triangle(random, n) for n in range(20)]
    tensors = tuple(t for x, out, _ in made for t in (x, out))
    module = hand.module("triangles", tensors, *(body for _, _, body in made), dtype=dtype)
    program = Program(emit_artifact(module, target="cpu", planning_extents=(("o", 1), ("v", 9))))
    assert ("tc_tile" in program.source) == (dtype != "complex128")
    tolerance = 1e-6 if dtype == "float32" else 1e-13
    for v in (0, 1, 7, 33, 66):
        numbers = np.random.default_rng(v)
        arrays = {x.name: numbers.uniform(-1, 1, (v, v, v)).astype(dtype) for x, _, _ in made}
        wanted = run_module(module, arrays, {"o": 1, "v": v})
        for threads in (1, 3):
            tcgen.set_threads(threads)
            try:
                found = program(**arrays)
            finally:
                tcgen.set_threads(None)
            for name, array in wanted.items():
                np.testing.assert_allclose(
                    found[name], array, rtol=tolerance, atol=tolerance, err_msg=name
                )


def test_a_triangle_of_an_array_is_transposed_within_it() -> None:
    """The blocks beside the diagonal by whole vectors, and those on it through a tile."""
    a, b = BandVar("a", hand.V), BandVar("b", hand.V, below="a", strict=True)
    x, out = hand.tensor("x", hand.V, hand.V), hand.output("r", hand.V, hand.V)
    lower = Assign(hand.at("r", "a", "b"), hand.at("x", "a", "b"), band=(a, b))
    upper = Assign(
        hand.at("r", "b", "a"),
        hand.at("r", "a", "b"),
        Fraction(-1),
        band=(a, b),
        parallel=1,
        block=("a", "b"),
    )
    zero = Assign(hand.at("r", "a", "a"), Const(Fraction(0)), band=(a,))
    module = hand.module("within", (x, out), (lower, upper, zero))
    program = Program(emit_artifact(module, target="cpu", planning_extents=(("o", 1), ("v", 9))))
    assert program.source.count("tc_transpose_d(") == 3
    for v in (0, 1, 2, 31, 32, 33, 64, 100):
        given = np.random.default_rng(v).random((v, v))
        lower_part = np.tril(given, -1)
        np.testing.assert_array_equal(program(x=given)["r"], lower_part - lower_part.T)
