"""Lazy arrays follow the array API as NumPy does: its namespace and the protocols of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcgen
from tcgen.lazy_arrays import namespace as xp

UNARY = (
    "abs acos acosh asin asinh atan atanh ceil conj cos cosh exp expm1 floor imag isfinite "
    "isinf isnan log log10 log1p log2 logical_not negative positive real reciprocal round "
    "sign signbit sin sinh sqrt square tan tanh trunc all any argmax argmin count_nonzero "
    "cumulative_prod cumulative_sum max mean min prod std sum var argsort sort flip "
    "squeeze zeros_like ones_like empty_like nonzero unique_all unique_counts "
    "unique_values diff "
)
BINARY = (
    "add atan2 copysign divide equal floor_divide greater greater_equal hypot less "
    "less_equal logaddexp maximum minimum multiply nextafter not_equal pow remainder "
    "subtract logical_and logical_or logical_xor matmul vecdot "
)
INTEGERS = "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift "


_OF_SOME = ("argmax", "argmin", "max", "mean", "min", "std", "var")  # need an element


def compared(name: str, *arrays: Any) -> None:
    function = getattr(np, name)
    with np.errstate(all="ignore"):
        wanted = function(*arrays)
        found = getattr(xp, name)(*[xp.asarray(a) for a in arrays])
    if not isinstance(wanted, tuple):
        wanted, found = (wanted,), (found,)
    for one, other in zip(wanted, found, strict=True):
        assert isinstance(other, tcgen.LazyArray)
        assert (other.shape, other.dtype) == (np.shape(one), np.asarray(one).dtype)
        if name != "empty_like":
            np.testing.assert_array_equal(other, one)


@pytest.mark.skipif(np.__version__ < "2.1", reason="NumPy has not all functions of the standard")
@pytest.mark.parametrize("least", ["0", "1000000"])
def test_functions_of_the_standard_are_numpys(least: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", least)
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "numpy")
    vectors = (np.array([0.5, -1.0, 2.0, 0.0]), np.array([1, 2, 3]), np.array([], "float32"))
    with np.errstate(all="ignore"):
        for name in UNARY.split():
            for array in vectors:
                if array.size or name not in _OF_SOME:
                    compared(name, array)
        for name in BINARY.split():
            compared(name, vectors[0], vectors[0][::-1])
        for name in INTEGERS.split():
            compared(name, vectors[1], vectors[1])


def test_arrays_come_from_the_namespace_of_an_array() -> None:
    x = tcgen.lazy(np.ones((2, 3)))
    named = x.__array_namespace__()
    for made in (
        named.zeros((2, 2)),
        named.arange(5),
        named.eye(3, dtype=named.float32),
        named.linalg.inv(named.eye(2)),
        named.fft.fft(x),
        named.linalg.qr(x).Q,
        named.meshgrid(x[0], x[0])[1],
        named.sum(x),
    ):
        assert isinstance(made, tcgen.LazyArray)
    assert named.float64 is np.float64
    with pytest.raises(ValueError, match="not supported"):
        x.__array_namespace__(api_version="1999.12")


def test_an_array_that_numpy_passes_on_stays_itself() -> None:
    x = tcgen.lazy(np.arange(3.0))
    xp = x.__array_namespace__()
    assert xp.asarray(x) is x
    assert xp.asarray(x, dtype=np.float64) is x
    assert xp.ascontiguousarray(x) is x
    copied, other = xp.asarray(x, copy=True), xp.asarray(x, dtype=np.int64)
    x[0] = 9
    np.testing.assert_array_equal(copied, [0, 1, 2])
    np.testing.assert_array_equal(other, [0, 1, 2])


def test_other_libraries_get_copies() -> None:
    x = tcgen.lazy(np.arange(3.0))
    taken = np.from_dlpack(x)
    x[0] = 9
    np.testing.assert_array_equal(taken, [0, 1, 2])
    assert x.__dlpack_device__() == np.ones(1).__dlpack_device__()


@pytest.mark.skipif(np.__version__ < "2.1", reason="NumPy exports no read-only arrays")
def test_other_libraries_get_the_memory_where_they_ask_for_it() -> None:
    class Older:
        """An array for a library that knows no read-only memory."""

        def __init__(self, array: tcgen.LazyArray) -> None:
            self.array = array

        def __dlpack__(self, **options: object) -> object:
            return self.array.__dlpack__(copy=False)

        def __dlpack_device__(self) -> object:
            return self.array.__dlpack_device__()

    x = tcgen.lazy(np.arange(3.0))
    y, doubled = x.copy(), x * 2
    seen = np.from_dlpack(x, copy=False)
    assert np.shares_memory(seen, x._values())
    np.testing.assert_array_equal(seen, [0, 1, 2])
    own = np.from_dlpack(Older(x))
    np.testing.assert_array_equal(own, [0, 1, 2])
    assert np.shares_memory(own, x._values())
    assert not np.shares_memory(own, np.asarray(y))
    np.testing.assert_array_equal(doubled, [0, 2, 4])
    assert x.to_device("cpu").device == "cpu"


def test_comparisons_with_other_things_are_numpys() -> None:
    x = tcgen.lazy(np.arange(3.0))
    np.testing.assert_array_equal(x == "a", np.arange(3.0) == "a")
    np.testing.assert_array_equal(x != None, [True] * 3)  # noqa: E711
    with pytest.raises(TypeError):
        _ = x < "a"
    with pytest.raises(ValueError, match="broadcast"):
        _ = x == np.ones(4)
