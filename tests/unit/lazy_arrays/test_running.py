"""Running sums, products, maxima and minima of lazy arrays: NumPy's values, in fused loops."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcgen
from support import cupy_stand_in
from support.marks import slow
from support.paths import ROOT
from tcgen.runtime.gpu.cupy_device import CupyDevice

sys.path.insert(0, str(ROOT))

from benchmarks.array_programs.running import PROGRAMS

Work = Callable[[Any], Any]
ALONE: dict[str, Work] = {
    "cumsum": lambda x: np.cumsum(x, 0),
    "method": lambda x: x.cumsum(axis=-1),
    "cumprod": lambda x: np.cumprod(x, axis=1),
    "add": lambda x: np.add.accumulate(x),
    "multiply": lambda x: np.multiply.accumulate(x, axis=1),
    "maximum": lambda x: np.maximum.accumulate(x, 1),
    "minimum": lambda x: np.minimum.accumulate(x),
}
FUSED: dict[str, Work] = {
    "of a product": lambda x: np.cumsum(x * 3, 1) * 2 - x,
    "twice": lambda x: np.cumsum(np.cumsum(x * 2, 0), 1),
    "two axes": lambda x: np.cumsum(x * 2, 0) + np.cumsum(x * 2, 1),
    "of a transpose": lambda x: np.cumsum(x.T * 2, 0),
    "reversed": lambda x: np.cumsum(x[::-1, 1:] * 2, 0)[::-1],
    "symmetric": lambda x: np.cumsum(x[:2, :2] + x[:2, :2].T, 0),
    "changes": lambda x: x.__iadd__(np.cumsum(x * 2, 0)),
    "columns": lambda x: (x := x * 1).__setitem__((slice(None), 1), np.cumsum(x[:, 0] * 2)) or x,
}
OTHERS: dict[str, Work] = {
    "counts": lambda x: np.cumsum(x > 0, 0),
    "any so far": lambda x: np.maximum.accumulate(x > 0, 1),
    "flat": lambda x: np.cumsum(x),
    "of one number": lambda x: np.cumsum(x[:1, :1] * 2),
    "dtype": lambda x: np.cumsum(x * 1, 1, dtype=complex),
    "out": lambda x: np.cumsum(x * 1, 1, out=np.empty_like(np.asarray(x))),
    "no axis": lambda x: np.cumsum(x, 2),
    "two at once": lambda x: np.cumsum(x, (0, 1)),
}
EVALUATED = {"changes", "columns", "reversed", *OTHERS} - {"counts", "any so far"}
KINDS = ("float64", "float32", "complex128", "int32", "bool")
LAYOUTS: dict[str, Work] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "steps": lambda x: np.repeat(x, 2, 0)[::2],
}


def same(work: Work, array: Any) -> int:
    """Compare with NumPy, bit for bit; the number of pending operations."""
    with np.errstate(all="ignore"):
        try:
            wanted = np.asarray(work(array.copy("K")))
        except (ValueError, TypeError) as error:
            with pytest.raises(type(error)):
                work(tcgen.lazy(array.copy("K")))
            return 0
        found = work(tcgen.lazy(array.copy("K")))
        pending = getattr(found, "pending", 0)
        values = np.asarray(found)
    assert (values.dtype, values.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(values, wanted)
    if wanted.dtype.kind == "f":  # NaN has no sign of its own
        ordered = ~np.isnan(wanted)
        assert np.array_equal(np.signbit(values)[ordered], np.signbit(wanted)[ordered])
    return int(pending)


@pytest.mark.few(12)
@pytest.mark.parametrize("name", [*ALONE, *FUSED, *OTHERS])
@pytest.mark.parametrize("kind", ["float64", *slow(*KINDS[1:])])
@pytest.mark.parametrize("target", ["numpy", *slow("cpu")])
def test_values(target: str, kind: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of NumPy to the bit: kernels add in the same order."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", target)
    x = np.random.default_rng(0).standard_normal((5, 7)) * 3
    x[0, 0], x[1, 1] = -0.0, 0.0
    if kind[0] == "f":
        x[2, 3], x[3, 1:3] = np.nan, (np.inf, -np.inf)
    array = (x * (1 + 2j) if kind == "complex128" else x).astype(kind)
    for layout in LAYOUTS.values():
        pending = same({**ALONE, **FUSED, **OTHERS}[name], layout(array))
        assert pending > 0 or name in EVALUATED or kind != "float64"


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 3), (3, 1), (1, 1), (2, 3, 5), (1,), (0,)])
def test_shapes(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "numpy")
    x = np.random.default_rng(0).standard_normal(shape)
    for axis in range(len(shape)):
        for call in (np.cumsum, np.cumprod, np.minimum.accumulate):
            assert same(lambda x, call=call, axis=axis: call(x * 2, axis=axis), x)


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_loop_without_an_array_of_running_sums(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "numpy")
    program = PROGRAMS[name]
    x = np.random.default_rng(0).standard_normal(101)
    found = program(tcgen.lazy(x))
    text = found.explain()
    assert [line for line in text.splitlines() if line.startswith("# ")] == ["# nest_0 (nest)"]
    assert "arena" not in text
    assert text.count(" register in loop 0") >= 1
    np.testing.assert_allclose(np.asarray(found), program(x), rtol=1e-14)


def test_the_maximum_segment_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against all segments, that without elements included."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "numpy")
    rng = np.random.default_rng(0)
    for array in (rng.integers(-5, 5, 13), -np.arange(1, 4), np.arange(5), np.array([-3, 7])):
        x = array.astype(float)
        sums = [x[a:b].sum() for a in range(len(x) + 1) for b in range(a, len(x) + 1)]
        assert float(PROGRAMS["maximum segment sum"](tcgen.lazy(x))) == max(sums)


def test_numpy_runs_them_until_a_kernel_pays() -> None:
    x = np.random.default_rng(0).standard_normal(200_000)
    for work in (ALONE["cumsum"], ALONE["minimum"], PROGRAMS["maximum segment sum"]):
        lazy = work(tcgen.lazy(x))
        assert lazy.pending > 0
        np.testing.assert_array_equal(np.asarray(lazy), work(x))


def test_cupy_computes_them_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    device = CupyDevice(cupy_stand_in.module)
    monkeypatch.setattr("tcgen.lazy_arrays.backend.open_device", lambda: device)
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "3")
    x = np.arange(6.0)
    made = np.cumsum(tcgen.lazy(cupy_stand_in.module.asarray(x)) * 2)
    found = made.compute() if isinstance(made, tcgen.LazyArray) else made
    assert getattr(made, "pending", 0) == 0
    np.testing.assert_array_equal(found.get(), np.cumsum(x * 2))
