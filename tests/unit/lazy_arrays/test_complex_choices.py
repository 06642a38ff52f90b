"""``where`` of complex numbers, by kernels and by NumPy; its condition stays real."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcgen
from support.campaigns import cases
from tcgen.lazy_arrays.compile import lazy_system
from tcgen.lazy_arrays.graph import linearize

Work = Callable[[Any, Any, Any, Any], Any]
RANDOM = np.random.default_rng(0)
Z, W = RANDOM.standard_normal((2, 6, 7)) + 1j * RANDOM.standard_normal((2, 6, 7))
X, MASK = RANDOM.standard_normal((6, 7)), RANDOM.random((6, 7)) > 0.5


def escaped(z: Any, c: Any) -> Any:
    """Points that leave a disk keep their last place."""
    count = np.abs(c) * 0
    for _ in range(5):
        inside = abs(z) < 2.0
        count = count + inside
        z = np.where(inside, z * z + c, z)
    return z, count


def masked_update(z: Any, b: Any) -> Any:
    z = z * 1
    z[:] = np.where(b, z * 2, z)
    z += np.where(b, 1j, z)
    return z


# Of two arrays of complex numbers, one of real ones, and one of booleans.
DELAYED: dict[str, Work] = {
    "arrays": lambda z, w, x, b: np.where(b, z * w, z),
    "numbers": lambda z, w, x, b: np.where(b, z + 1, 0) * np.where(b, 1j, w * 2),
    "pending condition": lambda z, w, x, b: np.where((x > 0) & ~b, z, w),
    "condition of another shape": lambda z, w, x, b: np.where(b[:, :1], z[0], w),
    "transposed": lambda z, w, x, b: np.where(b.T, z.T, w.T)[1:] - 1,
    "sliced": lambda z, w, x, b: np.where(b, z, w)[1:, ::2] + np.where(b, w, z)[:-1, ::2],
    "condition as a factor": lambda z, w, x, b: np.where(b, z * b, w) + b,
    "condition chosen": lambda z, w, x, b: np.where(b, b, z * w),
    "sum": lambda z, w, x, b: np.where(x > 0, z, w).sum(0),
    "product": lambda z, w, x, b: np.where(b, z, 0) @ w.T,
    "nested": lambda z, w, x, b: np.where(b, np.where(x > 0, z, 2), np.exp(w)),
    "escaped": lambda z, w, x, b: escaped(z * 2, w)[0],
    "integers": lambda z, w, x, b: np.where(b, z, np.arange(7)),
}
OTHERS: dict[str, Work] = {
    "count": lambda z, w, x, b: sum(escaped(z * 2, w)),
    "pending factor": lambda z, w, x, b: z * (x > 0) + (x < 1) * w - (x > 0),
    "real and complex": lambda z, w, x, b: np.where(b, z, x),
    "real": lambda z, w, x, b: np.where(b, z.real, x) + np.where(x > 0, 1j, x),
    "complex condition": lambda z, w, x, b: np.where(z * (x > 0), z, w),
    "update": lambda z, w, x, b: masked_update(z, b),
    "updated condition": lambda z, w, x, b: np.where(np.logical_not(b, out=b * b), z, w),
    "no axes": lambda z, w, x, b: np.where(b[0, 0], z.sum(), 1j),
    "no elements": lambda z, w, x, b: np.where(b[:0], z[:0] * 2, w[:0]),
}


def check(work: Work, dtype: str = "complex128") -> Any:
    arrays = Z.astype(dtype), W.astype(dtype), X, MASK
    wanted = work(*(a.copy() for a in arrays))
    found = work(*(tcgen.lazy(a, copy=True) for a in arrays))
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    pending = getattr(found, "pending", 0)
    tolerance = 1e-5 if dtype == "complex64" else 1e-12
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=tolerance, atol=tolerance)
    return pending


@pytest.mark.parametrize("name", [*DELAYED, *OTHERS])
@pytest.mark.parametrize(
    "how", ["kernels", "recorded", "at once", pytest.param("compiled", marks=pytest.mark.slow)]
)
def test_values(how: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    least = {"recorded": "3", "at once": "1000"}.get(how, "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "cpu" if how == "compiled" else "numpy")
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", least)
    pending = check({**DELAYED, **OTHERS}[name])
    if name in DELAYED and how != "at once":
        assert pending > 0
    check({**DELAYED, **OTHERS}[name], "complex64")


@pytest.mark.parametrize("name", ["numbers", "condition as a factor", "escaped"])
def test_values_by_the_c_compiler(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "cpu")
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    check(DELAYED[name])


def test_what_is_not_chosen_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinities and NaN of the other value leave no trace, nor do signs of zero change."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "cpu")
    one = np.array([1, np.nan, complex(np.inf, np.nan), complex(-0.0, 0.0)])
    other = np.array([complex(np.nan, np.inf), -2j, 3, complex(0.0, -0.0)])
    for condition in (np.array([True, False, False, True]), np.array([False, True, True, False])):
        found = np.where(*map(tcgen.lazy, (condition, one, other)))
        assert found.pending == 1
        np.testing.assert_array_equal(
            np.asarray(found).view(np.int64), np.where(condition, one, other).view(np.int64)
        )


@pytest.mark.parametrize(("name", "real"), [("arrays", True), ("condition as a factor", False)])
def test_a_condition_is_read_as_real_numbers(
    name: str, real: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    found = DELAYED[name](*map(tcgen.lazy, (Z, W, X, MASK)))
    inputs = lazy_system(linearize((found._node,))).inputs
    assert [place.real for place in inputs].count(True) == real


@given(st.integers(0, 2**32))
@cases(30)
def test_random_choices(seed: int) -> None:
    """Of complex arrays, numbers and masks that broadcast, some of which wait."""
    random = np.random.default_rng(seed)
    shapes = [(3, 4), (4,), (3, 1), (1, 4)]

    def array(kind: str) -> Any:
        values = random.integers(-3, 4, shapes[random.integers(4)])
        if kind == "b":
            return values > 0
        return values + 1j * random.integers(-3, 4, values.shape)

    given, steps = [array("c"), array("c"), array("b"), array("b")], random.integers(0, 7, 4)

    def run(z: Any, w: Any, b: Any, d: Any) -> Any:
        made = z
        for step in steps:
            match step:
                case 0:
                    made = np.where(b, made, w)
                case 1:
                    made = np.where(b & ~d, made * w, 2)
                case 2:
                    made = np.where(d, 1j, made + b)
                case 3:
                    made = made * d - w
                case 4:
                    made = np.where(made.real > 0, made, np.conj(w))
                case 5:
                    made = np.where(b, w * 2, made).T.copy().T
                case _:
                    made = made[..., ::-1]
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TCGEN_EINSUM_TARGET", "numpy")
        patch.setenv("TCGEN_LAZY_MIN_ELEMENTS", ["0", "3", "1000"][seed % 3])
        found, wanted = run(*map(tcgen.lazy, given)), run(*given)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(np.asarray(found), wanted)
