"""Maxima, minima and products over indices, and functions of several arguments, on all targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcgen
from support.cuda_device import device_named
from support.messages import mentions

TEXT = """
space o = 30
space v = 40
index i j k : o
index a b : v
input r[o,v], d[o,o], x[v] real
output n, s, p, q, w, z, u, m, c
n = max(i,a) abs(r[i,a])
s[i,j] = min(k) (d[i,k] + d[k,j])
p = prod(a) x[a]
q[i] = 2*max(a) r[i,a]*x[a] - min(a) r[i,a] + x[a]*r[i,a]
w[i,a] = r[i,a]*max(b) r[i,b]
z[a] = sum(i) maximum(r[i,a], 0) + where(less(x[a], 0), -x[a], arctan2(x[a], 2))
e[i,a] = exp(r[i,a]) + floor(4*r[i,a]) + sign(r[i,a]) + mod(r[i,a], x[a]) + tan(r[i,a])
u[a] = max(i) e[i,a]
c[i,a] = hypot(r[i,a], x[a]) + logaddexp(r[i,a], x[a]) + cbrt(r[i,a]) + exp2(x[a])
c[i,a] += log1p(r[i,a]**2) + expm1(r[i,a]) + rint(4*x[a]) + logaddexp(x[a], x[a])
m[i] = sum(a) e[i,a]*minimum(r[i,a], x[a])*pow(abs(x[a]), r[i,a])
"""
RANDOM = np.random.default_rng(3)
REAL = TEXT.replace("x[v] real", "x[v]")
EXTENTS = {"o": 5, "v": 7}


def arrays(extents: dict[str, int]) -> dict[str, np.ndarray]:
    o, v = extents["o"], extents["v"]
    return {
        "r": RANDOM.standard_normal((o, v)),
        "d": RANDOM.standard_normal((o, o)),
        "x": RANDOM.standard_normal(v) * 2,
    }


def wanted(r: Any, d: Any, x: Any) -> dict[str, Any]:
    e = np.exp(r) + np.floor(4 * r) + np.sign(r) + np.mod(r, x) + np.tan(r)
    return {
        "n": abs(r).max(),
        "s": (d[:, None, :] + d.T[None]).min(-1),
        "p": x.prod(),
        "q": 2 * (r * x).max(1) - r.min(1) + r @ x,
        "w": r * r.max(1)[:, None],
        "z": np.maximum(r, 0).sum(0) + np.where(x < 0, -x, np.arctan2(x, 2)),
        "u": e.max(0),
        "c": np.hypot(r, x)
        + np.logaddexp(r, x)
        + np.cbrt(r)
        + np.exp2(x)
        + np.log1p(r**2)
        + np.expm1(r)
        + np.rint(4 * x)
        + np.logaddexp(x, x),
        "m": (e * np.minimum(r, x) * abs(x) ** r).sum(1),
    }


def test_interpreter() -> None:
    given = arrays(EXTENTS)
    found = tcgen.evaluate_system(tcgen.read_spec(REAL), given, EXTENTS)
    in_blocks = tcgen.evaluate_system(tcgen.read_spec(REAL), given, EXTENTS, budget_bytes=64)
    for name, value in wanted(**given).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12)
        np.testing.assert_allclose(in_blocks[name], value, rtol=1e-12)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("target", "objective", "dtype"),
    [
        ("numpy", "memory", "float64"),
        ("cpu", "none", "float64"),
        ("cpu", "memory", "float32"),
        ("cuda", "memory", "float64"),
        pytest.param("numpy", "time", "float32", marks=pytest.mark.slow),
        pytest.param("cpu", "time", "float64", marks=pytest.mark.slow),
        pytest.param("cpu", "kernels", "float64", marks=pytest.mark.slow),
        pytest.param("cuda", "none", "float32", marks=pytest.mark.slow),
        pytest.param("cuda", "kernels", "float64", marks=pytest.mark.slow),
    ],
)
def test_targets(target: str, objective: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if target == "cuda":
        device = device_named("emulator")
        monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: device)
    monkeypatch.setenv("TCGEN_VERIFY", "2")
    program = tcgen.compile(REAL, dtype=dtype, target=target, objective=objective)
    for extents in (EXTENTS, {"o": 33, "v": 64}, {"o": 1, "v": 1}):
        given = {name: a.astype(dtype) for name, a in arrays(extents).items()}
        found = program(**given)
        for name, value in wanted(**given).items():
            tolerance = 1e-3 if dtype == "float32" else 1e-11
            np.testing.assert_allclose(found[name], value, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("target", ["numpy", "cpu", "cuda"])
def test_long_reductions(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reductions that threads and thread blocks divide, with NaN as in NumPy."""
    if target == "cuda":
        device = device_named("emulator")
        monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: device)
    text = """
    space o = 300
    space v = 400
    index i : o
    index a : v
    input x[o,v]
    output n, l, p, c
    n = max(i,a) x[i,a]
    l = min(i,a) abs(x[i,a])
    p = prod(i,a) (1 + x[i,a]/100000)
    c[a] = max(i) x[i,a]
    """
    program = tcgen.compile(text, target=target)
    x = RANDOM.standard_normal((300, 400))
    before = tcgen.get_threads()
    tcgen.set_threads(2)
    try:
        found = program(x=x)
    finally:
        tcgen.set_threads(before)
    assert found["n"] == x.max()
    assert found["l"] == abs(x).min()
    np.testing.assert_allclose(found["p"], np.prod(1 + x / 100000), rtol=1e-12)
    np.testing.assert_array_equal(found["c"], x.max(0))
    x[7, 5] = np.nan
    found = program(x=x)
    assert np.isnan(found["n"])
    assert np.isnan(found["l"])
    np.testing.assert_array_equal(found["c"], x.max(0))


