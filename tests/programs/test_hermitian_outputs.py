"""Outputs declared hermitian: proofs through conj, and their values."""

from __future__ import annotations

import numpy as np
import pytest

import tcgen

# Each equation reads some of the inputs.
pytestmark = pytest.mark.filterwarnings("ignore:input . is not read")

HEAD = """
space o = 4
space v = 5
index i j k : o
index a b : v
input A[o,v], B[v], u[o], e[o] real, h[o,o] hermitian (0)<->(1)
output r[o,o] hermitian (0)<->(1)
"""


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(
    "right",
    [
        "A[i,a]*conj(A[j,a])",
        "u[i]*conj(u[j])",
        "u[i] + conj(u[j])",
        "h[i,k]*conj(h[j,k])",
        "conj(h[i,j])*e[i]*e[j]",
        "A[i,a]*h[i,j]*conj(A[j,a])",
        "A[i,a]*conj(A[j,b])*conj(B[a])*B[b]",
        "A[i,a]*B[a]*conj(A[j,a]*B[a])",
        "u[i]*conj(u[j])/(abs(u[i]) + abs(u[j]) + e[i] + e[j])",
        "1/(2 + u[i] + conj(u[j]))",
        "exp(u[i])*conj(exp(u[j]))",
        "sqrt(e[i])*conj(sqrt(e[j]))*h[i,j]",
    ],
)
def test_values(right: str, dtype: str) -> None:
    system = tcgen.read_spec(f"{HEAD}r[i,j] = {right}\n")
    bare = tcgen.read_spec(f"{HEAD}r[i,j] = {right}\n".replace("r[o,o] hermitian (0)<->(1)", "r"))
    program = tcgen.compile(system, dtype=dtype, target="numpy")
    random = np.random.default_rng(1)
    for o, v in ((4, 5), (1, 3), (3, 0), (0, 2)):
        shapes = {"A": (o, v), "B": (v,), "u": (o,), "h": (o, o)}
        drawn = {name: random.random(shape) for name, shape in shapes.items()}
        if dtype == "complex128":
            drawn = {name: x + 1j * random.random(x.shape) for name, x in drawn.items()}
        arrays = {**drawn, "h": drawn["h"] + drawn["h"].conj().T, "e": random.random(o)}
        wanted = tcgen.evaluate_system(bare, arrays, {"o": o, "v": v}, dtype=dtype)["r"]
        np.testing.assert_allclose(program(**arrays)["r"], wanted, rtol=1e-13)


@pytest.mark.parametrize(
    "right",
    [
        "A[i,a]*A[j,a]",
        "A[i,a]*B[a]*conj(A[j,a])",
        "h[i,k]*conj(h[k,j])*u[i]",
        "sqrt(e[i])*sqrt(e[j])",
        "exp(u[i])*exp(u[j])",
    ],
)
def test_what_is_not_hermitian_is_refused(right: str) -> None:
    with pytest.raises(tcgen.SpecError, match=r"conj\(r\[i,j\]\)"):
        tcgen.compile(f"{HEAD}r[i,j] = {right}\n", dtype="complex128")
