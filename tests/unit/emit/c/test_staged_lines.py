"""Staged targets whose rows begin and end within cache lines: whole lines are put together."""

import numpy as np
import pytest

import tcgen

CASES = [
    # The target's fastest axes: one; two of the rows; three of them; one, on which columns go on.
    ("aebd,ce->dcba", {"a": 47, "b": 31, "c": 23, "d": 39, "e": 23}),
    ("dabfe,fc->edcba", {"a": 23, "b": 15, "c": 21, "d": 4, "e": 23, "f": 13}),
    ("afbce,df->edcba", {"a": 3, "b": 5, "c": 11, "d": 19, "e": 47, "f": 31}),
    ("dacfe,fb->edcba", {"a": 23, "b": 21, "c": 7, "d": 4, "e": 23, "f": 13}),
    # Rows shorter than a line, and of a line and one element; fewer rows than a vector has lanes.
    ("aebd,ce->dcba", {"a": 3, "b": 2, "c": 5, "d": 2111, "e": 29}),
    ("aebd,ce->dcba", {"a": 9, "b": 70, "c": 1, "d": 17, "e": 29}),
    ("aebd,ce->dcba", {"a": 211, "b": 60, "c": 9, "d": 3, "e": 29}),
    # So many elements that a block ends within the fastest axis.
    ("adb,cd->cba", {"a": 521, "b": 33, "c": 17, "d": 25}),
]


@pytest.mark.few(12)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("labels", "extents"), CASES)
def test_lines_of_a_transposed_target(
    labels: str, extents: dict[str, int], dtype: str, threads: int
) -> None:
    """Nothing is written beside the target, wherever it begins."""
    random = np.random.default_rng(2)
    operands = [
        random.standard_normal([extents[c] for c in text]).astype(dtype)
        for text in labels.split("->")[0].split(",")
    ]
    assert max(x.size for x in operands) >= 2**17  # else they are packed
    expected = np.einsum(labels, *(x.astype("float64") for x in operands), optimize=True)
    tolerance = 1e-3 if dtype == "float32" else 1e-11
    try:
        tcgen.set_threads(threads)
        for offset in (0, 1, 5):
            memory = np.full(expected.size + 64, 7, dtype)
            start = -memory.ctypes.data % 64 // memory.itemsize + offset
            out = memory[start : start + expected.size].reshape(expected.shape)
            out[...] = np.nan
            tcgen.einsum(labels, *operands, out=out)
            np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)
            out[...] = 7
            assert (memory == 7).all()
    finally:
        tcgen.set_threads(None)
