"""Loops and copies in the order of memory: what is read once, what is turned first, what is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcgen
from support.marks import slow
from tcgen.compiler.driver import compile_system
from tcgen.compiler.target import default_target
from tcgen.frontend.einsum import LabelPattern, einsum_system
from tcgen.ir.loop_analysis import statements
from tcgen.ir.loops import Assign, Gemm, Module
from tcgen.options import Options
from tcgen.runtime.program import Program

needs_compiler = pytest.mark.skipif(default_target() != "cpu", reason="no C compiler")


def compiled(text: str, extents: dict[str, int], **options: Any) -> tuple[Program, Module]:
    """An einsum as the driver compiles it for extents of its letters."""
    inputs, output = text.split("->")
    letters = list(dict.fromkeys(inputs.replace(",", "")))
    number = {c: n for n, c in enumerate(letters)}
    terms = tuple(tuple(number[c] for c in term) for term in inputs.split(","))
    system = einsum_system(LabelPattern(terms, tuple(number[c] for c in output)), None)
    names = [space.name for space in system.spaces]
    planning = tuple(sorted((s, extents[c]) for s, c in zip(names, letters, strict=True)))
    made = compile_system(system, Options(extents=planning, target="cpu", **options))
    return Program(made.artifact), made.module


def body(module: Module) -> list[Assign | Gemm]:
    """Statements of a module, loops over slices left away."""
    found = [s for kernel in module.kernels for s, _ in statements(kernel.body)]
    return [s for s in found if isinstance(s, Assign | Gemm)]


def compare(program: Program, text: str, extents: dict[str, int], dtype: str = "float64") -> None:
    """The program's values beside NumPy's, at given extents, at 0, 1, and at others around them."""
    rng = np.random.default_rng(4)
    inputs = text.split("->")[0].split(",")
    for change in (lambda n: n, lambda n: n + 3, lambda n: max(1, n - 1), lambda _: 1, lambda _: 0):
        shapes = [[change(extents[c]) for c in term] for term in inputs]
        arrays = [rng.standard_normal(shape) for shape in shapes]
        if dtype == "complex128":
            arrays = [a + 1j * rng.standard_normal(a.shape) for a in arrays]
        arrays = [a.astype(dtype) for a in arrays]
        wanted = np.einsum(text, *arrays, optimize=True)
        found = program(**{f"x{n}": a for n, a in enumerate(arrays)})["y"]
        scale = 1 + float(np.abs(wanted).max(initial=0))
        limit = scale * (1e-4 if dtype == "float32" else 1e-12)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=limit)


VECTORS = {
    "vector turned": ("bc,cba->a", {"a": 4, "b": 50, "c": 60}),
    "result turned": ("dacb,d->cba", {"d": 20, "a": 10, "c": 6, "b": 30}),
    "both turned": ("cde,cedab->ba", {"c": 3, "e": 9, "d": 8, "a": 11, "b": 17}),
    "a batch of them": (
        "gfea,abdcfeg->abcd",
        dict(zip("abcdefg", (3, 9, 7, 2, 5, 6, 4), strict=True)),
    ),
    "short rows": ("ad,abcd->abc", {"a": 15, "b": 15, "c": 31, "d": 8}),
}


@pytest.mark.few(2)
@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", *slow("float32", "complex128")])
@pytest.mark.parametrize("name", VECTORS)
def test_vectors_are_transposed_and_the_matrix_is_not(name: str, dtype: str) -> None:
    text, extents = VECTORS[name]
    program, module = compiled(text, extents, dtype=dtype)
    (product,) = (s for s in body(module) if isinstance(s, Gemm))
    assert product.scheme is None
    large = max(("x0", "x1"), key=lambda n: len(module.buffer(n).axes))
    assert large in (product.a.buffer, product.b.buffer)
    compare(program, text, extents, dtype)


STREAMS = {
    # Text, extents, loops of the sum, and buffers of lowering's own.
    "a batch that is fastest": (
        "ecfbda,afe->adbc",
        {"a": 9, "b": 4, "c": 5, "d": 20, "e": 6, "f": 7},
        "cefbda",
        2,
    ),
    "sums between": ("aibj,ij->ba", {"a": 30, "b": 12, "i": 20, "j": 18}, "aibj", 1),
    "sums in front": ("iabj,ji,b->ba", {"a": 30, "b": 12, "i": 20, "j": 18}, None, None),
    "in the order of the target": ("iab,ib->ab", {"a": 40, "b": 600, "i": 20}, "aib", 0),
    "one operand": ("iajb->ba", {"i": 9, "a": 12, "j": 11, "b": 30}, "iajb", 1),
}


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", *slow("float32", "complex128")])
@pytest.mark.parametrize("name", STREAMS)
def test_the_largest_operand_is_walked_as_it_lies(name: str, dtype: str) -> None:
    text, extents, loops, scratch = STREAMS[name]
    program, module = compiled(text, extents, dtype=dtype)
    if loops is not None:
        letters = list(dict.fromkeys(text.split("->")[0].replace(",", "")))
        (summing,) = (s for s in body(module) if isinstance(s, Assign) and _sums(s))
        names = {s.name: c for s, c in zip(module.spaces, letters, strict=True)}
        assert "".join(names[v.space.name] for v in summing.band) == loops
        if dtype == "float32" and name == "in the order of the target":
            # The sum is formed in double precision.
            scratch = 1
        assert len([b for b in module.buffers if b.tensor is None]) == scratch
    compare(program, text, extents, dtype)


def _sums(stmt: Assign) -> bool:
    return any(v.name not in stmt.out.variables for v in stmt.band)


@pytest.mark.few(2)
@needs_compiler
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("text", ["ia,i->a", "ai,i->a", "ia,i->", "iab,ib->ba", "aibj,ij->ba"])
def test_threads_share_long_sums(text: str, threads: int) -> None:
    """Few elements of a target, of which each is a sum that threads add up piece by piece."""
    extents = {"a": 5, "b": 3, "i": 40_001, "j": 4}
    program, _ = compiled(text, {c: extents[c] for c in set(text) - set(",->")})
    tcgen.set_threads(threads)
    try:
        compare(program, text, extents)
    finally:
        tcgen.set_threads(None)


TURNED = {
    # Text, extents, and how many axes each buffer of lowering's own has.
    "rows": ("eba,ecd->cdab", {"a": 16, "b": 999, "c": 8, "d": 14, "e": 50}, [3]),
    "rows of which one more is whole": (
        "ebfa,ecd->cdfab",
        {"a": 16, "b": 100, "c": 8, "d": 14, "e": 50, "f": 9},
        [4],
    ),
    "a small operand": ("eba,ecd->cdab", {"a": 16, "b": 99, "c": 80, "d": 4, "e": 50}, [3]),
    "columns in their own order": ("ea,ecb->bca", {"a": 300, "b": 60, "c": 40, "e": 50}, []),
    "columns of short sums": ("ea,ecb->bca", {"a": 3000, "b": 60, "c": 100, "e": 5}, [3]),
    "a batch that is fastest": ("eah,ebh->bha", {"a": 50, "b": 60, "e": 40, "h": 20}, [3, 3]),
}


@pytest.mark.few(2)
@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", *slow("float32", "complex128")])
@pytest.mark.parametrize("name", TURNED)
def test_operands_of_another_order_are_transposed(name: str, dtype: str) -> None:
    text, extents, ranks = TURNED[name]
    program, module = compiled(text, extents, dtype=dtype)
    (product,) = (s for s in body(module) if isinstance(s, Gemm))
    assert product.scheme is not None
    assert [len(b.axes) for b in module.buffers if b.tensor is None] == ranks
    compare(program, text, extents, dtype)


@needs_compiler
def test_slices_hold_a_part_of_a_large_operand() -> None:
    text, extents, _ = TURNED["rows"]
    program, _ = compiled(text, extents)
    arrays = {"x0": np.zeros((50, 999, 16)), "x1": np.zeros((50, 8, 14))}
    wanted = program(**arrays)["y"].nbytes
    assert program.allocated_bytes < wanted + arrays["x0"].nbytes


@needs_compiler
@pytest.mark.parametrize("name", ["rows", "columns of short sums", "a batch that is fastest"])
def test_a_memory_limit_leaves_nothing_to_turn(name: str) -> None:
    text, extents, _ = TURNED[name]
    output = text.split("->")[1]
    count = 8 * int(np.prod([extents[c] for c in output]))
    program, module = compiled(text, extents, memory_limit=count)
    assert not [b for b in module.buffers if b.tensor is None]
    compare(program, text, {c: min(n, 7) for c, n in extents.items()})
