"""Copies from packed arrays sort the positions of a group once for a row."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from random import Random

import numpy as np
import pytest

import tcgen
from support import hand_modules as hand
from support.executed_counts import counted_by_c, interpreted
from tcgen.emit import emit_artifact
from tcgen.interp.modules import run_module
from tcgen.ir.expr import Const
from tcgen.ir.loops import Assign, BandVar, Stmt
from tcgen.ir.tensor import Packing, Storage, Symmetry, Tensor
from tcgen.runtime.program import Program


def packed(name: str, packings: tuple[Packing, ...], axes: int) -> Tensor:
    """An input with packed axes of one space and the symmetry that they need."""
    symmetry = []
    for p in packings:
        for axis in p.axes[:-1]:
            perm = list(range(axes))
            perm[axis], perm[axis + 1] = axis + 1, axis
            symmetry.append(Symmetry(tuple(perm), -1 if p.antisymmetric else 1))
    spaces = [hand.V] * axes
    return hand.tensor(name, *spaces, storage=Storage((), packings), symmetry=tuple(symmetry))


def copy(random: Random, number: int) -> tuple[Tensor, Tensor, tuple[Stmt, ...]]:
    """A packed array, a result, and a copy of the one to the other, with random loops."""
    counts = random.choice([(2,), (3,), (4,), (2, 2), (3, 2), (2, 3)])
    single = random.randint(0, 1)
    axes = sum(counts) + single
    first = random.choice((0, single))
    packings = []
    for count in counts:
        packings.append(Packing(first, random.random() < 0.6, count))
        first += count
    x = packed(f"x{number}", tuple(packings), axes)
    names = random.sample("abcdefgh", axes)
    band = [BandVar(n, hand.V) for n in random.sample(names, axes)]
    # Some variables are bounded by one outside of them.
    for n in range(1, axes):
        if random.random() < 0.3:
            below = random.choice(band[:n]).name
            band[n] = BandVar(band[n].name, hand.V, below=below, strict=random.random() < 0.5)
    out = hand.output(f"r{number}", *[hand.V] * axes)
    target = hand.at(out.name, *random.sample(names, axes))
    accumulate = random.random() < 0.5
    stmt = Assign(
        target,
        hand.at(x.name, *names),
        random.choice((Fraction(1), Fraction(-1), Fraction(3, 2))),
        accumulate=accumulate,
        band=tuple(band),
        parallel=random.randint(0, axes),
        step=number,
    )
    start = Assign(
        target, Const(Fraction(2)), band=tuple(BandVar(n, hand.V) for n in names), step=number
    )
    return x, out, (start, stmt)


def stored_shape(tensor: Tensor, extent: int) -> list[int]:
    """Lengths of the axes of an array that stores groups of packed axes."""
    lengths = {p.first: p.values(extent) for p in tensor.storage.packed}
    inside = {axis for p in tensor.storage.packed for axis in p.axes}
    single = {axis: extent for axis in range(len(tensor.spaces)) if axis not in inside}
    return [length for _, length in sorted({**lengths, **single}.items())]


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_random_copies(dtype: str) -> None:
    random = Random(11)
    made = [copy(random, n) for n in range(25)]
    tensors = tuple(t for x, out, _ in made for t in (x, out))
    module = hand.module("rows", tensors, *(body for _, _, body in made), dtype=dtype)
    program = Program(emit_artifact(module, target="cpu", planning_extents=(("o", 1), ("v", 4))))
    assert program.source.count("tc_row_sign =") > 10
    numbers = np.random.default_rng(0)
    for v in (0, 1, 2, 3, 5):
        arrays = {}
        for x, _, _ in made:
            arrays[x.name] = numbers.uniform(-1, 1, stored_shape(x, v)).astype(dtype)
        wanted = run_module(module, arrays, {"o": 1, "v": v})
        for threads in (1, 3):
            tcgen.set_threads(threads)
            try:
                found = program(**arrays)
            finally:
                tcgen.set_threads(None)
            for name, array in wanted.items():
                np.testing.assert_allclose(found[name], array, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("count", [2, 3])
def test_signs_of_groups_whose_order_the_loops_know(count: int) -> None:
    """One group in every order below strict bounds, the other in none."""
    axes = count + 2
    x = packed("x", (Packing(0, True, count), Packing(count, True, 2)), axes)
    names = "abcdefgh"[:axes]
    band = [BandVar(names[0], hand.V)]
    band += [BandVar(names[n], hand.V, below=names[n - 1], strict=True) for n in range(1, count)]
    band += [BandVar(n, hand.V) for n in names[count:]]
    outs, bodies = [], []
    for number, order in enumerate(permutations(names[:count])):
        out = hand.output(f"r{number}", *[hand.V] * axes)
        read = hand.at("x", *order, *reversed(names[count:]))
        stmt = Assign(hand.at(out.name, *names), read, band=tuple(band), step=number)
        zero = Assign(
            hand.at(out.name, *names),
            Const(Fraction(0)),
            band=tuple(BandVar(n, hand.V) for n in names),
            step=number,
        )
        outs.append(out)
        bodies.append((zero, stmt))
    module = hand.module("rows", (x, *outs), *bodies)
    program = Program(emit_artifact(module, target="cpu", planning_extents=(("o", 1), ("v", 4))))
    for v in (2, 3, 5):
        array = np.random.default_rng(0).uniform(-1, 1, stored_shape(x, v))
        wanted = run_module(module, {"x": array}, {"o": 1, "v": v})
        found = program(x=array)
        for name, values in wanted.items():
            np.testing.assert_allclose(found[name], values, err_msg=name)


def test_zeros_are_counted_as_reports_count_them() -> None:
    random = Random(13)
    made = [copy(random, n) for n in range(20)]
    tensors = tuple(t for x, out, _ in made for t in (x, out))
    module = hand.module("rows", tensors, *(body for _, _, body in made))
    for v in (1, 2, 4):
        arrays = {x.name: np.ones(stored_shape(x, v)) for x, _, _ in made}
        extents = {"o": 1, "v": v}
        counted = counted_by_c(module, arrays, {}, (("o", 1), ("v", 4)))
        assert counted == interpreted(module, arrays, {}, extents)
        assert len(counted) > 5
