"""Large packed operands are unpacked slice by slice."""

from __future__ import annotations

import numpy as np
import pytest

import tcgen
from support.contraction_programs import compiled_with
from tcgen.frontend.spec.reader import read_spec
from tcgen.interp import evaluate_system
from tcgen.testing import random_arrays
from tcgen.thresholds.cpu import CpuThresholds

HEAD = """
space o occupied
space v virtual
index i j : o
index a b c d : v
"""
CASES = {
    "sum over half a pair": "input v[v,v,v,v] symmetric (0,1) (2,3) packed (0,1) (2,3)\n"
    "input t[o,o,v,v]\noutput r\nr[i,j,a,b] = t[i,j,a,b] - 1/2*v[c,a,d,b]*t[i,j,c,d]",
    "sum over a pair": "input v[v,v,v,v] antisymmetric (0,1) (2,3) packed (0,1) (2,3)\n"
    "input t[o,o,v,v]\noutput r\nr[i,j,a,b] = v[a,b,c,d]*t[i,j,c,d]",
    "one pair": "input v[o,v,v,v] symmetric (2,3) packed (2,3)\n"
    "input t[o,v]\noutput r\nr[i,j,a,b] = v[i,c,a,b]*t[j,c]",
    "pair in front": "input v[v,v,o] symmetric (0,1) packed (0,1)\n"
    "input t[o,v]\noutput r\nr[i,a,j] = v[a,b,i]*t[j,b]",
}


SMALL = CpuThresholds(largest_slice=20)  # slices of small operands


@pytest.mark.parametrize("name", CASES)
def test_slices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values at planning extents and at others; scratch is a part of the operand."""
    monkeypatch.setenv("TCGEN_VERIFY", "2")
    system = read_spec(HEAD + CASES[name] + "\n")
    program = compiled_with(HEAD + CASES[name] + "\n", SMALL, {"o": 5, "v": 7})
    assert "tmp1_" in program.source
    for extents in ({"o": 5, "v": 7}, {"o": 1, "v": 4}, {"o": 2, "v": 1}, {"o": 3, "v": 0}):
        arrays = random_arrays(system, extents, dtype="float64", seed=3)
        wanted = evaluate_system(system, arrays, extents)["r"]
        np.testing.assert_allclose(program(**arrays)["r"], wanted, rtol=1e-11, atol=1e-11)


def test_small_packed_factors_are_unpacked_for_the_kernel() -> None:
    """The kernel multiplies them like dense ones, where the BLAS would want both in an order."""
    text = f"{HEAD}input t[o,o,v,v] antisymmetric (0,1) (2,3) packed (0,1) (2,3)\n"
    text += "input w[o,v,v,o]\noutput r\nr[i,j,a,b] = t[i,k,a,c]*w[k,b,c,j]\n"
    text = text.replace("index i j", "index i j k")
    program = compiled_with(text, CpuThresholds(), {"o": 16, "v": 48})
    assert "tmp1[o,o,v,v]" in program.source
    assert "TC_PACK_A" in program.source
    system = read_spec(text)
    for extents in ({"o": 3, "v": 4}, {"o": 1, "v": 2}, {"o": 2, "v": 0}):
        arrays = random_arrays(system, extents, seed=6)
        wanted = evaluate_system(system, arrays, extents)["r"]
        np.testing.assert_allclose(program(**arrays)["r"], wanted, rtol=1e-11, atol=1e-11)


def test_threads() -> None:
    """The statements inside the loop over slices share the threads."""
    text = HEAD + CASES["sum over half a pair"] + "\n"
    extents = {"o": 9, "v": 14}
    arrays = random_arrays(read_spec(text), extents, dtype="float64", seed=3)
    program = compiled_with(text, SMALL, extents)
    tcgen.set_threads(1)
    one = program(**arrays)["r"]
    tcgen.set_threads(3)
    try:
        three = program(**arrays)["r"]
    finally:
        tcgen.set_threads(None)
    np.testing.assert_allclose(three, one, rtol=1e-13)


@pytest.mark.parametrize("largest", [20, 10**6])
def test_a_packed_factor_that_loops_around_the_statement_walk_is_read_in_place(
    largest: int,
) -> None:
    """Of each pair one index is walked by a loop that two statements share."""
    text = f"{HEAD}input v[v,v,v,v] symmetric (0,1) (2,3) packed (0,1) (2,3)\n"
    text += "input t[o,o,v,v]\noutput r\nw[i,j,a,b] = v[c,a,d,b]*t[i,j,c,d]\n"
    text += "r[i,a,k,e] = w[i,j,a,b]*w[k,j,e,b]\n"
    text = text.replace("index i j", "index i j k").replace("index a b", "index e a b")
    thresholds = CpuThresholds(largest_slice=largest)
    program = compiled_with(text, thresholds, {"o": 3, "v": 4}, objective="memory")
    assert program.report["memory"]["peak_bytes"] < 8 * 3**2 * 4**2 * 2
    system = read_spec(text)
    for extents in ({"o": 3, "v": 4}, {"o": 2, "v": 7}, {"o": 1, "v": 0}):
        arrays = random_arrays(system, extents, seed=6)
        wanted = evaluate_system(system, arrays, extents)["r"]
        np.testing.assert_allclose(program(**arrays)["r"], wanted, rtol=1e-11, atol=1e-11)


BLOCKS = ("i,a", "a,i", "i,k", "a,b", "i,p", "p,a", "p,q")


@pytest.mark.few(3)
@pytest.mark.parametrize("symmetry", ["symmetric", "antisymmetric"])
@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_of_packed_joined_axes(
    block: str, symmetry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block between two parts of a joined space has each element once, whole or in slices."""
    monkeypatch.setenv("TCGEN_VERIFY", "2")
    space = {"i": "o", "k": "o", "a": "v", "b": "v", "p": "g", "q": "g"}
    left, right = block.split(",")
    for summed, free in ((left, right), (right, left)):
        text = (
            "space o\nspace v\nspace g = o + v\nindex i j k l : o\nindex a b : v\nindex p q : g\n"
            f"input h[o,g,g] {symmetry} (1,2) packed (1,2)\ninput t[{space[summed]},o]\n"
            f"output r\nr[l,{free},j] = h[l,{block}]*t[{summed},j]\n"
        )
        system = read_spec(text)
        for thresholds in (CpuThresholds(), SMALL):
            program = compiled_with(text, thresholds, {"o": 6, "v": 9})
            for extents in ({"o": 6, "v": 9}, {"o": 4, "v": 1}, {"o": 0, "v": 3}):
                arrays = random_arrays(system, extents, dtype="float64", seed=3)
                wanted = evaluate_system(system, arrays, extents)["r"]
                np.testing.assert_allclose(program(**arrays)["r"], wanted, rtol=1e-11, atol=1e-11)
