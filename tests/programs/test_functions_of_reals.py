"""In complex programs, roots and logarithms of negative real numbers are complex."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import tcgen
from support.cuda_device import device_named
from support.messages import mentions

TEXT = """
space o = 3
index i j : o
input s[o] real, z[o,o], d real
output r, e, h, g, k, m real
r[i] = sqrt(s[i])*z[i,j]*s[j]
e = sum(i) log(-1)*s[i]
h = log(d)
g[i,j] = sqrt(-1)*z[i,j]
k = sqrt(d)*sqrt(d)
m[i] = abs(sqrt(s[i]))
"""
_RANDOM = np.random.default_rng(0)
S, D = -_RANDOM.random(3), -2.0
Z = _RANDOM.random((3, 3)) + 1j * _RANDOM.random((3, 3))
WANTED = {
    "r": np.sqrt(S + 0j) * (Z @ S),
    "e": np.log(-1 + 0j) * S.sum(),
    "h": np.log(D + 0j),
    "g": 1j * Z,
    "k": D,
    "m": np.sqrt(-S),
}


def check(found: dict[str, np.ndarray]) -> None:
    for name, value in WANTED.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-13)
    assert found["m"].dtype == np.float64


@pytest.mark.few(4)
@pytest.mark.parametrize("objective", ["none", "linear", "time"])
@pytest.mark.parametrize("target", ["numpy", "cpu", "cuda"])
def test_targets(target: str, objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if target == "cuda":
        if objective == "time":
            pytest.skip("the plan is that of the other targets")
        device = device_named("emulator")
        monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: device)
    monkeypatch.setenv("TCGEN_VERIFY", "2")
    program = tcgen.compile(TEXT, dtype="complex128", target=target, objective=objective)
    check(program(s=S, z=Z, d=D))


def test_interpreter() -> None:
    arrays = {"s": S, "z": Z, "d": np.asarray(D)}
    system = tcgen.read_spec(TEXT)
    check(tcgen.evaluate_system(system, arrays, {"o": 3}, dtype="complex128"))


def test_a_product_with_a_root_of_a_real_tensor_is_not_taken_for_hermitian() -> None:
    text = """
    space o = 3
    index i j : o
    input s real, h[o,o] hermitian (0)<->(1)
    output r[o,o] hermitian (0)<->(1)
    r[i,j] = sqrt(s)*h[i,j]
    """
    with pytest.raises(tcgen.SpecError):
        tcgen.compile(text, dtype="complex128")
    tcgen.compile(text)


@pytest.mark.parametrize("target", ["numpy", "cpu"])
def test_the_imaginary_unit(target: str) -> None:
    text = """
    space o = 3
    index i j : o
    input z[o,o]
    output r, e
    r[i,j] = 1j*z[i,j] - 0.5j*z[j,i] + z[i,j]*2e1j/1.j
    e = 1j*z[i,i]*1j
    """
    program = tcgen.compile(text, dtype="complex128", target=target)
    found = program(z=Z)
    np.testing.assert_allclose(found["r"], 1j * Z - 0.5j * Z.T + 20 * Z)
    np.testing.assert_allclose(found["e"], -np.trace(Z))
    with pytest.raises(tcgen.SpecError, match=mentions("6:14 complex128")):
        tcgen.compile(text)
    for name in ("j", "j1", "1jj", "1j1"):  # an index, a name, and no numbers
        with pytest.raises(tcgen.SpecError):
            tcgen.read_spec(text.replace("2e1j", name))


def test_the_imaginary_unit_of_sympy() -> None:
    n = sympy.Symbol("n", integer=True)
    i, j = sympy.symbols("i j", cls=sympy.Idx, range=n)
    a, r = (sympy.IndexedBase(name, shape=(n, n)) for name in "ar")
    program = tcgen.compile(
        tcgen.from_sympy(sympy.Eq(r[i, j], sympy.I * a[j, i] / 2)),
        extents={"n": 3},
        dtype="complex128",
        target="numpy",
    )
    np.testing.assert_allclose(program(a=Z)["r"], 0.5j * Z.T)
