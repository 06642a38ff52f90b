"""Contractions whose symmetric indices are one index: groups of rows, columns and sums."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.campaigns import cases
from support.contraction_programs import compiled_with
from support.symmetric_systems import CASES, EXTENTS, HEAD, PAIRS, TRIPLES, right, written
from tcgen.frontend.spec.reader import read_spec
from tcgen.interp import evaluate_system
from tcgen.options import OBJECTIVES
from tcgen.testing import assert_same_values, random_arrays
from tcgen.thresholds.cpu import CpuThresholds

SMALL = CpuThresholds(pair_copy_flops=0, pair_flops=1)  # small contractions are grouped too


@pytest.mark.few(3)
@pytest.mark.parametrize("packed", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("name", CASES)
def test_groups(name: str, packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values at planning extents and at others, where groups may have no value at all."""
    monkeypatch.setenv("TCGEN_VERIFY", "2")
    text = written(name, packed=packed)
    program = compiled_with(text, SMALL, {"o": 4, "v": 5})
    for o, v in ((4, 5), (1, 4), (0, 2), (3, 0), (5, 2)):
        right(text, program, {"o": o, "v": v}, "float64")


@pytest.mark.parametrize(
    ("name", "dtype"), list(product(["ladder", "a symmetric sum"], ["float32", "complex128"]))
)
def test_element_types(name: str, dtype: str) -> None:
    text = written(name, packed=True)
    program = compiled_with(text, SMALL, {"o": 4, "v": 5}, dtype=dtype)
    right(text, program, {"o": 4, "v": 5}, dtype)


@pytest.mark.few(2)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", ["sums of three", "an intermediate"])
def test_objectives(name: str, objective: str) -> None:
    """Plans that fuse loops also read and write packed arrays."""
    text = written(name, packed=True)
    program = compiled_with(text, SMALL, {"o": 4, "v": 5}, objective=objective)
    right(text, program, {"o": 5, "v": 4}, "float64")


@pytest.mark.parametrize("options", [{"target": "numpy"}, {"memory_limit": 40_000}])
def test_without_groups(options: dict[str, Any]) -> None:
    """NumPy, and a limit without room for copies: three packed axes in and out."""
    text = written("triples", packed=True).replace("r[o,o,o,v,v,v]", "r[o,o,o,v,v,v] @", 1)
    text = text.replace("@", f"{TRIPLES} packed (0,1,2) (3,4,5)")
    program = compiled_with(text, SMALL, {"o": 3, "v": 4}, **options)
    right(text, program, {"o": 4, "v": 3}, "float64")


def test_operands_stored_in_groups_are_used_in_place() -> None:
    """Neither a copy nor a dense result; the product has the extents of the groups."""
    program = compiled_with(written("ladder", packed=True), SMALL, {"o": 4, "v": 5})
    assert "tmp" not in program.source
    assert "r_dense" not in program.source
    assert "N_v*(N_v - 1)/2" in program.source


@pytest.mark.parametrize("name", ["a matrix times a vector", "inner products"])
def test_element_loops_walk_distinct_values(name: str) -> None:
    """No place of an element is looked up by its sorted indices, and nothing is copied."""
    program = compiled_with(
        written(name, packed=True), CpuThresholds(pair_flops=1), {"v": 9, "o": 9}
    )
    kernel = program.source.split("tcgen_product", 1)[1]
    assert "tc_triangle(" not in kernel
    assert "tc_simplex" not in kernel
    assert "tmp" not in kernel


def test_constants_are_gathered_once() -> None:
    """The copy of a constant is made by bind."""
    declared = f"w[v,v,v,v] {PAIRS}"
    text = written("ladder", packed=False).replace(declared, f"{declared} constant")
    program = compiled_with(text, SMALL, {"o": 4, "v": 5})
    assert "tcgen_product_0_constants" in program.source
    arrays = random_arrays(read_spec(text), {"o": 4, "v": 5}, seed=1)
    wanted = evaluate_system(read_spec(text), arrays, {"o": 4, "v": 5})
    bound = program.bind(w=arrays.pop("w"))
    assert_same_values(bound(**arrays), wanted)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", CASES)
