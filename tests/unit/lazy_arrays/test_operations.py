"""Operations that lazy arrays record, with NumPy's values, types and shapes, however they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcgen
from tcgen.lazy_arrays.dispatch import LIMITS

Work = Callable[[Any, Any, Any, Any], Any]
RANDOM = np.random.default_rng(0)
X, Y = RANDOM.standard_normal((6, 7)), RANDOM.standard_normal((6, 7))
WHOLE, MASK = RANDOM.integers(-3, 4, (6, 7)), RANDOM.random((6, 7)) > 0.5


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


# Of two arrays of real numbers, one of integers, and one of booleans.
DELAYED: dict[str, Work] = {
    "maximum": lambda x, y, i, b: np.maximum(x, y) + np.minimum(x, 0.5),
    "where": lambda x, y, i, b: np.where(x > y, x, -y),
    "masks": lambda x, y, i, b: np.where((x > 0) & (y <= 0.5) | ~(x != y), x, 0.0),
    "xor": lambda x, y, i, b: (x > 0) ^ (y > 0),
    "clip": lambda x, y, i, b: np.clip(x, -0.5, 0.5) + x.clip(0),
    "comparison": lambda x, y, i, b: x >= y,
    "number first": lambda x, y, i, b: 0.2 < x,  # noqa: SIM300
    "equal": lambda x, y, i, b: x * 0 == 0,
    "max": lambda x, y, i, b: (x * y).max(),
    "max over rows": lambda x, y, i, b: np.max(abs(x), axis=0),
    "min": lambda x, y, i, b: (x + y).min(1, keepdims=True),
    "prod": lambda x, y, i, b: np.prod(x, axis=1),
    "any": lambda x, y, i, b: (x > 2).any(0),
    "all": lambda x, y, i, b: np.all(x < 2),
    "argmax": lambda x, y, i, b: (x * y).argmax(1),
    "argmax over columns": lambda x, y, i, b: np.argmax(abs(x - y), axis=0, keepdims=True),
    "argmin": lambda x, y, i, b: np.argmin(x[1:, ::2] * 2, 1),
    "max of masks": lambda x, y, i, b: (x > 0).max(1),
    "integers": lambda x, y, i, b: x * i + y / (i + 5),
    "booleans": lambda x, y, i, b: x * b + (x > 0) * y,
    "power": lambda x, y, i, b: abs(x) ** y + abs(x) ** 1.7 + 2.0**x,
    "more functions": lambda x, y, i, b: np.cbrt(x) + np.exp2(x) + np.hypot(x, y) + np.log1p(x * x),
    "near zero": lambda x, y, i, b: np.expm1(x / 1e9) + np.rint(x * 2) + np.logaddexp(x, y * 50),
    "flipped": lambda x, y, i, b: np.flip(x * y, 1) + np.flip(x - y) + np.flip(y * 2, (0, 1)),
    "split": lambda x, y, i, b: sum(np.split(x * y, 3)) + np.array_split(x + y, 4, 1)[1][:2, :1],
    "differences": lambda x, y, i, b: np.diff(x * y, axis=0) - np.diff(x.T).T,
    "merged axes": lambda x, y, i, b: (x * y + 1).reshape(-1) * 2 + (x - 2.0).ravel(),
    "split axes": lambda x, y, i, b: (
        (x * y).reshape(2, 3, -1).sum(1) / (y + 1).reshape((2, -1)).max()
    ),
    "slices of functions": lambda x, y, i, b: (
        np.exp(x)[1:, 2] * np.tanh(y + x)[::-1].T[2, :-1] + np.sin(np.roll(x, 2, 1))[2:3, 3]
    ),
    "slices of sums": lambda x, y, i, b: np.exp(x - x.max(1, keepdims=True))[1:] / y[1:].sum(),
    "slices and the whole": lambda x, y, i, b: (
        lambda e: e[1:].sum(0) / e.sum(0) + e[:, None][::2, 0].max()
    )(np.exp(x)),
    "slices of slices": lambda x, y, i, b: np.exp(np.cos(x * y)[:, ::2])[::-1][1:, :1] + 0 * y[1:],
    "functions": lambda x, y, i, b: np.tan(x) + np.sinh(x) + np.cosh(y) + np.arctan2(x, y),
    "inverse": lambda x, y, i, b: np.arcsin(x / 9) + np.arccos(y / 9) + np.arctan(x),
    "whole parts": lambda x, y, i, b: np.floor(x) + np.sign(y) + np.mod(x, y) + x % 2,
    "variance": lambda x, y, i, b: x.var(0) + x.std(0),
    "softmax": lambda x, y, i, b: softmax(x),
    "slices": lambda x, y, i, b: np.maximum(x, y)[1:, ::2] - np.where(x > 0, x, y)[:-1, ::2],
    "transposed": lambda x, y, i, b: (x > 0).T,
    "sums of chosen elements": lambda x, y, i, b: (
        np.sum(x * y, axis=0, where=b) + x.sum(0, where=y > 0) + np.where(b, x, np.inf).sum(where=b)
    ),
    "product of chosen elements": lambda x, y, i, b: np.multiply.reduce(x * 2, where=b[0]),
    "no numbers": lambda x, y, i, b: np.isnan(np.where(b, x, np.nan) * y),
    "reciprocal": lambda x, y, i, b: np.reciprocal(x + y) - np.reciprocal(x),
    "masked sum": lambda x, y, i, b: np.sum(np.where(b, x, 0) * i),
    "where whole": lambda x, y, i, b: np.where(b, x * 2, 1.0),
    "tensordot": lambda x, y, i, b: 2 + np.tensordot(x, y.T, 1) + np.tensordot(x, y, axes=(1, -1)),
    "tensordot of sums": lambda x, y, i, b: np.tensordot(x + y, x[:3] * 2, ([1], [1])),
    "outer product": lambda x, y, i, b: np.tensordot(x, y, 0) * 2,
    "tensordot of three axes": lambda x, y, i, b: (
        np.tensordot(x.reshape(2, 3, 7), y.reshape(7, 3, 2), ((1, 2), (1, 0))) - 1
    ),
}
OTHERS: dict[str, Work] = {
    "reciprocal of whole numbers": lambda x, y, i, b: np.reciprocal(i * 0 + 2) + np.isnan(i),
    "mean of chosen elements": lambda x, y, i, b: (
        (x * y).mean(0, where=b) + x.max(0, where=b, initial=0)
    ),
    "sum of chosen masks": lambda x, y, i, b: (x > 0).sum(0, where=b) + np.sum(x, where=b[:1]),
    "methods of numbers": lambda x, y, i, b: x.sum().max().astype("f4") + (y > 0).all().T.var(),
    "count": lambda x, y, i, b: (x > 0).sum(),
    "mean of masks": lambda x, y, i, b: (x > 0).mean(0),
    "mask product": lambda x, y, i, b: (x > 0) * b,
    "mask sum": lambda x, y, i, b: (x > 0) + (y > 0),
    "masks chosen": lambda x, y, i, b: np.where(x > 0, b, y > 0),
    "mask as index": lambda x, y, i, b: x[x > 0],
    "cast": lambda x, y, i, b: -(x > 0).astype(float),
    "mask of whole": lambda x, y, i, b: (i > 0) * x,
    "masked": lambda x, y, i, b: (x + 0) * (1 - (x > 0)),
    "tensordot of all axes": lambda x, y, i, b: np.tensordot(x, y),
    "tensordot of integers": lambda x, y, i, b: np.tensordot(x, i, (0, 0)),
    "reduce": lambda x, y, i, b: np.maximum.reduce(x) + np.multiply.reduce(y),
}


def check(work: Work, dtype: Any) -> Any:
    x, y = X.astype(dtype), Y.astype(dtype)
    wanted = work(x, y, WHOLE, MASK)
    found = work(*map(tcgen.lazy, (x, y, WHOLE, MASK)))
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    pending = getattr(found, "pending", 0)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=10 * tolerance, atol=tolerance)
    return pending


@pytest.mark.parametrize("name", [*DELAYED, *OTHERS])
@pytest.mark.parametrize(
    ("how", "dtype"),
    [
        ("kernels", "float64"),
        ("recorded", "float64"),
        ("recorded", "float32"),
        pytest.param("kernels", "float32", marks=pytest.mark.slow),
        pytest.param("compiled", "float64", marks=pytest.mark.slow),
        pytest.param("compiled", "float32", marks=pytest.mark.slow),
    ],
)
def test_values(how: str, name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By kernels from the first time on, and recorded, but run by NumPy."""
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "cpu" if how == "compiled" else "numpy")
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "3" if how == "recorded" else "0")
    pending = check({**DELAYED, **OTHERS}[name], dtype)
    if name in DELAYED:
        assert pending > 0
    assert LIMITS.kernels_only == (how != "recorded")


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
        lambda x: (x[::2] + x[::2]).argmax(),
        lambda x: np.argmin(abs(x)),
        lambda x: np.argmin(x[:2, :, None] + x[:2, None, :], axis=1, keepdims=True),
    ):
        lazy, wanted = work(tcgen.lazy(x)), work(x)
        assert (lazy.pending > 0, lazy.shape, lazy.dtype) == (True, wanted.shape, wanted.dtype)
        np.testing.assert_array_equal(np.asarray(lazy), wanted)


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
