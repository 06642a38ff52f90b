"""``where`` of complex numbers, by kernels and by NumPy; its condition stays real."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcgen
from support.campaigns import cases
from support.lazy_programs import RECORDED
from support.lazy_programs import given as given_arrays
from tcgen.lazy_arrays.compile import lazy_system
from tcgen.lazy_arrays.graph import linearize


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
    work = RECORDED[f"complex: {name}"]
    found = work(*map(tcgen.lazy, given_arrays(work)))
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
