"""Operations that lazy arrays record, with NumPy's values, types and shapes, however they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcgen
from support.lazy_programs import OTHERS, RECORDED, X, Y, check
from tcgen.lazy_arrays.dispatch import LIMITS

LEAST = {"recorded": "3", "at once": "1000", "kernels": "0", "compiled": "0"}
SLOW = [("kernels", True), ("compiled", False), ("compiled", True)]


@pytest.mark.parametrize("name", [*RECORDED, *OTHERS])
@pytest.mark.parametrize(
    ("how", "single"),
    [("kernels", False), ("recorded", False), ("recorded", True), ("at once", False)]
    + [pytest.param(*case, marks=pytest.mark.slow) for case in SLOW],
)
def test_values(how: str, name: str, single: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By kernels from the first time on, recorded but run by NumPy, and by NumPy at once."""
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "cpu" if how == "compiled" else "numpy")
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", LEAST[how])
    pending = check({**RECORDED, **OTHERS}[name], tcgen.lazy, single=single)
    # No kernel has single complex numbers.
    if name in RECORDED and how != "at once" and not (single and "complex" in name):
        assert pending > 0
    assert LIMITS.kernels_only == (LEAST[how] == "0")


@pytest.mark.parametrize(
    "work",
    [
        lambda x: x.max(0),
        lambda x: x.min(),
        lambda x: x.max(1),
        lambda x: (x > 0).any(0),
        lambda x: (x > 0).all(),
        lambda x: x.prod(0),
    ],
)
def test_no_elements(work: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    empty = np.zeros((0, 3))
    try:
        wanted = work(empty)
    except ValueError:
        with pytest.raises(ValueError, match="zero-size"):
            work(tcgen.lazy(empty))
    else:
        np.testing.assert_array_equal(np.asarray(work(tcgen.lazy(empty))), wanted)


@pytest.mark.parametrize("target", ["numpy", "cpu"])
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_positions_are_those_of_the_first(
    target: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of equal elements, and the first NaN if there is one."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", target)
    rows = [[1, 3, 3, 0], [np.nan, 5, np.nan, 9], [np.inf, -np.inf, np.inf, 0], [-0.0, 0.0, 0, 0]]
    rows += [[-np.inf] * 4, [2, np.nan, 7, np.inf]]
    x = np.array(rows, kind)
    for work in (
        lambda x: np.argmax(-x, 1),
        lambda x: np.argmin(x * 2, axis=-1),
        lambda x: np.argmax(x * 1, axis=0),
        lambda x: np.argmin(x[:2, :, None] + x[:2, None, :], axis=1, keepdims=True),
    ):
        lazy, wanted = work(tcgen.lazy(x)), work(x)
        assert (lazy.pending > 0, lazy.shape, lazy.dtype) == (True, wanted.shape, wanted.dtype)
        np.testing.assert_array_equal(np.asarray(lazy), wanted)
    for work in (
        lambda x: (x[::2] + x[::2]).argmax(),
        lambda x: np.argmin(abs(x), keepdims=True),
        lambda x: np.argmax(x[1] * 2, 0),
    ):
        np.testing.assert_array_equal(work(tcgen.lazy(x)), work(x))  # NumPy takes one pass


def test_positions_are_found_while_the_row_is_in_a_cache() -> None:
    text = np.argmax(np.exp(tcgen.lazy(np.ones((300, 1000)))), 1).explain()
    assert [line for line in text.splitlines() if line.startswith("# ")] == ["# nest_0 (nest)"]
    assert "t1[1,s1] arena in loop 0, visits 0..2, 8000 bytes" in text


def test_positions_that_kernels_cannot_count_are_found_by_numpy() -> None:
    x = tcgen.lazy(np.zeros((2**12, 2**12 + 1), "float32"))
    assert isinstance((x + 1).argmax(), np.int64)
    assert (x + 1).argmax(1).pending > 0
    assert isinstance(x.argmax(1), np.ndarray)  # NumPy takes one pass


def test_nan_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "cpu")
    x = X.copy()
    x[2, 3] = np.nan
    for work in (
        lambda x: np.maximum(x, 0).max(0),
        lambda x: np.clip(x, -1, 1),
        lambda x: (x < 1) | (x > 1),
        lambda x: np.sign(x) * np.minimum(0.5, x),
    ):
        np.testing.assert_array_equal(np.asarray(work(tcgen.lazy(x))), work(x))


def test_complex_numbers_that_are_not_chosen_leave_no_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither infinities and NaN of the other value nor its sign of zero."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "cpu")
    one = np.array([1, np.nan, complex(np.inf, np.nan), complex(-0.0, 0.0)])
    other = np.array([complex(np.nan, np.inf), -2j, 3, complex(0.0, -0.0)])
    for condition in (np.array([True, False, False, True]), np.array([False, True, True, False])):
        found = np.where(*map(tcgen.lazy, (condition, one, other)))
        assert found.pending == 1
        wanted = np.where(condition, one, other)
        np.testing.assert_array_equal(np.asarray(found).view(np.int64), wanted.view(np.int64))


@pytest.mark.parametrize(
    "axes", [1, 3, (0, 1), ((0, 0), (0, 1)), ((0, 1), (0,)), ((0, 2), (0, 1)), 1.5, (0,)]
)
def test_tensordot_refuses_what_numpy_refuses(axes: Any) -> None:
    for elements in ("0", "1000000"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TCGEN_LAZY_MIN_ELEMENTS", elements)
            with pytest.raises((ValueError, TypeError, IndexError)) as wanted:
                np.tensordot(X, Y, axes)
            with pytest.raises(wanted.type) as found:
                np.tensordot(tcgen.lazy(X), tcgen.lazy(Y), axes)
            assert str(found.value) == str(wanted.value)
