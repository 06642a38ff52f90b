"""Sums that threads divide: small targets of long sums, in the generated contraction kernel."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tcgen

# Long sums over one index and several, of operands that lie along and across them, and a batch.
CASES = {
    "along": ("ik,jk->ij", {"i": 17, "j": 9, "k": 8009}),
    "across": ("ki,kj->ji", {"i": 13, "j": 11, "k": 7993}),
    "several": ("kilm,mjlk->ij", {"i": 7, "j": 10, "k": 17, "l": 13, "m": 23}),
    "in rectangles": ("dac,bcd->ba", {"a": 25, "b": 8, "c": 61, "d": 67}),
    "of a batch": ("kxil,xjlk->xij", {"x": 2, "i": 9, "j": 15, "k": 683, "l": 3}),
    "into a target of four": (
        "kabl,cdkl->cadb",
        {"a": 3, "b": 4, "c": 2, "d": 5, "k": 43, "l": 79},
    ),
}

TWICE = """
space o occupied
space x auxiliary
index i j : o
index K : x
input A[o,x], B[o,x], C[x,o]
output R[o,o]
R[i,j] = A[i,K] * B[j,K]
R[i,j] += - 1/2 * C[K,i] * B[j,K]
"""


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    yield
    tcgen.set_threads(None)


def operands(labels: str, extents: dict[str, int], dtype: str) -> list[np.ndarray]:
    random = np.random.default_rng(7)
    found = []
    for letters in labels.split("->")[0].split(","):
        shape = [extents[c] for c in letters]
        array = random.standard_normal(shape).astype(dtype)
        if dtype == "complex128":
            array += 1j * random.standard_normal(shape)
        found.append(array)
    return found


@pytest.mark.few(8)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("name", CASES)
def test_parts_of_a_sum_add_up(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same values on any number of threads, and the same bits at each call."""
    monkeypatch.setenv("TCGEN_EINSUM_MIN_FLOPS", "0")
    labels, extents = CASES[name]
    arrays = operands(labels, extents, dtype)
    wanted = np.einsum(labels, *(x.astype(np.result_type(dtype, np.float64)) for x in arrays))
    tolerance = 2e-4 if dtype == "float32" else 1e-11
    bits = {}
    for count in (1, 2, 3, 4, 8, 24):
        tcgen.set_threads(count)
        found = {tcgen.einsum(labels, *arrays, optimize=True).tobytes() for _ in range(3)}
        assert len(found) == 1
        (bits[count],) = found
        values = np.frombuffer(bits[count], dtype).reshape(wanted.shape)
        np.testing.assert_allclose(values, wanted, rtol=tolerance, atol=tolerance * 100)
    # Targets have few tiles: which numbers of threads divide the sum depends on the processor.
    assert len(set(bits.values())) > 1


@pytest.mark.parametrize("count", [1, 2, 5, 16])
def test_parts_are_added_to_what_is_there(count: int) -> None:
    """The second term adds to the first one; its operand is transposed."""
    program = tcgen.compile(TWICE, extents={"o": 14, "x": 20011})
    random = np.random.default_rng(2)
    a, b, c = (random.standard_normal(shape) for shape in ((14, 20011), (14, 20011), (20011, 14)))
    tcgen.set_threads(count)
    out = {"R": np.full((14, 14), np.nan)}
    found = program(A=a, B=b, C=c, out=out)["R"]
    np.testing.assert_allclose(found, a @ b.T - (b @ c).T / 2, rtol=1e-11, atol=1e-9)