def test_large_factors_are_gathered_in_slices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of one point and of a few, the last of them shorter."""
    monkeypatch.setenv("TCGEN_VERIFY", "2")
    text = written(name, packed=True)
    for most in (1, 40):
        program = compiled_with(text, replace(SMALL, gathered_slice=most), {"o": 4, "v": 5})
        for o, v in ((4, 5), (1, 4), (5, 2), (2, 0)):
            right(text, program, {"o": o, "v": v}, "float64")


@pytest.mark.slow
def test_slices_of_a_gathered_factor_take_less_memory() -> None:
    """Along an index of the target, and along a summed one where the product is added."""
    text = (
        f"{HEAD}input t[v,v,v,o,o,o] {TRIPLES} packed (0,1,2) (3,4,5)\n"
        "input w[o,v,v,o]\ninput x[o,o,v,v] antisymmetric (0,1)\ninput u[v,o,v,o]\n"
        "output r[v,v,v,o,o,o] antisymmetric (0,1) (4,5) packed (0,1) (4,5)\n"
        "output s[v,v,o,v] antisymmetric (0,1) packed (0,1)\n"
        "r[a,b,c,i,j,k] = P(a,b) P(j,k) x[j,i,a,c]*u[b,k,b,k]\n"
        "r[a,b,c,i,j,k] += t[d,a,b,l,j,k]*w[l,d,c,i]\n"
        "s[a,b,i,c] = t[d,a,b,j,k,i]*x[j,k,d,c]\n"
    )
    sizes = {"o": 5, "v": 6}
    whole = compiled_with(text, SMALL, sizes)
    sliced = compiled_with(text, replace(SMALL, gathered_slice=300), sizes)
    assert set(re.findall(r"for \(int64_t tmp\d+_(\w+) =", sliced.source)) == {"i", "l"}
    assert "for (int64_t tmp" not in whole.source
    assert whole.peak_bytes(sizes) - sliced.peak_bytes(sizes) > 8 * 2500
    right(text, sliced, sizes, "float64")


def test_small_contractions_stay_whole() -> None:
    """Every index is walked if the copies cost more than they save."""
    program = compiled_with(written("rows alone", packed=False), CpuThresholds(), {"o": 9, "v": 3})
    assert "(N_o - 1)/2" not in program.source


@st.composite
def contractions(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    """A contraction of two inputs with groups of up to four rows, columns and summed indices.

    Without rows or columns, or with a batch index of both inputs, it is not a matrix product.
    """
    words: dict[str, str] = {}
    groups: dict[str, tuple[str, ...]] = {}
    for kind, letters in (("m", "ijkl"), ("n", "abcd"), ("k", "efgh")):
        count = draw(st.integers(int(kind == "k"), 4 if kind == "m" else 2))
        groups[kind] = tuple(letters[:count])
        words[kind] = draw(st.sampled_from(["", "symmetric", "antisymmetric"])) if count > 1 else ""

    batch = ["q"] if draw(st.booleans()) else []

    def declared(name: str, kinds: tuple[str, str], out: bool = False) -> tuple[str, str]:
        first, second = (draw(st.permutations(groups[kind])) for kind in kinds)
        before = batch if draw(st.booleans()) else []
        axes = [*before, *first, *second, *(batch if not before else [])]
        text, start = "", len(before)
        for kind in kinds:
            count = len(groups[kind])
            if words[kind] and not (out and draw(st.booleans())):
                where = f"({','.join(map(str, range(start, start + count)))})"
                text += f" {words[kind]} {where}"
                text += f" packed {where}" if draw(st.booleans()) else ""
            start += count
        spaces = ",".join("o" if x in "ijklq" else "v" for x in axes)
        constant = " constant" if not out and draw(st.booleans()) else ""
        role = "output" if out else "input"
        if not axes:
            return f"{role} {name}{constant}", name
        return f"{role} {name}[{spaces}]{text}{constant}", f"{name}[{','.join(axes)}]"

    orders = draw(st.sampled_from([("m", "n"), ("n", "m")]))
    x, x_at = declared("x", ("m", "k") if draw(st.booleans()) else ("k", "m"))
    y, y_at = declared("y", ("n", "k") if draw(st.booleans()) else ("k", "n"))
    r, r_at = declared("r", orders, out=True)
    head = "space o\nspace v\nindex i j k l q : o\nindex a b c d e f g h : v\n"
    extents = {"o": draw(st.integers(0, 5)), "v": draw(st.integers(0, 5))}
    return f"{head}{x}\n{y}\n{r}\n{r_at} = -2/3*{x_at}*{y_at}\n{EXTENTS}", extents


@given(
    case=contractions(),
    dtype=st.sampled_from(["float64", "float32", "complex128"]),
    bound=st.booleans(),
)
@cases(6, 200)
def test_random_contractions(case: tuple[str, dict[str, int]], dtype: str, bound: bool) -> None:
    text, extents = case
    program: Any = compiled_with(text, SMALL, {"o": 4, "v": 4}, dtype=dtype)
    system = read_spec(text)
    arrays = random_arrays(system, extents, dtype=dtype, seed=5)
    wanted = evaluate_system(system, arrays, extents)
    if bound:
        constants = [t.name for t in system.tensors if t.is_input and not t.volatile]
        program = program.bind(**{name: arrays.pop(name) for name in constants})
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    assert_same_values(program(**arrays), wanted, rtol=tolerance, atol=tolerance)
