"""Loops of operands that lie across each other: blocks, whose values are the interpreter's."""

from __future__ import annotations

import numpy as np
import pytest

import tcgen
from support.contraction_programs import compiled_with, program_for
from tcgen.ir.loops import Assign, Module
from tcgen.runtime.program import Program
from tcgen.thresholds.cpu import CpuThresholds

EXTENTS = dict(zip("abcde", (7, 9, 5, 6, 11), strict=True))


# Small operands count, in blocks that end within them.
SMALL = CpuThresholds(tlb_pages=-1, copied_points=0, block_side=4)


def is_blocked(module: Module) -> bool:
    """True where one of the statements has blocks."""
    return any(isinstance(s, Assign) and len(s.block) == 2 for s in module.kernels[0].body)


def run(program: Program, labels: str, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """A program's result beside NumPy's in double precision."""
    random = np.random.default_rng(2)
    arrays = []
    for text in labels.split("->")[0].split(","):
        x = random.standard_normal([EXTENTS[c] for c in text])
        x = x + 1j * random.standard_normal(x.shape) if dtype == "complex128" else x
        arrays.append(x.astype(dtype))
    got = program(**{f"x{n}": x for n, x in enumerate(arrays)})["y"]
    wide = [x.astype(np.result_type(dtype, np.float64)) for x in arrays]
    return got, np.einsum(labels, *wide, optimize=True)


@pytest.mark.few(4)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize(
    "labels",
    [
        "abcd,cdab->",  # a full sum
        "abc,cba->",
        "abc,cba->b",  # one sum over all blocked indices
        "abc,cba->a",  # a sum over part of them
        "abc,cba->c",
        "abcd,cdab->ba",
        "abcd,dcba->ad",  # blocked indices without a sum
        "ead,eda->ad",  # sums outside of the blocks
        "abcd,dcba->bdca",  # a permutation
    ],
)
def test_values(labels: str, dtype: str, threads: int) -> None:
    program, module = program_for(labels, EXTENTS, dtype, SMALL)
    assert is_blocked(module)
    try:
        tcgen.set_threads(threads)
        got, expected = run(program, labels, dtype)
    finally:
        tcgen.set_threads(None)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("labels", "extents", "blocked"),
    [
        ("abcd,cdab->", (20, 20, 100, 100), True),  # the same line again after 10,000 others
        ("abcd,cdab->a", (20, 20, 100, 100), True),
        ("abcd,abdc->", (20, 20, 100, 100), False),  # after a hundred
        ("abcd,adcb->", (20, 100, 20, 100), False),  # after 2000 in 390 pages
        ("ab,ba->ab", (3000, 3000), True),
        ("ab,ba->ab", (1000, 1000), False),
        ("ab,ab->", (3000, 3000), False),
    ],
)
def test_what_is_near_is_read_as_it_lies(
    labels: str, extents: tuple[int, ...], blocked: bool
) -> None:
    _, module = program_for(labels, dict(zip("abcd", extents, strict=False)), "float64")
    assert is_blocked(module) == blocked


@pytest.mark.parametrize("names", [("wide", "sums"), ("sum", "threads"), ("re", "parts")])
@pytest.mark.parametrize("extents", [(9, 7), (1, 1), (5, 0), (0, 5), (4, 33)])
def test_names_of_indices_are_not_those_of_the_generated_code(
    names: tuple[str, str], extents: tuple[int, int]
) -> None:
    a, b = names
    program = compiled_with(
        f"space m = 40\nspace k = 37\nindex {a} : m\nindex {b} : k\ninput x[m,k], z[k,m]\n"
        f"output y, e\ny[{a}] = x[{a},{b}]*z[{b},{a}]\ne = x[{a},{b}]*z[{b},{a}]\n",
        SMALL,
    )
    assert "tc_sums" in program.source
    random = np.random.default_rng(4)
    x, z = random.standard_normal(extents), random.standard_normal(extents[::-1])
    out = program(x=x, z=z)
    np.testing.assert_allclose(out["y"], (x * z.T).sum(axis=1), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(out["e"], (x * z.T).sum(), rtol=1e-12, atol=1e-13)


def test_a_tile_of_one_element_has_nothing_across():
    """The unit-stride axis of a tile is not its last one where that holds one element."""
    text = """
        space x = 1000
        space o = 1
        space v = 1000
        index Q : x
        index m : o
        index d : v
        input A[x,o] generated
        input e_v[v]
        output r
        r[m,d] = sum(Q) A[Q,m]*A[Q,m]*A[Q,m]*e_v[d]
    """
    program = tcgen.compile(text, target="cpu")
    random = np.random.default_rng(4)
    a, e = random.random((1000, 1)), random.random(40)

    def produce(out, ranges):
        out[...] = a[ranges]

    np.testing.assert_allclose(
        program(A=produce, e_v=e)["r"], np.outer((a**3).sum(0), e), rtol=1e-12
    )
