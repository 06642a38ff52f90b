"""Products of a matrix and a vector, and sums over lines: one pass over the large operand."""

from __future__ import annotations

import numpy as np
import pytest

import tcgen
from support.contraction_programs import program_for
from support.marks import slow
from tcgen.compiler.target import default_target
from tcgen.testing import assert_same_values
from tcgen.thresholds.cpu import CpuThresholds

SPEC = """
space m = 30
space k = 40
index i : m
index p : k
input a[m,k], b[k,m], x[k]
output y accumulate
output z
y[i] += 3/2*a[i,p]*x[p]
z[i] = -b[p,i]*x[p]
"""

# Rows of a page and more, of which eight are read at a time, by pieces of 8192 elements.
LONG = [(8, 1024), (19, 1100), (1100, 19), (13, 8200), (8200, 13), (7, 2000)]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("dtype", "most"), [("float64", ""), ("float32", ""), ("complex128", ""), ("float64", "100")]
)
def test_matrix_times_vector(dtype: str, most: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``most``, the BLAS takes no larger dimensions, as if they had more than 32 bits."""
    if default_target() != "cpu":
        pytest.skip("no C compiler")
    if most:
        monkeypatch.setenv("TCGEN_CC", f"cc -DTC_BLAS_MOST={most}")
    program = tcgen.compile(SPEC, target="cpu", dtype=dtype)
    assert "tc_gemm" in program.source
    rng = np.random.default_rng(5)
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    for m, k in [
        (1, 1),
        (1, 300),
        (300, 1),
        (257, 17),
        (31, 521),
        (513, 512),
        (3, 0),
        (0, 3),
        *LONG,
    ]:
        arrays = {"a": (m, k), "b": (k, m), "x": (k,), "y": (m,)}
        arrays = {n: rng.standard_normal(s) for n, s in arrays.items()}
        if dtype == "complex128":
            arrays = {n: a + 1j * rng.standard_normal(a.shape) for n, a in arrays.items()}
        arrays = {n: a.astype(dtype) for n, a in arrays.items()}
        start = arrays.pop("y")
        wanted = {
            "y": start + 1.5 * arrays["a"] @ arrays["x"],
            "z": -arrays["b"].T @ arrays["x"],
        }
        out = program(**arrays, out={"y": start.copy()})
        assert_same_values(out, {n: w.astype(dtype) for n, w in wanted.items()}, rtol=tolerance)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "text", ["bij,bj->bi", "bji,bj->bi", "ib,ijb->jb", "ij,jab->iab", "ij,i->"]
)
def test_batches_and_single_rows(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if default_target() != "cpu":
        pytest.skip("no C compiler")
    monkeypatch.setenv("TCGEN_EINSUM_MIN_FLOPS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "cpu")
    rng = np.random.default_rng(6)
    for extents in ({"b": 3, "i": 5, "j": 19, "a": 1}, {"b": 1, "i": 1, "j": 33, "a": 2}):
        terms = text.partition("->")[0].split(",")
        arrays = [rng.standard_normal([extents[c] for c in term]) for term in terms]
        np.testing.assert_allclose(
            tcgen.einsum(text, *arrays), np.einsum(text, *arrays), rtol=1e-12
        )


@pytest.mark.parametrize("threads", [1, 2])
def test_long_sums_of_single_precision(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One float for each lane of a vector would be off by 1e-4 here, and by 8 % at 2e7 elements."""
    if default_target() != "cpu":
        pytest.skip("no C compiler")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "cpu")
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    array = np.full((2, 1_500_000), 0.1, "float32")
    tcgen.set_threads(threads)
    try:
        total, rows = tcgen.einsum("ij->", array), tcgen.einsum("ij->i", array)
        squares = tcgen.einsum("ij,ij->", array, array)
        mean = np.asarray(tcgen.lazy(array).mean())
    finally:
        tcgen.set_threads(None)
    assert {x.dtype for x in (total, rows, squares, mean)} == {np.dtype("float32")}
    np.testing.assert_allclose([total, *rows], [3e5, 1.5e5, 1.5e5], rtol=1e-6)
    np.testing.assert_allclose([squares, mean], [3e4, 0.1], rtol=1e-6)


