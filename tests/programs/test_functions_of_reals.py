"""In complex programs, roots and logarithms of negative real numbers are complex."""

from __future__ import annotations

import numpy as np
import pytest

import tcgen
from support.cuda_device import device_named

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
