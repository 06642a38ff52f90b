"""Contractions whose target is transposed in a buffer, block by block."""

from __future__ import annotations

import numpy as np
import pytest

import tcgen
from support.contraction_programs import contraction_of, program_for
from tcgen.ir.loops import Gemm


@pytest.mark.few(6)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "labels",
    [
        "aebd,ce->dcba",  # rows b, d in one run of the operand
        "afbce,df->edcba",  # rows b, c, e in one run, in another order in the target
        "dacfe,fb->edcba",  # rows d and c apart from e
        "acd,db->cba",  # columns hold the target's fastest axis
    ],
)
@pytest.mark.parametrize("even", [True, False])
def test_staged_rows_of_several_axes(labels: str, even: bool, threads: int) -> None:
    """Groups of rows that end within an axis, at its end, or go on in the next one."""
    large, small = labels.split("->")[0].split(",")
    sizes = {3: (48, 72, 40), 4: (16, 24, 16, 24), 5: (16, 24, 8, 16, 24)}[len(large)]
    extents = {c: n if even else n + 1 + n % 3 for c, n in zip(large, sizes, strict=True)}
    extents |= {c: 24 if even else 21 for c in small if c not in large}
    program, module = program_for(labels, extents, "float64")
    (product,) = module.kernels[0].body
    assert isinstance(product, Gemm)
    assert product.scheme is not None
    assert product.scheme.stage
    random = np.random.default_rng(3)
    operands = [
        random.standard_normal([extents[c] for c in text])
        for text in labels.split("->")[0].split(",")
    ]
    expected = np.einsum(labels, *operands, optimize=True)
    try:
        tcgen.set_threads(threads)
        got = program(x0=operands[0], x1=operands[1])["y"]
    finally:
        tcgen.set_threads(None)
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.few(8)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "labels",
    [
        "afbce,df->edcba",  # rows of the target of a and b, cut into blocks
        "aebd,ce->dcba",
        "dafe,fb->edba",  # the columns follow each other
        "dafe,fb->deba",
        "dabe,ec->dcba",  # rows c are packed, columns a and b transposed
    ],
)
def test_lines_that_go_on_in_the_next_block(labels: str, threads: int, dtype: str) -> None:
    """Rows of the target that begin and end within lines, in blocks that share them."""
    extents = {"a": 37, "b": 11, "c": 5, "d": 59, "e": 23, "f": 17}
    program, module = program_for(labels, extents, dtype)
    scheme = contraction_of(module).scheme
    assert scheme is not None
    assert scheme.stage
    random = np.random.default_rng(4)
    operands = [
        random.standard_normal([extents[c] for c in text]).astype(dtype)
        for text in labels.split("->")[0].split(",")
    ]
    expected = np.einsum(labels, *operands, optimize=True)
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    for offset in (0, 1, 5):
        memory = np.zeros(expected.size + 64, dtype)
        start = -memory.ctypes.data % 64 // memory.itemsize + offset
        out = memory[start : start + expected.size].reshape(expected.shape)
        try:
            tcgen.set_threads(threads)
            program(x0=operands[0], x1=operands[1], out={"y": out})
        finally:
            tcgen.set_threads(None)
        np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)
        out[...] = 0
        assert not memory.any()


@pytest.mark.parametrize("labels", ["aebd,ce->dcba", "dabe,ec->dcba"])
def test_staged_programs_run_at_extents_that_no_stage_holds(labels: str) -> None:
    """More summed points than a block has, and extents of 1 that leave nothing to turn."""
    program, _ = program_for(labels, dict.fromkeys("abd", 72) | {"c": 24, "e": 24}, "float64")
    random = np.random.default_rng(2)
    operands = labels.split("->")[0].split(",")
    for e, rest in ((401, 3), (9, 1)):
        extents = dict.fromkeys("abcd", rest) | {"e": e, "a": 7}
        arrays = [random.standard_normal([extents[c] for c in text]) for text in operands]
        expected = np.einsum(labels, *arrays, optimize=True)
        np.testing.assert_allclose(program(x0=arrays[0], x1=arrays[1])["y"], expected, atol=1e-11)


