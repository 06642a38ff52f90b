"""Batches of products: transposed copies of parts that a cache holds."""

from __future__ import annotations

import re

import numpy as np
import pytest

from support.contraction_programs import compiled_with
from tcgen.frontend.spec.reader import read_spec
from tcgen.interp import evaluate_system
from tcgen.testing import random_arrays
from tcgen.thresholds.cpu import CpuThresholds

HEAD = """
space o = 5
space v = 16
space X = 11
index i j : o
index a b : v
index P : X
"""
CASES = {
    "batch of stride 1": "input A[o,v,v,X], B[o,v,v,X]\noutput r[o,o,X]\n"
    "r[i,j,P] = A[i,a,b,P]*B[j,b,a,P]",
    "added": "input A[o,v,v,X], B[o,v,v,X], s[o,o,X]\noutput r[o,o,X]\n"
    "r[i,j,P] = s[i,j,P] - A[i,a,b,P]*B[j,a,b,P]",
    "slowest batch": "input A[X,o,v,v], B[X,o,v,v]\noutput r[X,o,o]\n"
    "r[P,i,j] = A[P,i,a,b]*B[P,j,b,a]",
}
SMALL = CpuThresholds(
    slice_elements=40, cached_operand=4, copied_operand=4, thin_side=16, batch_products=0
)


@pytest.mark.few(3)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("name", CASES)
def test_parts_of_operands(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values at planning extents and at others; a copy holds a part of its operand."""
    monkeypatch.setenv("TCGEN_VERIFY", "2")
    text = HEAD + CASES[name] + "\n"
    system = read_spec(text)
    program = compiled_with(text, SMALL, {"o": 5, "v": 16, "X": 11}, dtype=dtype)
    assert re.search(r"for \(int64_t tmp\d+_\w+ = 0;", program.source), "no loop over parts"
    for extents in ((5, 16, 11), (1, 9, 8), (7, 2, 3), (4, 1, 17), (3, 0, 2), (2, 3, 0)):
        named = dict(zip(("o", "v", "X"), extents, strict=True))
        arrays = random_arrays(system, named, dtype=dtype, seed=4)
        wanted = evaluate_system(system, arrays, named)["r"]
        tolerance = 1e-4 if dtype == "float32" else 1e-11
        np.testing.assert_allclose(program(**arrays)["r"], wanted, rtol=tolerance, atol=tolerance)
