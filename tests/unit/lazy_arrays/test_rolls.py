"""Rolled arrays are slices in blocks of a result, and arrays where something else reads them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import tcgen
from support.campaigns import cases
from tcgen.lazy_arrays.graph import Elementwise, Join, Node, Scalar, leaf
from tcgen.lazy_arrays.views import blocks_of

pytestmark = pytest.mark.usefixtures("all_delayed")


@pytest.fixture(params=["kernels", "numpy"])
def all_delayed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations of any size wait; kernels run them, or NumPy."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0" if request.param == "kernels" else "1")


def arrays(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    return random.standard_normal(shape), random.standard_normal(shape)


def test_blocks_of_a_result() -> None:
    x, _ = arrays((6, 5))

    def joined(axis: int, *ends: int) -> Node:
        keys = [(*(slice(None),) * axis, slice(a, b)) for a, b in itertools.pairwise(ends)]
        return Node(Join(tuple(leaf(x[key]) for key in keys), axis), x.shape, x.dtype)

    one, other = joined(0, 0, 1, 5, 6), joined(1, 0, 2, 5)
    total = Node(Elementwise("add", (one, other)), x.shape, x.dtype)
    blocks = blocks_of(Node(Elementwise("add", (total, total)), x.shape, x.dtype))
    assert blocks is not None
    places = [tuple((s.start, s.stop) for s in block) for block, _ in blocks]
    assert places == [(a, b) for a in ((0, 1), (1, 5), (5, 6)) for b in ((0, 2), (2, 5))]
    assert all(part.work.operands[0] is part.work.operands[1] for _, part in blocks)
    assert blocks_of(Node(Join((leaf(np.ones(1)),) * 28, 0), (28,), x.dtype)) is None
    number = Node(Scalar(2.0), (), x.dtype)
    assert blocks_of(Node(Elementwise("add", (number, number)), (), x.dtype)) is not None


def test_several_results_share_a_rolled_array() -> None:
    x, y = arrays((6, 5))
    moved = np.roll(tcgen.lazy(x), 1, 0)
    one, other = moved + y, moved * y
    for found, wanted in zip(
        tcgen.compute(one, other, moved),
        (np.roll(x, 1, 0) + y, np.roll(x, 1, 0) * y, np.roll(x, 1, 0)),
        strict=True,
    ):
        assert_array_equal(found, wanted)


def test_blocks_share_what_something_else_needs() -> None:
    x, y = arrays((6, 5))
    moved = np.roll(tcgen.lazy(x), 1, 0)
    held = np.exp(moved) + moved
    total = (np.exp(moved) * held + y) * 2
    wanted = np.exp(np.roll(x, 1, 0))
    held_values = wanted + np.roll(x, 1, 0)
    np.testing.assert_allclose(total, (wanted * held_values + y) * 2, rtol=1e-13)
    assert held.pending == 0
    np.testing.assert_allclose(held, held_values, rtol=1e-13)


def test_updates_after_a_roll_do_not_change_it() -> None:
    x, y = arrays((6, 5))
    lazy = tcgen.lazy(x, copy=True)
    moved = np.roll(lazy, 1, 0) + y
    lazy[0] = 7
    assert_array_equal(moved, np.roll(x, 1, 0) + y)
    lazy[1:] -= np.roll(lazy, 1, 0)[1:] * 2
    wanted = x.copy()
    wanted[0] = 7
    wanted[1:] -= np.roll(wanted, 1, 0)[1:] * 2
    np.testing.assert_allclose(lazy, wanted, rtol=1e-14)


@cases(15, 300)
@given(data=st.data())
def test_random_stencils(data) -> None:
    shape = tuple(data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=3)))
    x, y = arrays(shape)
    axes = st.integers(0, len(shape) - 1)
    moves = data.draw(st.lists(st.tuples(st.integers(-8, 8), axes), min_size=1, max_size=4))

    def work(x, y):
        total = y * 0.5
        for shift, axis in moves:
            total = total + np.roll(x, shift, axis) * y - np.roll(y, -shift, axis)
        return total

    np.testing.assert_allclose(
        work(tcgen.lazy(x), tcgen.lazy(y)), work(x, y), rtol=1e-12, atol=1e-13
    )


def test_products_and_sums_compute_the_rolled_arrays_that_they_read() -> None:
    x, y = np.arange(12.0).reshape(3, 4), np.linspace(0, 1, 12).reshape(3, 4)
    for read in (lambda moved: moved @ y.T, lambda moved: moved.sum(0), lambda moved: moved.T[1:]):
        moved = np.roll(tcgen.lazy(x), (1, 2), (0, 1))
        assert moved.pending == 3
        found = read(moved)
        assert_array_equal(found, read(np.roll(x, (1, 2), (0, 1))))
        assert moved.pending == 0
    moved = np.roll(tcgen.lazy(x), (1, 2), (0, 1))
    total = moved @ tcgen.lazy(y.T)
    assert (moved.pending, total.pending) == (0, 1)
    assert_array_equal(total, np.roll(x, (1, 2), (0, 1)) @ y.T)
