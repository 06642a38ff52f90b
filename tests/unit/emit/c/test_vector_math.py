"""Functions in generated C: vector forms where the C library has them, and powers."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import tcgen

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
FUNCTIONS = ("exp", "log", "sin", "cos", "tanh")
EXPONENTS = (0, 1, 2, 3, 16, 31, 32, 33, 100, -1, -2, -33)


def program(expressions: dict[str, str], dtype: str) -> tcgen.Program:
    """One output for each expression of ``x[i]``."""
    names = ", ".join(f"{name}[n]" for name in expressions)
    lines = [f"{name}[i] = {text}" for name, text in expressions.items()]
    spec = ["space n", "index i : n", "input x[n]", f"output {names}", *lines, ""]
    return tcgen.compile("\n".join(spec), extents={"n": 1000}, dtype=dtype, target="cpu")


def samples(dtype: str) -> np.ndarray:
    """Small and large, of both signs, around the ends of the range of exp, and special ones."""
    kind, rng = np.finfo(dtype), np.random.default_rng(0)
    low, high = np.log(float(kind.tiny)), np.log(float(kind.max))
    wide = np.exp(rng.uniform(low, high, 3000))
    near = np.exp(rng.uniform(-36, 0, 1000))
    parts = [rng.uniform(-10, 10, 3000), rng.uniform(low * 1.06, high * 1.02, 2000), wide, -wide]
    parts += [1 + near, 1 - near, np.arange(1, 500) * np.pi / 2]
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, kind.tiny, kind.smallest_subnormal, kind.max]
    return np.concatenate([*parts, special, np.negative(special)]).astype(dtype)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_are_right_to_four_units_in_the_last_place(
    dtype: str, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if plain:
        monkeypatch.setenv("TCGEN_CC", "cc -DTC_PLAIN_MATH")
    x, kind = samples(dtype), np.finfo(dtype)
    results = program({f"z_{name}": f"{name}(x[i])" for name in FUNCTIONS}, dtype)(x=x)
    with np.errstate(all="ignore"):
        for name in FUNCTIONS:
            found, exact = results[f"z_{name}"], getattr(np, name)(x.astype("longdouble"))
            wanted = exact.astype(dtype)
            normal = np.isfinite(wanted) & (np.abs(wanted) >= kind.tiny)
            units = np.abs(found - exact)[normal] / np.spacing(np.abs(wanted[normal]))
            assert np.max(units) <= 4, name
            same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
            below = np.abs(found - wanted) <= 4 * kind.smallest_subnormal
            assert (normal | same | below).all(), name
            assert (np.signbit(found) == np.signbit(wanted))[~np.isnan(wanted)].all(), name


def test_vector_forms_are_declared_where_they_are_called() -> None:
    assert "declare simd" in program({"z": "1 + tanh(x[i])"}, "float64").source
    assert "declare simd" not in program({"z": "sqrt(x[i])"}, "float64").source


def test_powers() -> None:
    x = np.array([1.5, -2.0, 0.0, np.inf, -np.inf, np.nan, 1e-30, 1e200])
    written = {
        f"z{n}": f"x[i]**{'-' if power < 0 else ''}{abs(power)}"
        for n, power in enumerate(EXPONENTS)
    }
    results = program(written, "float64")(x=x)
    for n, power in enumerate(EXPONENTS):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(results[f"z{n}"], x**power, rtol=1e-12)


def test_complex_powers_overflow_as_numpys() -> None:
    x = np.array([1e200, 1e200j, -1e200 + 1j, complex(np.inf, 1), complex(1, np.inf), 3 + 4j])
    exponents = (1, 2, 3, 4, 5, 8)
    results = program({f"z{n}": f"x[i]**{n}" for n in exponents}, "complex128")(x=x)
    for n in exponents:
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(results[f"z{n}"], x**n, rtol=1e-12, err_msg=str(n))