@pytest.mark.parametrize("target", ["numpy", "cpu"])
def test_no_elements_give_the_neutral_element(target: str) -> None:
    text = """
    space o = 3
    index i j : o
    input x[o,o]
    output n, l, p
    n = max(i,j) x[i,j]
    l = min(i,j) x[i,j]
    p = prod(i,j) x[i,j]
    """
    found = tcgen.compile(text, target=target)(x=np.zeros((0, 0)))
    assert (found["n"], found["l"], found["p"]) == (-np.inf, np.inf, 1)
    found = tcgen.evaluate_system(tcgen.read_spec(text), {"x": np.zeros((0, 0))}, {"o": 0})
    assert (found["n"], found["l"], found["p"]) == (-np.inf, np.inf, 1)


def test_a_maximum_does_not_distribute() -> None:
    """Factors and signs stay where they are: max(-x) is not -max(x), nor a maximum a sum."""
    text = """
    space o = 30
    index i j : o
    input x[o], c, y[o,o] antisymmetric (0,1)
    output e, f, g
    t = max(i) x[i]
    u = max(i) (-x[i])
    e = c*t + c*u
    f = max(i) c*x[i]
    g = max(i,j) y[i,j]
    """
    x, y = RANDOM.standard_normal(6), RANDOM.standard_normal((6, 6))
    y = y - y.T
    found = tcgen.compile(text)(x=x, c=-2.0, y=y)
    np.testing.assert_allclose(found["e"], -2 * (x.max() + (-x).max()))
    np.testing.assert_allclose(found["f"], (-2 * x).max())
    assert found["g"] == y.max()


def test_complex_programs() -> None:
    text = """
    space o = 3
    index i j : o
    input z[o,o], x[o] real
    output n, p, m
    n = max(i,j) abs(z[i,j])
    p[j] = prod(i) z[i,j]
    m = min(i) x[i]
    """
    z = RANDOM.standard_normal((4, 4)) + 1j * RANDOM.standard_normal((4, 4))
    x = RANDOM.standard_normal(4)
    for target in ("numpy", "cpu"):
        found = tcgen.compile(text, dtype="complex128", target=target)(z=z, x=x)
        np.testing.assert_allclose(found["n"], abs(z).max())
        np.testing.assert_allclose(found["p"], z.prod(0))
        assert found["m"] == x.min()
    wrong = text.replace("abs(z[i,j])", "z[i,j]")
    with pytest.raises(tcgen.SpecError, match=mentions("max of z[i,j] complex abs(..)")):
        tcgen.compile(wrong, dtype="complex128")
    with pytest.raises(tcgen.SpecError, match=mentions("maximum z[i,j] complex")):
        tcgen.compile(text.replace("abs(z[i,j])", "maximum(z[i,j], 0)"), dtype="complex128")