@pytest.mark.parametrize(
    ("labels", "sizes"),
    [
        ("aebd,ce->dcba", {"a": 24, "b": 11, "c": 24, "d": 72, "e": 67}),  # each point on a page
        ("adb,cd->cba", {"a": 24, "b": 312, "c": 24, "d": 118}),  # memory is read as it lies
        ("aefbd,cfe->dcba", {"a": 16, "b": 9, "c": 17, "d": 80, "e": 5, "f": 13}),
        ("afecb,efd->bdac", {"a": 16, "b": 9, "c": 24, "d": 2, "e": 9, "f": 24}),  # short runs
    ],
)
def test_long_sums_by_parts(labels: str, sizes: dict[str, int]) -> None:
    """Summed points on many pages, of one axis or two."""
    program, module = program_for(labels, sizes, "float64")
    scheme = contraction_of(module).scheme
    assert scheme is not None
    assert scheme.stage
    random = np.random.default_rng(5)
    arrays = [
        random.standard_normal([sizes[c] for c in text])
        for text in labels.split("->")[0].split(",")
    ]
    expected = np.einsum(labels, *arrays, optimize=True)
    np.testing.assert_allclose(program(x0=arrays[0], x1=arrays[1])["y"], expected, atol=1e-11)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_of_two_axes_that_begin_on_lines(dtype: str) -> None:
    """Lines are put together where only the shorter of the row's axes is no whole line."""
    labels, sizes = "cdeab,ne->bcnad", {"a": 72, "b": 23, "c": 24, "d": 2, "e": 118, "n": 16}
    program, _ = program_for(labels, sizes, dtype)
    random = np.random.default_rng(6)
    arrays = [random.standard_normal([sizes[c] for c in t]).astype(dtype) for t in ("cdeab", "ne")]
    expected = np.einsum(labels, *arrays, optimize=True)
    got = program(x0=arrays[0], x1=arrays[1])["y"]
    assert got.ctypes.data % 64 == 0
    np.testing.assert_allclose(got, expected, atol=1e-3 if dtype == "float32" else 1e-11)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("labels", "sizes"),
    [
        ("adb,cd->cba", {"a": 24, "b": 400, "c": 24, "d": 40}),  # the only run of rows
        ("xadb,cd->xcba", {"x": 2, "a": 16, "b": 416, "c": 21, "d": 40}),  # a run in each batch
        ("aebd,ce->dcba", {"a": 24, "b": 12, "c": 24, "d": 48, "e": 40}),  # of two axes
        ("aedbf,ce->fdcba", {"a": 16, "b": 8, "c": 24, "d": 3, "e": 17, "f": 64}),
        ("adb,cd->cba", {"a": 24, "b": 401, "c": 24, "d": 40}),  # each begins in another lane
    ],
)
def test_long_rows_of_operands_that_begin_within_lines(
    labels: str, sizes: dict[str, int], dtype: str
) -> None:
    """Panels begin on vectors of the operand, so that the first one is shorter; none reads more."""
    program, module = program_for(labels, sizes, dtype)
    scheme = contraction_of(module).scheme
    assert scheme is not None
    assert scheme.stage
    random = np.random.default_rng(7)
    inputs, output = labels.split("->")
    shapes = [[sizes[c] for c in text] for text in inputs.split(",")]
    large, small = (random.standard_normal(shape).astype(dtype) for shape in shapes)
    expected = np.einsum(labels, large, small, optimize=True)
    for offset in (0, 1, 2, 7, 11):
        memory = np.full(large.size + 64, np.nan, dtype)
        start = -memory.ctypes.data % 64 // memory.itemsize + offset
        operand = memory[start : start + large.size].reshape(large.shape)
        operand[...] = large
        out = np.full([sizes[c] for c in output], np.nan, dtype)
        program(x0=operand, x1=small, out={"y": out})
        np.testing.assert_allclose(out, expected, atol=1e-3 if dtype == "float32" else 1e-11)