@pytest.mark.parametrize("text", ["ij->j", "ija->aj", "ija,ia->ja", "iajb,ij->ba"])
def test_long_sums_of_single_precision_over_slow_axes(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Points are added to an array in memory: floats there would be off by 1e-2."""
    if default_target() != "cpu":
        pytest.skip("no C compiler")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "cpu")
    extents = {"i": 1_000_000, "j": 2, "a": 3, "b": 2}
    terms = text.partition("->")[0].split(",")
    values = (0.1, 1.0)
    arrays = [
        np.full([extents[c] for c in term], value, "float32")
        for term, value in zip(terms, values, strict=False)
    ]
    found = tcgen.einsum(text, *arrays)
    summed = np.prod([extents[c] for c in set(text) - set(text.partition("->")[2] + ",->")])
    np.testing.assert_allclose(found, summed * np.float64(np.float32(0.1)), rtol=1e-6)


@pytest.mark.parametrize("objective", ["none", "memory", "kernels"])
def test_long_sums_of_single_precision_in_fused_loops(objective: str) -> None:
    if default_target() != "cpu":
        pytest.skip("no C compiler")
    text = """
    space n = 3000000
    index i : n
    input x[n]
    output s accumulate
    output d
    u[i] = x[i]*x[i]
    s += sum(i) u[i]
    d = sum(i) exp(x[i]) - 2*u[i]*x[i]
    """
    program = tcgen.compile(text, target="cpu", dtype="float32", objective=objective)
    out = program(x=np.full(3_000_000, 0.1, "float32"), out={"s": np.array(7.0, "float32")})
    assert {a.dtype for a in out.values()} == {np.dtype("float32")}
    assert float(out["s"]) == pytest.approx(3e4 + 7, rel=1e-6)
    assert float(out["d"]) == pytest.approx(3e6 * (np.exp(0.1) - 0.002), rel=1e-6)


@pytest.mark.few(5)
@pytest.mark.parametrize("target", ["cpu", "numpy"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(
    ("text", "line"),
    [("ijab->ab", "y[b] += "), ("ij->j", "y[j] += "), ("ijab,ijab->ja", "y[")],
)
def test_sums_line_by_line(text: str, line: str, dtype: str, target: str) -> None:
    """Where the operand runs along with the target; planned for long lines, right for all."""
    if target == "cpu" and default_target() != "cpu":
        pytest.skip("no C compiler")
    letters = sorted({c for c in text if c.isalpha()})
    program = tcgen.compile(
        text, extents=dict.fromkeys(letters, 12), target=target, dtype=dtype, objective="none"
    )
    if target == "cpu":
        assert line in program.source
    rng = np.random.default_rng(8)
    for width in (0, 1, 7, 12, 40):
        terms = text.partition("->")[0].split(",")
        arrays = [rng.standard_normal([width + ord(c) % 3 for c in term]) for term in terms]
        arrays = [a.astype(dtype) for a in arrays]
        found = program(**{f"x{n}": a for n, a in enumerate(arrays)})["y"]
        assert_same_values(found, np.einsum(text, *arrays), rtol=1e-12)


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["float64", *slow("float32", "complex128")])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("text", ["mk,kv->mv", "mk,vk->vm", "km,vk->mv", "vk,km->vm"])
def test_a_few_vectors(text: str, threads: int, dtype: str) -> None:
    """Long lines and a rest, longer than the pieces that are read together."""
    if default_target() != "cpu":
        pytest.skip("no C compiler")
    every_size = CpuThresholds(gemv_length=1, gemv_matrix=1)
    rng = np.random.default_rng(7)
    for m, k, v in [(523, 1037, 3), (60, 8300, 7), (4100, 70, 2)]:
        extents = {"m": m, "k": k, "v": v}
        arrays = [rng.standard_normal([extents[c] for c in term]) for term in text[:5].split(",")]
        if dtype == "complex128":
            arrays = [x + 1j * rng.standard_normal(x.shape) for x in arrays]
        arrays = [x.astype(dtype) for x in arrays]
        room = np.full(m * v + 8, 7, dtype)
        out = room[3:-5].reshape([extents[c] for c in text[-2:]])
        program, _ = program_for(text, extents, dtype, every_size)
        try:
            tcgen.set_threads(threads)
            program(**{f"x{n}": x for n, x in enumerate(arrays)}, out={"y": out})
        finally:
            tcgen.set_threads(None)
        expected = np.einsum(text, *arrays, optimize=True)
        tolerance = 1e-4 if dtype == "float32" else 1e-11
        np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance * np.sqrt(k))
        assert (room[:3] == 7).all()
        assert (room[-5:] == 7).all()
