"""Copies between layouts are transposed by squares in registers."""

from __future__ import annotations

import numpy as np
import pytest

import tcgen
from tcgen.frontend.spec.reader import read_spec
from tcgen.interp import evaluate_system
from tcgen.testing import random_arrays

HEAD = """
space o = 11
space v = 37
index i j : o
index a b : v
"""
COPIES = {
    "matrix": "input x[v,o]\noutput y[o,v]\ny[i,a] = -3*x[a,i]",
    "added": "input x[v,o], z[o,v]\noutput y[o,v]\ny[i,a] = z[i,a]\ny[i,a] += 1/2*x[a,i]",
    "joined axes": "input x[o,v,o]\noutput y[o,o,v]\ny[j,i,a] = x[i,a,j]",
    "axes around": "input x[o,o,v]\noutput y[v,o,o]\ny[a,i,j] = x[i,j,a]",
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("name", COPIES)
def test_transpositions(name: str, dtype: str) -> None:
    """Rows and columns that are no multiple of a square, none, and one."""
    text = HEAD + COPIES[name] + "\n"
    system = read_spec(text)
    program = tcgen.compile(text, target="cpu", dtype=dtype)
    assert ("tc_transpose_" in program.source) == (dtype != "complex128")
    for extents in ((11, 37), (37, 11), (8, 16), (1, 40), (5, 1), (3, 0), (33, 65)):
        named = dict(zip("ov", extents, strict=True))
        arrays = random_arrays(system, named, dtype=dtype, seed=5)
        wanted = evaluate_system(system, arrays, named)["y"]
        tolerance = 1e-6 if dtype == "float32" else 1e-13
        np.testing.assert_allclose(program(**arrays)["y"], wanted, rtol=tolerance, atol=tolerance)


def test_blocks_are_divided_among_threads() -> None:
    program = tcgen.compile(HEAD + COPIES["joined axes"] + "\n", extents={"o": 70, "v": 90})
    x = np.random.default_rng(0).random((70, 90, 70))
    for threads in (1, 3):
        tcgen.set_threads(threads)
        try:
            np.testing.assert_array_equal(program(x=x)["y"], x.transpose(2, 0, 1))
        finally:
            tcgen.set_threads(None)


def test_a_diagonal_is_no_transposition() -> None:
    x = np.random.default_rng(0).random((4, 4, 6, 4))
    got = tcgen.einsum("jjkj,k->kj", x, np.ones(6), optimize=False)
    np.testing.assert_allclose(got, np.einsum("jjkj,k->kj", x, np.ones(6)))
    program = tcgen.compile(HEAD + "input x[o,o,v,o]\noutput y[o,v]\ny[i,a] = x[i,i,a,i]\n")
    x = np.random.default_rng(0).random((9, 9, 70, 9))
    np.testing.assert_array_equal(program(x=x)["y"], np.einsum("iiai->ia", x))
