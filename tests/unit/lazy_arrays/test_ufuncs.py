"""Lazy arrays with many pending operations, and those that are changed, copied and sent whole."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from tcgen.errors import ArgumentError


def _chain(x: Any, count: int) -> Any:
    y = x
    for _ in range(count):
        y = x - y
    return y


@pytest.mark.parametrize("least", ["0", "1000"])
def test_operations_that_wait_one_for_the_other_fit_pythons_stack(
    least: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "numpy")
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", least)

    def deep(frames: int) -> Any:
        return deep(frames - 1) if frames else np.asarray(_chain(tcgen.lazy(x), 199))

    x = np.linspace(1.0, 2.0, 5)
    np.testing.assert_allclose(deep(200), _chain(x, 199), atol=1e-12)


def test_arrays_that_are_added_up_do_not_all_stay() -> None:
    total, given = tcgen.lazy(np.zeros(3)), []
    for n in range(200):
        array = np.full(3, float(n))
        given.append(weakref.ref(array))
        total = total + tcgen.lazy(array)
        assert sum(there() is not None for there in given) <= 67
    assert float(total.sum()) == 3 * 199 * 100


WORK: dict[str, Callable[[Any], Any]] = {
    "values": np.asarray,
    "sum": lambda x: float((x * 2).sum()),
    "product": lambda x: np.asarray(x @ x),
    "compute": lambda x: tcgen.compute(x + 1, x - 1),
    "explain": lambda x: tcgen.lazy(x + 1).explain(),
    "einsum": lambda x: tcgen.einsum("ij,jk", x, x),
}


@pytest.mark.parametrize("least", ["0", "1000"])
@pytest.mark.parametrize("name", WORK)
def test_arrays_go_when_nobody_has_them(
    name: str, least: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "numpy")
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", least)

    def gone() -> bool:
        array = np.ones((3, 3))
        there = weakref.ref(array)
        WORK[name](tcgen.lazy(array))
        del array
        return there() is None

    gone()  # the first compilation may leave cycles
    gc.disable()
    try:
        assert gone()
    finally:
        gc.enable()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickled_are_the_values(protocol: int) -> None:
    x = tcgen.lazy(np.arange(6.0).reshape(2, 3))
    again = pickle.loads(pickle.dumps(tcgen.lazy(_chain(x, 60)), protocol))
    assert isinstance(again, tcgen.LazyArray)
    np.testing.assert_array_equal(again + 1, _chain(x, 60) + 1)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_are_changed_apart(copied: Callable[[Any], Any]) -> None:
    x = _chain(tcgen.lazy(np.arange(3.0)), 61)
    y = copied(x)
    y[0] = 7
    x[1] = 8
    np.testing.assert_array_equal(y, [7, 0, 0])
    np.testing.assert_array_equal(x, [0, 8, 0])


def test_an_update_that_fails_leaves_the_values() -> None:
    x: Any = tcgen.lazy(np.arange(3.0))
    with pytest.raises(TypeError, match="Cannot cast"):
        np.copyto(x, np.ones(3) * 1j)
    with pytest.raises(ArgumentError, match=mentions("mask")):
        np.copyto(x, np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False]))
    np.testing.assert_array_equal(x, [0, 1, 2])


@pytest.mark.parametrize("shape", [(3, 2), (4, 2)])
def test_resized_arrays(shape: tuple[int, int]) -> None:
    given = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
    wanted, x = given.copy(), tcgen.lazy(given)
    before = x + 0
    wanted.resize(shape, refcheck=False)
    x.resize(*shape, refcheck=False)
    np.testing.assert_array_equal(x, wanted)
    np.testing.assert_array_equal(before, given)