CHOICE = """
space o = 6
index i j : o
input z[o,o], w[o], x[o] real
output c, d, e, r, s
c[i,j] = where(less(x[i], 0), z[i,j]*z[i,j], w[j])
d[i,j] = where(x[i]*x[j], z[i,j], 0)*where(real(z[i,j]), x[j], w[i])
e[i,j] = where(less(abs(z[i,j]), 1), where(imag(z[i,j]), z[i,j], 1), -z[i,j])
r[i] = where(less(x[i], 0), -x[i], 2)
s = sum(i,j) where(less(x[i], x[j]), z[i,j], 0)
"""


@pytest.mark.parametrize("objective", ["none", "memory"])
@pytest.mark.parametrize("target", ["interpreter", "numpy", "cpu", "cuda"])
def test_choices_of_complex_numbers(
    target: str, objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    z = RANDOM.standard_normal((6, 6)) + 1j * RANDOM.standard_normal((6, 6))
    w, x = z[0] * 2, RANDOM.standard_normal(6)
    x[2] = 0
    z[1, 1], w[3] = np.nan, complex(0, np.inf)  # which spoil no other element
    with np.errstate(all="ignore"):
        wanted = {
            "c": np.where((x < 0)[:, None], z * z, w),
            "d": np.where(np.outer(x, x) != 0, z, 0) * np.where(z.real != 0, x, w[:, None]),
            "e": np.where(abs(z) < 1, np.where(z.imag != 0, z, 1), -z),
            "r": np.where(x < 0, -x, 2),
            "s": np.where(x[:, None] < x, z, 0).sum(),
        }
    given = {"z": z, "w": w, "x": x}
    if target == "interpreter":
        found = tcgen.evaluate_system(tcgen.read_spec(CHOICE), given, {"o": 6})
    else:
        if target == "cuda":
            device = device_named("emulator")
            monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: device)
        program = tcgen.compile(CHOICE, dtype="complex128", target=target, objective=objective)
        found = program(**given)
    assert np.isfinite(wanted["s"])
    for name, value in wanted.items():
        finite = np.isfinite(value)
        np.testing.assert_allclose(found[name][finite], value[finite], rtol=1e-13)


def test_a_choice_needs_a_real_condition() -> None:
    wrong = CHOICE.replace("where(less(x[i], 0), z", "where(z[i,j], z")
    with pytest.raises(tcgen.SpecError, match=mentions("where z[i,j] complex abs(..)")):
        tcgen.compile(wrong, dtype="complex128")
    wrong = CHOICE.replace("less(x[i], 0), z", "less(where(x[i], z[i,j], 1), 0), z")
    with pytest.raises(tcgen.SpecError, match=mentions("less where complex")):
        tcgen.compile(wrong, dtype="complex128")


def test_floyd_and_segments() -> None:
    """Shortest paths by repeated min-plus products, and the largest sum of a segment."""
    text = """
    space o = 8
    index i j k : o
    input d[o,o]
    output e
    c[i,j] = min(k) (d[i,k] + d[k,j])
    b[i,j] = min(k) (c[i,k] + c[k,j])
    e[i,j] = min(k) (b[i,k] + b[k,j])
    """
    d = RANDOM.random((8, 8)) + 0.1
    np.fill_diagonal(d, 0)
    path = d.copy()
    for k in range(8):
        path = np.minimum(path, path[:, k, None] + path[k])
    np.testing.assert_allclose(tcgen.compile(text)(d=d)["e"], path)
    text = """
    space o = 8
    index i j : o
    input s[o]
    output m
    m = max(i,j) (s[j] - s[i])*less(i_[i], i_[j])
    input i_[o]
    """
    x = RANDOM.standard_normal(9)
    sums = np.cumsum(x)
    best = max(max(sums[j] - sums[i] for j in range(i + 1, 9)) for i in range(8))
    found = tcgen.compile(text)(s=sums, i_=np.arange(9.0))["m"]
    assert found == max(best, 0)


def test_derivatives_and_spin_refuse() -> None:
    text = """
    space o occupied = 3
    index i j : o
    input x[o,o], y[o]
    output n
    n = max(i,j) x[i,j]
    """
    system = tcgen.read_spec(text)
    with pytest.raises(tcgen.ArgumentError, match=mentions("max i j differentiated")):
        tcgen.jvp(system, {"x": "dx"})
    with pytest.raises(tcgen.SpecError, match=mentions("max spin")):
        tcgen.spin_integrated(system, "closed-shell")
